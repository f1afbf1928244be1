//! LLVM's own `mlir-opt` reads the MLIR of every golden kernel and verifies it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use libtest_mimic::{Failed, Trial};
use rtc_compiler::Spec;
use serde_json::Value;

use crate::compilations::Compilations;
use crate::resources::TARGETS;

/// The program, where LLVM's tools are installed.
fn program() -> Option<PathBuf> {
    let prefix = std::env::var_os("MLIR_SYS_220_PREFIX").map_or_else(|| "/usr/lib/llvm-22".into(), PathBuf::from);
    Some(prefix.join("bin/mlir-opt")).filter(|path| path.exists())
}

/// The trial of a folder of cases; ignored where there is no `mlir-opt`.
pub fn trial(folder: &Path, compilations: &Arc<Compilations>) -> Trial {
    let (at, shared) = (folder.to_path_buf(), compilations.clone());
    let name = format!("mlir_opt/{}", super::name_of(folder, "/"));
    Trial::test(name, move || verify_all(&at, &shared)).with_ignored_flag(program().is_none())
}

/// Each specialization of the folder's launches, for a target with `wgmma` and, unless it needs more, one with
/// `mma.sync`.
fn verify_all(folder: &Path, compilations: &Compilations) -> Result<(), Failed> {
    let tool = program().ok_or("mlir-opt is not installed")?;
    let mut seen = Vec::new();
    let mut made = Vec::new();
    for path in super::launches(folder) {
        let json: Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
        let text = json["spec"].to_string();
        if seen.contains(&text) {
            continue;
        }
        let spec = Spec::parse(&text).map_err(|e| e.to_string())?;
        for arch in TARGETS {
            let compiled = compilations.compile(&text, &spec, arch).map_err(|e| format!("{}: {e}", path.display()))?;
            made.extend(compiled.map(|compiled| (path.clone(), arch, compiled)));
        }
        seen.push(text);
    }
    // One process reads them all; if it refuses one, each is read alone to find it.
    let together: Vec<&str> = made.iter().map(|(_, _, compiled)| &compiled.mlir[..]).collect();
    let Err(said) = verify(&tool, &together.join("\n// -----\n")) else { return Ok(()) };
    for (path, arch, compiled) in &made {
        verify(&tool, &compiled.mlir).map_err(|said| format!("{} for {arch}: {said}", path.display()))?;
    }
    Err(said.into())
}

fn verify(tool: &Path, text: &str) -> Result<(), String> {
    let mut child = Command::new(tool)
        .args(["--split-input-file", "--verify-each", "-o", "/dev/null", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{}: {e}", tool.display()))?;
    // A tool that refuses the text early may not read all of it.
    let _ = child.stdin.take().map(|mut input| input.write_all(text.as_bytes()));
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    output.status.success().then_some(()).ok_or_else(|| said.lines().take(8).collect::<Vec<_>>().join("\n"))
}

/// It refuses text that is not MLIR, so that accepted text was read.
pub fn refuses() -> Trial {
    Trial::test("mlir_opt refuses what is wrong", || {
        let tool = program().ok_or("mlir-opt is not installed")?;
        let wrong = "llvm.func @k(%x: i32) -> i64 { llvm.return %x : i32 }";
        verify(&tool, wrong).err().ok_or("it took a function that returns another type than it says")?;
        // One among others, too.
        let right = "llvm.func @k(%x: i32) -> i32 { llvm.return %x : i32 }";
        verify(&tool, right)?;
        verify(&tool, &[right, wrong, right].join("\n// -----\n")).err().ok_or("it took one among others")?;
        Ok(())
    })
    .with_ignored_flag(program().is_none())
}
