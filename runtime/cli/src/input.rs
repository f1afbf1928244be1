//! Reading files: sources with what they import, specs, signatures. `-` is standard input.

use crate::arguments::{KernelArguments, LevelArguments};
use crate::debug_arguments::DebugArguments;
use crate::problem::Problem;
use crate::report::Reporter;
use rtc_compiler::{Level, Levels, Program, Signature, Source, Spec, Specialization, set_option};
use rtc_source::json_fields::{self, Field};
use rtc_source::{Code, Severity};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a path means standard input.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-") || path == Path::new("/dev/stdin")
}

/// The name of a file in messages.
pub(crate) fn name_of(path: &Path) -> String {
    if is_standard_input(path) { "<stdin>".to_owned() } else { path.display().to_string() }
}

/// The folder of a file; that of standard input is the one where the command runs.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !is_standard_input(path));
    folder.unwrap_or(Path::new("."))
}

/// A file in the folder of another.
pub(crate) fn beside(path: &Path, name: &str) -> PathBuf {
    if is_standard_input(path) { PathBuf::from(name) } else { path.with_file_name(name) }
}

/// The name of a file without its ending, for files that are made of it.
pub(crate) fn stem_of(path: &Path) -> String {
    match is_standard_input(path) {
        true => "stdin".to_owned(),
        false => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    }
}

/// Reads a text file.
pub(crate) fn read_text(path: &Path) -> Result<String, Problem> {
    let bytes = read_bytes(path)?;
    String::from_utf8(bytes).map_err(|e| {
        Problem::file(Code::IO, path, format!("the file is not UTF-8 (at byte {})", e.utf8_error().valid_up_to()))
    })
}

/// Reads a file.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, Problem> {
    let read = if is_standard_input(path) { read_standard_input()? } else { std::fs::read(path) };
    read.map_err(|error| Problem::file(Code::IO, path, format!("cannot read the file: {error}")))
}

fn read_standard_input() -> Result<std::io::Result<Vec<u8>>, Problem> {
    static IS_READ: AtomicBool = AtomicBool::new(false);
    if IS_READ.swap(true, Ordering::Relaxed) {
        return Err(Problem::Usage("two files are to be read from standard input; give a path for one of them".into()));
    }
    let mut bytes = Vec::new();
    Ok(std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes))
}

/// Reads a source file and the files it imports, from its own directory or from `include`; reports warnings.
pub(crate) fn load(
    file: &Path,
    include: &[PathBuf],
    levels: &LevelArguments,
    debug: DebugArguments,
    reporter: &Reporter,
) -> Result<Program, Problem> {
    load_text(file, read_text(file)?, include, levels, debug, reporter)
}

/// The file of kernels that arguments name.
pub(crate) fn load_kernels(kernels: &KernelArguments, reporter: &Reporter) -> Result<Program, Problem> {
    load(&kernels.file, &kernels.include, &kernels.levels, kernels.debug, reporter)
}

/// The same with a text in place of that of the file.
pub(crate) fn load_text(
    file: &Path,
    text: String,
    include: &[PathBuf],
    levels: &LevelArguments,
    debug: DebugArguments,
    reporter: &Reporter,
) -> Result<Program, Problem> {
    let levels = read_levels(levels)?;
    let read = |path: &Path| Ok::<_, Problem>(Source::new(debug.name_of(path), read_text(path)?));
    let directory = folder_of(file);
    let directories: Vec<&Path> = std::iter::once(directory).chain(include.iter().map(PathBuf::as_path)).collect();
    let program = Program::parse_importing(Source::new(debug.name_of(file), text), &mut |module| {
        let names = rtc_compiler::file_candidates(module);
        let candidates = directories.iter().flat_map(|d| names.iter().map(|name| d.join(name)));
        candidates.into_iter().find(|path| path.is_file()).map(|path| read(&path)).transpose()
    })?;
    let found = levels.apply(program.diagnostics().to_vec());
    if found.iter().any(|d| d.severity == Severity::Error) {
        return Err(Problem::Diagnostics { sources: program.sources().clone(), list: found });
    }
    reporter.diagnostics(program.sources(), &found);
    Ok(program.with_levels(levels))
}

/// Gives the program NVIDIA's library, if the user names it.
pub(crate) fn with_libdevice(program: Program, libdevice: Option<&Path>) -> Result<Program, Problem> {
    match libdevice {
        Some(path) => program
            .with_libdevice(read_bytes(path)?)
            .map_err(|_| Problem::file(Code::LIBDEVICE, path, "the file is not LLVM bitcode".to_owned())),
        None => Ok(program),
    }
}

