//! The stages in order: this file is what "compile" means.
//!
//! ```text
//! ast ──sema──► tile ──cleanups──► tile-opt ──► laid ──► scheduled ──codegen──► mlir ──► llvm-dialect ──► llvm ──► ptx
//! ```
//!
//! [`compile`] goes to the end, [`emit`] stops at a stage and gives its text. An [`Observer`] hears of every stage and
//! may look at the kernel after each pass; the compiler itself has no clock and prints nothing.

use crate::code_generator::{self, CodegenOptions, Library, Output};
use crate::fingerprint::hash_of;
use crate::{Artifact, COMPILER_VERSION, Failure, Program, Specialization, Stage, artifact, memory, spans};
use rtc_abi::spec::LaunchOptions;
use rtc_abi::{MAX_THREADS, Metadata, Structure, TARGETS, Target};
use rtc_ir::text::PrintOptions;
use rtc_ir::{Kernel, OpKind, Phase, Verified};
use rtc_passes::{
    ADD_WARPS, ATOMICS_TO_TMA, LIMIT_SIZE, PassContext, PassError, Reductions, SPECIALIZE_WARPS, SPLIT_CONVERSIONS,
    conversions_remark, long_kernel, warps_remark,
};
use rtc_sema::{ModuleAst, TargetInfo};
use rtc_source::{Code, Diagnostic, Severity, SourceMap};

/// Hears what the compiler does.
pub trait Observer {
    /// A stage begins, such as `sema` or `codegen`.
    fn enter(&mut self, stage: &'static str) {
        let _ = stage;
    }

    /// The kernel's `static_print` gives a line.
    fn static_print(&mut self, line: &str) {
        let _ = line;
    }

    /// The kernel is long, so that its compilation takes a while: about so many instructions in each thread.
    fn long(&mut self, instructions: u64) {
        let _ = instructions;
    }

    /// Whether the texts of [`Observer::after_pass`] have the locations of operations.
    fn wants_locations(&self) -> bool {
        false
    }

    /// A pass has run; `text` prints the kernel.
    fn after_pass(&mut self, pass: &'static str, text: &dyn Fn() -> String) {
        let _ = (pass, text);
    }

    /// Whether [`compile`] is to pass the text of this stage to [`Observer::text`]. Asked for the stages between the passes
    /// and PTX: [`Stage::Mlir`], [`Stage::LlvmDialect`], [`Stage::Llvm`].
    fn wants(&self, stage: Stage) -> bool {
        let _ = stage;
        false
    }

    /// The text of a stage that [`Observer::wants`].
    fn text(&mut self, stage: Stage, text: &str) {
        let _ = (stage, text);
    }
}

/// An observer that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

/// The limit of instructions, for callers that never lower a kernel.
pub(crate) const NO_LIMIT: u64 = u64::MAX;

/// The target of `rtc build` where none is given: its PTX runs on every GPU from Ampere on.
pub const DEFAULT_ARCH: &str = "sm_80";

/// A compiled kernel and what the compiler warns of.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// PTX and metadata.
    pub artifact: Artifact,
    /// Warnings, in the order of discovery.
    pub warnings: Vec<Diagnostic>,
}

/// A kernel as tile IR and what the compiler warns of.
#[derive(Clone, Debug)]
pub struct Analysed {
    /// Tile IR in phase `Tile`.
    pub kernel: Kernel,
    /// Metadata for a launch on the interpreter: parameters, constexprs, no machine resources.
    pub metadata: Metadata,
    /// Warnings, in the order of discovery.
    pub warnings: Vec<Diagnostic>,
}

/// The names of all targets.
pub fn target_names() -> Vec<&'static str> {
    TARGETS.iter().map(|target| target.name).collect()
}

/// The names of all passes, in the order in which they run.
pub fn pass_names() -> Vec<&'static str> {
    rtc_passes::PASSES.iter().map(|pass| pass.name).collect()
}

