//! Repositories within the working tree, found as git finds them.

use super::*;

#[test]
fn repositories_within_are_those_that_git_would_not_look_into() {
    let person = Person::new();
    person.write("deep/er/tracked", "");
    person.git(&["init", "--quiet", "module"]);
    person.git_in(
        &person.checkout().join("module"),
        &["commit", "--quiet", "--allow-empty", "-m", "one"],
    );
    person.commit("folders and a submodule");
    let wt = person.worktree();
    let same = |expected: &[&str]| {
        let args = ["ls-files", "--others", "--exclude-standard"];
        let listed = person.git_in(wt.path(), &args);
        let folders: Vec<&str> = listed.lines().filter_map(|l| l.strip_suffix('/')).collect();
        assert_eq!(folders, expected);
        assert_eq!(wt.nested(&mut |_| Ok(())).unwrap(), expected);
    };
    same(&[]);
    for folder in [
        "empty",
        "new/one",
        "deep/er/one",
        "deep/er",
        "src",
        "target/one",
        "module",
        "new/one/inner",
    ] {
        person.git_in(wt.path(), &["init", "--quiet", folder]);
    }
    for folder in ["new/one", "src"] {
        let dir = wt.path().join(folder);
        person.git_in(&dir, &["commit", "--quiet", "--allow-empty", "-m", "one"]);
    }
    put(&wt.path().join("fixture/.git/config"), "no repository");
    put(&wt.path().join("link/.git"), "gitdir: ../new/one/.git");
    std::os::unix::fs::symlink("new/one", wt.path().join("alias")).unwrap();
    same(&["deep/er/one", "empty", "link", "new/one"]);
    put(&wt.path().join(".gitignore"), "/target\nempty/\nnew/*\n");
    same(&["deep/er/one", "link"]);
    put(&wt.path().join(".gitignore"), "/target\nnew/*\n!new/one\n");
    same(&["deep/er/one", "empty", "link", "new/one"]);
}
