//! What lies in `assets/` for registries, packagers and editors: true fields, valid files, and a
//! program that can be started as they say.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::world::World;

fn asset(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
}

/// The ACP registry's rules for an entry.
#[test]
fn the_registrys_entry_follows_its_rules() {
    let agent: Value = serde_json::from_str(&asset("registry/agent.json")).unwrap();
    let text = |key: &str| agent[key].as_str().unwrap();
    let id = text("id");
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    assert!(id.starts_with(|c: char| c.is_ascii_lowercase()) && id.chars().all(word), "{id}");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(text("version"), version);
    assert!(
        version.split('.').count() == 3 && version.split('.').all(|n| n.parse::<u32>().is_ok())
    );
    assert_eq!(text("license"), "Apache-2.0");
    assert!(!text("name").is_empty() && !text("description").is_empty());
    let known = ["id", "name", "version", "description", "license", "distribution"];
    assert!(agent.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{agent}");
    let binaries = agent["distribution"]["binary"].as_object().unwrap();
    for (platform, binary) in binaries {
        let (system, machine) = platform.split_once('-').unwrap();
        assert!(["darwin", "linux", "windows"].contains(&system), "{platform}");
        assert!(["aarch64", "x86_64"].contains(&machine), "{platform}");
        let archive = binary["archive"].as_str().unwrap();
        assert!(archive.ends_with(".tar.gz") && !archive.contains("latest"), "{archive}");
        assert!(
            archive.contains(&format!("/v{version}/")) && archive.contains(machine),
            "{archive}"
        );
        assert_eq!(
            (&binary["cmd"], &binary["args"]),
            (&"./zcode-acp".into(), &serde_json::json!(["serve"]))
        );
    }
}

#[test]
fn every_editors_settings_start_the_program_as_an_agent() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("assets/editors");
    let readme = asset("editors/README.md");
    let mut seen = 0;
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name == "README.md" {
            continue;
        }
        let text = asset(&format!("editors/{name}"));
        assert!(readme.contains(&format!("`{name}`")), "{name} is not explained");
        assert!(text.contains("\"zcode-acp\"") && text.contains("\"serve\""), "{name}");
        if entry.path().extension().is_some_and(|kind| kind == "json") {
            let _settings: Value =
                serde_json::from_str(&text).unwrap_or_else(|err| panic!("{name}: {err}"));
        }
        seen += 1;
    }
    assert_eq!(seen, 6, "Zed, JetBrains, Neovim, Emacs, VS Code, Codeg");
}

#[test]
fn the_formulas_own_test_holds() {
    let formula = asset("packaging/zcode-acp.rb");
    for part in ["zcode-acp #{version}", "run --demo --demo-pace 0 hello", "Apache-2.0"] {
        assert!(formula.contains(part), "{part}");
    }
    let world = World::new();
    let run = world.run(&["run", "--demo", "--demo-pace", "0", "hello"]);
    assert!(run.code == Some(0) && run.stdout.contains("Hello"), "{}", run.stdout);
}

/// As launchd and inetd start it: the connection is standard input and output.
#[cfg(unix)]
#[test]
fn a_connection_as_standard_input_and_output_is_served() {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    let plist = asset("packaging/dev.zcode-acp.serve.plist");
    assert!(
        plist.contains("<key>SockPathMode</key><integer>384</integer>"),
        "only for its user (0600)"
    );
    let world = World::new();
    let (mut client, theirs) = UnixStream::pair().unwrap();
    let other = theirs.try_clone().unwrap();
    let mut child = world
        .command(&["serve", "--demo"])
        .stdin(OwnedFd::from(theirs))
        .stdout(OwnedFd::from(other))
        .spawn()
        .unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
    writeln!(client, "{hello}").unwrap();
    let mut line = String::new();
    BufReader::new(client.try_clone().unwrap()).read_line(&mut line).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(answer["result"]["protocolVersion"], 1);
    client.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    world.assert_no_orphans();
}
