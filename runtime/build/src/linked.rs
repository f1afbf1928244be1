//! The compiler in this process: what the feature `linked` brings, and what `rtc embed` does.

use crate::cubins::Cubins;
use crate::expand::{self, AxisKind, Wanted};
use crate::generate::{self, Built, BuiltSpecial, Embedded};
use crate::{Config, Error, Instance, Request, c_source, error, launch};
use rtc_compiler::source::{Code, Severity};
use rtc_compiler::{Artifact, Failure, KernelInfo, Levels, Program, Silent, Source, Spec, Specialization};
use std::path::{Path, PathBuf};

/// Does what a build script asks of `rtc embed`; `request` is JSON that the same version of this crate wrote. What the
/// build script has to tell cargo goes to standard output.
///
/// ```
/// let error = rtc_build::internal::serve("{}").unwrap_err();
/// assert!(error.to_string().starts_with("this is no request of a build script with rtc-build"));
/// ```
///
/// # Errors
///
/// That `request` was written by another version, or as for [`Config::compile`].
pub fn serve(request: &str) -> Result<(), Error> {
    let request = serde_json::from_str(request);
    compile(&request.map_err(|e| error(format!("this is no request of a build script with rtc-build: {e}")))?)
}

pub(crate) fn compile(request: &Request) -> Result<(), Error> {
    let config = &request.config;
    let mut levels = Levels::default();
    for (code, level) in &config.levels {
        levels.set(code, *level).map_err(|unknown| error(unknown.to_string()))?;
    }
    let read = |file: &PathBuf| Ok(read(config, file)?.with_levels(levels.clone()));
    let programs = request.files.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
    for instance in &config.instances {
        let is_here = |program: &Program| program.kernels().iter().any(|k| k.name == instance.kernel);
        if !programs.iter().any(is_here) {
            return Err(error(format!("there is no `@triton.jit` function `{}` in these files", instance.kernel)));
        }
    }
    let cubins = Cubins::new(config.ptxas.as_deref(), levels.of(Code::ASSEMBLER_DEFECT));
    for (file, program) in request.files.iter().zip(&programs) {
        compile_file(config, &cubins, file, program, &request.out_dir)?;
    }
    Ok(())
}

fn read(config: &Config, file: &Path) -> Result<Program, Error> {
    let read = |path: &Path| {
        println!("cargo::rerun-if-changed={}", path.display());
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|e| error(format!("cannot read {}: {e}", path.display())))?;
        Ok(Source::new(path.display().to_string(), text))
    };
    let directory = file.parent().unwrap_or(Path::new(""));
    let directories: Vec<&Path> =
        std::iter::once(directory).chain(config.include.iter().map(PathBuf::as_path)).collect();
    let program = Program::parse_importing(read(file)?, &mut |module| {
        let names = rtc_compiler::file_candidates(module);
        let candidates = directories.iter().flat_map(|d| names.iter().map(|name| d.join(name)));
        candidates.into_iter().find(|path| path.is_file()).map(|path| read(&path)).transpose()
    })?;
    if program.has_errors() {
        return Err(explain(&program, Failure::Diagnostics(program.diagnostics().to_vec())));
    }
    let Some(library) = &config.libdevice else { return Ok(program) };
    println!("cargo::rerun-if-changed={}", library.display());
    let bitcode = std::fs::read(library).map_err(|e| error(format!("cannot read {}: {e}", library.display())))?;
    program.with_libdevice(bitcode).map_err(|e| error(format!("{}: {e}", library.display())))
}

fn compile_file(config: &Config, cubins: &Cubins, file: &Path, program: &Program, out_dir: &Path) -> Result<(), Error> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut embedded: Vec<Embedded> = Vec::new();
    for instance in &config.instances {
        if !program.kernels().iter().any(|k| k.name == instance.kernel) {
            continue;
        }
        let name = instance.name.clone().unwrap_or_else(|| instance.kernel.clone());
        if embedded.iter().any(|e| e.name == name) {
            return Err(error(format!("two instances are called `{name}`; give them names with `Instance::named`")));
        }
        embedded.push(compile_instance(config, cubins, program, instance, &stem, name)?);
    }
    write_files(out_dir, &stem, &embedded)?;
    if config.c_source {
        write_c_of(out_dir, &stem, &embedded)?;
    }
    write(&out_dir.join(format!("{stem}.rs")), generate::module(&stem, program.doc(), &embedded, config.deny_jit))
}

fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Error> {
    std::fs::write(path, content).map_err(|e| error(format!("cannot write {}: {e}", path.display())))
}

