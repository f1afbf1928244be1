//! The messages of the build script if LLVM or MLIR is missing.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A folder with an `llvm-config` of that version, and with the headers of MLIR or without.
fn prefix(folder: &Path, version: &str, with_mlir: bool) {
    let (bin, include) = (folder.join("bin"), folder.join("include"));
    std::fs::create_dir_all(&bin).unwrap();
    let tool = bin.join("llvm-config");
    let text =
        format!("#!/bin/sh\nif [ \"$1\" = --version ]; then echo {version}; else echo {}; fi\n", include.display());
    std::fs::write(&tool, text).unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    if with_mlir {
        std::fs::create_dir_all(include.join("mlir-c")).unwrap();
        std::fs::write(include.join("mlir-c/IR.h"), "").unwrap();
    }
}

#[test]
fn what_is_missing_is_said_with_variables_and_packages() {
    let folder = tempfile::tempdir().unwrap();
    let said = || {
        let lines = rtc_find_llvm::problem(|_| Some(folder.path().as_os_str().to_owned()));
        lines.map(|lines| lines.join("\n"))
    };
    let nothing = said().unwrap();
    for part in rtc_find_llvm::VARIABLES.iter().chain(&["llvm-22-dev", "libmlir-22-dev", "that runs", "feature `jit`"])
    {
        assert!(nothing.contains(part), "{part}: {nothing}");
    }
    prefix(folder.path(), "19.1.7", true);
    assert!(said().unwrap().contains("is of version 19.1.7"));
    std::fs::remove_dir_all(folder.path().join("include")).unwrap();
    prefix(folder.path(), "22.1.0", false);
    assert!(said().unwrap().contains("MLIR is missing"));
    prefix(folder.path(), "22.1.0", true);
    assert_eq!(said(), None);
}
