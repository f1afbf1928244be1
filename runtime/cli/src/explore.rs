//! `rtc explore`: a kernel as one HTML page.

use crate::explore_arguments::ExploreArguments;
use crate::explore_inputs::Inputs;
use crate::explore_trace::{self, Trace};
use crate::output::{self, out, outln};
use crate::problem::Problem;
use crate::report::{Progress, Reporter};
use crate::run::{self, Input};
use crate::{decided, explore_edit, explore_launch, input, ptx, tile_ir};
use rtc_build::Assembler;
use rtc_compiler::{Compiled, DEFAULT_ARCH, Failure, LaunchOptions, Observer, Program, Silent, Spec};
use rtc_explore::Page;
use rtc_runtime::Device;
use rtc_runtime::timeline::Timeline;
use rtc_source::{Code, render};
use rtc_testing::{LaunchFile, Tensors};
use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Writes the page, or serves it.
pub(crate) fn explore(arguments: &ExploreArguments, reporter: &Reporter) -> Result<(), Problem> {
    if arguments.edit {
        return explore_edit::serve(arguments);
    }
    if arguments.serve {
        return serve(arguments, reporter);
    }
    let (page, timeline) = make(arguments, reporter, &mut Vec::new())?;
    if let (Some(path), Some(timeline)) = (&arguments.trace, &timeline) {
        output::write(path, rtc_explore::chrome_trace(timeline).to_string().as_bytes())?;
    }
    if arguments.json {
        let json = serde_json::to_string(&page).map_err(|error| Problem::bug("explore", error.to_string()))?;
        return match &arguments.output {
            Some(path) => output::write(path, json.as_bytes()),
            None => out!("{json}\n"),
        };
    }
    let named = || PathBuf::from(format!("{}.html", input::stem_of(&arguments.kernels.file)));
    let path = arguments.output.clone().unwrap_or_else(named);
    output::write(&path, rtc_explore::html(&page, false).as_bytes())?;
    outln!("{}", path.display())
}

/// Serves the page to this machine until the process ends.
fn serve(arguments: &ExploreArguments, reporter: &Reporter) -> Result<(), Problem> {
    if input::is_standard_input(&arguments.kernels.file) {
        return Err(Problem::Usage("--serve needs a file, which it reads again when it changes".into()));
    }
    let failed = |error: std::io::Error| Problem::input(Code::IO, format!("cannot serve the page: {error}"));
    let served = rtc_explore::serve(arguments.port).map_err(failed)?;
    outln!("{}", served.url())?;
    let first: Vec<PathBuf> = std::iter::once(&arguments.kernels.file)
        .chain(&arguments.launch)
        .chain(&arguments.timeline)
        .chain(&arguments.kernels.spec)
        .cloned()
        .collect();
    let watched = RefCell::new(first.clone());
    let stamp = || stamp(&watched.borrow());
    let mut page = || {
        let mut files = first.clone();
        let made = make(arguments, reporter, &mut files);
        *watched.borrow_mut() = files;
        match made {
            Ok((page, _)) => rtc_explore::html(&page, true),
            Err(problem) => rtc_explore::failure(&problem_text(&problem)),
        }
    };
    served.run(&stamp, &mut page).map_err(failed)
}

/// The state of files: a number that changes with them.
fn stamp(files: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files {
        let data = std::fs::metadata(file).ok();
        data.map(|data| (data.len(), data.modified().ok())).hash(&mut hasher);
    }
    hasher.finish()
}

/// An error as text.
fn problem_text(problem: &Problem) -> String {
    match problem {
        Problem::Diagnostics { sources, list } => list.iter().map(|found| render(sources, found, false)).collect(),
        Problem::Input { code, message, .. } => format!("error[{code}]: {message}"),
        Problem::Rendered(message) | Problem::Usage(message) => format!("error: {message}"),
        Problem::Bug { stage, message, .. } => format!("error[internal]: {message}\nit happened in: {stage}"),
        Problem::Said(_) | Problem::NobodyReads => String::new(),
    }
}

/// A kernel, and what it is compiled for.
pub(crate) struct Subject {
    pub(crate) input: Input,
    pub(crate) spec: Spec,
    pub(crate) arch: String,
    pub(crate) launch: Option<(PathBuf, LaunchFile, Tensors)>,
    /// Whether the interpreter runs the launch, in place of the emulator.
    pub(crate) interprets: bool,
    /// The trace of a launch by another program.
    pub(crate) trace: Option<Trace>,
    /// Inputs of a launch that is made when the kernel is compiled, as then the lengths of its tensors are known.
    pub(crate) inputs: Option<Inputs>,
}