/// Compiles one kernel to PTX; `source_hash` goes into the metadata as it is.
///
/// # Errors
///
/// [`Failure::Diagnostics`] for mistakes in the source, [`Failure::Request`] for an unknown target, [`Failure::Internal`] for
/// a bug of the compiler.
pub fn compile(
    program: &Program,
    specialization: &Specialization,
    arch: &str,
    source_hash: String,
    observer: &mut dyn Observer,
) -> Result<Compiled, Failure> {
    let _span = spans::compile(&specialization.kernel, arch);
    let target = target(arch)?;
    let external = program.libdevice().is_some();
    let (mut kernel, mut warnings) = analyse_kernel(program, specialization, target, external, observer)?;
    let touched = memory::touched(&kernel, target);
    let max_instructions = specialization.options.max_instructions;
    warnings.extend(run_passes(&mut kernel, target, &specialization.options, observer)?);
    let options = CodegenOptions {
        mlir: observer.wants(Stage::Mlir),
        llvm_dialect: observer.wants(Stage::LlvmDialect),
        llvm: observer.wants(Stage::Llvm),
        debug_info: specialization.options.debug_info,
        library: library(program, specialization),
        max_operations: Some(max_operations(max_instructions)),
    };
    let output = codegen(&kernel, program.sources(), target, options, observer)?;
    let texts = [(Stage::Mlir, output.mlir), (Stage::LlvmDialect, output.llvm_dialect), (Stage::Llvm, output.llvm)];
    for (stage, text) in texts {
        text.into_iter().for_each(|text| observer.text(stage, &text));
    }
    let mut metadata = metadata(&kernel, specialization, target, source_hash);
    memory::note(&mut metadata, touched);
    Ok(Compiled { artifact: Artifact { ptx: output.ptx, metadata }, warnings })
}

/// Compiles one kernel as far as tile IR, for the interpreter.
///
/// # Errors
///
/// [`Failure::Diagnostics`] for mistakes in the source, [`Failure::Request`] for an unknown target, [`Failure::Internal`] for
/// a bug of the compiler.
pub fn analyse(
    program: &Program,
    specialization: &Specialization,
    arch: &str,
    source_hash: String,
    observer: &mut dyn Observer,
) -> Result<Analysed, Failure> {
    let target = target(arch)?;
    // The interpreter cannot run bitcode.
    let (kernel, warnings) = analyse_kernel(program, specialization, target, false, observer)?;
    let mut metadata = metadata(&kernel, specialization, target, source_hash);
    memory::note(&mut metadata, memory::touched(&kernel, target));
    Ok(Analysed { kernel, metadata, warnings })
}

/// One kernel as the passes leave it, with its metadata, whose `source_hash` is a hash of the kernel's text. Where they divide
/// the warps, it is given in the form in which all warps do the same, which estimates know.
pub(crate) fn planned(
    program: &Program,
    specialization: &Specialization,
    arch: &str,
) -> Result<(Kernel, Metadata), Failure> {
    let target = target(arch)?;
    let external = program.libdevice().is_some();
    let (mut kernel, _) = analyse_kernel(program, specialization, target, external, &mut Silent)?;
    let given = kernel.clone();
    run_passes(&mut kernel, target, &specialization.options, &mut Silent)?;
    let code = rtc_ir::text::print(&kernel);
    if kernel.specialization().is_some() && given.specialization().is_none() {
        kernel = given;
        let options = LaunchOptions { warp_specialize: false, ..specialization.options.clone() };
        run_passes(&mut kernel, target, &options, &mut Silent)?;
    }
    let metadata = metadata(&kernel, specialization, target, hash_of([arch, &code].into_iter()));
    Ok((kernel, metadata))
}

/// The text of one stage of one kernel.
///
/// # Errors
///
/// [`Failure::Diagnostics`] for mistakes in the source, [`Failure::Request`] for an unknown target, [`Failure::Internal`] for
/// a bug of the compiler.
pub fn emit(
    program: &Program,
    specialization: &Specialization,
    arch: &str,
    stage: Stage,
    observer: &mut dyn Observer,
) -> Result<String, Failure> {
    if stage == Stage::Ast {
        return Ok(print_ast(program));
    }
    let target = target(arch)?;
    let external = program.libdevice().is_some();
    let (mut kernel, _) = analyse_kernel(program, specialization, target, external, observer)?;
    let until = match stage {
        Stage::Ast | Stage::Tile => return Ok(rtc_ir::text::print(&kernel)),
        Stage::Accesses => return accesses(&kernel, target),
        Stage::TileOpt => Phase::Tile,
        Stage::Laid => Phase::Laid,
        Stage::Scheduled | Stage::Plan | Stage::Mlir | Stage::LlvmDialect | Stage::Llvm | Stage::Ptx => {
            Phase::Scheduled
        }
    };
    run_pipeline(&mut kernel, target, &specialization.options, until, observer)?;
    if stage == Stage::Plan {
        return Ok(rtc_passes::outline(&kernel));
    }
    if stage <= Stage::Scheduled {
        return Ok(rtc_ir::text::print(&kernel));
    }
    let options =
        CodegenOptions { library: library(program, specialization), ..codegen_options(stage, &specialization.options) };
    Ok(text_of(codegen(&kernel, program.sources(), target, options, observer)?))
}

