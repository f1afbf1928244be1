//! Kernels that are given as tile IR, in any phase: the passes run from that phase on.
//!
//! ```
//! use rtc_compiler::{LaunchOptions, Silent, TileKernel};
//! let text = "kernel @fill(%x: ptr<f32>) warps 1 phase tile {
//!   %one = constant {value = 1.0} : f32
//!   store %x, %one
//!   ret
//! }";
//! let kernel = TileKernel::parse("fill.tir", text).unwrap();
//! let compiled = kernel.compile(&LaunchOptions::default(), "sm_80", &mut Silent).unwrap();
//! assert!(compiled.artifact.ptx.contains("st.global"));
//! let (sources, found) = TileKernel::parse("bad.tir", "kernel @k() { frob }").unwrap_err();
//! assert_eq!(sources.position(found[0].labels[0].span).column, 15);
//! ```

use crate::Stage;
use crate::code_generator::CodegenOptions;
use crate::stages::{self, Observer};
use crate::{Analysed, Artifact, COMPILER_VERSION, Compiled, Failure, fingerprint, memory, spans};
use rtc_abi::spec::LaunchOptions;
use rtc_abi::{Metadata, Target};
use rtc_ir::{Kernel, LocData, Phase};
use rtc_source::{Code, Diagnostic, FileId, SourceMap, Span};

/// A kernel that was read from tile IR and verified.
#[derive(Clone, Debug)]
pub struct TileKernel {
    kernel: Kernel,
    sources: SourceMap,
}

impl TileKernel {
    /// Reads a text. The location of every operation is its own line
    /// of the text, regardless of the locations written there.
    ///
    /// # Errors
    ///
    /// The diagnostics, with the file that they point into.
    pub fn parse(name: &str, text: &str) -> Result<TileKernel, (SourceMap, Vec<Diagnostic>)> {
        let mut sources = SourceMap::new();
        let file = sources.add(name, text);
        match read(file, text) {
            Ok(kernel) => Ok(TileKernel { kernel, sources }),
            Err(found) => Err((sources, found)),
        }
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.kernel.name
    }

    /// The kernel as it was read.
    pub(crate) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The file.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// Compiles it to PTX. Only the options count that the text cannot specify: those of the launch, and the size
    /// limit.
    ///
    /// # Errors
    ///
    /// [`Failure::Request`] for an unknown target, [`Failure::Diagnostics`] for a kernel that the target cannot run,
    /// [`Failure::Internal`] for a bug of the compiler.
    pub fn compile(
        &self,
        options: &LaunchOptions,
        arch: &str,
        observer: &mut dyn Observer,
    ) -> Result<Compiled, Failure> {
        let _span = spans::compile(&self.kernel.name, arch);
        let target = stages::target(arch)?;
        let touched = memory::touched(&self.kernel, target);
        let mut kernel = self.kernel.clone();
        let warnings = stages::run_pipeline(&mut kernel, target, options, Phase::Scheduled, observer)?;
        let codegen = CodegenOptions {
            max_operations: Some(stages::max_operations(options.max_instructions)),
            debug_info: options.debug_info,
            ..Default::default()
        };
        let output = stages::codegen(&kernel, &self.sources, target, codegen, observer)?;
        let mut metadata = self.metadata(&kernel, options, target);
        memory::note(&mut metadata, touched);
        Ok(Compiled { artifact: Artifact { ptx: output.ptx, metadata }, warnings })
    }

    /// The kernel as it is, for the interpreter.
    ///
    /// # Errors
    ///
    /// [`Failure::Request`] for an unknown target.
    pub fn analyse(&self, options: &LaunchOptions, arch: &str) -> Result<Analysed, Failure> {
        let target = stages::target(arch)?;
        let mut metadata = self.metadata(&self.kernel, options, target);
        memory::note(&mut metadata, memory::touched(&self.kernel, target));
        Ok(Analysed { kernel: self.kernel.clone(), metadata, warnings: Vec::new() })
    }

    /// The text of one stage.
    ///
    /// # Errors
    ///
    /// [`Failure::Request`] for a stage that comes before the form of the text; else as for [`TileKernel::compile`].
    pub fn emit(
        &self,
        options: &LaunchOptions,
        arch: &str,
        stage: Stage,
        observer: &mut dyn Observer,
    ) -> Result<String, Failure> {
        let target = stages::target(arch)?;
        let until = match stage {
            Stage::Ast => return Err(Failure::request(Code::STAGE, "tile IR has no syntax tree")),
            Stage::Tile | Stage::Accesses | Stage::TileOpt => Phase::Tile,
            Stage::Laid => Phase::Laid,
            Stage::Scheduled | Stage::Plan | Stage::Mlir | Stage::LlvmDialect | Stage::Llvm | Stage::Ptx => {
                Phase::Scheduled
            }
        };
        if until < self.kernel.phase {
            let message = format!("the kernel is in phase {:?}, past the stage `{stage}`", self.kernel.phase);
            return Err(Failure::request(Code::STAGE, message));
        }
        if stage == Stage::Accesses {
            return stages::accesses(&self.kernel, target);
        }
        let mut kernel = self.kernel.clone();
        if stage > Stage::Tile {
            stages::run_pipeline(&mut kernel, target, options, until, observer)?;
        }
        if stage == Stage::Plan {
            return Ok(rtc_passes::outline(&kernel));
        }
        if stage <= Stage::Scheduled {
            return Ok(rtc_ir::text::print(&kernel));
        }
        let codegen = stages::codegen_options(stage, options);
        Ok(stages::text_of(stages::codegen(&kernel, &self.sources, target, codegen, observer)?))
    }

    fn metadata(&self, kernel: &Kernel, options: &LaunchOptions, target: &Target) -> Metadata {
        let texts = self.sources.files().map(|(_, file)| file.text.as_str());
        let parts = [COMPILER_VERSION, target.name].into_iter().chain(texts);
        Metadata {
            launch_pdl: options.launch_pdl || kernel.awaits_launch(),
            launch_cooperative_grid: options.launch_cooperative_grid,
            source_hash: fingerprint::hash_of(parts),
            compiler_version: COMPILER_VERSION.to_owned(),
            ..kernel.metadata(target)
        }
    }
}

fn read(file: FileId, text: &str) -> Result<Kernel, Vec<Diagnostic>> {
    // Files of 4 GiB and more have no spans.
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let span = |range: std::ops::Range<usize>| Span { file, start: number(range.start), end: number(range.end) };
    let parsed = rtc_ir::text::parse_with_spans(text)
        .map_err(|error| vec![Diagnostic::error(Code::SYNTAX, span(error.offset..error.offset), error.message)])?;
    let (mut kernel, spans) = (parsed.kernel, parsed.spans);
    if let Err(errors) = rtc_ir::verify(&kernel) {
        let start = text.find("kernel").unwrap_or(0);
        let of = |error: &rtc_ir::VerifyError| match error.op {
            Some(op) => (kernel.kind(op).spec().mnemonic, span(spans[op].clone())),
            None => ("kernel", span(start..start)),
        };
        let found = errors.iter().map(|error| {
            let (what, at) = of(error);
            Diagnostic::error(Code::INVALID_TILE_IR, at, format!("`{what}`: {}", error.message))
        });
        return Err(found.collect());
    }
    for op in rtc_ir::walk(&kernel) {
        let loc = kernel.intern_loc(LocData { span: Some(span(spans[op].clone())), caller: None });
        kernel.set_loc(op, loc);
    }
    Ok(kernel)
}