/// The data of the page, and the whole timeline. The files that it depends on are added to `files`.
fn make(
    arguments: &ExploreArguments,
    reporter: &Reporter,
    files: &mut Vec<PathBuf>,
) -> Result<(Page, Option<Timeline>), Problem> {
    let mut subject = match arguments.edited {
        true => explore_edit::subject(arguments, reporter)?,
        false => subject(arguments, reporter, files)?,
    };
    let Subject { input, spec, arch, .. } = &subject;
    let mut watch = Watch { progress: reporter.follow(format!("{} for {arch}", input.kernel())), passes: Vec::new() };
    let compiled = compile(input, &spec.options, arch, &mut watch);
    let Watch { progress, mut passes } = watch;
    progress.finish();
    let failed = |failure| Problem::compile(input.sources(), failure);
    let (first, compiled) = compiled.map_err(failed)?;
    passes.insert(0, ("sema", first));
    let artifact = compiled.artifact.clone();
    let decisions = input.decisions(spec, arch).map_err(failed)?;
    let (resources, _) = decided::resources(&artifact, arch, decisions.registers);
    // A run of the editor answers at once.
    let assembler = Assembler::find_for(arch).filter(|_| !arguments.edited);
    let sass = assembler.and_then(|assembler| assembler.disassembled(&artifact.ptx, &artifact.metadata.symbol, arch));
    let mut remarks = compiled.warnings.clone();
    remarks.extend(decisions.loops);
    if let Some(inputs) = &subject.inputs {
        let made = inputs.launch(&artifact.metadata);
        let (launch, tensors) = made.map_err(|message| Problem::input(Code::LAUNCH_FILE, message))?;
        subject.launch = Some((arguments.kernels.file.clone(), launch, tensors));
    }
    let Subject { input, arch, launch, trace, .. } = &subject;
    let launched = match launch {
        None => trace.as_ref().map(|trace| trace.launch(&artifact)).transpose()?,
        Some((path, launch, tensors)) => {
            let given = (path.as_path(), launch, tensors);
            Some(match subject.interprets {
                true => explore_launch::interpreted(arguments, &subject, given, reporter)?,
                false => explore_launch::launched(arguments, &subject, given, compiled, reporter)?,
            })
        }
    };
    let page = rtc_explore::explore(&rtc_explore::Input {
        kernel: input.kernel(),
        arch,
        version: rtc_compiler::COMPILER_VERSION,
        sources: input.sources(),
        passes: &passes,
        ptx: &artifact.ptx,
        sass: sass.as_deref(),
        remarks: &remarks,
        resources: &resources,
        launch: launched.as_ref(),
    });
    Ok((page, launched.map(|launched| launched.timeline)))
}

/// Reads the kernel, and the launch if there is one.
fn subject(arguments: &ExploreArguments, reporter: &Reporter, files: &mut Vec<PathBuf>) -> Result<Subject, Problem> {
    let kernels = &arguments.kernels;
    if ptx::is_ptx(&kernels.file) {
        return Err(Problem::Usage("explore takes a source or a .tir file; a .ptx file has no stages to show".into()));
    }
    // A signature is given instead of a launch, so that these are not refused where the command line is read.
    let needing = [
        ("--trace", arguments.trace.is_some()),
        ("--no-sanitize", arguments.no_sanitize),
        ("--instrument", arguments.instrument),
    ];
    for (name, given) in needing {
        if given && arguments.launch.is_none() {
            return Err(Problem::Usage(format!("{name} needs a launch; give --launch LAUNCH.json")));
        }
    }
    let read = match &arguments.launch {
        Some(path) => Some((path, read_launch(path, files)?)),
        None => None,
    };
    if tile_ir::is_tile_ir(&kernels.file) {
        if arguments.timeline.is_some() {
            return Err(Problem::Usage(
                "--timeline needs a source: such traces are recorded by Python programs".into(),
            ));
        }
        let kernel = tile_ir::load(&kernels.file)?;
        let (mut archs, options) = tile_ir::request(kernels, &kernel)?;
        let mut spec = Spec { options, ..Spec::default() };
        if let Some((path, (_, given, _))) = &read {
            tile_ir::check_spec(given, &kernel).map_err(|message| Problem::file(Code::LAUNCH_FILE, path, message))?;
            spec = given.clone();
            spec.options.instrument = arguments.records.option(arguments.instrument);
            if kernels.arch.is_empty() {
                archs = vec![default_arch(given)];
            }
        }
        let arch = one_target(archs)?;
        let launch = read.map(|(path, (launch, _, tensors))| (path.clone(), launch, tensors));
        return Ok(Subject {
            input: Input::TileIr(Box::new(kernel)),
            spec,
            arch,
            launch,
            interprets: false,
            inputs: None,
            trace: None,
        });
    }
    let program = input::load_kernels(kernels, reporter)?;
    files.extend(program.sources().files().map(|(_, file)| PathBuf::from(&file.name)));
    let program = input::with_libdevice(program, kernels.libdevice.as_deref())?;
    match (read, &arguments.timeline) {
        (Some((path, read)), _) => launch_subject(arguments, program, path, read, reporter),
        (None, Some(path)) => explore_trace::subject(program, path),
        (None, None) => signature_subject(arguments, program),
    }
}

