//! Which paths an agent may touch: those inside the session's roots, symbolic links resolved.

use std::io;
use std::path::{Component, Path, PathBuf};

/// The session's roots.
#[derive(Debug, Clone)]
pub(super) struct Roots(Vec<PathBuf>);

impl Roots {
    /// The working directory as the only root.
    pub(super) fn new(cwd: &Path) -> Self {
        Self(vec![std::fs::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned())])
    }

    /// The first root: where commands run when nothing else is said.
    pub(super) fn first(&self) -> io::Result<PathBuf> {
        self.0.first().cloned().ok_or_else(|| io::Error::other("the session has no directory"))
    }

    /// Returns the real path, if it lies inside a root. The file need not exist; every part of the
    /// path that does exist is resolved, so that no link leads out.
    pub(super) fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let denied = |why: &str| io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned());
        if !path.is_absolute() {
            return Err(denied("the path must be absolute"));
        }
        let mut existing = path;
        let mut missing = Vec::new();
        let mut real = loop {
            match std::fs::canonicalize(existing) {
                Ok(real) => break real,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // A link that leads nowhere could be made to lead out by what is written.
                    if existing.is_symlink() {
                        return Err(denied("the path leads through a broken link"));
                    }
                    match (existing.parent(), existing.components().next_back()) {
                        (Some(parent), Some(Component::Normal(name))) => {
                            missing.push(name.to_owned());
                            existing = parent;
                        }
                        _ => {
                            return Err(denied(
                                "the path goes up from a folder that does not exist",
                            ));
                        }
                    }
                }
                Err(error) => return Err(error),
            }
        };
        real.extend(missing.iter().rev());
        if self.0.iter().any(|root| real.starts_with(root)) {
            Ok(real)
        } else {
            Err(denied("the path lies outside of the session's directory"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_inside_a_root_are_given() {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        let inside = root.join("work");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(root.join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(root.join("secret"), inside.join("link")).unwrap();
        std::os::unix::fs::symlink(root.join("nowhere"), inside.join("broken")).unwrap();
        std::os::unix::fs::symlink(&root, inside.join("up")).unwrap();
        let roots = Roots::new(&inside);
        for ok in ["a.txt", "new/deep/b.txt", "new/../c.txt"] {
            let path = inside.join(ok);
            let result = roots.resolve(&path);
            assert_eq!(result.is_ok(), !ok.contains(".."), "{ok}: {result:?}");
        }
        for bad in ["../secret", "link", "broken", "up/secret", "up/new.txt"] {
            assert!(roots.resolve(&inside.join(bad)).is_err(), "{bad}");
        }
        assert!(roots.resolve(Path::new("relative")).is_err());
        assert!(roots.resolve(Path::new("/etc/passwd")).is_err());
    }
}
