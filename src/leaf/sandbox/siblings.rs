//! To hide a folder from a leaf: Landlock only allows, so everything beside the way to it is allowed instead.
//!
//! Pure: what lies in a folder is asked for.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The fewest paths below `from` (itself included) that together hold everything that lies there now and is neither
/// hidden nor in a hidden folder. The folders on the way to a hidden one are not among them: what is made in them later
/// is hidden, too, and so are their own lists of names.
///
/// `hidden` are absolute paths without links or detours; they need not exist. `names` gives what lies in a folder, links
/// left out (what they lead to is allowed or hidden where it really lies), and nothing for one that cannot be read.
pub(super) fn visible(
    from: &Path,
    hidden: &BTreeSet<PathBuf>,
    names: &mut dyn FnMut(&Path) -> Vec<OsString>,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![from.to_owned()];
    while let Some(at) = open.pop() {
        if hidden.iter().any(|h| at.starts_with(h)) {
            continue;
        }
        let below: Vec<&PathBuf> = hidden.iter().filter(|h| h.starts_with(&at)).collect();
        if below.is_empty() {
            found.push(at);
            continue;
        }
        // A folder may be passed through by name whose names cannot be read.
        let on_the_way = below
            .iter()
            .filter_map(|h| Some(h.strip_prefix(&at).ok()?.iter().next()?.to_owned()));
        let all: BTreeSet<OsString> = names(&at).into_iter().chain(on_the_way).collect();
        open.extend(all.into_iter().rev().map(|name| at.join(name)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file system of these paths; folders are what other paths lie in.
    fn among<'p>(paths: &'p [&'p str]) -> impl FnMut(&Path) -> Vec<OsString> + 'p {
        |folder: &Path| {
            let inside = paths
                .iter()
                .filter_map(|p| Path::new(p).strip_prefix(folder).ok());
            inside
                .filter_map(|rest| Some(rest.iter().next()?.to_owned()))
                .collect()
        }
    }

    fn shown(from: &str, hidden: &[&str], paths: &[&str]) -> Vec<String> {
        let hidden = hidden.iter().map(PathBuf::from).collect();
        visible(Path::new(from), &hidden, &mut among(paths))
            .iter()
            .map(|p| p.display().to_string())
            .collect()
    }

    const HOUSE: &[&str] = &[
        "/etc/passwd",
        "/usr/bin/sh",
        "/home/ann/x",
        "/home/u/repo/src/lib.rs",
        "/home/u/repo-data/x",
        "/home/u/.cargo/bin/cargo",
        "/home/u/.local/state/veri/id/work/issue-1/.tdd/events.jsonl",
        "/home/u/.local/state/veri/id/ground/verify/x",
        "/home/u/.local/share/x",
    ];

    #[test]
    fn where_nothing_is_hidden_everything_is_one_path() {
        assert_eq!(shown("/", &[], HOUSE), ["/"]);
        assert_eq!(shown("/home/u", &["/etc"], HOUSE), ["/home/u"]);
    }

    #[test]
    fn everything_beside_the_way_to_a_hidden_folder_is_allowed_and_nothing_on_it() {
        assert_eq!(
            shown("/", &["/home/u/repo"], HOUSE),
            [
                "/etc",
                "/home/ann",
                "/home/u/.cargo",
                "/home/u/.local",
                "/home/u/repo-data",
                "/usr"
            ]
        );
    }

    #[test]
    fn several_hidden_folders_on_one_way_are_all_hidden() {
        let hidden = [
            "/home/u/repo",
            "/home/u/.local/state/veri/id",
            // Below one that is hidden already.
            "/home/u/.local/state/veri/id/work",
        ];
        assert_eq!(
            shown("/home", &hidden, HOUSE),
            [
                "/home/ann",
                "/home/u/.cargo",
                "/home/u/.local/share",
                "/home/u/repo-data"
            ]
        );
    }

    #[test]
    fn a_hidden_path_that_is_not_there_yet_is_hidden_when_it_comes() {
        let visible = shown("/home/u", &["/home/u/later/on"], HOUSE);
        assert!(visible.contains(&"/home/u/repo".to_owned()), "{visible:?}");
        // Neither the folder above nor anything on the way, so that it has no rule when it is made.
        assert!(
            visible
                .iter()
                .all(|v| !Path::new("/home/u/later/on").starts_with(v)),
            "{visible:?}"
        );
    }

    #[test]
    fn a_folder_whose_names_cannot_be_read_is_passed_through() {
        let mut names = |folder: &Path| match folder == Path::new("/home") {
            true => Vec::new(),
            false => among(HOUSE)(folder),
        };
        let hidden = BTreeSet::from([PathBuf::from("/home/u/repo")]);
        let visible = visible(Path::new("/home"), &hidden, &mut names);
        assert!(visible.contains(&PathBuf::from("/home/u/.cargo")));
        assert!(!visible.contains(&PathBuf::from("/home/ann")));
    }

    #[test]
    fn a_hidden_root_shows_nothing() {
        assert!(shown("/", &["/"], HOUSE).is_empty());
        assert!(shown("/home/u/repo/src", &["/home/u/repo"], HOUSE).is_empty());
    }

    #[test]
    fn names_of_any_bytes_are_kept() {
        use std::os::unix::ffi::OsStringExt;
        let odd = OsString::from_vec(b"\xff \n".to_vec());
        let mut names = |_: &Path| vec![odd.clone()];
        let hidden = BTreeSet::from([PathBuf::from("/a")]);
        let found = visible(Path::new("/"), &hidden, &mut names);
        assert_eq!(found, [Path::new("/").join(&odd)]);
    }

    proptest! {
        /// Every file is below exactly one visible path, or hidden, or lies right on the way to a hidden one.
        #[test]
        fn each_path_is_visible_once_or_hidden(
            paths in proptest::collection::vec("(/[ab]){1,4}", 1..12),
            hidden in proptest::collection::vec("(/[abc]){1,4}", 0..4),
        ) {
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            let hidden: BTreeSet<PathBuf> = hidden.iter().map(PathBuf::from).collect();
            let found = visible(Path::new("/"), &hidden, &mut among(&paths));
            for path in paths.iter().map(Path::new) {
                let is_hidden = hidden.iter().any(|h| path.starts_with(h));
                let on_the_way = hidden.iter().any(|h| h.starts_with(path));
                let shown = found.iter().filter(|f| path.starts_with(f)).count();
                prop_assert_eq!(shown, usize::from(!is_hidden && !on_the_way), "{:?} {:?}", path, found);
            }
        }
    }
}
