//! Journals that somebody else writes on, cuts, locks or blows up meanwhile.

use super::*;

#[test]
fn two_writers_number_their_lines_in_one_row() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    let mut one = Journal::open(&path).unwrap().0;
    let mut two = Journal::open(&path).unwrap().0;
    append(&mut one, Kind::RunStart);
    append(&mut two, Kind::Launch);
    append(&mut one, Kind::RunEnd);
    let seqs: Vec<u64> = read(&path).unwrap().iter().map(|l| l.seq).collect();
    assert_eq!(seqs, [1, 2, 3]);
}

#[test]
fn a_journal_that_is_cut_short_while_it_is_in_use_is_not_written_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    let mut journal = Journal::open(&path).unwrap().0;
    append(&mut journal, Kind::RunStart);
    let first = std::fs::read(&path).unwrap();
    append(&mut journal, Kind::Launch);
    std::fs::write(&path, &first).unwrap();
    let error = journal
        .append(&source(), &Subject::default(), Kind::RunEnd, Map::new())
        .unwrap_err();
    assert!(format!("{error:#}").contains("cut short"), "{error:#}");
    assert_eq!(std::fs::read(&path).unwrap(), first);
}

#[test]
fn a_lock_that_is_never_given_back_is_an_error_that_names_its_holder() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    let (mut journal, _) = Journal::open(&path).unwrap();
    let other = File::open(&path).unwrap();
    other.lock().unwrap();
    let me = format!("process {}", std::process::id());
    let is_named = |error: anyhow::Error| {
        let bail = error.downcast_ref::<Bail>().unwrap();
        assert_eq!(bail.cause, Cause::StorageFailed);
        let named = bail.detail.contains(&me) && bail.detail.contains("run again");
        assert!(
            named || !Path::new("/proc/locks").exists(),
            "{}",
            bail.detail
        );
    };
    let written = journal.append(&source(), &Subject::default(), Kind::RunEnd, Map::new());
    is_named(written.unwrap_err());
    is_named(Journal::open(&path).unwrap_err());
    other.unlock().unwrap();
    append(&mut journal, Kind::RunStart);
}

#[test]
fn somebody_who_keeps_the_journals_lock_does_not_hold_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _, mut journal) = kept(dir.path());
    let other = File::open(&path).unwrap();
    other.lock().unwrap();
    let before = std::fs::read(&path).unwrap();
    let line = append(&mut journal, Kind::Check);
    let lines = read(&path).unwrap();
    assert_eq!(lines.last(), Some(&line));
    assert!(std::fs::read(&path).unwrap().starts_with(&before));
    assert!(journal.mend().unwrap(), "it is said");
}

#[test]
fn a_journal_larger_than_any_is_not_read_into_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    File::create(&path).unwrap().set_len(2 << 40).unwrap();
    for error in [read(&path).unwrap_err(), Journal::open(&path).unwrap_err()] {
        let bail = error.downcast_ref::<Bail>().unwrap();
        assert!(bail.detail.contains("larger than any"), "{}", bail.detail);
    }
}
