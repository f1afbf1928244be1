//! Golden tests: every `CASE/NAME.launch.json` under `tests/golden` and `tests/seeds` is compiled, launched and
//! compared with the results of PyTorch, on the interpreter, also with other values for unspecified results, in the
//! emulator, also under the sanitizer, and on a GPU if there is one. A new case is a source, a launch and a data file;
//! `tests/golden/README.md` describes how they are made.
//!
//! `mlir-opt` verifies the MLIR of each kernel: `mlir_opt.rs`.
//!
//! The resources of each kernel are compared with tables: `resources/measure.rs`.
//!
//! All of these share the compilations (`compilations.rs`) as long as they run in one process: `cargo test --test
//! golden` compiles each kernel once for each target, `cargo nextest` once for each test.
#![allow(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compilations::Compilations;
use libtest_mimic::{Arguments, Failed, Trial};
use rtc_compiler::{Silent, Spec};
use rtc_runtime::sanitize::{Check, Checks};
use rtc_runtime::{Device, jit};
use rtc_testing::{LaunchFile, Tensors, Tolerance, compare};
use serde_json::Value;

mod compilations;
mod mlir_opt;
#[path = "ptxas.rs"]
mod ptxas;
#[path = "resources/measure.rs"]
mod resources;

fn main() {
    let arguments = Arguments::from_args();
    let has_gpu = Device::cuda_count().is_ok_and(|count| count > 0);
    let mut all = Vec::new();
    // The trials of a folder follow each other, so that what they share is dropped after the last of them.
    for folder in folders() {
        let Some(source) = source_of(&folder) else {
            all.push(Trial::test(name_of(&folder, "/"), || Err("the case has no source".into())));
            continue;
        };
        let compilations = Compilations::new(source);
        all.extend(launch_trials(&folder, &compilations, has_gpu));
        all.push(resources::folder_trial(&folder, &compilations));
        all.push(mlir_opt::trial(&folder, &compilations));
    }
    assert!(!all.is_empty(), "there are no cases under tests");
    all.extend(resources::file_trials());
    all.push(mlir_opt::refuses());
    libtest_mimic::run(&arguments, all).exit();
}

/// The folders of cases: those that hold launches.
fn folders() -> impl Iterator<Item = PathBuf> {
    // Cargo sets the variable; a test binary carried to a machine with a GPU runs in the root of a checkout.
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default().join("tests");
    ["golden", "seeds"]
        .into_iter()
        .flat_map(move |name| entries(&root.join(name)))
        .filter(|path| !launches(path).is_empty())
}

/// The launches of a folder.
fn launches(folder: &Path) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|path| path.to_string_lossy().ends_with(".launch.json")).collect()
}

/// The last two parts of a folder's path.
fn name_of(folder: &Path, separator: &str) -> String {
    let names: Vec<_> = folder.iter().rev().take(2).map(|name| name.to_string_lossy()).collect();
    names.into_iter().rev().collect::<Vec<_>>().join(separator)
}

/// Two trials for each launch of a folder: one without a GPU, and one with it.
fn launch_trials(folder: &Path, compilations: &Arc<Compilations>, has_gpu: bool) -> Vec<Trial> {
    let mut trials = Vec::new();
    for launch in launches(folder) {
        let file = launch.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(name) = file.strip_suffix(".launch.json") else { continue };
        let case = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (shared, at) = (compilations.clone(), launch.clone());
        trials.push(Trial::test(format!("{case}/{name}"), move || run_all(&shared, &at)));
        // A GPU is no part of most machines that run tests; the trial then shows as ignored.
        let (shared, at) = (compilations.clone(), launch);
        let trial = Trial::test(format!("{case}/{name} cuda"), move || run(&shared, &at, "cuda"));
        trials.push(trial.with_ignored_flag(!has_gpu));
    }
    trials
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> =
        fs::read_dir(folder).map(|d| d.flatten().map(|e| e.path()).collect()).unwrap_or_default();
    out.sort();
    out
}

