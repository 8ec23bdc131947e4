use super::*;
use crate::forge::conformance::{MARKER, conformance};
use std::fs;
use std::io;
use tempfile::TempDir;

fn forge_with(files: &[(&str, &[u8])]) -> (TempDir, DirectoryForge) {
    let folder = TempDir::new().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let forge = DirectoryForge::new(folder.path());
    (folder, forge)
}

fn issue_1() -> (TempDir, DirectoryForge) {
    forge_with(&[("issues/1/issue.md", b"---\ntitle: T\n---\n\nBody\n")])
}

fn bail(error: &anyhow::Error) -> &Bail {
    error.downcast_ref().unwrap()
}

#[test]
fn it_is_a_forge() {
    let (_folder, forge) = issue_1();
    conformance(&forge, 1);
    assert!(!forge.needs_remote());
    assert_eq!(forge.issue_ref(1), "#1");
}

#[test]
fn an_issue_is_read_with_its_front_matter() {
    let (_folder, forge) = forge_with(&[(
        "issues/42/issue.md",
        b"\xef\xbb\xbf---\r\ntitle: \"Reject: $(x)\"\r\nstate: closed\r\nauthor: ann\r\n\
          author_association: member\r\nlabels: [bug, good first]\r\nlocked: true\r\nx: y\r\n---\r\n\r\nBody\r\n",
    )]);
    let issue = forge.issue(42).unwrap();
    assert_eq!(
        (issue.number(), issue.title(), issue.body()),
        (42, "Reject: $(x)", "Body")
    );
    assert_eq!(
        (issue.author(), issue.association()),
        (Some("ann"), Association::Member)
    );
    assert_eq!(issue.labels(), ["bug", "good first"]);
    assert!(!issue.is_open() && issue.is_locked() && !issue.is_pull());
    assert_eq!(issue.hash().len(), 64);
}

#[test]
fn only_the_title_is_required_and_nobody_named_is_the_owner() {
    let (folder, forge) = issue_1();
    let issue = forge.issue(1).unwrap();
    assert!(issue.is_open());
    assert_eq!(
        (issue.author(), issue.association()),
        (None, Association::Owner)
    );
    let hash = issue.hash();
    fs::write(
        folder.path().join("issues/1/issue.md"),
        "---\ntitle: T\n---\n\nBody.\n",
    )
    .unwrap();
    assert_ne!(forge.issue(1).unwrap().hash(), hash);
}

#[test]
fn unreadable_issues_are_named_with_their_line() {
    for (text, words) in [
        (&b"no front matter"[..], "title: What should change"),
        (b"---\nstate: open\n---\nBody", "`title: "),
        (b"---\ntitle: T\nstate: done\n---\nBody", "line 3: `state`"),
        (
            b"---\ntitle: T\nauthor_association: BOSS\n---\nBody",
            "line 3: `author_association`",
        ),
        (
            b"---\ntitle: T\n---\nBod\xff",
            "line 4 is not UTF-8 (byte 20)",
        ),
        (b"---\ntitle: T\n", "line 1"),
    ] {
        let (_folder, forge) = forge_with(&[("issues/1/issue.md", text)]);
        let error = forge.issue(1).unwrap_err();
        assert_eq!(bail(&error).cause, Cause::NeedsUser);
        assert!(
            bail(&error).detail.contains(words),
            "{}",
            bail(&error).detail
        );
        assert!(bail(&error).detail.contains("issues/1/issue.md"));
    }
}

#[test]
fn a_missing_issue_says_what_there_is_and_how_to_make_one() {
    let (folder, forge) = issue_1();
    fs::create_dir(folder.path().join("pulls")).unwrap();
    fs::write(folder.path().join("pulls/7.md"), "---\ntitle: P\n---\n").unwrap();
    let detail = bail(&forge.issue(7).unwrap_err()).detail.clone();
    for words in [
        "issues/7/issue.md",
        "It has: 1.",
        "pulls/7.md is a pull request",
        "title:",
        "veri tdd",
    ] {
        assert!(detail.contains(words), "{words}: {detail}");
    }
    let nowhere = DirectoryForge::new(folder.path().join("absent"));
    assert_eq!(bail(&nowhere.issue(1).unwrap_err()).cause, Cause::NeedsUser);
    assert!(
        !folder.path().join("absent").exists(),
        "reading makes nothing"
    );
    let a_file = DirectoryForge::new(folder.path().join("pulls/7.md"));
    assert!(
        bail(&a_file.issue(1).unwrap_err())
            .detail
            .contains("a forge is a directory")
    );
}