/// The levels that the options set: first the groups, then the codes.
fn read_levels(arguments: &LevelArguments) -> Result<Levels, Problem> {
    let mut levels = Levels::default();
    for groups in [true, false] {
        for (names, level) in
            [(&arguments.allow, Level::Allow), (&arguments.warn, Level::Warn), (&arguments.deny, Level::Deny)]
        {
            for name in names.iter().filter(|name| matches!(name.as_str(), "warnings" | "all") == groups) {
                levels.set(name, level).map_err(|error| Problem::Usage(error.to_string()))?;
            }
        }
    }
    Ok(levels)
}

/// One kernel to compile.
pub(crate) struct Request {
    pub(crate) specialization: Specialization,
    /// Targets, in order.
    pub(crate) archs: Vec<String>,
}

/// The requests of the command line; at least one.
pub(crate) fn requests(arguments: &KernelArguments, program: &Program) -> Result<Vec<Request>, Problem> {
    let specs = specs(arguments, program)?;
    specs
        .into_iter()
        .map(|mut spec| {
            apply_options(arguments, &mut spec)?;
            let specialization =
                spec.specialize(program).map_err(|failure| Problem::compile(program.sources(), failure))?;
            let archs = match (arguments.arch.as_slice(), &spec.arch) {
                ([], Some(arch)) => vec![arch.clone()],
                ([], None) => vec![rtc_compiler::DEFAULT_ARCH.to_owned()],
                (archs, _) => archs.to_vec(),
            };
            Ok(Request { specialization, archs })
        })
        .collect()
}

fn specs(arguments: &KernelArguments, program: &Program) -> Result<Vec<Spec>, Problem> {
    let mut specs = Vec::new();
    for path in &arguments.spec {
        let mut spec =
            Spec::parse(&read_text(path)?).map_err(|error| Problem::file(Code::SPEC, path, error.to_string()))?;
        match (&spec.kernel, arguments.kernel.as_slice()) {
            (None, [kernel]) => spec.kernel = Some(kernel.clone()),
            (None, _) => {}
            (Some(_), []) => {}
            (Some(kernel), wanted) if wanted.contains(kernel) => {}
            (Some(_), [kernel]) => spec.kernel = Some(kernel.clone()),
            // With several --kernel, the specs of other kernels are left out.
            (Some(_), _) => continue,
        }
        specs.push(spec);
    }
    let (kernels, signatures) = (&arguments.kernel, &arguments.signature);
    if signatures.len() > 1 && kernels.len() > 1 && kernels.len() != signatures.len() {
        let message =
            format!("{} --kernel for {} --signature; give one per signature", kernels.len(), signatures.len());
        return Err(Problem::Usage(message));
    }
    for (i, text) in signatures.iter().enumerate() {
        let name = if kernels.len() > 1 { kernels.get(i) } else { kernels.first() };
        let kernel = program.kernel(name.map(String::as_str)).map_err(|f| Problem::compile(program.sources(), f))?;
        let names: Vec<&str> = kernel.params.iter().map(|p| p.name.as_str()).collect();
        let args = Signature::parse(text).and_then(|s| s.bind(&names));
        let args = args.map_err(|error| Problem::input(Code::SIGNATURE, error.to_string()))?;
        specs.push(Spec { kernel: Some(kernel.name.clone()), args, ..Spec::default() });
    }
    if specs.is_empty() {
        let kernel =
            program.kernel(kernels.first().map(String::as_str)).map_err(|f| Problem::compile(program.sources(), f))?;
        let names: Vec<&str> = kernel.params.iter().map(|p| p.name.as_str()).collect();
        let message = format!(
            "give --signature or --spec: kernel `{}` takes {}; see `rtc build --help`",
            kernel.name,
            names.join(", ")
        );
        return Err(Problem::Usage(message));
    }
    Ok(specs)
}

pub(crate) fn apply_options(arguments: &KernelArguments, spec: &mut Spec) -> Result<(), Problem> {
    let mut set = |name: &str, value: &serde_json::Value| {
        set_option(&mut spec.options, name, &Field::root(value))
            .map_err(|error| Problem::Usage(format!("option `{name}`: {error}")))
    };
    for option in &arguments.option {
        let (name, value) = option
            .split_once('=')
            .ok_or_else(|| Problem::Usage(format!("--option takes NAME=VALUE, found `{option}`")))?;
        // A value that is not JSON is a string: `default_dot_input_precision=ieee`.
        let value = match value {
            "True" => true.into(),
            "False" => false.into(),
            "None" => serde_json::Value::Null,
            _ => json_fields::parse(value).unwrap_or_else(|_| value.into()),
        };
        set(name.trim(), &value)?;
    }
    let flags = [
        ("num_warps", arguments.num_warps),
        ("num_stages", arguments.num_stages),
        ("max_instructions", arguments.max_instructions),
    ];
    for (name, value) in flags {
        if let Some(value) = value {
            set(name, &value.into())?;
        }
    }
    arguments.debug.apply(&mut spec.options);
    arguments.plan.apply(&mut spec.options)?;
    Ok(())
}
