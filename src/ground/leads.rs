//! Looking for what leads out of a ground: editable installs, linked folders, variables with a checkout's path.

use super::path::{TreePath, place};
use crate::tool::{Tool, ToolEnd};
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many entries of a folder are looked at: a bound, above any real `site-packages` or `node_modules`.
const ENTRIES: usize = 50_000;
/// Files of this size and above are not read (bytes).
const FILE_LIMIT: u64 = 1024 * 1024;

/// How long `python3` may take to tell its search path.
const PYTHON: Duration = Duration::from_secs(20);

/// Variables that say where a process is or was started from, and lead nowhere by themselves.
const HARMLESS: &[&str] = &["PWD", "OLDPWD", "INIT_CWD", "_", "HOME", "VERI_HOME"];

/// What a look has come to.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing leads out of the ground.
    Nothing,
    /// Something does: what leads where, in a sentence.
    Leads(String),
    /// What would know gave no answer: why, in a sentence.
    Unknown(String),
}

/// Looks for the first thing that leads out of the ground.
///
/// `checkouts` are the person's own; `env` is the environment that the suite gets. What cannot be read leads nowhere.
pub fn find(ground: &Path, checkouts: &[PathBuf], env: &[(OsString, OsString)]) -> Found {
    let checkouts: Vec<PathBuf> = checkouts
        .iter()
        .map(|path| resolve(path))
        .filter(|path| path != ground)
        .collect();
    let own = site_folders(ground)
        .iter()
        .find_map(|site| python_lead(site, ground, &|to| leaves(ground, to)));
    let python = match own.or_else(|| node_lead(ground)) {
        Some(lead) => Found::Leads(lead),
        None => active_python(ground, &checkouts, env),
    };
    match python {
        Found::Leads(lead) => Found::Leads(lead),
        unknown => match variable(ground, &checkouts, env) {
            Some(lead) => Found::Leads(lead),
            None => unknown,
        },
    }
}

/// Looks for a tracked file that names a checkout by its absolute path, as a test script with a `cd` in it does.
///
/// `tracked` are paths from the ground's root. What cannot be read leads nowhere.
pub fn written_down(ground: &Path, tracked: &[TreePath], checkouts: &[PathBuf]) -> Option<String> {
    let mut names: Vec<PathBuf> = checkouts.to_vec();
    names.extend(checkouts.iter().map(|path| resolve(path)));
    names.retain(|path| path.is_absolute() && path.parent().is_some() && path != ground);
    tracked.iter().find_map(|path| {
        let content = read(&place(ground, path))?;
        let named = names.iter().find(|name| mentions(&content, name))?;
        Some(format!(
            "the file {} names {}, a checkout outside the ground",
            String::from_utf8_lossy(path).escape_debug(),
            named.display()
        ))
    })
}

/// Whether a text has a path in it: that one or one below it, not one that merely begins alike.
fn mentions(content: &[u8], path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    let ends = |at: usize| {
        let next = content.get(at + path.len());
        next.is_none_or(|byte| {
            !(byte.is_ascii_alphanumeric() || b"-_.".contains(byte) || *byte >= 0x80)
        })
    };
    content
        .windows(path.len())
        .enumerate()
        .any(|(at, window)| window == path && ends(at))
}

fn resolve(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Whether a path exists and lies outside the ground.
fn leaves(ground: &Path, to: &Path) -> bool {
    to.exists() && !resolve(to).starts_with(ground)
}

fn within(checkouts: &[PathBuf], ground: &Path, to: &Path) -> bool {
    let to = resolve(to);
    !to.starts_with(ground) && checkouts.iter().any(|checkout| to.starts_with(checkout))
}

/// The `site-packages` of virtual environments at a folder's root.
fn site_folders(folder: &Path) -> Vec<PathBuf> {
    list(folder)
        .into_iter()
        .filter(|venv| venv.join("pyvenv.cfg").is_file())
        .flat_map(|venv| list(&venv.join("lib")))
        .map(|python| python.join("site-packages"))
        .filter(|site| site.is_dir())
        .collect()
}

fn list(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .take(ENTRIES)
        .map(|item| item.path())
        .collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let stat = fs::metadata(path).ok()?;
    (stat.is_file() && stat.len() < FILE_LIMIT).then(|| fs::read(path).ok())?
}

/// An editable install or path file in a `site-packages` whose target `leads`.
fn python_lead(site: &Path, ground: &Path, leads: &dyn Fn(&Path) -> bool) -> Option<String> {
    for path in list(site) {
        let name = path.file_name()?.as_bytes().to_vec();
        let targets = if name.ends_with(b".pth") || name.ends_with(b".egg-link") {
            lines(&path, site)
        } else if name.starts_with(b"__editable__") && name.ends_with(b".py") {
            quoted_paths(&path)
        } else if name.ends_with(b".dist-info") {
            editable_url(&path.join("direct_url.json"))
        } else {
            continue;
        };
        if let Some(to) = targets.iter().find(|to| leads(to)) {
            return Some(format!(
                "an editable install ({}) leads to {}, outside the ground {}",
                path.display(),
                to.display(),
                ground.display()
            ));
        }
    }
    None
}

/// The folders that a path file names; its `import` lines are not folders.
fn lines(file: &Path, site: &Path) -> Vec<PathBuf> {
    let content = read(file).unwrap_or_default();
    content
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty() && !line.starts_with(b"import ") && line[0] != b'#')
        .map(|line| site.join(OsString::from_vec(line.to_vec())))
        .collect()
}

