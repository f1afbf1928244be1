//! The extension for Visual Studio Code: its manifest fits its files, and the settings that it reads are declared.

use std::path::{Path, PathBuf};

use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../editors/vscode")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn json(name: &str) -> Value {
    serde_json::from_str(&read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

#[test]
fn the_manifest_fits_the_files() {
    let manifest = json("package.json");
    assert_eq!(text(&manifest["version"]), env!("CARGO_PKG_VERSION"));
    let contributes = &manifest["contributes"];
    let (language, grammar) = (&contributes["languages"][0], &contributes["grammars"][0]);
    assert_eq!((text(&language["id"]), &language["extensions"]), ("rtc", &serde_json::json!([".rt"])));
    assert_eq!(grammar["language"], language["id"]);
    assert!(json(text(&language["configuration"])).is_object());
    assert_eq!(json(text(&grammar["path"]))["scopeName"], grammar["scopeName"]);
    // The build writes the entry, and the package keeps it.
    let main = text(&manifest["main"]).trim_start_matches("./");
    let build = text(&manifest["scripts"]["build"]);
    assert!(build.starts_with("esbuild extension.js ") && build.ends_with(&format!("--outfile={main}")), "{build}");
    assert!(read(".vscodeignore").lines().any(|line| line == format!("!{main}")));
    for kept in ["package.json", "README.md", "language-configuration.json"] {
        assert!(read(".vscodeignore").lines().any(|line| line == format!("!{kept}")) && folder().join(kept).exists());
    }
}

#[test]
fn settings_and_commands_are_declared() {
    let manifest = json("package.json");
    let source = read("extension.js");
    let settings = manifest["contributes"]["configuration"]["properties"].as_object().expect("settings");
    let used = source.split("settings.get(\"").skip(1).filter_map(|rest| rest.split('"').next());
    let mut count = 0;
    for name in used {
        assert!(settings.contains_key(&format!("rtc.{name}")), "{name}");
        count += 1;
    }
    assert_eq!(count + 1, settings.len(), "all are used but that of the client library");
    for command in manifest["contributes"]["commands"].as_array().expect("commands") {
        assert!(source.contains(&format!("registerCommand({}", command["command"])), "{command}");
    }
    assert!(source.contains("args: [\"lsp\"]"));
}