/// PTX and metadata of all variants.
fn write_files(out_dir: &Path, stem: &str, kernels: &[Embedded]) -> Result<(), Error> {
    std::fs::create_dir_all(out_dir).map_err(|e| error(format!("cannot make {}: {e}", out_dir.display())))?;
    let specials = kernels.iter().flat_map(|kernel| &kernel.cases).flat_map(|case| &case.specials);
    let variants = specials.flat_map(|special| special.variants.iter().enumerate().map(move |(n, v)| (special, n, v)));
    for (special, number, artifact) in variants {
        debug_assert!(special.stem.starts_with(stem));
        let path = |ending: &str| out_dir.join(format!("{}.{}.{ending}", special.stem, artifact.metadata.arch));
        write(&path("ptx"), &artifact.ptx)?;
        write(&path("json"), artifact.metadata.to_json())?;
        if let Some(cubin) = special.cubins.get(number) {
            write(&path("cubin"), cubin)?;
        }
    }
    Ok(())
}

fn compile_instance(
    config: &Config,
    cubins: &Cubins,
    program: &Program,
    instance: &Instance,
    stem: &str,
    name: String,
) -> Result<Embedded, Error> {
    let info = program.kernel(Some(&instance.kernel)).map_err(|f| explain(program, f))?.clone();
    let params: Vec<&str> = info.params.iter().map(|p| p.name.as_str()).collect();
    let (axes, wanted) = expand::expand(program, instance)?;
    let types = axes.iter().filter(|axis| axis.kind == AxisKind::Type);
    let typed = types.map(|axis| expand::params_of_type(instance, axis, &params)).collect::<Result<_, _>>()?;
    let is_one = wanted.len() == 1 && instance.specializations.is_empty() && instance.tuned.is_empty();
    let (mut cases, mut number) = (Vec::new(), 0);
    for case in wanted {
        let mut specials = Vec::new();
        for Wanted { condition, arch, sets, spec } in case.specs {
            if let Some(arch) = &arch
                && !archs(config).contains(arch)
            {
                println!("cargo::warning=kernel `{name}` was tuned for {arch}, which is no target of this build");
                continue;
            }
            let variants = compile_spec(config, program, &spec, arch.as_ref())?;
            let assembled = variants.iter().filter(|_| config.cubins).map(|variant| cubins.of(variant));
            let cubins: Vec<Vec<u8>> = assembled.collect::<Result<_, _>>()?;
            let stem = if is_one { format!("{stem}.{name}") } else { format!("{stem}.{name}.{number}") };
            number += 1;
            let Spec { args, options, .. } = spec;
            specials.push(BuiltSpecial { condition, args, options, arch, sets, variants, cubins, stem });
        }
        check_specials(instance, &specials)?;
        cases.push(Built { picks: case.picks, specials });
    }
    Ok(Embedded { name, info, signature: instance.signature.clone(), axes, typed, cases })
}

/// A specialization takes some of the arguments of the general form, and no others.
fn check_specials(instance: &Instance, specials: &[BuiltSpecial]) -> Result<(), Error> {
    let Some(general) = specials.last().and_then(|special| special.variants.first()) else { return Ok(()) };
    let params = general.metadata.visible_params();
    for special in specials {
        let of = |e: Error| error(format!("kernel `{}`: {e}", instance.kernel));
        special.condition.iter().try_for_each(|text| launch::check_condition(text, params)).map_err(of)?;
        let own = special.variants.iter().flat_map(|v| v.metadata.visible_params());
        if let Some(other) = own.into_iter().find(|p| !params.iter().any(|q| q.name == p.name && q.ty == p.ty)) {
            let message = format!("a specialization has the argument `{}`, which the signature has not", other.name);
            return Err(of(error(message)));
        }
    }
    Ok(())
}

/// The targets that are built for.
fn archs(config: &Config) -> Vec<String> {
    match config.archs.is_empty() {
        true => vec![rtc_compiler::DEFAULT_ARCH.to_owned()],
        false => config.archs.clone(),
    }
}

/// The variants of one specialization, one per target, or for one alone.
fn compile_spec(
    config: &Config,
    program: &Program,
    spec: &Spec,
    only: Option<&String>,
) -> Result<Vec<Artifact>, Error> {
    let specialization = spec.specialize(program).map_err(|f| explain(program, f))?;
    let mut variants = Vec::new();
    for arch in archs(config).iter().filter(|arch| only.is_none_or(|only| only == *arch)) {
        let hash = rtc_compiler::source_hash(program, &specialization, arch);
        let compiled = rtc_compiler::compile(program, &specialization, arch, hash, &mut Silent)
            .map_err(|failure| explain(program, failure))?;
        // What is only for information is left out.
        for warning in compiled.warnings.iter().filter(|d| d.severity != Severity::Note) {
            let text = rtc_compiler::source::render(program.sources(), warning, false);
            text.lines().for_each(|line| println!("cargo::warning={line}"));
        }
        variants.push(compiled.artifact);
    }
    Ok(variants)
}