#[test]
fn large_bodies_are_read_up_to_the_cap() {
    let of = |bytes: usize| {
        let mut text = b"---\ntitle: T\n---\n".to_vec();
        text.resize(bytes, b'x');
        forge_with(&[("issues/1/issue.md", &text)])
    };
    let (_folder, forge) = of(1024 * 1024);
    assert!(forge.issue(1).unwrap().body().len() > 1_000_000);
    let (_folder, forge) = of(MAX_FILE_BYTES as usize);
    assert!(forge.issue(1).is_ok());
    let (_folder, forge) = of(MAX_FILE_BYTES as usize + 1);
    assert!(
        bail(&forge.issue(1).unwrap_err())
            .detail
            .contains("larger than 8 MiB")
    );
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let (folder, forge) = issue_1();
    let path = folder.path().join("issues/2");
    fs::create_dir(&path).unwrap();
    nix::unistd::mkfifo(&path.join("issue.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(
        bail(&forge.issue(2).unwrap_err())
            .detail
            .contains("not a regular file")
    );
}

#[test]
fn a_folder_that_cannot_be_read_is_the_forges_failure_and_keeps_the_io_error() {
    let (_folder, forge) = forge_with(&[("issues", b"a file where a folder should be")]);
    for error in [
        forge.issue(1).unwrap_err(),
        forge.comments(1).unwrap_err(),
        forge
            .file_issue(Path::new("x.md"), b"# T\nBody")
            .unwrap_err(),
    ] {
        assert_eq!(bail(&error).cause, Cause::ForgeFailed, "{error:#}");
        assert!(error.chain().any(|e| e.is::<io::Error>()));
    }
}

#[test]
fn a_full_disk_is_left_to_the_storage_to_be_named() {
    let error = files::failed(io::ErrorKind::StorageFull.into(), "Writing x".to_owned());
    assert!(error.downcast_ref::<Bail>().is_none());
    let kind = error
        .chain()
        .find_map(|e| e.downcast_ref::<io::Error>())
        .unwrap()
        .kind();
    assert_eq!(kind, io::ErrorKind::StorageFull);
}

#[test]
fn comments_by_hand_need_no_front_matter() {
    let (folder, forge) = issue_1();
    let path = folder.path().join("issues/1/comments");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("10.md"), "Use cents.\r\n").unwrap();
    fs::write(
        path.join("2.md"),
        "---\nauthor: ann\ncreated_at: 2026-01-31T09:00:00+01:00\n---\nFirst",
    )
    .unwrap();
    fs::write(path.join(".2.md.swp"), "\0").unwrap();
    let comments = forge.comments(1).unwrap();
    let ids: Vec<u64> = comments.iter().map(Comment::id).collect();
    assert_eq!(ids, [2, 10]);
    assert_eq!(comments[0].created_at().to_string(), "2026-01-31T08:00:00Z");
    assert_eq!(comments[0].association(), Association::None);
    assert_eq!(
        (comments[1].author(), comments[1].association()),
        (None, Association::Owner)
    );
    assert!(comments[1].created_at() > Timestamp::UNIX_EPOCH);
    fs::write(path.join("answer.md"), "Use euros.").unwrap();
    let error = forge.comments(1).unwrap_err();
    assert!(
        bail(&error).detail.contains("answer.md"),
        "an answer is never silently ignored"
    );
}

