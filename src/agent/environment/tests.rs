use super::*;

fn env(pairs: &[(&str, &str)]) -> Env {
    pairs
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)))
        .collect()
}

fn get<'e>(env: &'e Env, name: &str) -> Option<&'e str> {
    env.get(OsStr::new(name)).and_then(|value| value.to_str())
}

fn leaf(role: Role) -> Leaf<'static> {
    Leaf {
        role,
        phase: if role == Role::Planner {
            Phase::Plan
        } else {
            Phase::Green
        },
        issue: 42,
        step: "It refuses $(touch x)",
        test_command: "cargo test",
        skill_commit: Oid::ZERO_SHA1,
        nonce: (role != Role::Developer).then_some("abab"),
        attempt: (role == Role::Developer).then_some(3),
        timeout: Duration::from_secs(900),
        cwd: Path::new("/state/ground/verify"),
    }
}

fn of(role: Role, caller: &Env, declared: &[(OsString, OsString)]) -> Env {
    match role {
        Role::Verifier => {
            let hidden = Hidden::new(["/home/u/bank", "/state/work/issue-42"]);
            let credentials = ["ANTHROPIC_API_KEY".to_owned()];
            secluded(
                caller,
                declared,
                &credentials,
                &hidden,
                Path::new("/tmp/v"),
                &leaf(role),
            )
        }
        _ => open(caller, declared, &leaf(role)),
    }
}

const ROLES: [Role; 3] = [Role::Planner, Role::Developer, Role::Verifier];

#[test]
fn tokens_ssh_redirections_build_folders_and_other_veri_variables_are_removed_from_all() {
    let gone = [
        "GH_TOKEN",
        "GITHUB_TOKEN",
        "GH_ENTERPRISE_TOKEN",
        "GITHUB_PAT",
        "GITLAB_TOKEN",
        "GITLAB_PRIVATE_TOKEN",
        "GITEA_TOKEN",
        "CI_JOB_TOKEN",
        "BITBUCKET_APP_PASSWORD",
        "ACTIONS_RUNTIME_TOKEN",
        "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_CONFIG_PARAMETERS",
        "GIT_SSH_COMMAND",
        "GIT_ASKPASS",
        "GIT_TRACE",
        "VERI_HOME",
        "VERI_ATTEMPT_OLD",
        "VERI_TIMEOUT",
        "CARGO_TARGET_DIR",
        "CARGO_BUILD_TARGET_DIR",
        "CARGO_MANIFEST_DIR",
        "CARGO_PKG_NAME",
        "OLDPWD",
        "gh_token",
    ];
    let caller: Env = gone
        .iter()
        .map(|name| (OsString::from(name), OsString::from("x")))
        .collect();
    let declared: Vec<(OsString, OsString)> = caller.clone().into_iter().collect();
    for role in ROLES {
        for (caller, declared) in [(&caller, &[][..]), (&Env::new(), &declared[..])] {
            let env = of(role, caller, declared);
            for name in gone {
                assert_eq!(get(&env, name), None, "{role} {name}");
            }
        }
    }
    let env = suite(&caller, &declared);
    for name in gone {
        assert_eq!(get(&env, name), None, "suite {name}");
    }
}

