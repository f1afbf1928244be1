//! `rtc emit`: one stage of the compilation as text.

use crate::arguments::EmitArguments;
use crate::problem::Problem;
use crate::report::Reporter;
use crate::{input, output};
use rtc_compiler::{Observer, Stage};

/// Prints the stage, and the kernel after the wanted passes.
pub(crate) fn emit(arguments: &EmitArguments, reporter: &Reporter) -> Result<(), Problem> {
    let program =
        input::load(&arguments.kernels.file, &arguments.kernels.include, &arguments.kernels.levels, reporter)?;
    let program = input::with_libdevice(program, arguments.kernels.libdevice.as_deref())?;
    let passes = rtc_compiler::pass_names();
    for pass in &arguments.print_after {
        if !passes.contains(&pass.as_str()) {
            return Err(Problem::Usage(format!("there is no pass `{pass}`; passes are {}", passes.join(", "))));
        }
    }
    let after = arguments.print_after_all || !arguments.print_after.is_empty();
    let stage = arguments.stage.unwrap_or(if after { Stage::Scheduled } else { Stage::Ptx });
    if stage == Stage::Ast {
        return write(arguments, &rtc_compiler::print_ast(&program));
    }
    let requests = input::requests(&arguments.kernels, &program)?;
    let [request] = requests.as_slice() else {
        return Err(Problem::Usage("emit takes one kernel; give one --spec or --signature".into()));
    };
    let [arch] = request.archs.as_slice() else {
        return Err(Problem::Usage("emit takes one target".into()));
    };
    let mut printer = Printer {
        passes: &arguments.print_after,
        all: arguments.print_after_all,
        text: String::new(),
        progress: reporter.follow(format!("{} for {arch}", request.specialization.kernel)),
    };
    let result = rtc_compiler::emit(&program, &request.specialization, arch, stage, &mut printer);
    let Printer { mut text, progress, .. } = printer;
    progress.finish();
    match result {
        Ok(stage_text) => {
            if arguments.stage.is_some() || !after {
                text.push_str(&stage_text);
            }
            write(arguments, &text)
        }
        Err(failure) => {
            // What was printed until then is what one looks at to find the reason.
            write(arguments, &text)?;
            Err(Problem::compile(&program, failure))
        }
    }
}

fn write(arguments: &EmitArguments, text: &str) -> Result<(), Problem> {
    match &arguments.output {
        Some(path) => output::write(path, text.as_bytes()),
        None => {
            print!("{text}");
            Ok(())
        }
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
