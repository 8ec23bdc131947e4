//! Journals and copies that a power cut tore, in every place and both at once; and ones that are damaged, empty or gone.

use super::*;
use std::fs;

/// The name of what is open.
const LAUNCH: &str = "launch";

/// A folder with a journal of four lines and its copy; with a developer at work, or settled.
struct Torn {
    dir: tempfile::TempDir,
    whole: Vec<u8>,
}

impl Torn {
    fn new(at_work: bool) -> Torn {
        // In memory where there is such a folder: there are thousands of syncs to wait for.
        let dir = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let (path, copy) = (dir.path().join("events.jsonl"), dir.path().join("copy"));
        let (mut journal, ..) = Journal::open_kept(&path, &copy).unwrap();
        let developer = Subject {
            actor: "developer".to_owned(),
            ..Subject::default()
        };
        append(&mut journal, &Subject::default(), Kind::RunStart, None);
        append(
            &mut journal,
            &developer,
            Kind::Launch,
            Some(("intent", LAUNCH)),
        );
        append(
            &mut journal,
            &developer,
            Kind::Exit,
            Some(("said", "has answered")),
        );
        let settled = (!at_work).then_some(("settled", "yes"));
        append(&mut journal, &Subject::default(), Kind::Check, settled);
        let whole = fs::read(&path).unwrap();
        assert_eq!(fs::read(&copy).unwrap(), whole);
        Torn { dir, whole }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("events.jsonl")
    }

    fn copy(&self) -> PathBuf {
        self.dir.path().join("copy")
    }

    /// Where the last line begins.
    fn last(&self) -> usize {
        let before = &self.whole[..self.whole.len() - 1];
        before.iter().rposition(|b| *b == b'\n').unwrap() + 1
    }

    fn write(&self, journal: &[u8], copy: &[u8]) {
        fs::write(self.path(), journal).unwrap();
        fs::write(self.copy(), copy).unwrap();
    }

    /// Opens it, and holds that it is whole, can be gone on with, and that the next start finds nothing amiss.
    fn goes_on_with(&self, lines: usize, case: &str) -> Vouched {
        let (mut journal, found, vouched) = Journal::open_kept(&self.path(), &self.copy())
            .unwrap_or_else(|e| panic!("{case}: {e:#}"));
        assert_eq!(found.len(), lines, "{case}");
        let line = append(&mut journal, &Subject::default(), Kind::Stop, None);
        assert_eq!(line.seq, lines as u64 + 1, "{case}");
        drop(journal);
        let text = fs::read(self.path()).unwrap();
        assert_eq!(fs::read(self.copy()).unwrap(), text, "{case}");
        let known = self.whole.split_inclusive(|b| *b == b'\n').take(lines);
        assert!(
            text.starts_with(&known.collect::<Vec<_>>().concat()),
            "{case}"
        );
        let (_, again, now) = Journal::open_kept(&self.path(), &self.copy()).unwrap();
        assert_eq!((again.len(), now), (lines + 1, Vouched::Whole), "{case}");
        vouched
    }
}

fn append(
    journal: &mut Journal,
    subject: &Subject,
    event: Kind,
    field: Option<(&str, &str)>,
) -> Line {
    let source = Source {
        run: "r1".to_owned(),
        issue: 42,
        skill_commit: None,
    };
    let fields = field.map(|(key, text)| (key.to_owned(), Value::from(text)));
    journal
        .append(&source, subject, event, Map::from_iter(fields))
        .unwrap()
}

#[test]
fn a_power_cut_that_tears_the_last_line_anywhere_here_and_in_the_copy_costs_that_line_at_most() {
    for at_work in [false, true] {
        let torn = Torn::new(at_work);
        let (from, end) = (torn.last(), torn.whole.len());
        let some = [from, from + 1, (from + end) / 2, end - 1, end];
        let cuts =
            (from..=end).flat_map(|cut| some.iter().flat_map(move |s| [(cut, *s), (*s, cut)]));
        for (journal, copy) in cuts {
            torn.write(&torn.whole[..journal], &torn.whole[..copy]);
            // A line counts as soon as it is whole in the copy, wherever its writing to the journal was cut off.
            let lines = if copy == end { 4 } else { 3 };
            let case =
                format!("at work: {at_work}, journal cut at {journal}, copy at {copy} of {end}");
            let vouched = torn.goes_on_with(lines, &case);
            // What stands whole in the journal and not in the copy was not written in that order by a conductor.
            let expected = match journal == end && copy < end {
                true => Vouched::PutBack,
                false => Vouched::Whole,
            };
            assert_eq!(vouched, expected, "{case}");
        }
    }
}

