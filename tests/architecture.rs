//! The rules of the architecture, read off the sources: who may import whom, how long a file may
//! be, that every module says what it owns. A rule that is not a test rots.
//!
//! The import table here is the one in the README ("Architecture").

#![expect(
    clippy::unwrap_used,
    clippy::string_slice,
    clippy::indexing_slicing,
    reason = "all of this is test code, which fails by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// One row of the table: what a part of the tree must never name.
struct Row {
    /// Paths below `src/` that the row speaks of; `*` is the rest of the path.
    part: &'static [&'static str],
    /// Files of that part that are excepted.
    except: &'static [&'static str],
    /// Crates and module paths that must not appear in it.
    never: &'static [&'static str],
}

const TABLE: &[Row] = &[
    Row {
        part: &["tui/model/*"],
        except: &[],
        never: &[
            "tokio",
            "ratatui",
            "crossterm",
            "agent_client_protocol",
            "tracing",
            "std::fs",
            "std::process",
            "crate::bridge",
            "crate::tui::view",
            "crate::tui::update",
            "crate::tui::app",
            "crate::tui::client",
        ],
    },
    Row {
        part: &["tui/update/*"],
        except: &["tui/update/acp.rs", "tui/update/acp/*"],
        never: &["agent_client_protocol"],
    },
    Row {
        part: &["tui/update/*"],
        except: &[],
        never: &[
            "tokio",
            "ratatui",
            "std::fs",
            "std::process",
            "crate::bridge",
            "crate::tui::view",
        ],
    },
    Row {
        part: &["tui/view/*"],
        except: &[],
        never: &[
            "tokio",
            "agent_client_protocol",
            "std::fs",
            "std::process",
            "crate::bridge",
            "crate::tui::update",
            "crate::tui::client",
        ],
    },
    Row { part: &["tui/*"], except: &[], never: &["crate::bridge"] },
    Row {
        part: &["bridge/translate/*"],
        except: &[],
        never: &[
            "tokio",
            "std::fs",
            "std::process",
            "tracing",
            "crate::tui",
            "crate::bridge::session",
        ],
    },
    Row {
        part: &["bridge/engine/*"],
        except: &[],
        never: &[
            "agent_client_protocol",
            "crate::tui",
            "crate::bridge::translate",
            "crate::bridge::session",
            "crate::bridge::agent",
        ],
    },
    Row { part: &["bridge/*"], except: &[], never: &["ratatui", "crossterm", "crate::tui"] },
    // Subcommands wire parts together and never each other.
    Row {
        part: &["serve.rs"],
        except: &[],
        never: &["crate::run", "crate::login", "crate::doctor", "crate::chat"],
    },
    Row {
        part: &["chat.rs"],
        except: &[],
        never: &["crate::run", "crate::login", "crate::doctor"],
    },
    Row {
        part: &["run.rs", "run/*"],
        except: &[],
        never: &["crate::login", "crate::doctor", "crate::chat", "crate::tui"],
    },
    Row {
        part: &["sessions/*", "replay/*", "quota.rs"],
        except: &[],
        never: &["crate::run", "crate::login", "crate::doctor", "crate::chat"],
    },
    Row { part: &["doctor.rs", "doctor/*"], except: &[], never: &["crate::run", "crate::chat"] },
    Row {
        part: &["redact/*", "error.rs", "cli.rs"],
        except: &[],
        never: &["tokio", "std::fs", "crate::bridge", "crate::tui"],
    },
];

/// Lines that a file may have (tests in a `tests.rs` or `tests/` of their own do not count).
const MAX_LINES: usize = 800;
/// Lines that the entry point may have.
const MAX_MAIN_LINES: usize = 60;

