//! The metadata of the crates for registries, and the files that a package needs to build on its own. `scripts/release`
//! builds the packages; these tests find most mistakes in a second.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn metadata() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let all: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    all["packages"].as_array().expect("a list").clone()
}

/// Whether cargo may publish it: `null` is anywhere, an empty list is nowhere.
fn is_public(package: &Value) -> bool {
    package["publish"].is_null()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn public() -> Vec<Value> {
    let public: Vec<Value> = metadata().into_iter().filter(is_public).collect();
    for name in ["rtc-runtime", "rtc-build", "rtc-testing", "rtc-tune", "rtc-cli"] {
        assert!(public.iter().any(|package| package["name"] == name), "{name} cannot be published");
    }
    public
}

fn folder(package: &Value) -> PathBuf {
    Path::new(text(package, "manifest_path")).parent().expect("a manifest lies in a folder").to_owned()
}

#[test]
fn registries_learn_what_a_crate_is() {
    let mut wrong = Vec::new();
    for package in public() {
        let name = text(&package, "name");
        let mut check = |holds: bool, what: &str| {
            if !holds {
                wrong.push(format!("{name}: {what}"));
            }
        };
        let description = text(&package, "description");
        check((20..=120).contains(&description.len()), "a description of 20 to 120 bytes");
        check(text(&package, "license") == "MIT OR Apache-2.0", "the license");
        check(!text(&package, "rust_version").is_empty(), "rust-version");
        let length = |key: &str| package[key].as_array().map_or(0, Vec::len);
        check((1..=5).contains(&length("keywords")), "one to five keywords");
        check((1..=5).contains(&length("categories")), "one to five categories");
        let readme = folder(&package).join(text(&package, "readme"));
        check(!text(&package, "readme").is_empty() && readme.is_file(), "a readme that exists");
        for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let same = fs::read(folder(&package).join(license)).ok() == fs::read(root().join(license)).ok();
            check(same, &format!("{license}, a link to that of the repository"));
        }
        check(
            fs::read_to_string(folder(&package).join("Cargo.toml")).is_ok_and(|t| t.contains("\ninclude = [")),
            "include",
        );
    }
    assert!(wrong.is_empty(), "these crates lack:\n{}", wrong.join("\n"));
}

/// Crates that are not published have a minimal version of Rust, too: clippy keeps to it.
#[test]
fn every_crate_names_its_rust() {
    for package in metadata() {
        assert_eq!(package["rust_version"], "1.95", "{}", package["name"]);
    }
}

#[test]
fn published_crates_depend_on_published_crates_of_their_version() {
    let all = metadata();
    let names: BTreeSet<&str> = all.iter().filter(|package| is_public(package)).map(|p| text(p, "name")).collect();
    let mut seen = 0;
    for package in all.iter().filter(|package| is_public(package)) {
        let own = format!("={}", text(package, "version"));
        for dependency in package["dependencies"].as_array().expect("a list") {
            if dependency["path"].is_null() {
                continue;
            }
            let (name, wanted) = (text(dependency, "name"), text(dependency, "req"));
            // A dependency of tests alone that has no version is left out of the package.
            if dependency["kind"] == "dev" && wanted == "*" {
                continue;
            }
            seen += 1;
            assert_eq!(wanted, own, "{} must ask for {name} by that version", package["name"]);
            assert!(names.contains(name), "{} depends on {name}, which is not published", package["name"]);
        }
    }
    assert!(seen > 40, "only {seen} dependencies were looked at");
}

/// The path without `..`, links not followed.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            other => out.push(other),
        }
    }
    out
}

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("readable").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
            out.push(path);
        }
    }
}

/// A package has no files but those below its manifest: what a crate includes must lie there, or be linked there.
#[test]
fn crates_include_files_of_their_own_package_alone() {
    let mut seen = 0;
    for package in public() {
        let folder = folder(&package);
        let mut paths = Vec::new();
        sources(&folder.join("src"), &mut paths);
        for path in paths {
            let text = fs::read_to_string(&path).expect("readable");
            for call in ["include_str!(\"", "include_bytes!(\""] {
                for found in text.split(call).skip(1).filter_map(|rest| rest.split('"').next()) {
                    // Text of a generated module.
                    if found.contains('{') || found.ends_with('\\') {
                        continue;
                    }
                    seen += 1;
                    let target = plain(&path.parent().expect("a file lies in a folder").join(found));
                    assert!(target.starts_with(&folder), "{}: {found} is outside of the package", path.display());
                    assert!(target.is_file(), "{}: there is no {found}", path.display());
                }
            }
        }
    }
    assert!(seen > 40, "only {seen} files were looked at");
}

/// The dependencies with the features that docs.rs enables: all of it must build without LLVM, and show the features.
#[test]
fn docs_rs_builds_without_llvm() {
    let mut seen = 0;
    for package in public() {
        let features = &package["metadata"]["docs"]["rs"]["features"];
        let Some(features) = features.as_array() else { continue };
        let list: Vec<&str> = features.iter().map(|feature| feature.as_str().expect("a name")).collect();
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--offline", "-e", "normal,build", "--prefix", "none", "-p", text(&package, "name")])
            .args(["--features", &list.join(",")])
            .current_dir(root())
            .output()
            .expect("cargo starts");
        let tree = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(tree.contains("rtc-"), "{tree}");
        assert!(!tree.contains("llvm-sys v"), "{} with {list:?} links LLVM", package["name"]);
        // Pages that show which feature an item needs.
        let arguments = &package["metadata"]["docs"]["rs"]["rustdoc-args"];
        assert_eq!(*arguments, serde_json::json!(["--cfg", "docsrs"]), "{}", package["name"]);
        let source = fs::read_to_string(folder(&package).join("src/lib.rs")).expect("readable");
        assert!(source.contains("#![cfg_attr(docsrs, feature(doc_cfg))]"), "{}", package["name"]);
        seen += 1;
    }
    assert!(seen >= 2, "only {seen} crates say what docs.rs builds");
}
