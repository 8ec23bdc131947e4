//! What a leaf did is told before it is undone: whoever is killed in between leaves nothing that nobody knows of.

use super::*;

#[test]
fn whatever_is_found_stands_until_it_is_told() {
    let places = "c=$(cd \"$(git rev-parse --git-common-dir)\" && pwd -P); g=$(git rev-parse --absolute-git-dir)";
    for (script, what) in [
        ("echo x > $c/hooks/post-merge", "post-merge was written"),
        (
            "for i in $(seq 120); do echo > $c/hooks/h$i; done",
            "h1 was written",
        ),
        (
            "rm -rf $c/hooks; ln -s /nowhere $c/hooks",
            "hooks was replaced",
        ),
        ("rm -rf $c/info", "info was removed"),
        ("echo x >> $c/info/exclude", "exclude was changed"),
        ("git config core.hooksPath x", "core.hookspath changed"),
        (
            "git config core.hooksPath x; git config branch.x.note y",
            "core.hookspath changed",
        ),
        ("echo '[' > $c/config", "the whole file"),
        ("rm -rf .tdd/runs", "runs was removed"),
        ("rm -rf .tdd/runs; echo > .tdd/runs", "runs was removed"),
        ("mkfifo .tdd/x.pid", "x.pid was made"),
        ("mkdir .tdd/x", "x was made"),
        ("echo > .tdd/x", "x was written"),
        ("echo x > $c/packed-refs", "packed-refs was spoilt"),
        ("mkfifo $c/refs/heads/x", "x was made"),
        ("echo x > $g/HEAD", "HEAD was spoilt"),
        (
            "mkdir -p $c/logs/refs; rm -rf $c/logs/refs/heads; echo > $c/logs/refs/heads",
            "heads was made",
        ),
        ("mkdir x; mkfifo x/.gitignore", ".gitignore was made"),
    ] {
        let person = Person::new();
        put(&person.checkout().join(".git/info/exclude"), "");
        put(
            &person.checkout().join(".git/hooks/pre-commit"),
            "#!/bin/sh\n",
        );
        let wt = person.worktree();
        fs::create_dir_all(wt.tdd().join("runs")).unwrap();
        let guard = wt.guard().unwrap();
        person.leaf(wt.path(), &format!("{places}; {script}"));
        let mut told = String::new();
        let killed = guard.settle(&wt, 42, &mut |what| {
            told = what.to_owned();
            anyhow::bail!("killed")
        });
        assert!(killed.is_err() && told.contains(what), "{script}: {told}");
        let found = settle(&guard, &wt).tampered;
        assert!(
            found.contains(&told),
            "{script}: {told:?} is not in {found:?}"
        );
        assert_eq!(
            settle(&guard, &wt).tampered,
            Vec::<String>::new(),
            "{script}"
        );
    }
}
