//! `rtc emit`: one stage of the compilation as text.

use crate::arguments::EmitArguments;
use crate::output::{self, out};
use crate::problem::Problem;
use crate::report::Reporter;
use crate::{input, tile_ir};
use rtc_compiler::{Failure, Observer, Stage};
use rtc_source::SourceMap;

/// Prints the stage, and the kernel after the wanted passes.
pub(crate) fn emit(arguments: &EmitArguments, reporter: &Reporter) -> Result<(), Problem> {
    let after = arguments.print_after_all || !arguments.print_after.is_empty();
    let stage = arguments.stage.unwrap_or(if after { Stage::Scheduled } else { Stage::Ptx });
    check_passes(arguments)?;
    if tile_ir::is_tile_ir(&arguments.kernels.file) {
        let kernel = tile_ir::load(&arguments.kernels.file)?;
        let (archs, options) = tile_ir::request(&arguments.kernels, &kernel)?;
        let arch = one_target(&archs)?;
        let emit = |printer: &mut Printer<'_>| kernel.emit(&options, arch, stage, printer);
        return print(arguments, reporter, format!("{} for {arch}", kernel.name()), kernel.sources(), emit);
    }
    let program = input::load_kernels(&arguments.kernels, reporter)?;
    let program = input::with_libdevice(program, arguments.kernels.libdevice.as_deref())?;
    if stage == Stage::Ast {
        return write(arguments, &rtc_compiler::print_ast(&program));
    }
    let requests = input::requests(&arguments.kernels, &program)?;
    let [request] = requests.as_slice() else {
        return Err(Problem::Usage("emit takes one kernel; give one --spec or --signature".into()));
    };
    let arch = one_target(&request.archs)?;
    let specialization = &request.specialization;
    let emit = |printer: &mut Printer<'_>| rtc_compiler::emit(&program, specialization, arch, stage, printer);
    print(arguments, reporter, format!("{} for {arch}", specialization.kernel), program.sources(), emit)
}

fn check_passes(arguments: &EmitArguments) -> Result<(), Problem> {
    let passes = rtc_compiler::pass_names();
    match arguments.print_after.iter().find(|pass| !passes.contains(&pass.as_str())) {
        Some(pass) => Err(Problem::Usage(format!("there is no pass `{pass}`; passes are {}", passes.join(", ")))),
        None => Ok(()),
    }
}

fn one_target(archs: &[String]) -> Result<&str, Problem> {
    match archs {
        [arch] => Ok(arch),
        _ => Err(Problem::Usage("emit takes one target".into())),
    }
}

/// Prints what `emit` gives, and the kernel after the wanted passes.
fn print(
    arguments: &EmitArguments,
    reporter: &Reporter,
    what: String,
    sources: &SourceMap,
    emit: impl FnOnce(&mut Printer<'_>) -> Result<String, Failure>,
) -> Result<(), Problem> {
    let mut printer = Printer {
        passes: &arguments.print_after,
        all: arguments.print_after_all,
        text: String::new(),
        progress: reporter.follow(what),
    };
    let result = emit(&mut printer);
    let only_passes = arguments.stage.is_none() && (printer.all || !printer.passes.is_empty());
    let Printer { mut text, progress, .. } = printer;
    progress.finish();
    match result {
        Ok(stage_text) => {
            if !only_passes {
                text.push_str(&stage_text);
            }
            write(arguments, &text)
        }
        Err(failure) => {
            // The output so far helps to find the reason.
            write(arguments, &text)?;
            Err(Problem::compile(sources, failure))
        }
    }
}

fn write(arguments: &EmitArguments, text: &str) -> Result<(), Problem> {
    match &arguments.output {
        Some(path) => output::write(path, text.as_bytes()),
        None => out!("{text}"),
    }
}

struct Printer<'a> {
    passes: &'a [String],
    all: bool,
    text: String,
    progress: crate::report::Progress,
}

impl Observer for Printer<'_> {
    fn enter(&mut self, stage: &'static str) {
        self.progress.enter(stage);
    }

    fn static_print(&mut self, line: &str) {
        self.progress.static_print(line);
    }

    fn after_pass(&mut self, pass: &'static str, text: &dyn Fn() -> String) {
        if self.all || self.passes.iter().any(|p| p == pass) {
            self.text.push_str(&format!("// after {pass}\n{}\n", text().trim_end()));
        }
    }
}