#[test]
fn a_bad_time_is_named() {
    let (_folder, forge) = forge_with(&[
        ("issues/1/issue.md", b"---\ntitle: T\n---\n"),
        (
            "issues/1/comments/1.md",
            b"---\nauthor: ann\ncreated_at: yesterday\n---\n",
        ),
    ]);
    assert!(
        bail(&forge.comments(1).unwrap_err())
            .detail
            .contains("line 3: `created_at`")
    );
}

#[test]
fn a_markdown_file_becomes_the_next_issue_once() {
    let (folder, forge) = issue_1();
    let text = b"# Reject transfers\n\nAbove the limit.\n";
    let number = forge.file_issue(Path::new("a.md"), text).unwrap();
    assert_eq!(number, 2);
    assert_eq!(forge.file_issue(Path::new("renamed.md"), text).unwrap(), 2);
    assert_eq!(
        forge
            .file_issue(Path::new("b.md"), b"# Other\n\nx")
            .unwrap(),
        3
    );
    let issue = forge.issue(2).unwrap();
    assert_eq!(
        (issue.title(), issue.body()),
        ("Reject transfers", "Above the limit.")
    );
    let filed = fs::read_to_string(folder.path().join("issues/2/issue.md")).unwrap();
    assert!(filed.contains("source: sha256:"), "{filed}");
    let own = folder.path().join("issues/1/issue.md");
    assert_eq!(forge.file_issue(&own, &fs::read(&own).unwrap()).unwrap(), 1);
}

#[test]
fn files_that_are_no_issue_are_refused() {
    let (_folder, forge) = issue_1();
    for (bytes, words) in [
        (&b"no heading"[..], "begin it with `# Title`"),
        (b"# T\n\xff", "not UTF-8"),
        (b"---\ntitle: \"x\n---\n", "line 2"),
    ] {
        let error = forge.file_issue(Path::new("bad.md"), bytes).unwrap_err();
        assert_eq!(bail(&error).cause, Cause::NeedsUser);
        assert!(bail(&error).detail.contains(words) && bail(&error).detail.contains("bad.md"));
    }
    let large = vec![b'#'; MAX_FILE_BYTES as usize + 1];
    assert!(forge.file_issue(Path::new("large.md"), &large).is_err());
}

#[test]
fn a_first_issue_makes_the_forge() {
    let folder = TempDir::new().unwrap();
    let forge = DirectoryForge::new(folder.path().join("new/forge"));
    assert_eq!(
        forge.file_issue(Path::new("a.md"), b"# T\nBody").unwrap(),
        1
    );
    assert_eq!(forge.issue(1).unwrap().title(), "T");
}

#[test]
fn doubles_are_folded_into_the_lowest_and_others_comments_are_left() {
    let double = format!("---\nauthor: veri\n---\n\n{MARKER}\nold\n");
    let foreign = format!("---\nauthor: ann\n---\n\n{MARKER}\nmine\n");
    let (folder, forge) = forge_with(&[
        ("issues/1/issue.md", b"---\ntitle: T\n---\n\nBody\n"),
        ("issues/1/comments/2.md", foreign.as_bytes()),
        ("issues/1/comments/3.md", double.as_bytes()),
        ("issues/1/comments/9.md", double.as_bytes()),
    ]);
    let put = forge.put_comment(1, MARKER, "new").unwrap();
    assert_eq!((put.id, put.changed), (3, true));
    let ids: Vec<u64> = forge.comments(1).unwrap().iter().map(Comment::id).collect();
    assert_eq!(ids, [2, 3]);
    let left = fs::read(folder.path().join("issues/1/comments/2.md")).unwrap();
    assert_eq!(left, foreign.as_bytes());
}

