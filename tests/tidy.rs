//! House rules as tests: the import order of the crates, where `unsafe` is allowed, how long files and functions may be, module
//! comments, the words of the glossary, and operands by name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "tidy/functions.rs"]
mod functions;
#[path = "tidy/imports.rs"]
mod imports;
#[path = "tidy/operands.rs"]
mod operands;
#[path = "tidy/words.rs"]
mod words;

/// The layers of the workspace; a crate imports only crates of lower layers, and of its own layer none.
const LAYERS: &[(u32, &[&str])] = &[
    (9, &["rtc-python"]),
    (
        8,
        &[
            "rtc",
            "rtc-benches",
            "rtc-cli",
            "rtc-example-autotune",
            "rtc-example-embedding",
            "rtc-example-jit",
            "rtc-fuzz",
        ],
    ),
    // Examples to be copied.
    (
        8,
        &[
            "vector_add",
            "softmax",
            "matmul",
            "dropout",
            "layer_norm",
            "attention",
            "candle",
            "sharded_matmul",
            "testing",
            "tutorial",
        ],
    ),
    (7, &["rtc-doctor", "rtc-mcp", "rtc-testing", "rtc-tune"]),
    (6, &["rtc-build", "rtc-explore", "rtc-runtime"]),
    (5, &["rtc-compiler", "rtc-lsp"]),
    (4, &["rtc-cache", "rtc-emulator", "rtc-program"]),
    (3, &["rtc-codegen", "rtc-lints", "rtc-passes", "rtc-sema"]),
    (2, &["rtc-ir", "rtc-ptx"]),
    (1, &["rtc-abi", "rtc-assembler", "rtc-syntax", "rtc-layout", "rtc-stdlib"]),
    (0, &["rtc-floats", "rtc-source", "rtc-find-llvm", "rtc-interface", "rtc-process", "rtc-test-needs"]),
];

/// The layers of semantic analysis, from below: a file imports files of its own layer and of those below. Built-in
/// functions reach what evaluates code by the methods of `cx.rs` alone.
const SEMA: &[&[&str]] = &[
    &[
        "bound_names",
        "changes",
        "const_eval",
        "counterparts",
        "declared",
        "definitions",
        "frames",
        "library",
        "modules",
        "promote",
        "suggest",
        "types",
        "values",
        "world",
    ],
    &["assertion", "broadcast", "cast", "emitter", "expect", "facts", "library_call", "reshape", "tensor_views"],
    &["cx", "operators"],
    &["builtins"],
    &[
        "attrs",
        "call",
        "class_names",
        "construct",
        "control",
        "dictionary",
        "evaluator",
        "expr",
        "globals",
        "hooks",
        "loops",
        "resolve",
        "stmt",
        "subscript",
    ],
    &["entry", "lib", "reference", "tuning"],
];