/// The text of the accesses of a kernel.
pub(crate) fn accesses(kernel: &Kernel, target: &'static Target) -> Result<String, Failure> {
    let plain = rtc_passes::plain(kernel, &memory::context(target));
    let kernel = plain.map_err(|error| pass_failure("the analysis of accesses", kernel, error))?;
    Ok(rtc_passes::print_accesses(&kernel))
}

/// The part to keep for the text of a stage.
pub(crate) fn codegen_options(stage: Stage, options: &LaunchOptions) -> CodegenOptions {
    CodegenOptions {
        mlir: stage == Stage::Mlir,
        llvm_dialect: stage == Stage::LlvmDialect,
        llvm: stage == Stage::Llvm,
        debug_info: options.debug_info,
        library: None,
        max_operations: Some(max_operations(options.max_instructions)),
    }
}

/// The text that was asked for.
pub(crate) fn text_of(output: Output) -> String {
    output.mlir.or(output.llvm_dialect).or(output.llvm).unwrap_or(output.ptx)
}

/// The syntax tree of the main file as text.
pub fn print_ast(program: &Program) -> String {
    program.modules().first().map_or(String::new(), |main| rtc_syntax::print(&main.module))
}

pub(crate) fn target(arch: &str) -> Result<&'static Target, Failure> {
    Target::named(arch).map_err(|error| Failure::request(Code::UNSUPPORTED_TARGET, error.to_string()))
}

fn run_passes(
    kernel: &mut Kernel,
    target: &'static Target,
    options: &LaunchOptions,
    observer: &mut dyn Observer,
) -> Result<Vec<Diagnostic>, Failure> {
    run_pipeline(kernel, target, options, Phase::Scheduled, observer)
}

/// How many operations lowering may make of so many instructions: some are folded away, and the estimate is no more.
pub(crate) fn max_operations(max_instructions: u64) -> usize {
    usize::try_from(max_instructions.saturating_mul(3)).unwrap_or(usize::MAX)
}

