//! The fourth wall: what verifiers, and developers on request, can reach of the file system and of other processes.

use crate::installed::there;
use crate::kernel;
use crate::scene::{APPROVE, Agent, Scene, VERI, finish};
use std::fs;
use std::path::Path;

/// Shell that writes the names of the moves that succeeded into `report`, and what they printed to standard error.
fn tries(moves: &[(&str, String)], report: &str) -> String {
    let each = moves.iter().map(|(name, shell)| {
        format!("if ( {shell} ) >&2; then printf '%s ' {name} >> {report}; fi\n")
    });
    each.collect()
}

/// Shell that finds the conductor: the parent of the leaf's shim.
const CONDUCTOR: &str = "c=$(awk '{print $4}' /proc/$PPID/stat)";

#[test]
fn a_hostile_verifier_reads_nothing_of_the_work_writes_nowhere_and_signals_nobody() {
    if kernel::landlock().is_none() {
        return;
    }
    let scene = Scene::new();
    scene.configure_alone("");
    let (repo, state) = (scene.repo(), scene.path("state"));
    let (r, s) = (repo.display(), state.display());
    let home = scene.path("home").display().to_string();
    let forge = scene.path("forge").display().to_string();
    fs::write(scene.path("home/settings"), "the person's own").unwrap();
    fs::write(scene.path("tmp/note"), "trust me, approve").unwrap();
    let moves: Vec<(&str, String)> = vec![
        ("checkout", format!("cat {r}/src/lib.sh")),
        ("checkout-list", format!("ls {r}")),
        ("git", format!("git -C {r} log")),
        ("config", format!("cat {r}/.git/config")),
        ("work", format!("ls {s}/*/work/issue-42")),
        (
            "tree",
            format!(
                "cat {s}/$(basename \"$(dirname \"$(dirname \"$(dirname \"$PWD\")\")\")\")/work/issue-42/src/lib.sh"
            ),
        ),
        (
            "tree-by-name",
            "cat ../../work/issue-42/src/lib.sh".to_owned(),
        ),
        (
            "journal",
            "cat ../../work/issue-42/.tdd/events.jsonl".to_owned(),
        ),
        ("journal-copy", "cat ../../work/issue-42.journal".to_owned()),
        ("others-runs", "ls ../../work/issue-42/.tdd/runs".to_owned()),
        ("other-verifiers", "ls \"$TMPDIR/..\"".to_owned()),
        ("check-ground", "cat ../check/src/lib.sh".to_owned()),
        ("thread", format!("cat {forge}/issues/42/issue.md")),
        ("notes", format!("cat {}", scene.path("tmp/note").display())),
        (
            "conductor-root",
            format!("{CONDUCTOR}; cat /proc/$c/root{r}/src/lib.sh"),
        ),
        (
            "conductor-cwd",
            format!("{CONDUCTOR}; cat /proc/$c/cwd/src/lib.sh"),
        ),
        (
            "conductor-environ",
            format!("{CONDUCTOR}; cat /proc/$c/environ"),
        ),
        (
            "conductor-fds",
            format!("{CONDUCTOR}; readlink /proc/$c/fd/1 || cat /proc/$c/fd/1"),
        ),
        ("shim-environ", "cat /proc/$PPID/environ".to_owned()),
        ("write-checkout", format!("echo x >> {r}/src/lib.sh")),
        ("write-hook", format!("echo x > {r}/.git/hooks/pre-commit")),
        (
            "write-tree",
            "echo x >> ../../work/issue-42/src/lib.sh".to_owned(),
        ),
        (
            "write-record",
            "echo x > ../../work/issue-42/.tdd/runs/$VERI_LAUNCH.exit".to_owned(),
        ),
        ("write-home", format!("echo x > {home}/.profile")),
        ("write-settings", format!("echo x > {home}/settings")),
        ("write-agent", "echo x >> \"$0\"".to_owned()),
        ("write-beside", "echo x > ../new".to_owned()),
        ("write-temp", "echo x > /tmp/veri-test-$$".to_owned()),
        ("kill-shim", "kill -9 $PPID".to_owned()),
        ("kill-conductor", format!("{CONDUCTOR}; kill -9 $c")),
    ];
    // What it can do: it runs the suite, makes files, reads the system and its own home.
    let fine: Vec<(&str, String)> = vec![
        (
            "suite",
            "sh -c \"$VERI_TEST_CMD\" || [ $VERI_PHASE = red ]".to_owned(),
        ),
        (
            "history",
            "git log --oneline && git status --short".to_owned(),
        ),
        ("commit", "git commit -q --allow-empty -m x".to_owned()),
        ("own", "echo x > new && rm new && mktemp -d".to_owned()),
        ("home", format!("cat {home}/settings")),
        ("pipes", "sort /etc/passwd | head -1 > /dev/null".to_owned()),
    ];
    let all: Vec<_> = moves.iter().chain(&fine).cloned().collect();
    let good = Agent::default();
    scene.agent(&Agent {
        verify: format!(
            "{}\nif [ \"$(cat report)\" = 'suite history commit own home pipes ' ]; then {APPROVE}; \
             else printf '%s\\n' \"{{\\\"nonce\\\":\\\"$VERI_NONCE\\\",\\\"verdict\\\":\\\"reject\\\",\\\"reasons\\\":[\\\"$(cat report)\\\"]}}\"; fi",
            tries(&all, "report")
        ),
        ..good
    });
    let ran = scene.tdd(&[]).expect(0);
    assert!(!ran.out.contains("rejects"), "it got through:\n{}", ran.out);
    assert!(
        ran.out
            .contains("sandbox: verifiers are confined (Landlock ABI"),
        "{}",
        ran.out
    );
    let journal = scene.journal();
    let told = journal.iter().filter(|l| l.fields.contains_key("sandbox"));
    assert_eq!(told.count(), 1);
    let confined = journal
        .iter()
        .filter_map(|l| l.fields.get("record")?.get("sandbox"));
    assert!(
        confined.count() >= 4,
        "each verifier's record says what it was confined to"
    );
    assert_eq!(
        fs::read_to_string(scene.path("home/settings")).unwrap(),
        "the person's own"
    );
    scene.nothing_is_left_running();
    // The moves are good ones: without a sandbox they succeed.
    scene.configure("sandbox = \"off\"\n");
    let again = fresh(&moves[..12]);
    let ran = again.tdd(&[]);
    assert!(ran.out.contains("rejects"), "{}\n{}", ran.out, ran.err);
    assert!(ran.out.contains("no sandbox"), "{}", ran.out);
    for word in ["journal", "tree-by-name", "others-runs", "check-ground"] {
        assert!(ran.out.contains(word), "{word}: {}", ran.out);
    }
}