/// A launch on everything that needs no GPU, one after the other: a process for each of them takes longer to start than most
/// of them take. All failures are reported.
fn run_all(compilations: &Compilations, launch: &Path) -> Result<(), Failed> {
    let mut failed = Vec::new();
    for device in ["interpreter", "open", "emulator", "sanitizer"] {
        if let Err(error) = run(compilations, launch, device) {
            failed.push(format!("{device}: {}", error.message().unwrap_or("failed")));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n").into()) }
}

fn run(compilations: &Compilations, launch_path: &Path, device_name: &str) -> Result<(), Failed> {
    let text = fs::read_to_string(launch_path)?;
    let json: Value = serde_json::from_str(&text)?;
    let golden = json.get("golden").ok_or("the launch file has no `golden`")?;
    let listed = |name: &str| golden["devices"].as_array().is_none_or(|d| d.iter().any(|x| x == name));
    let runs_on = match device_name {
        "sanitizer" => "emulator",
        "open" => "interpreter",
        other => other,
    };
    if !listed(runs_on) {
        return Ok(());
    }
    let launch = LaunchFile::parse(&text).map_err(|e| e.to_string())?;
    let spec = Spec::parse(&json["spec"].to_string()).map_err(|e| e.to_string())?;
    let tensors = match &launch.tensors {
        Some(name) => Tensors::from_bytes(&fs::read(launch_path.with_file_name(name))?).map_err(|e| e.to_string())?,
        None => Tensors::default(),
    };
    let device = match device_name {
        "interpreter" => Device::interpreter(),
        // No result depends on what the language leaves open.
        "open" => Device::interpreter().and_then(|device| device.with_sanitizer(Checks::NONE.with(Check::Open))),
        "emulator" => Ok(Device::emulator()),
        // Finds nothing in any of them.
        "sanitizer" => Device::emulator().with_sanitizer(Checks::ALL),
        _ => Device::cuda(0),
    }
    .map_err(|e| e.to_string())?;
    let compiled = if device.is_interpreter() {
        device.compile_program(&*compilations.program()?, &spec)
    } else {
        let arch = device.arch().to_string();
        let made = compilations.compile(&json["spec"].to_string(), &spec, &arch)?;
        let made = made.ok_or_else(|| format!("the kernel needs what {arch} does not have"))?;
        // SAFETY: the compiler made PTX and metadata together.
        unsafe { jit::load(&device, made.compiled.clone(), &mut Silent) }
    };
    let kernel = compiled.map_err(|e| e.to_string())?.kernel;
    // SAFETY: the launch files of this repository give buffers that their kernels stay within.
    let kernel = unsafe { kernel.assume_in_bounds() };
    let outcome = launch.run(&kernel, &tensors).map_err(|e| e.to_string())?;
    // None of these kernels wraps an address; some wrap random numbers on purpose.
    let findings = kernel.take_findings();
    if !findings.is_empty() {
        let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
        return Err(format!("findings: {}", findings.join("; ")).into());
    }

    let outputs = golden["outputs"].as_object().ok_or("`golden.outputs` is missing")?;
    let mut compared = 0;
    for (name, tensor) in tensors.iter() {
        if name.starts_with("expect.") {
            continue;
        }
        let actual = outcome.outputs.get(name).ok_or_else(|| format!("tensor `{name}` is gone"))?;
        // A tensor that is not an output must be unchanged.
        let (expected, tolerance) = match outputs.get(name) {
            Some(rule) => {
                compared += 1;
                let expected = tensors.get(&format!("expect.{name}")).ok_or_else(|| format!("no `expect.{name}`"))?;
                (expected, tolerance(rule)?)
            }
            None => (tensor, Tolerance::Ulp(0)),
        };
        let result = compare(name, actual, expected, tolerance).map_err(|e| e.to_string())?;
        if result.wrong > 0 {
            return Err(format!("{name}: {result}").into());
        }
    }
    if compared != outputs.len() || compared == 0 {
        return Err(format!("{} outputs are named, {compared} were compared", outputs.len()).into());
    }
    Ok(())
}

/// The source of a case.
fn source_of(folder: &Path) -> Option<PathBuf> {
    let is_source = |path: &PathBuf| path.extension().is_some_and(|e| e == "rt" || e == "py");
    entries(folder).into_iter().find(is_source)
}

fn tolerance(rule: &Value) -> Result<Tolerance, String> {
    if rule["exact"] == true {
        return Ok(Tolerance::Ulp(0));
    }
    if let Some(n) = rule["ulp"].as_u64() {
        return Ok(Tolerance::Ulp(n));
    }
    rule["bound"].as_f64().map(Tolerance::Bound).ok_or_else(|| format!("no tolerance in {rule}"))
}
