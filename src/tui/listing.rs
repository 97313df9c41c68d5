//! The files below the session's directory, for the `@` menu: read when one types an `@`, and never
//! before. Breadth first, so that what is near comes even from a directory without end; bounded in
//! number, depth and time; what git ignores is left out; links are not followed, so nothing outside
//! of the directory is named. Blocks: called by the jobs on a thread of their own.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::model::mention::FileList;

/// Files that are listed.
const FILES: usize = 20_000;
/// Entries that are looked at, listed or not.
const ENTRIES: usize = 200_000;
/// Directories below the first one.
const DEPTH: usize = 16;
/// How long reading may take.
const TIME: Duration = Duration::from_secs(2);

/// A directory to be read.
struct Dir {
    /// Where it is below the first one; empty for that itself.
    below: String,
    depth: usize,
    /// What the directories above it ignore, the outermost first.
    rules: Vec<Arc<Gitignore>>,
}

/// Lists the files below `root`, as far as the bounds let.
pub(super) fn files(root: &Path) -> FileList {
    let mut list = FileList::default();
    let mut seen = 0;
    let until = Instant::now() + TIME;
    let first = Dir { below: String::new(), depth: 0, rules: rules_above(root) };
    let mut waiting = VecDeque::from([first]);
    while let Some(dir) = waiting.pop_front() {
        let path = root.join(&dir.below);
        let mut rules = dir.rules;
        rules.extend(rules_of(&path));
        let Ok(entries) = std::fs::read_dir(&path) else { continue };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            seen += 1;
            if seen > ENTRIES || Instant::now() > until {
                list.is_cut = true;
                break;
            }
            // The type of the entry itself: a link is neither a file nor a directory here.
            let Ok(kind) = entry.file_type() else { continue };
            let Ok(name) = entry.file_name().into_string() else { continue };
            let listed = (kind.is_file() || kind.is_dir() && name != ".git")
                && !name.chars().any(char::is_control)
                && !is_ignored(&rules, &entry.path(), kind.is_dir());
            if listed {
                found.push((name, kind.is_dir()));
            }
        }
        found.sort_unstable();
        for (name, is_dir) in found {
            let below = if dir.below.is_empty() { name } else { format!("{}/{name}", dir.below) };
            if !is_dir {
                if list.paths.len() >= FILES {
                    list.is_cut = true;
                    return list;
                }
                list.push(below);
            } else if dir.depth < DEPTH {
                waiting.push_back(Dir { below, depth: dir.depth + 1, rules: rules.clone() });
            } else {
                list.is_cut = true;
            }
        }
        if list.is_cut && (seen > ENTRIES || Instant::now() > until) {
            return list;
        }
    }
    list
}

/// What a repository around the directory ignores in it.
fn rules_above(root: &Path) -> Vec<Arc<Gitignore>> {
    let Some(top) = root.ancestors().find(|dir| dir.join(".git").exists()) else {
        return Vec::new();
    };
    let mut dirs: Vec<PathBuf> = root
        .ancestors()
        .skip(1)
        .take_while(|dir| dir.starts_with(top))
        .map(Path::to_owned)
        .collect();
    dirs.reverse();
    let exclude = read(top, &top.join(".git/info/exclude"));
    exclude.into_iter().chain(dirs.iter().filter_map(|dir| rules_of(dir))).collect()
}

/// What the directory's own `.gitignore` says.
fn rules_of(dir: &Path) -> Option<Arc<Gitignore>> {
    read(dir, &dir.join(".gitignore"))
}

fn read(dir: &Path, file: &Path) -> Option<Arc<Gitignore>> {
    // Nothing that could be waited for without end, and no link.
    if !file.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        return None;
    }
    let mut builder = GitignoreBuilder::new(dir);
    // A line that is no pattern costs that line.
    let problem = builder.add(file);
    if let Some(problem) = problem {
        tracing::debug!(%problem, "a line of an ignore file");
    }
    builder.build().ok().map(Arc::new)
}

/// The innermost file that speaks of the path decides.
fn is_ignored(rules: &[Arc<Gitignore>], path: &Path, is_dir: bool) -> bool {
    for rules in rules.iter().rev() {
        let told = rules.matched(path, is_dir);
        if !told.is_none() {
            return told.is_ignore();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn what_git_ignores_is_not_offered_and_what_is_near_comes_first() {
        let dir = tree(&[
            (".git/config", ""),
            (".gitignore", "target/\n*.log\n!keep.log\n"),
            ("target/debug/x", ""),
            ("a.log", ""),
            ("keep.log", ""),
            ("src/deep/b.rs", ""),
            ("src/.gitignore", "own.rs\n"),
            ("src/own.rs", ""),
            ("z.md", ""),
        ]);
        let all = [".gitignore", "keep.log", "z.md", "src/.gitignore", "src/deep/b.rs"];
        assert_eq!(files(dir.path()).paths, all);
        // From inside of a repository, its rules still count.
        std::fs::write(dir.path().join("src/deep/c.log"), "").unwrap();
        assert_eq!(files(&dir.path().join("src/deep")).paths, ["b.rs"]);
    }

    #[test]
    fn no_link_leads_out_and_the_number_is_bounded() {
        let outside = tree(&[("secret", "")]);
        let dir = tree(&[("a", "")]);
        std::os::unix::fs::symlink(outside.path(), dir.path().join("out")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), dir.path().join("s")).unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("round")).unwrap();
        assert_eq!(files(dir.path()).paths, ["a"]);
        for n in 0..=FILES {
            std::fs::write(dir.path().join(format!("n{n}")), "").unwrap();
        }
        let list = files(dir.path());
        assert!(list.paths.len() == FILES && list.is_cut);
    }
}
