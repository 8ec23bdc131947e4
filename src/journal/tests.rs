//! The journal's promises, on files.

use super::*;

mod shared;

fn source() -> Source {
    Source {
        run: "r1".to_owned(),
        issue: 42,
        skill_commit: None,
    }
}

fn append(journal: &mut Journal, event: Kind) -> Line {
    journal
        .append(&source(), &Subject::default(), event, Map::new())
        .unwrap()
}

#[test]
fn lines_come_back_as_they_were_written_and_are_numbered() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    let (mut journal, before) = Journal::open(&path).unwrap();
    assert!(before.is_empty());
    let first = append(&mut journal, Kind::RunStart);
    let second = append(&mut journal, Kind::RunEnd);
    assert_eq!((first.seq, second.seq), (1, 2));
    assert_eq!(Journal::open(&path).unwrap().1, vec![first, second]);
}

#[test]
fn a_torn_last_line_is_set_aside_and_said() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    append(&mut Journal::open(&path).unwrap().0, Kind::RunStart);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&whole[..], b"{\"v\":1,\"se"].concat()).unwrap();
    let (mut journal, lines) = Journal::open(&path).unwrap();
    assert_eq!(lines.len(), 1);
    assert_eq!(
        std::fs::read(journal.torn().unwrap()).unwrap(),
        b"{\"v\":1,\"se"
    );
    assert_eq!(append(&mut journal, Kind::RunEnd).seq, 2);
}

#[test]
fn a_damaged_line_in_the_middle_is_named_and_never_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    append(&mut Journal::open(&path).unwrap().0, Kind::RunStart);
    let good = std::fs::read(&path).unwrap();
    for damaged in [&b"garbage\n"[..], &good] {
        std::fs::write(&path, [&good[..], damaged, &good[..]].concat()).unwrap();
        let error = Journal::open(&path).unwrap_err();
        assert!(
            format!("{error:#}").contains("line 2 of the journal"),
            "{error:#}"
        );
        let bail = error.downcast_ref::<crate::cause::Bail>().unwrap();
        assert_eq!(bail.cause, crate::cause::Cause::StorageFailed);
    }
}

#[test]
fn a_field_that_would_stand_twice_in_a_line_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(&dir.path().join("events.jsonl")).unwrap();
    let line = append(&mut journal, Kind::RunStart);
    let Value::Object(written) = serde_json::to_value(&line).unwrap() else {
        panic!("no object")
    };
    assert!(written.keys().all(|key| Line::KEYS.contains(&key.as_str())));
    for key in Line::KEYS {
        let fields = Map::from_iter([(key.to_owned(), Value::from(1))]);
        let subject = Subject::default();
        let error = journal.append(&source(), &subject, Kind::Check, fields);
        assert!(format!("{:#}", error.unwrap_err()).contains(key));
    }
    assert_eq!(append(&mut journal, Kind::RunEnd).seq, 2);
}

#[test]
fn a_spoilt_journal_is_put_back_and_told_lines_stay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    let (mut journal, _) = Journal::open(&path).unwrap();
    append(&mut journal, Kind::RunStart);
    append(&mut journal, Kind::Launch);
    assert!(!journal.mend().unwrap());
    let good = std::fs::read(&path).unwrap();
    let spoil: [&dyn Fn(); 5] = [
        &|| std::fs::remove_file(&path).unwrap(),
        &|| std::fs::write(&path, &good[1..]).unwrap(),
        &|| std::fs::write(&path, [&good[..], b"garbage\n"].concat()).unwrap(),
        &|| {
            std::fs::write(dir.path().join("x"), &good)
                .and_then(|()| std::fs::rename(dir.path().join("x"), &path))
                .unwrap()
        },
        &|| {
            std::fs::remove_file(&path)
                .and_then(|()| std::fs::create_dir(&path))
                .unwrap()
        },
    ];
    for spoil in spoil {
        spoil();
        assert!(journal.mend().unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), good);
    }
    // What `veri leaf` tells meanwhile is nobody's fault; what could be replayed is.
    tell(&path);
    assert!(!journal.mend().unwrap());
    let fields = Map::from_iter([("input".to_owned(), Value::Null)]);
    let mut other = Journal::open(&path).unwrap().0;
    other
        .append(&source(), &Subject::default(), Kind::Exit, fields)
        .unwrap();
    assert!(journal.mend().unwrap());
    assert_eq!(append(&mut journal, Kind::RunEnd).seq, 3);
}

/// `veri leaf`, beside a run.
fn by_leaf() -> Source {
    Source {
        run: LEAF_RUN.to_owned(),
        ..source()
    }
}