/// Looks at a kernel before each pass.
pub(crate) type PassObserver<'a> = &'a mut dyn FnMut(&'static str, &Kernel, &PassContext);

/// Runs the passes from the kernel's phase on that leave a phase up to `until`; the others are not run. Gives what is to be said of the kernel.
pub(crate) fn run_pipeline(
    kernel: &mut Kernel,
    target: &'static Target,
    options: &LaunchOptions,
    until: Phase,
    observer: &mut dyn Observer,
) -> Result<Vec<Diagnostic>, Failure> {
    run_watched(kernel, target, options, until, observer, &mut |_, _, _| {})
}

/// The same, with an observer of the kernel before each pass.
pub(crate) fn run_watched(
    kernel: &mut Kernel,
    target: &'static Target,
    options: &LaunchOptions,
    until: Phase,
    observer: &mut dyn Observer,
    watch: PassObserver<'_>,
) -> Result<Vec<Diagnostic>, Failure> {
    observer.enter("passes");
    let _span = spans::stage("passes");
    // Programs that wait for each other must all run at once.
    let together = !options.warp_specialize || options.launch_cooperative_grid;
    let structure = if together { options.structure.without_warp_specialization() } else { options.structure };
    // A launch that says itself how it overlaps others, or whose blocks must all run at once, is left as it is.
    let overlap_launches = options.overlap_launches && !options.launch_pdl && !options.launch_cooperative_grid;
    let whole = kernel.clone();
    with_less(structure, |structure| {
        kernel.clone_from(&whole);
        let cx = PassContext {
            target,
            max_instructions: options.max_instructions,
            structure,
            overlap_launches,
            plan: options.plan,
            instrument: options.instrument,
        };
        let outcome = run_all(kernel, &cx, until, observer, watch);
        (outcome, is_staged(kernel))
    })
}

/// Falls back to simpler structures if the staged operands of dots do not fit into shared memory: `attempt` is called with
/// the structure, and if necessary without producer warps, then without prefetched copies. It also returns whether there are
/// staged operands to drop. Each fallback is a remark.
fn with_less(
    structure: Structure,
    mut attempt: impl FnMut(Structure) -> (Result<Vec<Diagnostic>, Failure>, bool),
) -> Result<Vec<Diagnostic>, Failure> {
    let mut structures = vec![structure, structure.without_warp_specialization(), Structure::Plain];
    structures.dedup();
    let mut remarks = Vec::new();
    for (at, structure) in structures.iter().enumerate() {
        let (outcome, is_staged) = attempt(*structure);
        match (outcome, structures.get(at + 1)) {
            (Err(Failure::Diagnostics(list)), Some(less)) if is_staged && is_about_resources(&list) => {
                let span = list[0].labels.first().map(|label| label.span).unwrap_or_default();
                let reason = &list[0].message;
                let message = format!("structure `{structure}` does not fit, `{less}` is tried instead: {reason}");
                remarks.push(Diagnostic::remark(Code::COST, span, message));
            }
            (outcome, _) => {
                remarks.extend(outcome?);
                break;
            }
        }
    }
    Ok(remarks)
}

fn is_about_resources(list: &[Diagnostic]) -> bool {
    list.first().is_some_and(|first| first.code == Code::OUT_OF_RESOURCES)
}

/// Whether a pass has brought operands of products into shared memory.
fn is_staged(kernel: &Kernel) -> bool {
    rtc_ir::walk(kernel)
        .into_iter()
        .any(|op| matches!(kernel.kind(op), OpKind::CopyAsync { .. } | OpKind::Mma {} | OpKind::MmaAsync {}))
}

fn run_all(
    kernel: &mut Kernel,
    cx: &PassContext,
    until: Phase,
    observer: &mut dyn Observer,
    watch: PassObserver<'_>,
) -> Result<Vec<Diagnostic>, Failure> {
    let mut remarks = Vec::new();
    let mut reductions = Reductions::default();
    let given = kernel.phase;
    for pass in rtc_passes::PASSES.iter().skip_while(|pass| pass.needs != given) {
        if pass.leaves > until {
            break;
        }
        if kernel.phase != pass.needs {
            let message =
                format!("pass `{}` needs phase {:?}, the kernel is in {:?}", pass.name, pass.needs, kernel.phase);
            return Err(Failure::internal(format!("pass `{}`", pass.name), message));
        }
        if pass.name == SPLIT_CONVERSIONS.name {
            remarks.extend(conversions_remark(kernel));
        }
        if pass.name == SPECIALIZE_WARPS.name {
            reductions = Reductions::of(kernel, cx);
        }
        watch(pass.name, kernel, cx);
        let span = spans::pass(pass.name);
        (pass.run)(kernel, cx).map_err(|error| pass_failure(pass.name, kernel, error))?;
        drop(span);
        kernel.phase = pass.leaves;
        let options = PrintOptions { locs: observer.wants_locations() };
        observer.after_pass(pass.name, &|| rtc_ir::text::print_with(kernel, options));
        if pass.name == ADD_WARPS.name {
            remarks.extend(warps_remark(kernel, cx));
        }
        if pass.name == ATOMICS_TO_TMA.name {
            remarks.extend(reductions.remarks(kernel, cx));
        }
        if pass.name == LIMIT_SIZE.name
            && let Some(size) = long_kernel(kernel)
        {
            observer.long(size.instructions);
            remarks.push(size.remark());
        }
        if cfg!(debug_assertions) {
            verified(kernel, pass.name)?;
        }
    }
    Ok(remarks)
}

fn pass_failure(pass: &str, kernel: &Kernel, error: PassError) -> Failure {
    match error {
        PassError::Diagnostic(diagnostic) => Failure::Diagnostics(vec![*diagnostic]),
        error => Failure::Internal {
            message: error.to_string(),
            stage: format!("pass `{pass}`"),
            ir: Some(rtc_ir::text::print(kernel)),
        },
    }
}

/// The kernel as the verifier guarantees it; a complaint is a bug of the stage before.
fn verified<'k>(kernel: &'k Kernel, after: &str) -> Result<Verified<'k>, Failure> {
    rtc_ir::verify(kernel).map_err(|errors| Failure::Internal {
        message: format!("the kernel is not valid: {}", errors[0].message),
        stage: format!("the verifier, after `{after}`"),
        ir: Some(rtc_ir::print_errors(kernel, &errors)),
    })
}

/// The information for a launch: from the kernel, and from the request.
fn metadata(kernel: &Kernel, specialization: &Specialization, target: &Target, source_hash: String) -> Metadata {
    Metadata {
        kernel: specialization.kernel.clone(),
        launch_pdl: specialization.options.launch_pdl || kernel.awaits_launch(),
        launch_cooperative_grid: specialization.options.launch_cooperative_grid,
        constexprs: artifact::constexprs(specialization),
        source_hash,
        compiler_version: COMPILER_VERSION.to_owned(),
        ..kernel.metadata(target)
    }
}