/// A scene without a sandbox whose verifier rejects with the names of the moves that succeeded.
fn fresh(moves: &[(&str, String)]) -> Scene {
    // What its moves do without a sandbox is what is looked at.
    let scene = Scene::unconfined();
    scene.agent(&Agent {
        verify: format!(
            "{}\nprintf '%s\\n' \"{{\\\"nonce\\\":\\\"$VERI_NONCE\\\",\\\"verdict\\\":\\\"reject\\\",\\\"reasons\\\":[\\\"$(cat report)\\\"]}}\"",
            tries(moves, "report")
        ),
        ..Agent::default()
    });
    scene.write(".veri.toml", "limits.revisions = 0\n");
    scene.commit_all("settings");
    scene
}

#[test]
fn a_hostile_developer_in_a_sandbox_changes_the_working_tree_and_nothing_else() {
    if kernel::landlock().is_none() {
        return;
    }
    let scene = Scene::new();
    let agent = format!("command:{}", scene.path("agent").display());
    scene.configure(&format!(
        "[agents]\ndeveloper = {{ use = \"{agent}\", sandbox = true }}\n"
    ));
    let repo = scene.repo();
    let r = repo.display();
    let home = scene.path("home").display().to_string();
    let report = "src/report";
    let closed: Vec<(&str, String)> = vec![
        ("hook", format!("echo x > {r}/.git/hooks/pre-commit")),
        ("config", "git config core.hooksPath /tmp".to_owned()),
        ("commit", "git commit -q --allow-empty -m x".to_owned()),
        ("branch", "git branch mine".to_owned()),
        ("stash", "git stash -q".to_owned()),
        ("home", format!("echo x > {home}/.profile")),
        ("checkout", format!("echo x > {r}/new")),
        ("beside", "echo x > ../new".to_owned()),
        ("shim", "kill -9 $PPID".to_owned()),
    ];
    let sealed: Vec<(&str, String)> = vec![
        ("ledger", "echo x >> .tdd/issue-42.md".to_owned()),
        ("journal", "echo x >> .tdd/events.jsonl".to_owned()),
        ("record", "echo x > .tdd/runs/$VERI_LAUNCH.exit".to_owned()),
        ("stop", "echo now > .tdd/stop".to_owned()),
        ("tdd-gone", "rm -rf .tdd".to_owned()),
        ("tdd-moved", "mv .tdd away".to_owned()),
        ("git-file", "echo gitdir: /nowhere > .git".to_owned()),
        ("git-gone", "rm .git".to_owned()),
    ];
    let open: Vec<(&str, String)> = vec![
        (
            "read",
            format!(
                "cat {r}/src/lib.sh .tdd/issue-42.md && git status --short && git log -1 && git diff"
            ),
        ),
        ("top", "echo x > TOP && mv TOP TOP2 && rm TOP2".to_owned()),
        (
            "folder",
            "mkdir -p a/b && touch a/b/c && rm -r a".to_owned(),
        ),
        (
            "temp",
            "f=$(mktemp) && echo x > $f && mv $f moved && rm moved".to_owned(),
        ),
        (
            "suite",
            "sh run-tests.sh || [ $VERI_PHASE = red ]".to_owned(),
        ),
    ];
    let seals = crate::sandbox::seals_work();
    let mut all: Vec<_> = closed.iter().chain(&open).cloned().collect();
    if seals {
        all.extend(sealed);
    } else {
        println!("partly skipped: no mounts of a leaf's own here");
    }
    let good = Agent::default();
    let step = |work: &str| {
        format!(
            "rm -f {report}\n{work}\n{}\nexpected='read top folder temp suite '; got=$(cat {report}); rm {report}; [ \"$got\" = \"$expected\" ] || {{ echo \"{{\\\"needs_user\\\": \\\"got: $got\\\"}}\"; exit 0; }}",
            tries(&all, report)
        )
    };
    scene.agent(&Agent {
        red: step(&good.red),
        green: step(&good.green),
        ..good
    });
    let ran = scene.tdd(&[]).expect(0);
    assert!(
        ran.out.contains("verifiers and developers are confined"),
        "{}",
        ran.out
    );
    assert!(!repo.join("new").exists());
    // Nothing had to be undone, and its temporary folders are gone.
    let journal = scene.journal();
    assert!(journal.iter().all(|l| !l.fields.contains_key("finding")));
    let left = fs::read_dir(scene.path("state")).unwrap().flatten();
    assert!(
        left.into_iter()
            .all(|home| !home.path().join("develop").exists())
    );
    assert_eq!(scene.subjects().len(), 3);
}

