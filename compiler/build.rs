//! Gives the compiler an identity, `RTC_BUILD_ID`: a hash of its sources and of the versions of what it is built from.
//! Results of another compiler must not be taken for its own, and a version number alone does not tell two states of a
//! working copy apart. The same sources give the same identity on every machine.

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The inputs of the fingerprint, relative to the root of the workspace.
const SOURCES: &[&str] = &["compiler", "stdlib", "Cargo.toml", "Cargo.lock"];

fn main() {
    let root = Path::new("..");
    let mut files = Vec::new();
    println!("cargo::rerun-if-changed=build.rs");
    for path in SOURCES.iter().map(|source| root.join(source)).filter(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
        collect(&path, &mut files);
    }
    files.sort();
    let mut hash = Sha256::new();
    // In a package the version stands for the sources, which are not beside it.
    hash.update(env::var("CARGO_PKG_VERSION").unwrap_or_default());
    for path in &files {
        let Ok(content) = fs::read(path) else { continue };
        // The parts of a path are the same on every platform.
        let name: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
        for part in [name.join("/").as_bytes(), &content] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    let id: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=RTC_BUILD_ID={id}");
}

/// The files that go into the compiler, without its tests.
fn collect(path: &Path, out: &mut Vec<PathBuf>) {
    let ending = path.extension().and_then(|ending| ending.to_str());
    if path.is_file() && matches!(ending, Some("rs" | "rt" | "lalrpop" | "toml" | "lock")) {
        out.push(path.to_owned());
    }
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        // The folder of the documentation is linked into the crate.
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if !is_link && !matches!(name.to_str(), Some("tests" | "target" | "snapshots" | "examples") | None) {
            collect(&entry.path(), out);
        }
    }
}