#[test]
fn fifty_writers_at_once_leave_one_comment_and_no_doubled_number() {
    let (folder, _) = issue_1();
    let threads: Vec<_> = (0..50)
        .map(|n: u32| {
            let root = folder.path().to_owned();
            // Each opens the lock for itself, as another process would.
            std::thread::spawn(move || {
                let forge = DirectoryForge::new(root);
                let filed =
                    forge.file_issue(Path::new("x.md"), format!("# T{}\nB", n % 25).as_bytes());
                let pull = forge.open_pull(&NewPull {
                    head: format!("h{}", n % 5),
                    base: "main".into(),
                    title: "T".into(),
                    body: "B".into(),
                    draft: true,
                    issue: 1,
                });
                (
                    forge
                        .put_comment(1, MARKER, &format!("text {n}"))
                        .unwrap()
                        .id,
                    filed.unwrap(),
                    pull.unwrap().number,
                )
            })
        })
        .collect();
    let results: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    assert!(results.iter().all(|(id, _, _)| *id == 1));
    let distinct = |numbers: Vec<u64>| {
        numbers
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len()
    };
    assert_eq!(distinct(results.iter().map(|r| r.1).collect()), 25);
    assert_eq!(distinct(results.iter().map(|r| r.2).collect()), 5);
    let forge = DirectoryForge::new(folder.path());
    assert_eq!(forge.comments(1).unwrap().len(), 1);
    assert_eq!(
        numbered(&folder.path().join("issues"), "").unwrap().len(),
        26
    );
    assert_eq!(
        numbered(&folder.path().join("pulls"), ".md").unwrap().len(),
        5
    );
    let left: Vec<_> = fs::read_dir(folder.path().join("issues/1/comments"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1, "no temporary file is left");
}

#[test]
fn a_pull_request_keeps_what_a_person_wrote_into_its_front_matter() {
    let (folder, forge) = forge_with(&[(
        "pulls/3.md",
        b"---\ntitle: Old\nhead: tdd/issue-1\nstate: open\nreviewer: ann\n---\n\nOld body\n",
    )]);
    forge.update_pull(3, "New", "New body").unwrap();
    let text = fs::read_to_string(folder.path().join("pulls/3.md")).unwrap();
    assert_eq!(
        text,
        "---\ntitle: New\nhead: tdd/issue-1\nstate: open\nreviewer: ann\n---\n\nNew body\n"
    );
    let error = forge.update_pull(4, "x", "y").unwrap_err();
    assert_eq!(bail(&error).cause, Cause::ForgeFailed);
}

#[test]
fn of_several_pull_requests_the_open_one_counts_else_the_newest() {
    let pull = |state: &str| format!("---\ntitle: T\nhead: h\nstate: {state}\n---\n").into_bytes();
    for (states, number, state) in [
        (["closed", "merged", "closed"], 3, PullState::Closed),
        (["closed", "open", "merged"], 2, PullState::Open),
        (["open", "closed", "merged"], 1, PullState::Open),
    ] {
        let [a, b, c] = states.map(pull);
        let (_folder, forge) =
            forge_with(&[("pulls/1.md", &a), ("pulls/2.md", &b), ("pulls/3.md", &c)]);
        let found = forge.find_pull("h").unwrap().unwrap();
        assert_eq!((found.number, found.state), (number, state));
    }
}

#[test]
fn what_a_killed_writer_left_is_counted_by_nobody_and_removed_by_the_next() {
    let (folder, forge) = issue_1();
    let left = [
        "issues/2/.new-a",
        "issues/1/.new-b",
        "issues/1/comments/.new-c",
        "pulls/.new-d",
    ];
    for path in left {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "---\nhead: h\n").unwrap();
    }
    assert!(forge.comments(1).unwrap().is_empty());
    assert!(forge.find_pull("h").unwrap().is_none());
    assert_eq!(forge.put_comment(1, MARKER, "text").unwrap().id, 1);
    let pull = NewPull {
        head: "h".into(),
        base: "main".into(),
        title: "T".into(),
        body: "B".into(),
        draft: true,
        issue: 1,
    };
    assert_eq!(forge.open_pull(&pull).unwrap().number, 1);
    // The number that it had begun with is free.
    assert_eq!(forge.file_issue(Path::new("x.md"), b"# T\nB").unwrap(), 2);
    let stays = left.map(|path| folder.path().join(path).exists());
    assert_eq!(stays, [false, true, false, false], "{left:?}");
}