/// What it writes.
fn tell(path: &Path) {
    Journal::open(path)
        .unwrap()
        .0
        .append(&by_leaf(), &Subject::default(), Kind::Exit, Map::new())
        .unwrap();
}

#[test]
fn a_line_in_the_form_of_veri_leaf_carries_no_word_of_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy, mut journal) = kept(dir.path());
    let good = std::fs::read(&path).unwrap();
    let forge = |run: &str, field: &str| {
        let source = Source {
            run: run.to_owned(),
            ..source()
        };
        let fields = Map::from_iter([(field.to_owned(), Value::from("x"))]);
        let mut other = Journal::open(&path).unwrap().0;
        other
            .append(&source, &Subject::default(), Kind::Exit, fields)
            .unwrap();
    };
    let fields = [
        "edit", "settled", "left", "put_back", "ending", "finding", "cause",
    ];
    for field in fields {
        forge(LEAF_RUN, field);
        assert!(journal.mend().unwrap(), "{field}");
    }
    forge("another-run", "end");
    assert!(journal.mend().unwrap(), "under the name of another start");
    drop(journal);
    for field in fields {
        forge(LEAF_RUN, field);
        let (_, lines, vouched) = Journal::open_kept(&path, &copy).unwrap();
        assert_eq!((vouched, lines.len()), (Vouched::PutBack, 2), "{field}");
        assert_eq!(std::fs::read(&path).unwrap(), good);
    }
}

/// A journal with a copy, in which a developer is at work.
fn kept(dir: &Path) -> (PathBuf, PathBuf, Journal) {
    let (path, copy) = (dir.join("events.jsonl"), dir.join("copy"));
    let (mut journal, _, vouched) = Journal::open_kept(&path, &copy).unwrap();
    assert_eq!(vouched, Vouched::Whole);
    append(&mut journal, Kind::RunStart);
    let developer = Subject {
        actor: "developer".to_owned(),
        ..Subject::default()
    };
    let intent = Map::from_iter([("intent".to_owned(), Value::from("launch"))]);
    journal
        .append(&source(), &developer, Kind::Launch, intent)
        .unwrap();
    (path, copy, journal)
}

fn forge(path: &Path) {
    let input = Map::from_iter([("input".to_owned(), Value::from("forged"))]);
    let mut other = Journal::open(path).unwrap().0;
    other
        .append(&source(), &Subject::default(), Kind::Exit, input)
        .unwrap();
}

#[test]
fn a_copy_brings_back_what_was_spoilt_while_nobody_watched() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy, journal) = kept(dir.path());
    drop(journal);
    let good = std::fs::read(&path).unwrap();
    let vouched = || Journal::open_kept(&path, &copy).unwrap().2;
    assert_eq!(vouched(), Vouched::Whole);
    tell(&path);
    let more = std::fs::read(&path).unwrap();
    assert_eq!(vouched(), Vouched::Whole);
    assert_eq!(std::fs::read(&path).unwrap(), more, "veri leaf may tell");
    let spoil: [&dyn Fn(); 4] = [
        &|| std::fs::write(&path, [&more[..], b"garbage\n"].concat()).unwrap(),
        &|| std::fs::write(&path, &good[1..]).unwrap(),
        &|| std::fs::remove_file(&path).unwrap(),
        &|| forge(&path),
    ];
    for spoil in spoil {
        spoil();
        assert_eq!(vouched(), Vouched::PutBack);
        assert_eq!(std::fs::read(&path).unwrap(), more);
    }
}

#[test]
fn a_forged_input_counts_for_nothing_whether_anybody_is_at_work_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy, mut journal) = kept(dir.path());
    let settled = Map::from_iter([("settled".to_owned(), Value::from(true))]);
    journal
        .append(&source(), &Subject::default(), Kind::Check, settled)
        .unwrap();
    drop(journal);
    let good = std::fs::read(&path).unwrap();
    forge(&path);
    let (_, lines, vouched) = Journal::open_kept(&path, &copy).unwrap();
    assert_eq!((vouched, lines.len()), (Vouched::PutBack, 3));
    assert_eq!(std::fs::read(&path).unwrap(), good);
}