/// The kernel for a signature, or for a spec.
fn signature_subject(arguments: &ExploreArguments, program: Program) -> Result<Subject, Problem> {
    let kernels = &arguments.kernels;
    let mut requests = input::requests(kernels, &program)?;
    let (Some(request), true) = (requests.pop(), requests.is_empty()) else {
        return Err(Problem::Usage("explore takes one kernel; give one --spec or --signature".into()));
    };
    let arch = one_target(request.archs)?;
    let spec = Spec { options: request.specialization.options.clone(), ..Spec::default() };
    let input = Input::Source(Box::new((program, request.specialization)));
    Ok(Subject { input, spec, arch, launch: None, interprets: false, inputs: None, trace: None })
}

/// The kernel for a launch.
pub(crate) fn launch_subject(
    arguments: &ExploreArguments,
    program: Program,
    path: &Path,
    (launch, mut spec, tensors): (LaunchFile, Spec, Tensors),
    reporter: &Reporter,
) -> Result<Subject, Problem> {
    let kernels = &arguments.kernels;
    input::apply_options(kernels, &mut spec)?;
    if let [kernel] = kernels.kernel.as_slice() {
        spec.kernel = Some(kernel.clone());
    }
    let arch = one_target(if kernels.arch.is_empty() { vec![default_arch(&spec)] } else { kernels.arch.clone() })?;
    let (mut spec, _) = run::settle(&program, spec, &launch, &tensors, (&Device::emulator(), &arch), reporter)?;
    spec.options.instrument = arguments.records.option(arguments.instrument);
    let specialization = spec.specialize(&program).map_err(|failure| Problem::compile(program.sources(), failure))?;
    let launch = Some((path.to_owned(), launch, tensors));
    Ok(Subject {
        input: Input::Source(Box::new((program, specialization))),
        spec,
        arch,
        launch,
        interprets: false,
        inputs: None,
        trace: None,
    })
}

/// The target of a launch in the emulator, as for `rtc run`.
fn default_arch(spec: &Spec) -> String {
    spec.arch.clone().unwrap_or_else(|| Device::emulator().arch().to_string())
}

fn one_target(archs: Vec<String>) -> Result<String, Problem> {
    match <[String; 1]>::try_from(archs) {
        Ok([arch]) => Ok(arch),
        Err(archs) if archs.is_empty() => Ok(DEFAULT_ARCH.to_owned()),
        Err(_) => Err(Problem::Usage("explore takes one target".into())),
    }
}

pub(crate) fn read_launch(path: &Path, files: &mut Vec<PathBuf>) -> Result<(LaunchFile, Spec, Tensors), Problem> {
    let wrong = |message: String| Problem::file(Code::LAUNCH_FILE, path, message);
    let launch = LaunchFile::parse(&input::read_text(path)?).map_err(|error| wrong(error.to_string()))?;
    let spec = run::read_spec(&launch).map_err(wrong)?;
    let tensors = run::tensors_of(path, &launch)?;
    files.extend(launch.tensors.iter().map(|name| input::beside(path, name)));
    Ok((launch, spec, tensors))
}

/// Keeps the kernel after each pass.
struct Watch {
    progress: Progress,
    passes: Vec<(&'static str, String)>,
}

impl Observer for Watch {
    fn enter(&mut self, stage: &'static str) {
        self.progress.enter(stage);
    }

    fn static_print(&mut self, line: &str) {
        self.progress.static_print(line);
    }

    fn long(&mut self, instructions: u64) {
        self.progress.long(instructions);
    }

    fn wants_locations(&self) -> bool {
        true
    }

    fn after_pass(&mut self, pass: &'static str, text: &dyn Fn() -> String) {
        // The passes begin again where a structure did not fit: only the last attempt counts.
        if self.passes.first().is_some_and(|(first, _)| *first == pass) {
            self.passes.clear();
        }
        self.passes.push((pass, text()));
    }
}

/// The kernel before all passes as text, and the result. It is compiled without the cache, which has no passes.
fn compile(
    input: &Input,
    options: &LaunchOptions,
    arch: &str,
    watch: &mut Watch,
) -> Result<(String, Compiled), Failure> {
    match input {
        Input::Source(source) => {
            let (program, specialization): &(Program, _) = source;
            let hash = || rtc_compiler::source_hash(program, specialization, arch);
            let compiled = rtc_compiler::compile(program, specialization, arch, hash(), watch)?;
            let first = rtc_compiler::analyse(program, specialization, arch, hash(), &mut Silent)?;
            Ok((rtc_explore::tile_ir(&first.kernel), compiled))
        }
        Input::TileIr(kernel) => {
            let compiled = kernel.compile(options, arch, watch)?;
            Ok((rtc_explore::tile_ir(&kernel.analyse(options, arch)?.kernel), compiled))
        }
    }
}
