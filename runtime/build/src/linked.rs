//! The compiler in this process: what the feature `linked` brings, and what `rtc embed` does.

use crate::generate::{self, Embedded};
use crate::{Config, Error, Instance, Request, error};
use rtc_compiler::source::Severity;
use rtc_compiler::{Failure, Levels, Program, Signature, Silent, Source, Spec};
use std::path::{Path, PathBuf};

/// Does what a build script asks of `rtc embed`; `request` is JSON that the same version of this crate wrote. What the
/// build script has to tell cargo goes to standard output.
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
    for (file, program) in request.files.iter().zip(&programs) {
        compile_file(config, file, program, &request.out_dir)?;
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
        // A dotted name is a path; a package is its `__init__`.
        let path = module.replace('.', "/");
        let ends = [".rt", ".py", "/__init__.rt", "/__init__.py"];
        let candidates = directories.iter().flat_map(|d| ends.map(|end| d.join(format!("{path}{end}"))));
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

fn compile_file(config: &Config, file: &Path, program: &Program, out_dir: &Path) -> Result<(), Error> {
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
        embedded.push(compile_instance(config, program, instance, name)?);
    }
    let write = |path: PathBuf, text: &str| {
        std::fs::write(&path, text).map_err(|e| error(format!("cannot write {}: {e}", path.display())))
    };
    std::fs::create_dir_all(out_dir).map_err(|e| error(format!("cannot make {}: {e}", out_dir.display())))?;
    for kernel in &embedded {
        for artifact in &kernel.variants {
            let (name, arch) = (&kernel.name, &artifact.metadata.arch);
            write(out_dir.join(format!("{stem}.{name}.{arch}.ptx")), &artifact.ptx)?;
            write(out_dir.join(format!("{stem}.{name}.{arch}.json")), &artifact.metadata.to_json())?;
        }
    }
    write(out_dir.join(format!("{stem}.rs")), &generate::module(&stem, &embedded))
}

fn compile_instance(config: &Config, program: &Program, instance: &Instance, name: String) -> Result<Embedded, Error> {
    let of = |message: String| error(format!("kernel `{}`: {message}", instance.kernel));
    let info = program.kernel(Some(&instance.kernel)).map_err(|f| explain(program, f))?;
    let params: Vec<&str> = info.params.iter().map(|p| p.name.as_str()).collect();
    let args = Signature::parse(&instance.signature).and_then(|s| s.bind(&params)).map_err(|e| of(e.to_string()))?;
    let spec = Spec { kernel: Some(instance.kernel.clone()), args, options: instance.options.clone(), arch: None };
    let specialization = spec.specialize(program).map_err(|f| explain(program, f))?;
    let default = [rtc_compiler::DEFAULT_ARCH.to_owned()];
    let archs = if config.archs.is_empty() { &default[..] } else { &config.archs };
    let mut variants = Vec::new();
    for arch in archs {
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
    Ok(Embedded { name, signature: instance.signature.clone(), variants })
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
