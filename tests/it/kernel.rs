//! What the kernel offers to the tests, and kernels that offer less.

#![allow(clippy::print_stdout)] // a test that is skipped says so

use nix::errno::Errno;
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

/// landlock_create_ruleset, landlock_add_rule, landlock_restrict_self: the same numbers on every machine.
pub const LANDLOCK: [u32; 3] = [444, 445, 446];

/// mount_setattr.
pub const MOUNT_SETATTR: u32 = 442;

/// unshare, mount: the numbers of x86-64, and of aarch64.
const NAMESPACES: [u32; 2] = match cfg!(target_arch = "x86_64") {
    true => [272, 165],
    false => [97, 40],
};

/// prctl.
const PRCTL: u32 = match cfg!(target_arch = "x86_64") {
    true => 157,
    false => 167,
};

/// Shell words that run a program as on a kernel without Landlock; its arguments come after them. None where that cannot
/// be had.
pub fn without_landlock(program: &[&str]) -> Option<String> {
    refusing(Errno::ENOSYS, &LANDLOCK[..1], program)
}

/// The same for a program whose system calls of these numbers fail, and those of all that it starts: by a seccomp filter.
pub fn refusing(errno: Errno, calls: &[u32], program: &[&str]) -> Option<String> {
    const ALLOW: u32 = 0x7fff_0000;
    let fail: u32 = 0x0005_0000 | errno as u32;
    // struct sock_filter { u16 code; u8 jt, jf; u32 k }: load the number; each call that is equal fails; else it is allowed.
    let mut filter = vec![(0x20, 0, 0, 0)];
    for (at, call) in calls.iter().enumerate() {
        filter.push((0x15, (calls.len() - at) as u8, 0, *call));
    }
    filter.extend([(0x06, 0, 0, ALLOW), (0x06, 0, 0, fail)]);
    let packed: Vec<String> = filter
        .iter()
        .map(|(code, yes, no, k): &(u16, u8, u8, u32)| {
            format!("pack(q(SCCL),{code},{yes},{no},{k})")
        })
        .collect();
    // PR_SET_SECCOMP with SECCOMP_MODE_FILTER.
    let filter = format!(
        "my $f=join(q(),{}); my $p=pack(q(Sx![P]P),{},$f); syscall({PRCTL},22,2,$p,0,0)==0 or die;",
        packed.join(","),
        filter.len()
    );
    after(&filter, program)
}

/// The same in so many Landlock sandboxes, which allow everything but to make a device file.
pub fn nested(sandboxes: u32, program: &[&str]) -> Option<String> {
    let [make, allow, put_on] = LANDLOCK;
    // LANDLOCK_ACCESS_FS_MAKE_CHAR, and LANDLOCK_ACCESS_FS_REFER, which only a rule allows.
    let (device, refer) = (1 << 6, 1 << 13);
    let all = device | refer;
    after(
        &format!(
            "opendir(my $d,q(/)); my $a=pack(q(Q),{all}); my $b=pack(q(Ql),{refer},fileno($d)); \
             for (1..{sandboxes}) {{ my $r=syscall({make},$a,8,0); syscall({allow},$r,1,$b,0)==0 or die; \
             syscall({put_on},$r,0)==0 or die }}"
        ),
        program,
    )
}

/// Shell words that run a program after some Perl without a single quote in it.
fn after(perl: &str, program: &[&str]) -> Option<String> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        println!("skipped: system calls have other numbers here");
        return None;
    }
    // PR_SET_NO_NEW_PRIVS first: without it nobody but root may.
    let perl = format!("syscall({PRCTL},38,1,0,0,0)==0 or die; {perl} exec {{$ARGV[0]}} @ARGV");
    works(format!("perl -e '{perl}' {}", quoted(program)), || {
        format!("perl -e '{perl}' true")
    })
}

/// As in a container of an ordinary user's: no privileges, none to be had, and no namespaces.
pub fn contained(program: &[&str]) -> Option<String> {
    let calls = [&NAMESPACES[..], &[MOUNT_SETATTR]].concat();
    let powerless = powerless(nix::unistd::geteuid().is_root());
    refusing(Errno::EPERM, &calls, &[&powerless, program].concat())
}

/// As where user namespaces are used up: in one that allows no more of them.
pub fn without_user_namespaces(program: &[&str]) -> Option<String> {
    const NONE: &str = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let words = |program: &[&str]| {
        let program = quoted(&[&powerless(true), program].concat());
        format!("unshare -Ur sh -c '{NONE}' sh {program}")
    };
    works(words(program), || words(&["true"]))
}

/// Without any of root's privileges, which only root can give away.
fn powerless(root: bool) -> Vec<&'static str> {
    let all = ["setpriv", "--no-new-privs", "--inh-caps=-all"];
    let bounds = root.then_some("--bounding-set=-all");
    all.into_iter().chain(bounds).collect()
}

fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    words.join(" ")
}

/// The words, if those of a trial work here.
fn works(words: String, trial: impl Fn() -> String) -> Option<String> {
    let out = Command::new("sh").args(["-c", &trial()]).output().ok()?;
    if out.status.success() {
        return Some(words);
    }
    let why = String::from_utf8_lossy(&out.stderr);
    println!("skipped: such a world cannot be had here: {why}");
    None
}