/// The absolute paths in quotes of an import hook that an editable install made.
fn quoted_paths(file: &Path) -> Vec<PathBuf> {
    let content = read(file).unwrap_or_default();
    content
        .split(|byte| matches!(byte, b'\'' | b'"'))
        .filter(|part| part.starts_with(b"/"))
        .map(|part| PathBuf::from(OsString::from_vec(part.to_vec())))
        .collect()
}

fn editable_url(file: &Path) -> Vec<PathBuf> {
    let target = || -> Option<PathBuf> {
        let json: serde_json::Value = serde_json::from_slice(&read(file)?).ok()?;
        let editable = json.get("dir_info")?.get("editable")?.as_bool()?;
        let path = json.get("url")?.as_str()?.strip_prefix("file://")?;
        editable.then(|| PathBuf::from(percent_decoded(path)))
    };
    target().into_iter().collect()
}

fn percent_decoded(text: &str) -> OsString {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3);
        let decoded = digits.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match decoded {
            Some(byte) if bytes[at] == b'%' => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    OsString::from_vec(out)
}

/// A linked folder in `node_modules`, or `node_modules` itself, that leaves the ground.
fn node_lead(ground: &Path) -> Option<String> {
    let modules = ground.join("node_modules");
    let mut links = vec![modules.clone()];
    for path in list(&modules) {
        let scoped = path
            .file_name()
            .is_some_and(|name| name.as_bytes().starts_with(b"@"));
        if scoped && !path.is_symlink() {
            links.extend(list(&path));
        } else {
            links.push(path);
        }
    }
    let link = links
        .into_iter()
        .find(|path| path.is_symlink() && leaves(ground, path))?;
    Some(format!(
        "the linked folder {} leads to {}, outside the ground",
        link.display(),
        resolve(&link).display()
    ))
}

/// What the suite's `python3` finds in a checkout: its search path, and editable installs in any folder of it.
fn active_python(ground: &Path, checkouts: &[PathBuf], env: &[(OsString, OsString)]) -> Found {
    if checkouts.is_empty() {
        return Found::Nothing;
    }
    let mut tool = Tool::new("python3")
        .args(["-c", "import sys; sys.stdout.write('\\0'.join(sys.path))"])
        .dir(ground)
        .env_clear()
        .deadline(PYTHON);
    for (name, value) in env {
        tool = tool.env(name, value);
    }
    let output = match tool.run() {
        Ok(output) if output.success() => output,
        // Without Python nothing of it can lead anywhere.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            return Found::Nothing;
        }
        Err(e) => {
            return Found::Unknown(format!(
                "python3 could not be asked for its search path: {e}"
            ));
        }
        Ok(output) => match output.end {
            ToolEnd::Code(_) => return Found::Nothing,
            ToolEnd::Signal(signal) => {
                let why = format!(
                    "python3 was ended by signal {signal} when it was asked for its search path"
                );
                return Found::Unknown(why);
            }
            ToolEnd::TimedOut => {
                let said = PYTHON.as_secs();
                let why = format!("python3 did not tell its search path within {said} seconds");
                return Found::Unknown(why);
            }
        },
    };
    let leads = |to: &Path| within(checkouts, ground, to);
    for part in output.stdout.split(|byte| *byte == 0) {
        let folder = PathBuf::from(OsString::from_vec(part.to_vec()));
        if part.is_empty() || resolve(&folder).starts_with(ground) {
            continue;
        }
        if let Some(lead) = python_lead(&folder, ground, &leads) {
            return Found::Leads(lead);
        }
        if leads(&folder) {
            return Found::Leads(format!(
                "Python's search path has {}, which is in your checkout",
                folder.display()
            ));
        }
    }
    Found::Nothing
}

/// A variable of the suite's environment that holds a path in a checkout.
fn variable(ground: &Path, checkouts: &[PathBuf], env: &[(OsString, OsString)]) -> Option<String> {
    for (name, value) in env {
        if HARMLESS.iter().any(|known| name == *known) {
            continue;
        }
        let part = value
            .as_bytes()
            .split(|byte| matches!(byte, b':' | b'=' | b' ' | b','))
            .find(|part| {
                let path = Path::new(std::ffi::OsStr::from_bytes(part));
                path.is_absolute() && within(checkouts, ground, path)
            });
        if let Some(part) = part {
            return Some(format!(
                "the environment variable {} leads to {}",
                name.to_string_lossy(),
                String::from_utf8_lossy(part)
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_that_was_killed_has_not_said_that_nothing_leads_out() {
        let [ground, checkout, path] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let python = path.path().join("python3");
        let look = |script: &str| {
            fs::write(&python, script).unwrap();
            fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .unwrap();
            let env = [("PATH".into(), path.path().as_os_str().to_owned())];
            find(ground.path(), &[checkout.path().to_owned()], &env)
        };
        let killed = look("#!/bin/sh\nkill -9 $$\n");
        assert!(
            matches!(&killed, Found::Unknown(why) if why.contains("signal 9")),
            "{killed:?}"
        );
        assert_eq!(look("#!/bin/sh\nexit 1\n"), Found::Nothing);
        let leads = look(&format!(
            "#!/bin/sh\nprintf '%s' '{}'\n",
            checkout.path().display()
        ));
        assert!(matches!(leads, Found::Leads(_)));
    }

    #[test]
    fn a_path_that_merely_begins_alike_is_not_mentioned() {
        let bank = Path::new("/home/me/bank");
        for text in ["cd /home/me/bank\n", "'/home/me/bank'/src", "/home/me/bank"] {
            assert!(mentions(text.as_bytes(), bank), "{text}");
        }
        for text in ["/home/me/bank2", "/home/me/bank-old/src", "/home/me", ""] {
            assert!(!mentions(text.as_bytes(), bank), "{text}");
        }
    }
}
