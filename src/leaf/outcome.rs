//! From what is recorded of a launch to how it ended.

use super::end::{End, KillWhy};
use super::output;
use super::records::{Exit, Records, Started};
use super::spec::LaunchId;
use anyhow::Context;

/// What the records of a launch whose shim is gone say, read while its output is put in order.
///
/// `held`: whether this program watched it end.
pub(super) fn conclude(
    records: &Records,
    launch: &LaunchId,
    started: Option<&Started>,
    exit: Option<Exit>,
    held: bool,
) -> anyhow::Result<End> {
    let intent = records.kill_intent(launch)?;
    let end = classify(exit.as_ref(), intent, started.is_some(), held);
    if let Some(started) = started {
        if exit.is_none() {
            let streams = output::streams(started.stdout.path(), started.stderr.path());
            output::keep(records, &started.leaf, launch, &streams)
                .with_context(|| format!("cannot keep the output of leaf {}", started.leaf))?;
        }
        if matches!(end, End::KilledExternal { .. }) {
            let line = format!("supervise[{}]: killed-external", started.leaf);
            output::note(records, started, &line);
        }
    }
    Ok(end)
}

/// How a launch ended, by what is recorded of it.
pub(super) fn classify(
    exit: Option<&Exit>,
    intent: Option<KillWhy>,
    started: bool,
    held: bool,
) -> End {
    let ours = |why| match why {
        KillWhy::Stop => End::KilledByStop,
        KillWhy::Lingering => End::Lingered,
        why => End::KilledStuck { why },
    };
    let external = |signal| match held {
        true => End::KilledExternal { signal },
        false => End::Lost,
    };
    let Some(exit) = exit else {
        return match (intent, started) {
            (Some(why), _) => ours(why),
            (None, true) => external(None),
            // Its shim was ended before it could say who it is.
            (None, false) if held => external(None),
            (None, false) => End::NeverStarted,
        };
    };
    if let (Some(message), Some(code)) = (&exit.spawn_error, exit.code) {
        return End::SpawnFailed {
            code,
            message: message.clone(),
        };
    }
    if exit.signalled_by_us {
        return ours(exit.why.unwrap_or(KillWhy::Stuck));
    }
    match (exit.signalled_by_others, exit.signal, exit.code) {
        (false, None, Some(code)) => End::Done { code },
        (_, signal, _) => external(signal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(code: Option<i32>, signal: Option<i32>) -> Exit {
        Exit {
            code,
            signal,
            ..Exit::of(&LaunchId::random().unwrap(), "x")
        }
    }

    #[test]
    fn a_kill_of_ours_is_never_called_external_and_a_record_beats_an_intent() {
        let done = exit(Some(0), None);
        let died = exit(None, Some(9));
        let ours = |why| Exit {
            signalled_by_us: true,
            why,
            ..exit(None, Some(9))
        };
        let stuck = |why| End::KilledStuck { why };
        let external = |signal| End::KilledExternal { signal };
        let (wall, stop) = (Some(KillWhy::Wall), Some(KillWhy::Stop));
        let (idle, late) = (Some(KillWhy::Idle), Some(KillWhy::Lingering));
        for (record, intent, started, held, end) in [
            (Some(done.clone()), None, true, true, End::Done { code: 0 }),
            (Some(done.clone()), None, true, false, End::Done { code: 0 }),
            (Some(done.clone()), stop, true, true, End::Done { code: 0 }),
            (Some(ours(wall)), wall, true, false, stuck(KillWhy::Wall)),
            (Some(ours(idle)), idle, true, false, stuck(KillWhy::Idle)),
            (Some(ours(late)), late, true, true, End::Lingered),
            (None, late, true, false, End::Lingered),
            (Some(ours(None)), None, true, true, stuck(KillWhy::Stuck)),
            (Some(ours(stop)), stop, true, true, End::KilledByStop),
            (Some(died.clone()), None, true, true, external(Some(9))),
            (Some(died), None, true, false, End::Lost),
            (None, None, true, true, external(None)),
            (None, None, true, false, End::Lost),
            (None, wall, true, true, stuck(KillWhy::Wall)),
            (None, stop, true, false, End::KilledByStop),
            (None, stop, false, true, End::KilledByStop),
            (None, None, false, false, End::NeverStarted),
            (None, None, false, true, external(None)),
        ] {
            let got = classify(record.as_ref(), intent, started, held);
            assert_eq!(got, end, "{record:?} {intent:?} {started} {held}");
        }
    }

    #[test]
    fn a_leaf_that_made_the_best_of_somebody_elses_signal_was_killed_all_the_same() {
        let record = Exit {
            signalled_by_others: true,
            ..exit(Some(0), Some(15))
        };
        let end = classify(Some(&record), None, true, true);
        assert_eq!(end, End::KilledExternal { signal: Some(15) });
    }
}