/// Files in which `unsafe` is allowed, for a C interface or for memory that only the caller knows.
const UNSAFE: &[&str] = &[
    "compiler/codegen/src/translate.rs",
    "compiler/codegen/src/translate/back_end.rs",
    "compiler/codegen/src/translate/exact_products.rs",
    "compiler/codegen/src/translate/guarded.rs",
    "compiler/codegen/src/translate/paired_casts.rs",
    "compiler/codegen/src/translate/pipeline.rs",
    "compiler/codegen/src/translate/walk.rs",
    "compiler/codegen/src/context.rs",
    "runtime/src/backend/cuda/mod.rs",
    "runtime/src/backend/cuda/module.rs",
    "runtime/src/backend/cuda/pinned.rs",
    "runtime/src/backend/cuda/scratch.rs",
    "runtime/src/backend/cuda/stream.rs",
    "runtime/src/backend/cuda/tensor_map.rs",
    "runtime/src/nvtx.rs",
    // Memory whose safety the caller guarantees: without a buffer, or shared with another owner.
    "runtime/src/address.rs",
    "runtime/src/foreign.rs",
    "runtime/src/jit/prepared.rs",
    // Loading PTX and machine code, and launches whose accesses are not proved.
    "runtime/src/include.rs",
    "runtime/src/jit.rs",
    "runtime/src/jit/kernel.rs",
    "runtime/src/jit/program.rs",
    "runtime/src/kernel.rs",
    "runtime/src/kernel/load.rs",
    "runtime/src/kernel/packed.rs",
    "runtime/src/module.rs",
    "runtime/src/typed.rs",
    "runtime/cli/src/trusted.rs",
    "runtime/tune/src/load.rs",
    "runtime/tune/src/tuner/settings.rs",
    // The text of generated modules, and of messages that name an unsafe function.
    "runtime/src/error.rs",
    "runtime/src/extent.rs",
    "runtime/build/src/generate.rs",
    "runtime/build/src/launch.rs",
    // The text of a header of HTTP.
    "runtime/explore/src/edit.rs",
    // What tests, benchmarks and examples load and launch.
    "benches/benches/compile.rs",
    "benches/benches/launch.rs",
    "benches/examples/gpu_launches.rs",
    "runtime/examples/scale.rs",
    "runtime/testing/tests/damaged_files.rs",
    "runtime/testing/tests/launch_files.rs",
    "runtime/testing/tests/workflow.rs",
    "runtime/tests/emulator.rs",
    "runtime/tune/tests/emulator.rs",
    "runtime/tune/tests/shards.rs",
    "runtime/tests/faults.rs",
    "runtime/tests/graphs.rs",
    "runtime/tests/jit.rs",
    "runtime/tests/nvtx.rs",
    "runtime/tests/persistent.rs",
    "runtime/tests/safety.rs",
    "runtime/tests/scratch.rs",
    "runtime/tests/tensor_maps.rs",
    "tests/golden.rs",
    // A launch without the runtime, for comparison.
    "benches/src/bare.rs",
    // Memory and streams of cudarc, tensors of DLPack.
    "runtime/src/interop.rs",
    "runtime/src/dlpack.rs",
    // An address that is none, in a process of its own.
    "runtime/tests/driver.rs",
    // Arrays and streams of Python's libraries.
    "runtime/python/src/ahead.rs",
    "runtime/python/src/bind.rs",
    "runtime/python/src/filled.rs",
    "runtime/python/src/dlpack.rs",
    "runtime/python/src/foreign.rs",
    "runtime/python/src/golden.rs",
    "runtime/python/src/grid.rs",
    "runtime/python/src/host.rs",
    "runtime/python/src/instrument.rs",
    "runtime/python/src/journal.rs",
    "runtime/python/src/kernel.rs",
    "runtime/python/src/place.rs",
    "runtime/python/src/call.rs",
    "runtime/python/src/recent.rs",
    "runtime/python/src/tensor.rs",
    "runtime/python/src/tuned.rs",
    "runtime/python/src/value.rs",
    // Tensors of a launch file that share memory.
    "runtime/testing/src/storages.rs",
];

/// No file may be longer; the soft limit is 400.
const MAX_LINES: usize = 600;

/// Crates that may link LLVM, directly.
const LLVM: &[&str] = &["rtc-codegen"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, ending: &str, out: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || matches!(&*name, "target" | "out" | "node_modules") {
            continue;
        }
        // A link to a folder is none: its files are found where they lie.
        if path.is_dir() {
            if !path.is_symlink() {
                files(&path, ending, out);
            }
        } else if name.ends_with(ending) {
            out.push(path);
        }
    }
}