struct Source {
    /// Path below `src/`, with `/`.
    path: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_below(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn sources() -> Vec<Source> {
    let src = root().join("src");
    let mut found = Vec::new();
    files_below(&src, &mut found);
    found.sort();
    let sources: Vec<Source> = found
        .iter()
        .filter(|path| path.extension().is_some_and(|ext| ext == "rs"))
        .map(|path| Source {
            path: path.strip_prefix(&src).unwrap().to_str().unwrap().replace('\\', "/"),
            text: fs::read_to_string(path).unwrap(),
        })
        .collect();
    assert!(sources.len() > 15, "the sources were not found");
    sources
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.ends_with("_tests.rs")
}

/// The code of a file without comments, strings' contents, and the test module at its end.
fn code(text: &str) -> String {
    let text = match text.find("#[cfg(test)]\nmod ") {
        // A `mod tests;` has its own file.
        Some(at) if text[at..].lines().nth(1).is_some_and(|line| line.ends_with('{')) => {
            &text[..at]
        }
        _ => text,
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |n| n + 2)
        } else if let Some(n) = raw_string_len(rest) {
            n
        } else if c == '"' {
            string_len(rest)
        } else if c == '\'' {
            char_len(rest)
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        out.push(' ');
        rest = &rest[skipped..];
    }
    out
}

fn string_len(rest: &str) -> usize {
    let mut escaped = false;
    for (i, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return i + 1,
            _ => {}
        }
    }
    rest.len()
}

fn raw_string_len(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(())?;
    let close = format!("\"{}", "#".repeat(hashes));
    let from = 1 + hashes + 1;
    Some(rest[from..].find(&close).map_or(rest.len(), |n| from + n + close.len()))
}

/// A character literal's length; a lifetime is one character (its quote).
fn char_len(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => rest[2..].find('\'').map_or(1, |n| {
            // `'\''` has a quote that does not close.
            if rest[2..].starts_with('\'') { 4 } else { n + 3 }
        }),
        Some(_) => match chars.next() {
            Some((i, '\'')) => i + 1,
            _ => 1,
        },
        None => 1,
    }
}

/// Every path that the code names, groups expanded, `super` and `self` resolved.
fn paths(module: &[String], code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let tokens = tokens(code);
    let mut at = 0;
    while at < tokens.len() {
        let starts_path = tokens[at].chars().all(is_ident) && (at == 0 || tokens[at - 1] != "::");
        if tokens[at] == "use" {
            at += 1;
            at = expand(&tokens, at, &[], module, &mut found);
        } else if starts_path && tokens.get(at + 1).is_some_and(|t| t == "::") {
            at = expand(&tokens, at, &[], module, &mut found);
        } else {
            at += 1;
        }
    }
    found
}

fn is_ident(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn tokens(code: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        if is_ident(c) {
            let mut word = c.to_string();
            while let Some(next) = chars.next_if(|c| is_ident(*c)) {
                word.push(next);
            }
            out.push(word);
        } else if c == ':' && chars.next_if_eq(&':').is_some() {
            out.push("::".to_owned());
        } else if !c.is_whitespace() {
            out.push(c.to_string());
        }
    }
    out
}

/// Reads one path (or group of paths) at `at`; returns where it ends.
fn expand(
    tokens: &[String],
    mut at: usize,
    prefix: &[String],
    module: &[String],
    found: &mut BTreeSet<String>,
) -> usize {
    let mut path = prefix.to_vec();
    loop {
        match tokens.get(at).map(String::as_str) {
            Some("::") => at += 1,
            Some("{") if at > 0 && (tokens[at - 1] == "::" || tokens[at - 1] == "use") => {
                at += 1;
                while tokens.get(at).is_some_and(|t| t != "}") {
                    let next = expand(tokens, at, &path, module, found);
                    at = next.max(at + 1);
                }
                return at + 1;
            }
            Some(word) if word.chars().all(is_ident) => {
                path.push(word.to_owned());
                at += 1;
                if tokens.get(at).is_none_or(|t| t != "::") {
                    break;
                }
            }
            _ => break,
        }
    }
    found.insert(resolve(&path, module));
    at
}

fn resolve(path: &[String], module: &[String]) -> String {
    let mut full: Vec<String> = Vec::new();
    for (i, word) in path.iter().enumerate() {
        match word.as_str() {
            "self" if i == 0 => full = module.to_vec(),
            "super" => {
                if i == 0 {
                    full = module.to_vec();
                }
                full.pop();
            }
            _ => full.push(word.clone()),
        }
    }
    full.join("::")
}

