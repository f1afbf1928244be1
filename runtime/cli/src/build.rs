//! `rtc build`: kernels to PTX files.

use crate::arguments::{BuildArguments, EmitLanguage};
use crate::cache::Store;
use crate::decided;
use crate::input::{self, Request};
use crate::output::{self, outln};
use crate::problem::Problem;
use crate::report::Reporter;
use crate::tile_ir;
use rtc_build::internal::KernelArtifacts;
use rtc_source::Code;
use std::collections::HashMap;

/// Compiles all requests, then writes the results: if one kernel fails, nothing is written.
pub(crate) fn build(arguments: &BuildArguments, reporter: &Reporter) -> Result<(), Problem> {
    if tile_ir::is_tile_ir(&arguments.kernels.file) {
        return build_tile_ir(arguments, reporter);
    }
    let program = input::load_kernels(&arguments.kernels, reporter)?;
    let program = input::with_libdevice(program, arguments.kernels.libdevice.as_deref())?;
    let requests = input::requests(&arguments.kernels, &program)?;
    let stems = stems(&requests);
    let store = Store::open(!arguments.no_cache, reporter);
    let mut artifacts = Vec::new();
    let mut ready = Vec::new();
    for (request, stem) in requests.iter().zip(stems) {
        let mut variants = Vec::new();
        for arch in &request.archs {
            let kernel = &request.specialization.kernel;
            let mut progress = reporter.follow(format!("{kernel} for {arch}"));
            let compiled = store.compile(&program, &request.specialization, arch, reporter, &mut progress);
            progress.finish();
            let compiled = compiled.map_err(|failure| Problem::compile(program.sources(), failure))?;
            reporter.diagnostics(program.sources(), &compiled.warnings);
            decided::tell(reporter, program.sources(), Some(&compiled.artifact), arch, || {
                rtc_compiler::decisions(&program, &request.specialization, arch)
            });
            let named = if request.archs.len() > 1 { format!("{stem}.{arch}") } else { stem.clone() };
            variants.push(compiled.artifact.clone());
            artifacts.push((named, compiled.artifact));
        }
        let info = program.kernel(Some(&request.specialization.kernel));
        let info = info.map_err(|failure| Problem::compile(program.sources(), failure))?.clone();
        ready.push(KernelArtifacts { name: stem, info, specialization: request.specialization.clone(), variants });
    }
    if arguments.rust || arguments.emit.is_some() {
        return write_module(arguments, program.doc(), ready);
    }
    write_artifacts(arguments, &artifacts)
}

/// Writes PTX and metadata of all kernels, and then says where.
fn write_artifacts(arguments: &BuildArguments, artifacts: &[(String, rtc_compiler::Artifact)]) -> Result<(), Problem> {
    let write =
        |(stem, artifact): &(String, rtc_compiler::Artifact)| output::write_artifact(&arguments.output, stem, artifact);
    let paths = artifacts.iter().map(write).collect::<Result<Vec<_>, Problem>>()?;
    paths.iter().try_for_each(|path| outln!("{}", path.display()))
}

/// Writes a module in Rust, or a header and a source in C.
fn write_module(arguments: &BuildArguments, doc: &str, ready: Vec<KernelArtifacts>) -> Result<(), Problem> {
    let stem = input::stem_of(&arguments.kernels.file);
    let paths = match arguments.emit {
        Some(EmitLanguage::C) => rtc_build::internal::write_c(&arguments.output, &stem, ready).map(Vec::from),
        None => rtc_build::internal::write_rust(&arguments.output, &stem, doc, ready).map(|path| vec![path]),
    };
    let paths = paths.map_err(|error| Problem::input(Code::EMBED, error.to_string()))?;
    paths.iter().try_for_each(|path| outln!("{}", path.display()))
}

/// The same for a file of tile IR.
fn build_tile_ir(arguments: &BuildArguments, reporter: &Reporter) -> Result<(), Problem> {
    if arguments.rust || arguments.emit.is_some() {
        return Err(Problem::input(Code::EMBED, "a file of tile IR has no module; give a source"));
    }
    let kernel = tile_ir::load(&arguments.kernels.file)?;
    let (archs, options) = tile_ir::request(&arguments.kernels, &kernel)?;
    let store = Store::open(!arguments.no_cache, reporter);
    let mut artifacts = Vec::new();
    for arch in &archs {
        let mut progress = reporter.follow(format!("{} for {arch}", kernel.name()));
        let compiled = store.compile_tile_ir(&kernel, &options, arch, reporter, &mut progress);
        progress.finish();
        let compiled = compiled.map_err(|failure| Problem::compile(kernel.sources(), failure))?;
        reporter.diagnostics(kernel.sources(), &compiled.warnings);
        decided::tell(reporter, kernel.sources(), Some(&compiled.artifact), arch, || kernel.decisions(&options, arch));
        let stem = if archs.len() > 1 { format!("{}.{arch}", kernel.name()) } else { kernel.name().to_owned() };
        artifacts.push((stem, compiled.artifact));
    }
    write_artifacts(arguments, &artifacts)
}

/// File names without target and ending: the kernel's name, numbered where a kernel comes more than once.
fn stems(requests: &[Request]) -> Vec<String> {
    let name = |request: &Request| request.specialization.kernel.clone();
    let mut count: HashMap<String, usize> = HashMap::new();
    for request in requests {
        *count.entry(name(request)).or_default() += 1;
    }
    let mut seen: HashMap<String, usize> = HashMap::new();
    requests
        .iter()
        .map(|request| {
            let name = name(request);
            let number = seen.entry(name.clone()).or_default();
            *number += 1;
            if count[&name] > 1 { format!("{name}.{number}") } else { name }
        })
        .collect()
}
