//! The compilations of one source file. All checks of its kernels share them, so that each specialization is compiled once
//! for each target.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rtc_compiler::{Compiled, Failure, Observer, Program, Source, Spec, Stage};
use rtc_passes::{Conversions, PASSES, SPLIT_CONVERSIONS, conversions};

/// A kernel that was compiled for one target.
pub struct Compilation {
    /// PTX and metadata.
    pub compiled: Compiled,
    /// Its MLIR, as `rtc emit` prints it.
    pub mlir: String,
    /// The conversions between layouts that are left when the passes have scheduled the kernel.
    pub conversions: Conversions,
    /// The estimated registers of a thread, as `-v` reports them without an assembler.
    pub registers: u32,
}

/// A compilation, made by the first check that needs it.
type Slot = Arc<OnceLock<Result<Arc<Compilation>, Failure>>>;

/// A source file and its compilations.
pub struct Compilations {
    path: PathBuf,
    program: OnceLock<Result<Arc<Program>, String>>,
    /// By the specialization, as its user names it, and the target.
    made: Mutex<HashMap<(String, String), Slot>>,
}

impl Compilations {
    /// The specialization of this file, which is read on demand.
    pub fn new(path: PathBuf) -> Arc<Compilations> {
        Arc::new(Compilations { path, program: OnceLock::new(), made: Mutex::default() })
    }

    /// The parsed source.
    pub fn program(&self) -> Result<Arc<Program>, String> {
        let read = || {
            let text = fs::read_to_string(&self.path).map_err(|e| format!("{}: {e}", self.path.display()))?;
            Ok(Arc::new(Program::parse(&[Source::new(self.path.to_string_lossy(), text)])))
        };
        self.program.get_or_init(read).clone()
    }

    /// The kernel compiled for a target. `name` identifies the specialization: the same name must mean the same `spec`.
    /// `None` if the target lacks a feature that the kernel needs.
    pub fn compile(&self, name: &str, spec: &Spec, arch: &str) -> Result<Option<Arc<Compilation>>, String> {
        let program = self.program()?;
        let slot = {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            made.entry((name.to_owned(), arch.to_owned())).or_default().clone()
        };
        match slot.get_or_init(|| compile(&program, spec, arch)) {
            Ok(compilation) => Ok(Some(compilation.clone())),
            Err(Failure::Diagnostics(found)) if found.iter().all(|d| d.code.0 == "unsupported-target") => Ok(None),
            Err(failure) => Err(failure.to_string()),
        }
    }
}

fn compile(program: &Program, spec: &Spec, arch: &str) -> Result<Arc<Compilation>, Failure> {
    if program.has_errors() {
        return Err(Failure::Diagnostics(program.diagnostics().to_vec()));
    }
    let specialization = spec.specialize(program)?;
    let mut noted = Noted { scheduled: last_scheduled(), scheduled_text: String::new(), mlir: String::new() };
    let hash = rtc_compiler::source_hash(program, &specialization, arch);
    let compiled = rtc_compiler::compile(program, &specialization, arch, hash, &mut noted)?;
    let kernel = rtc_ir::text::parse(&noted.scheduled_text)
        .map_err(|e| Failure::internal("the tile IR printed before conversions are split", e.to_string()))?;
    let registers = rtc_passes::work::registers_or_set(&kernel);
    Ok(Arc::new(Compilation { compiled, mlir: noted.mlir, conversions: conversions(&kernel), registers }))
}

/// The last pass before conversions are split.
fn last_scheduled() -> &'static str {
    let before = PASSES.iter().take_while(|pass| pass.name != SPLIT_CONVERSIONS.name);
    before.last().map_or("", |pass| pass.name)
}

/// Notes what a compilation passes on the way.
struct Noted {
    scheduled: &'static str,
    scheduled_text: String,
    mlir: String,
}

impl Observer for Noted {
    fn after_pass(&mut self, pass: &'static str, text: &dyn Fn() -> String) {
        if pass == self.scheduled {
            self.scheduled_text = text();
        }
    }

    fn wants(&self, stage: Stage) -> bool {
        stage == Stage::Mlir
    }

    fn text(&mut self, stage: Stage, text: &str) {
        if stage == Stage::Mlir {
            self.mlir = text.to_owned();
        }
    }
}