#[test]
fn leaves_are_told_what_spec_says_and_suites_only_that_nobody_is_there() {
    for role in ROLES {
        let env = of(role, &Env::new(), &[]);
        for (name, value) in [
            ("VERI_ISSUE", "42"),
            ("VERI_STEP", "It refuses $(touch x)"),
            ("VERI_ROLE", role.as_str()),
            ("VERI_TEST_CMD", "cargo test"),
            (
                "VERI_SKILL_COMMIT",
                "0000000000000000000000000000000000000000",
            ),
            ("BASH_DEFAULT_TIMEOUT_MS", "900000"),
            ("BASH_MAX_TIMEOUT_MS", "900000"),
            ("CI", "true"),
            ("GIT_PAGER", "cat"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_EDITOR", "true"),
            ("GIT_COMMITTER_EMAIL", "leaf@veri.invalid"),
            ("PWD", "/state/ground/verify"),
        ] {
            assert_eq!(get(&env, name), Some(value), "{role} {name}");
        }
        assert_eq!(
            get(&env, "VERI_NONCE").is_some(),
            role != Role::Developer,
            "{role}"
        );
        assert_eq!(
            get(&env, "VERI_ATTEMPT").is_some(),
            role == Role::Developer,
            "{role}"
        );
    }
    let env = suite(&Env::new(), &[]);
    assert_eq!(get(&env, "CI"), Some("true"));
    assert!(
        !env.keys()
            .any(|name| name.to_string_lossy().starts_with("VERI_")),
        "{env:?}"
    );
}

#[test]
fn a_verifier_is_never_told_an_attempt_even_by_mistake() {
    let mistaken = Leaf {
        attempt: Some(3),
        ..leaf(Role::Verifier)
    };
    let env = secluded(
        &Env::new(),
        &[],
        &[],
        &Hidden::default(),
        Path::new("/tmp/v"),
        &mistaken,
    );
    assert_eq!(get(&env, "VERI_ATTEMPT"), None);
}

#[test]
fn developers_and_suites_keep_the_callers_environment_and_the_declared_one_wins() {
    let caller = env(&[
        ("EDITOR", "vi"),
        ("DATABASE_URL", "mine"),
        ("BASH_MAX_TIMEOUT_MS", "5"),
        ("CI", "false"),
    ]);
    let declared = [(OsString::from("DATABASE_URL"), OsString::from("slot-1"))];
    for env in [
        of(Role::Developer, &caller, &declared),
        suite(&caller, &declared),
    ] {
        assert_eq!(get(&env, "EDITOR"), Some("vi"));
        assert_eq!(get(&env, "DATABASE_URL"), Some("slot-1"));
        assert_eq!(get(&env, "BASH_MAX_TIMEOUT_MS"), Some("5"));
        assert_eq!(get(&env, "CI"), Some("true"));
    }
    assert_eq!(get(&suite(&caller, &[]), "BASH_DEFAULT_TIMEOUT_MS"), None);
}

#[test]
fn a_verifier_gets_programs_toolchains_declared_variables_and_named_credentials_alone() {
    let caller = env(&[
        ("HOME", "/home/u"),
        ("LC_ALL", "C.UTF-8"),
        ("CARGO_HOME", "/home/u/.cargo"),
        ("ANTHROPIC_API_KEY", "k"),
        ("OPENAI_API_KEY", "k"),
        ("CLAUDE_CONFIG_DIR", "/home/u/.claude"),
        ("XDG_STATE_HOME", "/home/u/.state"),
        ("LAST_REPORT", "I hard-coded it"),
        ("TMPDIR", "/tmp"),
        ("BASH_MAX_TIMEOUT_MS", "5"),
    ]);
    let env = of(Role::Verifier, &caller, &[("PORT".into(), "1".into())]);
    for (name, value) in [
        ("HOME", Some("/home/u")),
        ("LC_ALL", Some("C.UTF-8")),
        ("CARGO_HOME", Some("/home/u/.cargo")),
        ("ANTHROPIC_API_KEY", Some("k")),
        ("OPENAI_API_KEY", None),
        ("CLAUDE_CONFIG_DIR", None),
        ("XDG_STATE_HOME", None),
        ("LAST_REPORT", None),
        ("TMPDIR", Some("/tmp/v")),
        ("BASH_MAX_TIMEOUT_MS", Some("5")),
        ("PORT", Some("1")),
        ("PATH", Some(PLAIN_PATH)),
        ("GIT_CONFIG_GLOBAL", Some("/dev/null")),
    ] {
        assert_eq!(get(&env, name), value, "{name}");
    }
}

#[test]
fn nothing_a_verifier_gets_leads_to_the_working_tree_or_the_checkout() {
    let caller = env(&[
        ("HOME", "/home/u/bank"),
        ("GOPATH", "/home/u/bank/go"),
        ("JAVA_HOME", "/opt/java"),
        (
            "PATH",
            "/home/u/bank/.venv/bin:/usr/bin::/state/work/issue-42/node_modules/.bin:/home/u/bank-tools",
        ),
        ("ANTHROPIC_API_KEY", "file:///home/u/bank/key"),
    ]);
    let declared = [
        ("CONFIG".into(), "--root=/state/work/issue-42".into()),
        ("OK".into(), "/state/work/issue-421".into()),
    ];
    let hidden = Hidden::new(["/home/u/bank", "/state/work/issue-42"]);
    let leading = Leaf {
        test_command: "/home/u/bank/run.sh",
        ..leaf(Role::Verifier)
    };
    let credentials = ["ANTHROPIC_API_KEY".to_owned()];
    let env = secluded(
        &caller,
        &declared,
        &credentials,
        &hidden,
        Path::new("/tmp/v"),
        &leading,
    );
    for (name, value) in &env {
        assert!(
            !hidden.named_in(&value.to_string_lossy()),
            "{name:?}={value:?}"
        );
    }
    assert_eq!(get(&env, "PATH"), Some("/usr/bin:/home/u/bank-tools"));
    assert_eq!(get(&env, "HOME"), Some("/tmp/v"));
    assert_eq!(get(&env, "JAVA_HOME"), Some("/opt/java"));
    assert_eq!(get(&env, "CONFIG"), None);
    assert_eq!(get(&env, "OK"), Some("/state/work/issue-421"));
}

#[test]
fn a_path_of_hidden_entries_alone_leaves_the_plain_one() {
    let caller = env(&[("PATH", "/home/u/bank/bin:")]);
    assert_eq!(
        get(&of(Role::Verifier, &caller, &[]), "PATH"),
        Some(PLAIN_PATH)
    );
}

#[test]
fn a_title_with_a_nul_can_still_be_told_and_names_that_are_not_utf_8_are_kept() {
    let title = Leaf {
        step: "a\0b",
        ..leaf(Role::Developer)
    };
    let odd = OsString::from_vec(b"ODD\xff".to_vec());
    let caller = Env::from([(odd.clone(), OsString::from_vec(b"\xfe".to_vec()))]);
    let env = open(&caller, &[], &title);
    assert_eq!(get(&env, "VERI_STEP"), Some("a\u{fffd}b"));
    assert!(env.contains_key(&odd));
}
