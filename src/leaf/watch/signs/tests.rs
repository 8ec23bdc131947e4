use super::*;
use crate::leaf::watch::lines::{Lines, MAX_LINE};

/// 2026-11-30T16:00:00Z.
const NOW: i64 = 1_796_054_400_000;

fn at(text: &str) -> Pointer {
    Pointer::parse(text).unwrap()
}

fn sign(means: Means, when: &[&str]) -> Sign {
    Sign {
        means,
        when: when.iter().map(|w| Stands::parse(w).unwrap()).collect(),
    }
}

fn heard(signs: &[Sign], text: &str) -> Vec<Heard> {
    let ear = Ear::new(signs);
    let mut heard = Vec::new();
    Lines::default().feed(text.as_bytes(), |line| heard.extend(ear.hear(line, NOW)));
    heard
}

fn open(id: &str) -> Heard {
    Heard::Opened(id.to_owned())
}

fn closed(id: &str) -> Heard {
    Heard::Closed(id.to_owned())
}

/// As `claude -p --output-format stream-json --verbose` prints them (2.1.332), shortened.
const CLAUDE: &str = r#"{"type": "system", "subtype": "init", "cwd": "/x", "session_id": "38cb", "tools": ["Task", "Bash"]}
{"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "retry_delay_ms": 2008, "error_status": 429, "error": "rate_limit"}
{"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "retry_delay_ms": 575, "error_status": 529, "error": "overloaded"}
{"type": "assistant", "message": {"id": "msg_2", "type": "message", "role": "assistant", "stop_reason": null, "content": [{"type": "text", "text": "I will write the file."}], "usage": {"input_tokens": 100}}}
{"type": "assistant", "message": {"id": "msg_2", "type": "message", "role": "assistant", "content": [{"type": "text", "id": "no call"}, {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": {"type": "tool_use", "id": "deeper"}}, {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {}}]}}
{"type": "user", "message": {"role": "user", "content": [{"tool_use_id": "toolu_1", "type": "tool_result", "content": "File created"}]}, "parent_tool_use_id": null}
{"duration_api_ms": 141, "stop_reason": "end_turn", "session_id": "38cb", "total_cost_usd": 0.0018, "type": "result", "subtype": "success", "is_error": false}
{"type": "system", "subtype": "task_updated"}
{"type": "system", "subtype": "init", "cwd": "/x"}
"#;

fn claude() -> Vec<Sign> {
    vec![
        sign(Means::Result, &["/type=result"]),
        sign(Means::Begun, &["/type=system", "/subtype=init"]),
        sign(
            Means::ToolOpened {
                id: at("/message/content/*/id"),
            },
            &["/type=assistant", "/message/content/*/type=tool_use"],
        ),
        sign(
            Means::ToolClosed {
                id: at("/message/content/*/tool_use_id"),
            },
            &["/type=user", "/message/content/*/type=tool_result"],
        ),
        sign(
            Means::Waiting(Wait::ForMillis(at("/retry_delay_ms"))),
            &["/subtype=api_retry", "/error_status=429"],
        ),
    ]
}

#[test]
fn the_lines_of_claude_can_be_described() {
    assert_eq!(
        heard(&claude(), CLAUDE),
        [
            Heard::Begun,
            Heard::Waits(Duration::from_millis(2008)),
            open("toolu_1"),
            open("toolu_2"),
            closed("toolu_1"),
            Heard::Result,
            Heard::Begun,
        ]
    );
}

/// As `codex exec --json` (0.171.0) and `gemini -o stream-json` (0.61.0) print them, shortened.
#[test]
fn the_lines_of_codex_and_gemini_can_be_described() {
    let codex = [
        sign(Means::Begun, &["/type=turn.started"]),
        sign(Means::Result, &["/type=turn.completed"]),
        sign(Means::Result, &["/type=turn.failed"]),
        sign(
            Means::ToolOpened { id: at("/item/id") },
            &["/type=item.started", "/item/type=command_execution"],
        ),
        sign(
            Means::ToolClosed { id: at("/item/id") },
            &["/type=item.completed", "/item/type=command_execution"],
        ),
    ];
    let text = r#"{"type": "thread.started", "thread_id": "01a2"}
{"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "Model metadata not found."}}
{"type": "turn.started"}
{"type": "item.started", "item": {"id": "item_2", "type": "command_execution", "command": "/bin/bash", "exit_code": null, "status": "in_progress"}}
{"type": "item.completed", "item": {"id": "item_2", "type": "command_execution", "exit_code": 0, "status": "completed"}}
{"type": "turn.failed", "error": {"message": "You’ve hit your usage limit."}}
"#;
    let expected = [
        Heard::Begun,
        open("item_2"),
        closed("item_2"),
        Heard::Result,
    ];
    assert_eq!(heard(&codex, text), expected);

    let gemini = [
        sign(Means::Begun, &["/type=init"]),
        sign(Means::Result, &["/type=result"]),
        sign(
            Means::ToolOpened { id: at("/tool_id") },
            &["/type=tool_use"],
        ),
        sign(
            Means::ToolClosed { id: at("/tool_id") },
            &["/type=tool_result"],
        ),
    ];
    let text = r#"{"type": "init", "timestamp": "2026-11-30T15:20:12.416Z", "model": "gemini-2.5-pro"}
{"type": "tool_use", "tool_name": "write_file", "tool_id": "write_file_0", "parameters": {"type": "result"}}
{"type": "tool_result", "tool_id": "write_file_0", "status": "success"}
{"type": "result", "status": "success", "stats": {"total_tokens": 360}}
"#;
    let expected = [
        Heard::Begun,
        open("write_file_0"),
        closed("write_file_0"),
        Heard::Result,
    ];
    assert_eq!(heard(&gemini, text), expected);
}

#[test]
fn lines_come_in_pieces_of_any_size_and_mean_the_same() {
    let ear = Ear::new(&claude());
    let whole = heard(&claude(), CLAUDE);
    for size in [1, 2, 7, 64, 1000, 100_000] {
        let mut lines = Lines::default();
        let mut got = Vec::new();
        for piece in CLAUDE.as_bytes().chunks(size) {
            lines.feed(piece, |line| got.extend(ear.hear(line, NOW)));
        }
        assert_eq!(got, whole, "{size}");
    }
}

#[test]
fn what_is_no_json_object_or_too_long_or_a_hole_means_nothing_and_harms_nothing_after_it() {
    let result = [sign(Means::Result, &["/type=result"])];
    let line = "{\"type\":\"result\"}\n";
    for noise in [
        "type result\n".to_owned(),
        "[{\"type\":\"result\"}]\n".to_owned(),
        "{\"type\":\"result\"} trailing\n".to_owned(),
        "{\"type\":\"result\"\n".to_owned(),
        "{\"type\":[\"result\"]}\n".to_owned(),
        "{\"type\":{\"type\":\"result\"}}\n".to_owned(),
        "\n\n\u{fffd}\n".to_owned(),
        format!("{}\n", "[".repeat(100_000)),
        format!("{{\"a\":{}\n", "[".repeat(100_000)),
        format!(
            "{{\"type\":\"result\",\"a\":\"{}\"}}\n",
            "x".repeat(MAX_LINE)
        ),
        format!("{}\n", "\0".repeat(3 * MAX_LINE)),
    ] {
        let start: String = noise.chars().take(40).collect();
        assert_eq!(heard(&result, &noise), [], "{start}");
        assert_eq!(
            heard(&result, &format!("{noise}{line}")),
            [Heard::Result],
            "{start}"
        );
    }
    // A hole begins anywhere in a line.
    let holed = format!("{{\"type\":\"re{}sult\"}}\n{line}", "\0".repeat(5000));
    assert_eq!(heard(&result, &holed), [Heard::Result]);
    // A line as long as allowed is read.
    let most = MAX_LINE - r#"{"type":"result","a":""}"#.len();
    let long = format!("{{\"type\":\"result\",\"a\":\"{}\"}}\n", "x".repeat(most));
    assert_eq!(heard(&result, &long), [Heard::Result]);
}

#[test]
fn a_star_is_the_same_element_throughout_a_sign_and_arrays_are_looked_at_to_a_bound() {
    let pair = [sign(Means::Result, &["/a/*/x=1", "/a/*/y=2"])];
    assert_eq!(heard(&pair, "{\"a\":[{\"x\":1},{\"y\":2}]}\n"), []);
    let both = "{\"a\":[{\"x\":1,\"y\":2},{\"x\":1},{\"y\":2,\"x\":1}]}\n";
    assert_eq!(heard(&pair, both), [Heard::Result, Heard::Result]);
    let second = [sign(Means::Result, &["/a/1/x=1"])];
    assert_eq!(heard(&second, "{\"a\":[{},{\"x\":1}]}\n"), [Heard::Result]);
    let one = [sign(Means::Result, &["/a/*=1"])];
    let late = format!("{{\"a\":[{}1]}}\n", "0,".repeat(MAX_ELEMENTS));
    assert_eq!(heard(&one, &late), []);
}

#[test]
fn waits_are_read_in_every_way_they_are_written() {
    let wait = |wait: fn(Pointer) -> Wait, value: &str| {
        let signs = [sign(Means::Waiting(wait(at("/w"))), &[])];
        match heard(&signs, &format!("{{\"w\":{value}}}\n")).as_slice() {
            [Heard::Waits(wait)] => Some(wait.as_secs_f64()),
            _ => None,
        }
    };
    assert_eq!(wait(Wait::ForMillis, "1500"), Some(1.5));
    assert_eq!(wait(Wait::ForSeconds, "1.5"), Some(1.5));
    assert_eq!(wait(Wait::ForSeconds, "-3"), Some(0.0));
    assert_eq!(
        wait(Wait::ForSeconds, "1e300"),
        Some(MAX_WAIT.as_secs_f64())
    );
    assert_eq!(wait(Wait::UntilSeconds, "1796054460"), Some(60.0));
    assert_eq!(wait(Wait::UntilSeconds, "0"), Some(0.0));
    assert_eq!(
        wait(Wait::UntilTime, "\"2026-11-30T17:00:00+01:00\""),
        Some(0.0)
    );
    assert_eq!(
        wait(Wait::UntilTime, "\"2026-11-30T16:01:00Z\""),
        Some(60.0)
    );
    assert_eq!(wait(Wait::UntilTime, "\"5:33 PM\""), None);
    assert_eq!(wait(Wait::ForMillis, "\"soon\""), None);
    assert_eq!(wait(Wait::ForMillis, "[1]"), None);
}

#[test]
fn pointers_and_conditions_are_read_and_written_as_they_are() {
    for bad in ["", "type", "/a/*/b/*"] {
        assert!(Pointer::parse(bad).is_err(), "{bad}");
    }
    for bad in ["/type", "type=x", "/a=[1]", "/a={}"] {
        assert!(Stands::parse(bad).is_err(), "{bad}");
    }
    assert_eq!(Stands::parse("/a=true").unwrap().value, Value::Bool(true));
    assert_eq!(Stands::parse("/a=b=c").unwrap().value, "b=c");
    let slash = [sign(Means::Result, &["/a~1b~0=1"])];
    assert_eq!(heard(&slash, "{\"a/b~\":1}\n"), [Heard::Result]);
    let text = serde_json::to_string(&claude()).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Sign>>(&text).unwrap(), claude());
}