#[test]
fn a_line_of_ours_that_follows_a_forged_one_does_not_vouch_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy, mut journal) = kept(dir.path());
    let good = std::fs::read(&path).unwrap();
    let spoil: [&dyn Fn(); 5] = [
        &|| forge(&path),
        &|| {
            std::fs::write(
                &path,
                [&std::fs::read(&path).unwrap()[..], b"{\"v\":1"].concat(),
            )
            .unwrap()
        },
        &|| std::fs::write(&path, &good[1..]).unwrap(),
        &|| std::fs::remove_file(&path).unwrap(),
        &|| {
            std::fs::remove_file(&path)
                .and_then(|()| std::fs::create_dir(&path))
                .unwrap()
        },
    ];
    for (seq, spoil) in (3..).zip(spoil) {
        spoil();
        assert_eq!(append(&mut journal, Kind::Stop).seq, seq);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(std::str::from_utf8(&good).unwrap()));
        assert!(!text.contains("forged"), "{text}");
        assert_eq!(std::fs::read_to_string(&copy).unwrap(), text);
        assert!(journal.mend().unwrap(), "it is told afterwards");
        assert!(!journal.mend().unwrap(), "once");
    }
    drop(journal);
    let (_, lines, vouched) = Journal::open_kept(&path, &copy).unwrap();
    assert_eq!((vouched, lines.len()), (Vouched::Whole, 7));
    // What `veri leaf` tells meanwhile stays, and is counted.
    let (mut journal, ..) = Journal::open_kept(&path, &copy).unwrap();
    tell(&path);
    assert_eq!(append(&mut journal, Kind::Stop).seq, 9);
    assert!(!journal.mend().unwrap());
}

#[test]
fn a_line_that_tells_has_nothing_in_it_that_anything_could_be_concluded_from() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy, mut journal) = kept(dir.path());
    let tell = |key: &str| {
        let fields = Map::from_iter([(key.to_owned(), Value::from(true))]);
        let mut other = Journal::open(&path).unwrap().0;
        let (source, subject) = (by_leaf(), Subject::default());
        other.append(&source, &subject, Kind::Exit, fields).unwrap();
    };
    for key in [
        "settled",
        "put_back",
        "head_tree",
        "finding",
        "edit",
        "intent",
    ] {
        tell(key);
        assert!(journal.mend().unwrap(), "{key}");
    }
    for key in ["leaf", "launch", "end"] {
        tell(key);
        assert!(!journal.mend().unwrap(), "{key}");
    }
    drop(journal);
    assert_eq!(Journal::open_kept(&path, &copy).unwrap().2, Vouched::Whole);
    tell("settled");
    assert_eq!(
        Journal::open_kept(&path, &copy).unwrap().2,
        Vouched::PutBack
    );
}

#[test]
fn a_journal_that_somebody_blew_up_is_not_read_into_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy, mut journal) = kept(dir.path());
    let good = std::fs::read(&path).unwrap();
    // Sparse: it takes no room on the disk, and would take all of the memory.
    let blow_up = || {
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(1 << 40).unwrap();
    };
    blow_up();
    assert!(journal.mend().unwrap());
    assert_eq!(std::fs::read(&path).unwrap(), good);
    blow_up();
    append(&mut journal, Kind::Stop);
    let good = std::fs::read(&path).unwrap();
    drop(journal);
    blow_up();
    let (_, lines, vouched) = Journal::open_kept(&path, &copy).unwrap();
    assert_eq!((vouched, lines.len()), (Vouched::PutBack, 3));
    assert_eq!(std::fs::read(&path).unwrap(), good);
}

#[test]
fn a_line_whose_writing_was_cut_off_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy, journal) = kept(dir.path());
    drop(journal);
    let good = std::fs::read(&path).unwrap();
    let first = good.iter().position(|b| *b == b'\n').unwrap() + 1;
    for cut in [&good[..first], &good[..first + 7]] {
        std::fs::write(&path, cut).unwrap();
        let (_, lines, vouched) = Journal::open_kept(&path, &copy).unwrap();
        assert_eq!((vouched, lines.len()), (Vouched::Whole, 2));
    }
}

#[test]
fn without_its_copy_nothing_is_believed_that_was_written_after_a_launch() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy, journal) = kept(dir.path());
    drop(journal);
    let good = std::fs::read(&path).unwrap();
    forge(&path);
    for spoil in [&|| std::fs::remove_file(&copy).unwrap() as (), &|| {
        std::fs::write(&copy, "garbage").unwrap()
    }] as [&dyn Fn(); 2]
    {
        spoil();
        let (_, lines, vouched) = Journal::open_kept(&path, &copy).unwrap();
        assert_eq!((vouched, lines.len()), (Vouched::CutBack, 2));
        assert_eq!(std::fs::read(&path).unwrap(), good);
    }
}

#[test]
fn a_journal_that_a_person_moved_away_does_not_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("events.jsonl"), dir.path().join("copy"));
    append(
        &mut Journal::open_kept(&path, &copy).unwrap().0,
        Kind::RunStart,
    );
    std::fs::remove_file(&path).unwrap();
    let (mut journal, lines, vouched) = Journal::open_kept(&path, &copy).unwrap();
    assert_eq!((lines.len(), vouched), (0, Vouched::Whole));
    assert_eq!(append(&mut journal, Kind::RunStart).seq, 1);
}