fn all(ending: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    files(root(), ending, &mut out);
    out.sort();
    assert!(!out.is_empty(), "found no *{ending}");
    out
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

fn layer(name: &str) -> Option<u32> {
    LAYERS.iter().find(|(_, names)| names.contains(&name)).map(|(layer, _)| *layer)
}

/// Crate name and the names of what it depends on (not for tests only).
fn manifests() -> BTreeMap<String, (PathBuf, Vec<String>)> {
    let mut out = BTreeMap::new();
    for path in all("Cargo.toml") {
        let text = fs::read_to_string(&path).expect("readable");
        let mut name = String::new();
        let mut dependencies = Vec::new();
        let mut section = String::new();
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                section = line.trim_matches(|c| c == '[' || c == ']').to_string();
            } else if let Some((key, value)) = line.split_once('=') {
                let key = key.trim().split('.').next().unwrap_or("").to_string();
                if section == "package" && key == "name" {
                    name = value.trim().trim_matches('"').to_string();
                } else if section == "dependencies" {
                    dependencies.push(key);
                }
            }
        }
        out.insert(name, (path, dependencies));
    }
    out
}

#[test]
fn crates_import_strictly_downward() {
    let manifests = manifests();
    for (_, names) in LAYERS {
        for name in *names {
            assert!(manifests.contains_key(*name), "{name} is in the table of layers, but there is no such crate");
        }
    }
    for (name, (path, dependencies)) in &manifests {
        let own = layer(name).unwrap_or_else(|| panic!("{}: {name} has no layer", shown(path)));
        for dependency in dependencies.iter().filter(|d| d.starts_with("rtc-")) {
            let other =
                layer(dependency).unwrap_or_else(|| panic!("{name} depends on {dependency}, which has no layer"));
            assert!(other < own, "{name} (layer {own}) must not import {dependency} (layer {other})");
        }
    }
}

#[test]
fn semantic_analysis_imports_downward() {
    let layer = |name: &str| SEMA.iter().position(|names| names.contains(&name));
    for (module, others) in imports::imports("compiler/sema/src") {
        let Some(name) = module.first() else { continue };
        let own = layer(name).unwrap_or_else(|| panic!("{name} is in no layer of SEMA"));
        for other in others.iter().filter_map(|other| other.first()) {
            assert!(layer(other).is_none_or(|other| other <= own), "{} must not import {other}", module.join("/"));
        }
    }
}

/// Groups of passes, from the lowest: each uses those before it. A folder of `schedule` is a group of its own; what lies
/// in `schedule` itself is in the group named so.
const PASS_GROUPS: [&str; 17] = [
    "matrix_unit",
    "dependence",
    "pass",
    "rewrite",
    "rules",
    "access",
    "work",
    "place",
    "laid",
    "tile",
    "schedule",
    "pipeline",
    "operands",
    "tma",
    "overlap",
    "partition",
    "report",
];

/// Modules that may import each other in a circle.
const MOST_IN_A_CIRCLE: usize = 3;

#[test]
fn passes_import_downward() {
    let imports = imports::imports("compiler/passes/src");
    let place = |name: &str| PASS_GROUPS.iter().position(|group| *group == name);
    let group = |module: &imports::Module| match module.get(1) {
        Some(folder) if module[0] == "schedule" => place(folder).or(place("schedule")),
        _ => place(&module[0]),
    };
    for (module, others) in imports.iter().filter(|(module, _)| !module.is_empty() && module[0] != "pipeline") {
        let own = group(module).unwrap_or_else(|| panic!("{} is in no group of passes", module.join("/")));
        for other in others {
            let upward = group(other).is_some_and(|other| other > own);
            assert!(!upward, "{} must not import {}", module.join("/"), other.join("/"));
        }
    }
    for circle in imports::circles(&imports) {
        let shown: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
        assert!(circle.len() <= MOST_IN_A_CIRCLE, "a circle of imports: {}", shown.join(", "));
    }
}

#[test]
fn only_codegen_names_llvm() {
    for (name, (_, dependencies)) in manifests() {
        let links = dependencies.iter().any(|d| ["melior", "mlir-sys", "llvm-sys"].contains(&d.as_str()));
        assert!(!links || LLVM.contains(&name.as_str()), "{name} must not depend on LLVM");
    }
}