#[test]
fn a_tail_of_zeros_as_a_power_cut_leaves_it_is_set_aside_like_any_other() {
    let torn = Torn::new(false);
    let from = torn.last();
    for (zeros, half) in [(1, 0), (4096, 0), (4096, 9)] {
        let tail = [&torn.whole[..from + half], &vec![0; zeros]].concat();
        torn.write(&tail, &tail);
        let (journal, lines, _) = Journal::open_kept(&torn.path(), &torn.copy()).unwrap();
        assert_eq!(lines.len(), 3);
        let aside = fs::read(journal.torn().unwrap()).unwrap();
        assert_eq!(aside, tail[from..]);
        drop(journal);
        torn.goes_on_with(3, "zeros");
    }
}

#[test]
fn an_empty_journal_is_brought_back_and_an_empty_or_missing_copy_is_made_anew() {
    let torn = Torn::new(false);
    torn.write(b"", &torn.whole);
    assert_eq!(torn.goes_on_with(4, "empty journal"), Vouched::PutBack);
    for half in [0, 7] {
        torn.write(&torn.whole, &torn.whole[..half]);
        assert_eq!(
            torn.goes_on_with(4, "torn first line of the copy"),
            Vouched::Whole
        );
    }
    torn.write(&torn.whole, b"");
    fs::remove_file(torn.copy()).unwrap();
    assert_eq!(torn.goes_on_with(4, "no copy"), Vouched::Whole);
    torn.write(b"", b"");
    assert_eq!(torn.goes_on_with(0, "both are empty"), Vouched::Whole);
    // While a developer is at work, neither an empty nor a missing journal is a person's doing.
    let torn = Torn::new(true);
    torn.write(b"", &torn.whole);
    assert_eq!(
        torn.goes_on_with(4, "empty journal, at work"),
        Vouched::PutBack
    );
    torn.write(b"", &torn.whole);
    fs::remove_file(torn.path()).unwrap();
    assert_eq!(
        torn.goes_on_with(4, "no journal, at work"),
        Vouched::PutBack
    );
}

#[test]
fn every_damaged_line_before_the_last_is_named_with_the_way_to_mend_it_and_nothing_is_written() {
    let torn = Torn::new(false);
    let lines: Vec<&[u8]> = torn.whole.split_inclusive(|b| *b == b'\n').collect();
    type Damage<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;
    let damage: [Damage<'_>; 4] = [
        &|line| [&line[..line.len() / 2], b"\n"].concat(),
        &|line| [&vec![0; line.len() - 1][..], b"\n"].concat(),
        &|_| Vec::new(),
        &|line| line.repeat(2),
    ];
    for (at, line) in lines[..3].iter().enumerate() {
        for (kind, damage) in damage.iter().enumerate() {
            let damaged = [
                &lines[..at].concat()[..],
                &damage(line),
                &lines[at + 1..].concat(),
            ]
            .concat();
            torn.write(&damaged, &torn.whole);
            let error = Journal::open_kept(&torn.path(), &torn.copy()).unwrap_err();
            let bail = error.downcast_ref::<Bail>().unwrap();
            assert_eq!(bail.cause, Cause::StorageFailed);
            let named = if kind == 3 { at + 2 } else { at + 1 };
            let detail = &bail.detail;
            assert!(
                detail.starts_with(&format!("line {named} of the journal")),
                "{detail}"
            );
            // The copy has all of it: a person is told so, and it is theirs to believe it.
            assert!(
                detail.contains(&format!("cp '{}'", torn.copy().display())),
                "{detail}"
            );
            assert_eq!(fs::read(torn.path()).unwrap(), damaged);
            assert_eq!(fs::read(torn.copy()).unwrap(), torn.whole);
            // Doing as told mends it.
            fs::copy(torn.copy(), torn.path()).unwrap();
            torn.goes_on_with(4, "mended");
            // Without a copy there is nothing to mend it with, and none is spoken of.
            torn.write(&damaged, &damaged);
            let error = Journal::open_kept(&torn.path(), &torn.copy()).unwrap_err();
            assert!(!format!("{error:#}").contains("cp "), "{error:#}");
        }
    }
}

#[test]
fn a_copy_that_is_damaged_in_the_middle_is_made_anew_from_the_journal() {
    let torn = Torn::new(false);
    let from = torn.last() - 20;
    let damaged = [&torn.whole[..from], b"\0\0", &torn.whole[from + 2..]].concat();
    torn.write(&torn.whole, &damaged);
    assert_eq!(torn.goes_on_with(4, "damaged copy"), Vouched::Whole);
}
