//! Which leaf is confined to what, and what is said of it: verifiers always where the kernel can, developers on request.

use super::writable::real;
use crate::agent::Launch;
use crate::cause::Bail;
use crate::conductor::record::Entry;
use crate::conductor::run::Run;
use crate::conductor::settings::SandboxWish;
use crate::event::Kind;
use crate::leaf::{LaunchId, Offer, Sandbox, probe_sandbox};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folder for temporary files when the environment names none.
const TEMP: &str = "/tmp";

impl Run<'_> {
    /// Looks what the kernel offers, says it once in a run, and gives whether leaves are confined.
    ///
    /// # Errors
    /// A `Bail` needs-user when a sandbox is required that cannot be had whole, and when `sandbox_write` opens what is
    /// closed.
    pub(in crate::conductor) fn find_sandbox(&mut self) -> Result<bool> {
        let wish = self.settings.sandbox();
        if wish == SandboxWish::Off {
            let said = "no sandbox, since the configuration says sandbox = \"off\": a verifier can read and write whatever you can";
            self.say_of_sandbox(json!({ "none": "off" }), said.to_owned())?;
            return Ok(false);
        }
        self.look_at_more_writable()?;
        let developers = self.settings.confines_developers();
        let sealed = match developers {
            true => self.sealed(),
            false => Vec::new(),
        };
        let offer = probe_sandbox(&sealed);
        if wish == SandboxWish::Require {
            required(&offer)?;
        }
        match offer {
            Offer::Nothing(why) => {
                let said = format!(
                    "no sandbox: a verifier can read and write whatever you can, since {why}"
                );
                self.say_of_sandbox(json!({ "none": why }), said)?;
                Ok(false)
            }
            Offer::Landlock(confined) => {
                let who = match developers {
                    true => "verifiers and developers are",
                    false => "verifiers are",
                };
                let mut said = format!(
                    "sandbox: {who} confined (Landlock ABI {})",
                    confined.landlock
                );
                if !confined.without.is_empty() {
                    said += &format!(", but not kept from {}", confined.without.join("; from "));
                }
                let fields = json!({
                    "landlock": confined.landlock,
                    "without": confined.without,
                    "developers": developers,
                });
                self.say_of_sandbox(fields, said)?;
                Ok(true)
            }
        }
    }

    /// Once in a run, and again when it has changed.
    fn say_of_sandbox(&mut self, sandbox: Value, said: String) -> Result<()> {
        let earlier = self
            .lines
            .iter()
            .rev()
            .find_map(|l| l.fields.get("sandbox"));
        if earlier == Some(&sandbox) {
            return Ok(());
        }
        let fields = json!({ "sandbox": sandbox });
        self.write(Entry::new(Kind::Preflight, Default::default(), fields).say(said))
    }

    /// Puts a verifier's launch into its sandbox: it writes in its ground and its temporary folder, and what could tell it of
    /// the work or of other leaves it cannot read.
    pub(in crate::conductor) fn confine_verifier(
        &self,
        launch: Launch,
        ground: &Path,
        temp: &Path,
    ) -> Result<Launch> {
        if !self.ready()?.sandbox {
            return Ok(launch);
        }
        let more = self.more_writable()?;
        let mut hidden = self.closed();
        let env = launch.env();
        // Unless the person has it written to by everybody.
        let notes = notes(self.ask.env.get("TMPDIR"), &env, launch.argv());
        hidden.extend(notes.filter(|notes| !more.iter().any(|m| real(notes).0.starts_with(m))));
        // A program that was copied aside for the run lies in veri's own folder.
        let programs = launch.argv().iter().map(PathBuf::from);
        let sandbox = Sandbox {
            hidden,
            read: programs
                .filter(|p| p.is_absolute() && p.is_file())
                .chain([launch.stdin().to_owned()])
                .collect(),
            // Its output itself, which it may open again (/dev/stderr), and not the folder: what veri reads there is what
            // its shim has opened, and no link or pipe.
            write: [ground, temp, launch.stdout(), launch.stderr()]
                .map(Path::to_owned)
                .into_iter()
                .chain(more.iter().cloned())
                .collect(),
            sealed: Vec::new(),
        };
        Ok(launch.confined(sandbox, self.temporary(temp, &env, &more)))
    }

    /// Puts a developer's launch into a sandbox, if that is asked for: it writes in the working tree, except for what is
    /// veri's and git's own there, and in a temporary folder.
    pub(in crate::conductor) fn confine_developer(
        &self,
        launch: Launch,
        id: &LaunchId,
    ) -> Result<Launch> {
        if !(self.ready()?.sandbox && self.settings.confines_developers()) {
            return Ok(launch);
        }
        let temp = self.developer_temp(id);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&temp)
            .with_context(|| format!("making the developer's folder {}", temp.display()))?;
        let more = self.more_writable()?;
        let env = self.temporary(&temp, &launch.env(), &more);
        let sandbox = Sandbox {
            write: [self.tree.path().to_owned(), temp]
                .into_iter()
                .chain(more)
                .collect(),
            sealed: self.sealed(),
            ..Sandbox::default()
        };
        Ok(launch.confined(sandbox, env))
    }

    /// A confined developer's folder for temporary files.
    fn developer_temp(&self, id: &LaunchId) -> PathBuf {
        self.home.join("develop").join(id.as_str())
    }

    /// Removes a confined developer's temporary folder once it has ended.
    pub(in crate::conductor) fn clear_developer_temp(&self, id: &LaunchId) {
        let temp = self.developer_temp(id);
        // What cannot be removed hinders nobody.
        let _ = fs::remove_dir_all(&temp);
        let _ = temp.parent().map(fs::remove_dir);
    }

    /// What lies in the working tree and is no developer's.
    fn sealed(&self) -> Vec<PathBuf> {
        vec![self.tree.tdd(), self.tree.path().join(".git")]
    }

    /// The variables that lead a leaf's temporary files to where it can write. Go cannot build without a cache.
    fn temporary(
        &self,
        temp: &Path,
        env: &[(OsString, OsString)],
        more: &[PathBuf],
    ) -> Vec<(OsString, OsString)> {
        let has = |name: &str| env.iter().any(|(n, _)| n == name);
        let cache = self
            .ask
            .env
            .get("HOME")
            .map(|home| real(&Path::new(home).join(".cache/go-build")).0);
        let open = cache.is_some_and(|c| more.iter().any(|w| c.starts_with(w)));
        let go =
            (!has("GOCACHE") && !open).then(|| ("GOCACHE".into(), temp.join("go-build").into()));
        [("TMPDIR".into(), temp.into())]
            .into_iter()
            .chain(go)
            .collect()
    }
}