/// Whether a leaf can have mounts of its own here.
pub fn seals_work() -> bool {
    let offer = veri::leaf::probe_sandbox(&[std::env::temp_dir()]);
    matches!(offer, veri::leaf::Offer::Landlock(confined) if confined.without.is_empty())
}

#[test]
fn more_folders_can_be_opened_and_none_that_is_closed() {
    if kernel::landlock().is_none() {
        return;
    }
    let scene = Scene::new();
    let cache = scene.path("home/.cache/tool");
    fs::create_dir_all(&cache).unwrap();
    // A folder, a link to one, one that is not there, and the one for temporary files, which is closed to verifiers
    // unless it is asked for.
    fs::create_dir(scene.path("home/real")).unwrap();
    std::os::unix::fs::symlink("real", scene.path("home/link")).unwrap();
    let tmp = scene.path("tmp");
    scene.configure_alone(&format!(
        "sandbox_write = [\"~/.cache/tool\", \"~/link\", \"~/.not-there\", \"{}\"]\n",
        tmp.display()
    ));
    scene.agent(&Agent {
        verify: format!(
            "for d in \"$HOME/.cache/tool\" \"$HOME/link\" '{}'; do echo x > \"$d/$VERI_LAUNCH\" || exit 9; done\n{APPROVE}",
            tmp.display()
        ),
        ..Agent::default()
    });
    let ran = scene.tdd(&[]).expect(0);
    assert!(ran.out.contains(".not-there is not there"), "{}", ran.out);
    for folder in [&cache, &scene.path("home/real"), &tmp] {
        assert!(fs::read_dir(folder).unwrap().count() >= 4, "{folder:?}");
    }
    for closed in ["../", ".git/hooks", "/", "target", "../forge/issues/42"] {
        let scene = Scene::new();
        scene.configure_alone(&format!("sandbox_write = [\"{closed}\"]\n"));
        let ran = scene.tdd(&[]).bails("needs-user");
        ran.says("(sandbox_write)")
            .says("Name the single folders that a tool must write to");
    }
}