pub(crate) fn analyse_kernel(
    program: &Program,
    specialization: &Specialization,
    target: &'static Target,
    external_libdevice: bool,
    observer: &mut dyn Observer,
) -> Result<(Kernel, Vec<Diagnostic>), Failure> {
    observer.enter("sema");
    let _span = spans::stage("sema");
    let threads = u64::from(specialization.options.num_warps) * 32;
    if threads > u64::from(MAX_THREADS) {
        let warps = specialization.options.num_warps;
        let message = format!("out of threads: {threads} needed for {warps} warps, {MAX_THREADS} available");
        return Err(Failure::request(Code::OUT_OF_RESOURCES, message));
    }
    let modules: Vec<ModuleAst<'_>> =
        program.modules().iter().map(|m| ModuleAst { name: &m.name, ast: &m.module }).collect();
    let info = TargetInfo { target, external_libdevice };
    let levels = program.levels();
    let analysis = rtc_sema::compile_kernel(program.sources(), &modules, specialization, info)
        .map_err(|found| Failure::Diagnostics(levels.apply(found)))?;
    let lints = rtc_lints::check(&analysis.kernel, &analysis.sites, program.sources());
    let warnings = levels.apply(analysis.warnings.into_iter().chain(lints).collect());
    if warnings.iter().any(|d| d.severity == Severity::Error) {
        return Err(Failure::Diagnostics(warnings));
    }
    for line in &analysis.prints {
        observer.static_print(line);
    }
    if cfg!(debug_assertions) {
        verified(&analysis.kernel, "sema")?;
    }
    Ok((analysis.kernel, warnings))
}

/// The bitcode of libdevice, if it is given.
fn library(program: &Program, specialization: &Specialization) -> Option<Library> {
    let flush_denormals = specialization.options.enable_reflect_ftz;
    program.libdevice().map(|bitcode| Library { bitcode: bitcode.clone(), flush_denormals })
}

pub(crate) fn codegen(
    kernel: &Kernel,
    sources: &SourceMap,
    target: &'static Target,
    options: CodegenOptions,
    observer: &mut dyn Observer,
) -> Result<Output, Failure> {
    let kernel = verified(kernel, "the last pass")?;
    observer.enter("codegen");
    let _span = spans::stage("codegen");
    code_generator::compile(kernel, sources, target, options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out_of(message: &str) -> Result<Vec<Diagnostic>, Failure> {
        Err(Failure::Diagnostics(vec![Diagnostic::error(Code::OUT_OF_RESOURCES, Default::default(), message)]))
    }

    #[test]
    fn what_is_given_up_is_said() {
        let mut tried = Vec::new();
        let remarks = with_less(Structure::Auto, |structure| {
            tried.push(structure);
            (if structure == Structure::Plain { Ok(Vec::new()) } else { out_of("300000 bytes") }, true)
        });
        assert_eq!(tried, [Structure::Auto, Structure::Pipelined, Structure::Plain]);
        let said: Vec<String> = remarks.expect("the last fits").into_iter().map(|remark| remark.message).collect();
        assert_eq!(
            said,
            [
                "structure `auto` does not fit, `pipelined` is tried instead: 300000 bytes",
                "structure `pipelined` does not fit, `plain` is tried instead: 300000 bytes"
            ]
        );
    }

    #[test]
    fn nothing_is_tried_again_in_vain() {
        let tries = |structure, outcome: fn() -> Result<Vec<Diagnostic>, Failure>, is_staged| {
            let mut tries = 0;
            let outcome = with_less(structure, |_| {
                tries += 1;
                (outcome(), is_staged)
            });
            (tries, outcome.is_ok())
        };
        assert_eq!(tries(Structure::Auto, || Ok(Vec::new()), true), (1, true));
        // Nothing in shared memory for products; another fault; the same structure.
        assert_eq!(tries(Structure::Auto, || out_of("bytes"), false), (1, false));
        let other = || Err(Failure::internal("a stage", "a fault"));
        assert_eq!(tries(Structure::Auto, other, true), (1, false));
        assert_eq!(tries(Structure::Pipelined, || out_of("bytes"), true), (2, false));
        assert_eq!(tries(Structure::Plain, || out_of("bytes"), true), (1, false));
    }
}