/// `tui/view/markdown.rs` → `crate::tui::view::markdown`.
fn module_of(path: &str) -> Vec<String> {
    let stem = path.trim_end_matches(".rs").trim_end_matches("/mod");
    let stem = if stem == "lib" || stem == "mod" { "" } else { stem };
    ["crate"]
        .into_iter()
        .chain(stem.split('/'))
        .filter(|s| !s.is_empty())
        .map(str::to_owned)
        .collect()
}

fn in_part(path: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == *pattern,
    })
}

fn names(path: &str, banned: &str) -> bool {
    path == banned || path.strip_prefix(banned).is_some_and(|rest| rest.starts_with("::"))
}

fn fail_with(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn nobody_imports_what_the_table_forbids() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|s| !is_test_file(&s.path)) {
        let paths = paths(&module_of(&source.path), &code(&source.text));
        for row in TABLE {
            if !in_part(&source.path, row.part) || in_part(&source.path, row.except) {
                continue;
            }
            for banned in row.never {
                for path in paths.iter().filter(|path| names(path, banned)) {
                    problems.push(format!("src/{} must not name {banned}: {path}", source.path));
                }
            }
        }
    }
    fail_with(&problems);
}

#[test]
fn every_row_of_the_table_speaks_of_something() {
    let sources = sources();
    for row in TABLE {
        // Parts that come as one file or as a directory name both; one of them must be there.
        let exists = sources.iter().any(|s| in_part(&s.path, row.part));
        let pending = row.part.iter().any(|p| p.starts_with("run") || p.starts_with("doctor"));
        assert!(exists || pending, "{:?} is nowhere", row.part);
    }
}

#[test]
fn files_stay_short() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|s| !is_test_file(&s.path)) {
        let lines = source.text.lines().count();
        let most = if source.path == "main.rs" { MAX_MAIN_LINES } else { MAX_LINES };
        if lines > most {
            problems.push(format!("src/{}: {lines} lines, at most {most}", source.path));
        }
    }
    fail_with(&problems);
}

/// The design card's top level; what builds and failing tests leave there is not kept.
#[test]
fn the_top_level_has_what_it_should_and_no_more() {
    const KEPT: &[&str] =
        &["Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "assets", "src", "tests"];
    let left = std::fs::read_to_string(root().join(".gitignore")).unwrap();
    let left: Vec<&str> = left.lines().map(|line| line.trim_matches('/')).collect();
    let entries = std::fs::read_dir(root()).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let problems: Vec<String> = names
        .filter(|name| !name.starts_with('.'))
        .filter(|name| !KEPT.contains(&name.as_str()) && !left.contains(&name.as_str()))
        .collect();
    fail_with(&problems);
}

#[test]
fn every_module_says_what_it_owns() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|s| !is_test_file(&s.path)) {
        let first = source.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        if !first.starts_with("//! ") {
            problems.push(format!("src/{} does not open with `//!`", source.path));
        }
    }
    fail_with(&problems);
}

#[test]
fn unsafe_code_is_in_one_place() {
    let mut problems = Vec::new();
    for source in sources() {
        let is_home = source.path.starts_with("process/");
        if !is_home && tokens(&code(&source.text)).iter().any(|token| token == "unsafe") {
            problems.push(format!("src/{} has unsafe code; its place is process/", source.path));
        }
    }
    fail_with(&problems);
}

#[test]
fn no_file_is_a_drawer_for_everything() {
    let names = ["utils.rs", "util.rs", "common.rs", "helpers.rs", "misc.rs"];
    let bad: Vec<String> = sources()
        .iter()
        .filter(|s| names.contains(&s.path.rsplit('/').next().unwrap_or_default()))
        .map(|s| format!("src/{} says nothing about what it owns", s.path))
        .collect();
    fail_with(&bad);
}