/// Whether what is offered is all that was asked for.
fn required(offer: &Offer) -> Result<()> {
    let (lacks, mend) = match offer {
        Offer::Landlock(confined) if confined.without.is_empty() => return Ok(()),
        Offer::Landlock(confined) => (
            format!(
                "the one of this kernel (Landlock ABI {}) does not keep leaves from {}",
                confined.landlock,
                confined.without.join("; from ")
            ),
            "Run where it can be had whole (Linux 6.12 or later, with user namespaces for confined developers)",
        ),
        Offer::Nothing(why) => (
            format!("there is none: {why}"),
            "Run where there is one (Linux 6.12 or later with Landlock switched on)",
        ),
    };
    Err(Bail::needs_user(format!(
        "The configuration says sandbox = \"require\", and {lacks}. {mend}, or write sandbox = \"auto\" to go on with what \
         there is."
    ))
    .into())
}

/// The folder in which a developer may have left notes; None when the verifier's own programs lie there.
fn notes(temp: Option<&OsStr>, env: &[(OsString, OsString)], argv: &[OsString]) -> Option<PathBuf> {
    let temp = PathBuf::from(temp.unwrap_or(OsStr::new(TEMP)));
    let own = env
        .iter()
        .filter(|(name, _)| name != "TMPDIR" && name != "PWD");
    let paths = own.flat_map(|(_, value)| std::env::split_paths(value));
    // A program that lies there may need what lies beside it.
    let mut paths = paths.chain(argv.iter().map(PathBuf::from));
    let needed = paths.any(|p| p.starts_with(&temp));
    (temp.is_absolute() && temp.parent().is_some() && !needed).then_some(temp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::Confined;

    #[test]
    fn a_required_sandbox_is_a_whole_one() {
        let offer = |without: &[&str]| {
            Offer::Landlock(Confined {
                landlock: 4,
                without: without.iter().map(|w| (*w).to_owned()).collect(),
            })
        };
        required(&offer(&[])).unwrap();
        let partly = required(&offer(&["signals", "ioctl"])).unwrap_err();
        let said = format!("{partly:#}");
        assert!(said.contains("from signals; from ioctl"), "{said}");
        let nothing = required(&Offer::Nothing("too old".to_owned())).unwrap_err();
        assert!(format!("{nothing:#}").contains("too old"));
    }

    #[test]
    fn the_place_for_notes_is_closed_unless_the_verifiers_programs_lie_there() {
        let env = |path: &str| {
            vec![
                ("TMPDIR".into(), "/tmp/x".into()),
                ("PATH".into(), path.into()),
            ]
        };
        assert_eq!(notes(None, &env("/usr/bin:/bin"), &[]), Some("/tmp".into()));
        assert_eq!(
            notes(Some("/var/t".as_ref()), &env("/bin"), &[]),
            Some("/var/t".into())
        );
        assert_eq!(notes(None, &env("/bin:/tmp/tools"), &[]), None);
        assert_eq!(notes(None, &env("/bin"), &["/tmp/agent".into()]), None);
        assert_eq!(notes(Some("/".as_ref()), &env("/bin"), &[]), None);
        assert_eq!(notes(Some("relative".as_ref()), &env("/bin"), &[]), None);
    }
}
