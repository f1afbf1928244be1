//! `rtc explore --serve --edit`: the editor, and one run of it in a process of its own.

use crate::explore::{Subject, launch_subject, read_launch};
use crate::explore_arguments::ExploreArguments;
use crate::explore_inputs::Inputs;
use crate::output::outln;
use crate::problem::Problem;
use crate::report::Reporter;
use crate::run::Input;
use crate::{host, input, ptx, tile_ir};
use rtc_compiler::Spec;
use rtc_explore::{EditSetup, Limits};
use rtc_source::Code;
use serde_json::Value;
use std::ffi::OsString;
use std::time::Duration;

/// Serves the editor to this machine until the process ends.
pub(crate) fn serve(arguments: &ExploreArguments) -> Result<(), Problem> {
    let kernels = &arguments.kernels;
    if input::is_standard_input(&kernels.file) || ptx::is_ptx(&kernels.file) || tile_ir::is_tile_ir(&kernels.file) {
        return Err(Problem::Usage("--edit needs a source file: .rt or .py".into()));
    }
    let io = |error: std::io::Error| Problem::input(Code::IO, format!("cannot serve the editor: {error}"));
    // A file that cannot be read is reported as such.
    input::read_text(&kernels.file)?;
    let specialization = specialization(arguments)?;
    let editing = rtc_explore::edit(arguments.port).map_err(io)?;
    outln!("{}", editing.url())?;
    let setup = EditSetup {
        file: kernels.file.clone(),
        command: command(arguments).map_err(io)?,
        specialization,
        launch: arguments.launch.clone(),
        limits: Limits { time: Duration::from_secs(arguments.time_limit), memory: arguments.memory_limit << 30 },
    };
    editing.run(&setup).map_err(io)
}

/// `--signature` as a comment `# rtc: ..` has it.
fn specialization(arguments: &ExploreArguments) -> Result<Option<String>, Problem> {
    let kernels = &arguments.kernels;
    let signature = match kernels.signature.as_slice() {
        [] => return Ok(None),
        [signature] => signature,
        _ => return Err(Problem::Usage("--edit takes one --signature".into())),
    };
    let [kernel] = kernels.kernel.as_slice() else {
        return Err(Problem::Usage("--edit with --signature needs --kernel NAME".into()));
    };
    let arch = kernels.arch.first().map_or(String::new(), |arch| format!(" arch={arch}"));
    let warps = kernels.num_warps.map_or(String::new(), |warps| format!(" num_warps={warps}"));
    let stages = kernels.num_stages.map_or(String::new(), |stages| format!(" num_stages={stages}"));
    Ok(Some(format!("{kernel}({signature}){warps}{stages}{arch}")))
}

/// The words that run the kernel once: this command with `--edited`.
fn command(arguments: &ExploreArguments) -> std::io::Result<Vec<OsString>> {
    let mut words = host::own_command(None)?;
    words.extend(["explore", "--json", "--edited"].map(OsString::from));
    let mut add = |name: &str, value: &std::ffi::OsStr| words.extend([OsString::from(name), value.to_owned()]);
    let kernels = &arguments.kernels;
    for folder in &kernels.include {
        add("--include", folder.as_os_str());
    }
    if let Some(path) = &kernels.libdevice {
        add("--libdevice", path.as_os_str());
    }
    if let Some(path) = &arguments.launch {
        add("--launch", path.as_os_str());
    }
    for (name, codes) in
        [("--allow", &kernels.levels.allow), ("--warn", &kernels.levels.warn), ("--deny", &kernels.levels.deny)]
    {
        codes.iter().for_each(|code| add(name, code.as_ref()));
    }
    if arguments.no_sanitize {
        words.push("--no-sanitize".into());
    }
    words.push("--".into());
    words.push(kernels.file.clone().into());
    Ok(words)
}

/// The kernel of one run, as the page sends it.
pub(crate) fn subject(arguments: &ExploreArguments, reporter: &Reporter) -> Result<Subject, Problem> {
    let wrong = |message: String| Problem::input(Code::LAUNCH_FILE, message);
    let given = input::read_text("-".as_ref())?;
    let given: Value = serde_json::from_str(&given).map_err(|error| wrong(format!("the run is not JSON: {error}")))?;
    let Some(text) = given["text"].as_str() else { return Err(wrong("the run has no `text`".into())) };
    let interprets = match given["executor"].as_str() {
        None | Some("emulator") => false,
        Some("interpreter") => true,
        Some(other) => return Err(wrong(format!("`executor` is `emulator` or `interpreter`, not `{other}`"))),
    };
    let kernels = &arguments.kernels;
    let program =
        input::load_text(&kernels.file, text.to_owned(), &kernels.include, &kernels.levels, kernels.debug, reporter)?;
    let program = input::with_libdevice(program, kernels.libdevice.as_deref())?;
    if let (Some(path), Some(true)) = (&arguments.launch, given["launch"].as_bool()) {
        let subject = launch_subject(arguments, program, path, read_launch(path, &mut Vec::new())?, reporter)?;
        return Ok(Subject { interprets, ..subject });
    }
    let Some(line) = given["specialization"].as_str() else {
        return Err(wrong("the run has no `specialization`".into()));
    };
    let name = kernels.file.to_string_lossy();
    let mut session = rtc_lsp::Session::new(Box::new(()));
    session.open(&name, text);
    let chosen = session.choose(&name, line).map_err(|message| Problem::input(Code::SIGNATURE, message))?;
    let spec = Spec {
        kernel: Some(chosen.spec.kernel),
        args: chosen.spec.args,
        options: chosen.spec.options,
        arch: Some(chosen.target.name.to_owned()),
    };
    let specialization = spec.specialize(&program).map_err(|failure| Problem::compile(program.sources(), failure))?;
    let inputs = Inputs::read(&given).map_err(wrong)?;
    let (input, arch) = (Input::Source(Box::new((program, specialization))), chosen.target.name.to_owned());
    Ok(Subject { input, spec, arch, launch: None, interprets, inputs: Some(inputs), trace: None })
}