#[test]
fn no_test_is_switched_off_and_nothing_waits_by_sleeping_threads() {
    let mut problems = Vec::new();
    for source in sources() {
        if source.text.contains(concat!("#[ign", "ore")) {
            problems.push(format!("src/{} has a test that does not run", source.path));
        }
        let paths = paths(&module_of(&source.path), &code(&source.text));
        // Pace is the purpose of the simulated engine and of a trace that is played back; the
        // watchdog is a process of its own that waits for a whole group to be gone, which nothing
        // announces.
        let paced = source.path.starts_with("bridge/engine/sim/")
            || ["process/mod.rs", "replay/mod.rs"].contains(&source.path.as_str());
        if !paced && paths.iter().any(|p| p == "std::thread::sleep" || p == "thread::sleep") {
            problems.push(format!("src/{} sleeps instead of waiting for an event", source.path));
        }
    }
    fail_with(&problems);
}

#[test]
fn nothing_speaks_of_one_machine() {
    let words = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/tmp/", "zc/"),
        concat!("/home/", "claude"),
    ];
    let mut files = Vec::new();
    for dir in ["src", "tests", "assets", ".ci"] {
        files_below(&root().join(dir), &mut files);
    }
    for file in ["README.md", "Cargo.toml", "src/build.rs", ".deny.toml"] {
        files.push(root().join(file));
    }
    let mut problems = Vec::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for (number, line) in text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                problems.push(format!("{}:{}: {}", file.display(), number + 1, line.trim()));
            }
        }
    }
    fail_with(&problems);
}

/// The registry's rules for an entry: names, numeric version, versioned URLs, a small monochrome icon.
#[test]
fn the_registry_entry_is_fit_to_be_listed() {
    let read = |name: &str| fs::read_to_string(root().join("assets/registry").join(name)).unwrap();
    let entry = read("agent.json");
    let version = env!("CARGO_PKG_VERSION");
    assert!(entry.contains("\"id\": \"zcode-acp\""));
    assert!(entry.contains(&format!("\"version\": \"{version}\"")), "the version is {version}");
    let urls: Vec<&str> = entry.lines().filter(|line| line.contains("\"archive\"")).collect();
    assert!(!urls.is_empty());
    for url in urls {
        assert!(url.contains(version) && !url.contains("latest"), "{url}");
        assert!([".tar.gz", ".zip", ".tgz"].iter().any(|end| url.contains(end)), "{url}");
    }
    let icon = read("icon.svg");
    assert!(icon.contains("width=\"16\" height=\"16\""));
    for attribute in ["fill=\"", "stroke=\""] {
        for (at, _) in icon.match_indices(attribute) {
            let value = icon[at + attribute.len()..].split('"').next().unwrap();
            assert!(["none", "currentColor", "inherit"].contains(&value), "{attribute}{value}");
        }
    }
}

/// The checker's own teeth.
mod checker {
    use super::*;

    fn named(module: &str, text: &str) -> Vec<String> {
        paths(&module_of(module), &code(text)).into_iter().collect()
    }

    #[test]
    fn groups_are_expanded_and_relative_paths_resolved() {
        let found = named(
            "tui/view/diff.rs",
            "use crate::{tui::{self, model}, bridge};\nuse super::super::client::{Client as C};\nfn f() { tokio::spawn(x); }",
        );
        for path in
            ["crate::bridge", "crate::tui::model", "crate::tui::client::Client", "tokio::spawn"]
        {
            assert!(found.iter().any(|p| p == path), "{path} is not in {found:?}");
        }
    }

    #[test]
    fn comments_strings_and_tests_do_not_count() {
        let found = named(
            "x.rs",
            "//! tokio::a\n/* tokio::b */ const S: &str = \"tokio::c\"; const R: &str = r#\"tokio::d \"x\"#;\n\
             fn f<'a>(c: char) -> bool { c == '\"' || c == '\\'' }\nuse std::fs;\n#[cfg(test)]\nmod tests {\nuse tokio::e;\n}",
        );
        assert!(!found.iter().any(|p| p.starts_with("tokio")), "{found:?}");
        assert!(found.contains(&"std::fs".to_owned()), "{found:?}");
    }

    #[test]
    fn a_name_matches_whole_segments() {
        assert!(names("tokio", "tokio") && names("tokio::sync", "tokio"));
        assert!(!names("tokio_util::x", "tokio"));
    }
}
