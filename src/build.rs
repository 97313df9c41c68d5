//! Tells the program which commit and profile it was built from, for `--version` and `doctor`.
//! Reads git's files and runs nothing, so a build needs no git and a packaged source still builds.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-env-changed=ZCODE_ACP_BUILD_COMMIT");
    let commit = env::var("ZCODE_ACP_BUILD_COMMIT")
        .ok()
        .filter(|c| !c.is_empty())
        // Development builds would be compiled anew after every commit for a line nobody reads.
        .or_else(|| if env::var("PROFILE").as_deref() == Ok("debug") { None } else { commit() })
        .unwrap_or_else(|| "no commit recorded".to_owned());
    println!(
        "cargo::rustc-env=ZCODE_ACP_COMMIT={}",
        commit.chars().take(if commit.starts_with("no ") { 99 } else { 12 }).collect::<String>()
    );
    println!("cargo::rustc-env=ZCODE_ACP_PROFILE={}", profile());
}

/// The profile's directory name (`quick` says more than `release`, which is what PROFILE has).
fn profile() -> String {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    out.ancestors()
        .nth(3)
        .and_then(Path::file_name)
        .and_then(|n| n.to_str())
        .unwrap_or("unknown")
        .to_owned()
}

fn commit() -> Option<String> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let dot_git = root.join(".git");
    // In a linked worktree `.git` is a file that names the real directory.
    let git = match fs::read_to_string(&dot_git) {
        Ok(text) => root.join(text.strip_prefix("gitdir:")?.trim()),
        Err(_) => dot_git,
    };
    let common = match fs::read_to_string(git.join("commondir")) {
        Ok(text) => git.join(text.trim()),
        Err(_) => git.clone(),
    };
    let head = read(&git.join("HEAD"))?;
    let Some(reference) = head.strip_prefix("ref:").map(str::trim) else { return Some(head) };
    if let Some(id) = read(&common.join(reference)) {
        return Some(id);
    }
    let packed = read(&common.join("packed-refs"))?;
    packed.lines().find_map(|line| line.strip_suffix(reference).map(|id| id.trim().to_owned()))
}

/// Reads a file and has the build follow it.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo::rerun-if-changed={}", path.display());
    Some(text.trim().to_owned())
}