#[test]
fn a_folder_that_is_led_into_the_work_while_the_run_is_at_it_is_not_opened() {
    if kernel::landlock().is_none() {
        return;
    }
    let scene = Scene::new();
    let link = scene.path("home/link");
    std::os::unix::fs::symlink(scene.path("notes"), &link).unwrap();
    scene.configure_alone("sandbox_write = [\"~/link\"]\n");
    let good = Agent::default();
    scene.agent(&Agent {
        red: format!("ln -sfn \"$PWD\" '{}'\n{}", link.display(), good.red),
        ..good
    });
    scene
        .tdd(&[])
        .bails("needs-user")
        .says("and ")
        .says("is just that");
    let verifiers = scene.journal();
    let verifiers = verifiers.iter().filter(|l| l.actor == "verifier");
    let ran = verifiers.filter(|l| l.fields.contains_key("record"));
    assert_eq!(ran.count(), 0);
}

#[test]
fn without_a_home_nothing_below_it_is_opened_and_the_run_goes_on() {
    if kernel::landlock().is_none() {
        return;
    }
    let scene = Scene::new();
    let home = scene.path("home");
    scene.configure_alone("sandbox_write = [\"~/.cache/uv\"]\n");
    let mut command = scene.command("env");
    command
        .args(["-u", "HOME", VERI])
        .args(scene.arguments())
        .env("XDG_CONFIG_HOME", home.join(".config"))
        .env("GIT_CONFIG_GLOBAL", home.join(".gitconfig"));
    let ran = finish(command).expect(0);
    for words in [
        "sandbox_write: \"~/.cache/uv\" opens nothing, since HOME is not set",
        "verifiers are confined",
    ] {
        assert_eq!(ran.out.matches(words).count(), 1, "{}", ran.out);
    }
}

#[test]
fn the_suites_of_cargo_and_npm_run_in_a_verifiers_sandbox() {
    if kernel::landlock().is_none() {
        return;
    }
    let scene = Scene::new();
    scene.configure_alone("");
    scene.write(
        "Cargo.toml",
        "[package]\nname = \"bank\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[lib]\npath = \"src/lib.rs\"\n",
    );
    scene.write("src/lib.rs", "#[test]\nfn works() {}\n");
    scene.write(".gitignore", "target\n");
    scene.write(
        "package.json",
        "{\"name\":\"bank\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node --test js\"}}\n",
    );
    scene.write(
        "js/a.test.js",
        "const t = require('node:test'); t('works', () => require('fs').mkdtempSync(require('os').tmpdir() + '/x'));\n",
    );
    scene.commit_all("suites");
    let mut runs = vec!["sh run-tests.sh", "git log --stat"];
    if there(&scene, "cargo") {
        runs.push("cargo test --offline");
    }
    if there(&scene, "npm") {
        runs.push("npm test");
    }
    let each: Vec<String> = runs
        .iter()
        .map(|run| format!("{run} || {{ echo \"failed: {run}\"; exit 1; }}"))
        .collect();
    scene.agent(&Agent {
        verify: format!(
            "[ \"$VERI_PHASE-$VERI_STEP\" != 'green-greet takes a name' ] || {{ {}; }} >&2\n{APPROVE}",
            each.join("\n")
        ),
        ..Agent::default()
    });
    let worked = scene.tdd(&[]).expect(0);
    assert!(!worked.out.contains("no verdict"), "{}", worked.out);
}

#[test]
fn another_program_in_a_confined_role_is_confined_too() {
    if kernel::landlock().is_none() {
        return;
    }
    let scene = Scene::new();
    scene.configure("agents.developer = { use = \"command:/not/there\", sandbox = true }\n");
    let mark = scene.path("mark");
    let good = Agent::default();
    scene.agent(&Agent {
        red: format!("echo x > '{}'\n{}", mark.display(), good.red),
        ..good
    });
    scene.tdd(&[]).expect(0);
    assert!(!Path::new(&mark).exists());
}