/// A kernel that has been compiled already, for the writers of modules.
///
/// ```
/// use rtc_build::internal::{KernelArtifacts, write_c, write_rust};
/// use rtc_compiler::{Program, Signature, Silent, Source, Spec, compile, source_hash};
/// let text = "@triton.jit\ndef one(x):\n    tl.store(x, 1.0)\n";
/// let program = Program::parse(&[Source::new("one.rt", text)]);
/// let info = program.kernel(None)?.clone();
/// let spec = Spec { args: Signature::parse("*fp32")?.bind(&["x"])?, ..Spec::default() };
/// let specialization = spec.specialize(&program)?;
/// let hash = source_hash(&program, &specialization, "sm_80");
/// let artifact = compile(&program, &specialization, "sm_80", hash, &mut Silent)?.artifact;
/// let ready = KernelArtifacts { name: "one".into(), info, specialization, variants: vec![artifact] };
/// let folder = std::env::temp_dir().join(format!("rtc-ready-{}", std::process::id()));
/// write_rust(&folder, "one", "", vec![ready.clone()])?;
/// let [header, _source] = write_c(&folder, "one", vec![ready])?;
/// assert!(std::fs::read_to_string(header)?.contains("CUresult one_launch(const one_t *kernel"));
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct KernelArtifacts {
    /// The name of its function.
    pub name: String,
    /// What the source says of it.
    pub info: KernelInfo,
    /// What it was compiled for.
    pub specialization: Specialization,
    /// One per target.
    pub variants: Vec<Artifact>,
}

fn embedded(stem: &str, ready: Vec<KernelArtifacts>) -> Vec<Embedded> {
    let one = |KernelArtifacts { name, info, specialization, variants }: KernelArtifacts| {
        let Specialization { args, options, .. } = specialization;
        let signature = args.iter().map(|arg| format!("{}={}", arg.name, arg.kind)).collect::<Vec<_>>().join(", ");
        let stem = format!("{stem}.{name}");
        let (sets, cubins) = Default::default();
        let special = BuiltSpecial { condition: None, args, options, arch: None, sets, variants, cubins, stem };
        let cases = vec![Built { picks: Vec::new(), specials: vec![special] }];
        Embedded { name, info, signature, axes: Vec::new(), typed: Vec::new(), cases }
    };
    ready.into_iter().map(one).collect()
}

/// Writes the Rust module of a source, `STEM.rs`, with PTX and metadata beside it; `doc` is what the source says of itself. Gives
/// its path.
///
/// # Errors
///
/// The path of a file or folder that cannot be written, with the reason.
pub fn write_rust(out_dir: &Path, stem: &str, doc: &str, kernels: Vec<KernelArtifacts>) -> Result<PathBuf, Error> {
    let kernels = embedded(stem, kernels);
    write_files(out_dir, stem, &kernels)?;
    let path = out_dir.join(format!("{stem}.rs"));
    write(&path, generate::module(stem, doc, &kernels, false))?;
    Ok(path)
}

/// Writes a header and a source in C, `STEM.h` and `STEM.c`, with the PTX in it; gives their paths.
///
/// # Errors
///
/// As for [`write_rust`], two kernels that have one name in C, and a tensor map that the C source cannot make.
pub fn write_c(out_dir: &Path, stem: &str, kernels: Vec<KernelArtifacts>) -> Result<[PathBuf; 2], Error> {
    std::fs::create_dir_all(out_dir).map_err(|e| error(format!("cannot make {}: {e}", out_dir.display())))?;
    write_c_of(out_dir, stem, &embedded(stem, kernels))
}

fn write_c_of(out_dir: &Path, stem: &str, kernels: &[Embedded]) -> Result<[PathBuf; 2], Error> {
    let (header, source) = c_source::c_source(stem, kernels)?;
    let paths = ["h", "c"].map(|ending| out_dir.join(format!("{stem}.{ending}")));
    write(&paths[0], &header)?;
    write(&paths[1], &source)?;
    Ok(paths)
}

/// A failure with its pictures of the source.
fn explain(program: &Program, failure: Failure) -> Error {
    match &failure {
        Failure::Diagnostics(list) => {
            let pictures: Vec<String> =
                list.iter().map(|d| rtc_compiler::source::render(program.sources(), d, false)).collect();
            error(pictures.join("\n").trim_end())
        }
        other => error(other.to_string()),
    }
}