#[test]
fn unsafe_stands_where_a_c_interface_forces_it() {
    for path in all(".rs") {
        let text = fs::read_to_string(&path).expect("readable");
        // A word in quotes is a name among others.
        let code = text.lines().map(|l| l.split("//").next().unwrap_or("")).filter(|l| !l.contains("\"unsafe"));
        let uses = code
            .filter(|l| !l.contains("unsafe_code"))
            .any(|l| l.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe"));
        assert!(
            !uses || UNSAFE.contains(&shown(&path).as_str()) || shown(&path) == "tests/tidy.rs",
            "{}: unsafe",
            shown(&path)
        );
    }
}

#[test]
fn files_are_short_and_say_what_they_are() {
    for path in all(".rs") {
        let text = fs::read_to_string(&path).expect("readable");
        let name = shown(&path);
        assert!(
            text.lines().count() <= MAX_LINES || name.starts_with("tests/"),
            "{name} has {} lines",
            text.lines().count()
        );
        let first = text.lines().find(|l| !l.trim().is_empty()).unwrap_or("");
        assert!(first.starts_with("//!"), "{name} does not begin with a module comment");
        for word in ["base", "common", "utils", "util", "helpers", "misc"] {
            assert_ne!(path.file_stem().and_then(|s| s.to_str()), Some(word), "{name}: a name that says nothing");
        }
    }
}

#[test]
fn nothing_is_left_open() {
    for path in all(".rs") {
        let name = shown(&path);
        if name == "tests/tidy.rs" {
            continue;
        }
        let text = fs::read_to_string(&path).expect("readable");
        for word in ["todo!", "unimplemented!", "dbg!(", "#[ignore", "FIXME"] {
            assert!(!text.contains(word), "{name}: {word}");
        }
    }
}

#[test]
fn pure_crates_do_no_io() {
    // Nothing under compiler/ reads files, the environment or the clock (tests and build scripts aside).
    for path in all(".rs") {
        let name = shown(&path);
        if !name.starts_with("compiler/")
            || name.contains("/tests/")
            || name.contains("/examples/")
            || name.ends_with("build.rs")
            || name.ends_with("tests.rs")
            // Compiled for tests only.
            || name == "compiler/codegen/src/ptxas.rs"
        {
            continue;
        }
        let text = fs::read_to_string(&path).expect("readable");
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        for word in ["std::fs", "std::env::var", "std::net", "SystemTime", "Instant::now"] {
            assert!(!code.contains(word), "{name}: {word}");
        }
    }
}

/// Every rewrite rule shows on examples what it does, alone.
#[test]
fn every_rule_has_filetests() {
    let root = root().join("tests/filetests/rules");
    let mut names = Vec::new();
    for rule in rtc_passes::RULES.iter().flat_map(|(_, rules)| *rules) {
        let folder = root.join(rule.name);
        let mut found = Vec::new();
        files(&folder, ".tir", &mut found);
        assert!(!found.is_empty(), "rule `{}`: no filetest in {}", rule.name, shown(&folder));
        assert!(!names.contains(&rule.name), "two rules are called `{}`", rule.name);
        names.push(rule.name);
        for path in found {
            let text = fs::read_to_string(&path).expect("readable");
            let first = format!("// rule: {}", rule.name);
            assert_eq!(text.lines().next(), Some(&first[..]), "{}", shown(&path));
        }
    }
}

/// Every pass shows on examples what it does. Those that run again in a later phase count with the first.
#[test]
fn every_pass_has_filetests() {
    let root = root().join("tests/filetests/passes");
    for pass in rtc_passes::PASSES {
        let name = pass.name.trim_end_matches("-laid").trim_end_matches("-scheduled");
        let folder = root.join(name);
        let mut found = Vec::new();
        files(&folder, ".tir", &mut found);
        assert!(!found.is_empty(), "pass `{}`: no filetest in {}", pass.name, shown(&folder));
        for path in found {
            let text = fs::read_to_string(&path).expect("readable");
            let first = format!("// pass: {name}");
            assert_eq!(text.lines().next(), Some(&first[..]), "{}", shown(&path));
        }
    }
}
