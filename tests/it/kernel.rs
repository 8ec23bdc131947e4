//! What the kernel offers to the tests, and kernels that offer less.

#![allow(clippy::print_stdout)] // a test that is skipped says so

use std::process::Command;
use veri::leaf::{Confined, Offer, probe_sandbox};

/// The kernel's Landlock; without one the test that asks is skipped, and says so.
pub fn landlock() -> Option<Confined> {
    match probe_sandbox(&[]) {
        Offer::Landlock(confined) => Some(confined),
        Offer::Nothing(why) => {
            println!("skipped: no sandbox here: {why}");
            None
        }
    }
}

/// Shell words that run a program as on a kernel without Landlock; its arguments come after them. By a seccomp filter, which
/// all that it starts inherits, the call that asks for the version fails with ENOSYS. None where that cannot be had.
pub fn without_landlock(program: &[&str]) -> Option<String> {
    refusing(&[444], program) // landlock_create_ruleset
}

/// The same for any system calls of x86-64 and aarch64, whose newer ones have the same numbers.
pub fn refusing(calls: &[u32], program: &[&str]) -> Option<String> {
    const ALLOW: u32 = 0x7fff_0000;
    const ENOSYS: u32 = 0x0005_0000 | 38;
    // struct sock_filter { u16 code; u8 jt, jf; u32 k }: load the number; each call that is equal fails; else it is allowed.
    let mut filter = vec![(0x20, 0, 0, 0)];
    for (at, call) in calls.iter().enumerate() {
        filter.push((0x15, (calls.len() - at) as u8, 0, *call));
    }
    filter.extend([(0x06, 0, 0, ALLOW), (0x06, 0, 0, ENOSYS)]);
    let packed: Vec<String> = filter
        .iter()
        .map(|(code, yes, no, k): &(u16, u8, u8, u32)| {
            format!("pack(q(SCCL),{code},{yes},{no},{k})")
        })
        .collect();
    let prctl = match std::env::consts::ARCH {
        "x86_64" => 157,
        "aarch64" => 167,
        other => {
            println!("skipped: no seccomp filter for {other}");
            return None;
        }
    };
    // PR_SET_NO_NEW_PRIVS, then PR_SET_SECCOMP with SECCOMP_MODE_FILTER.
    let perl = format!(
        "my $f=join(q(),{}); my $p=pack(q(Sx![P]P),{},$f); syscall({prctl},38,1,0,0,0)==0 or die; \
         syscall({prctl},22,2,$p,0,0)==0 or die; exec {{$ARGV[0]}} @ARGV",
        packed.join(","),
        filter.len()
    );
    let works = Command::new("perl").args(["-e", &perl, "true"]).status();
    if !works.is_ok_and(|status| status.success()) {
        println!("skipped: no perl that can put a seccomp filter on");
        return None;
    }
    let program: Vec<String> = program.iter().map(|p| format!("'{p}'")).collect();
    Some(format!("perl -e '{perl}' {}", program.join(" ")))
}
