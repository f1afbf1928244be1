//! Passes on IR text: each `tests/filetests/passes/**/*.tir` is a test of its own and has its snapshot beside it, which
//! holds the kernel before and after the pass. The result must verify and read back.
//!
//! Kernels in `tests/filetests/rules` are rewritten by one rule alone, which must match at least once.
//!
//! Kernels in `tests/filetests/analysis/accesses` are printed with what the analysis of accesses finds in them, after the
//! passes that turn descriptors into pointers.
//!
//! A header of comments selects what runs:
//!
//! ```text
//! // pass: coalesce          the pass, or `all`; `// rule: full-mask` or `// analysis: accesses` instead
//! // target: sm_80           the target; sm_90a without this line
//! // structure: pipelined    the launch option; auto without this line
//! // plan: slots=4 ahead=2    decisions of the schedule; those of the passes without this line
//! ```

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use rtc_passes::{PASSES, PassContext, PassError, apply_rule, plain, print_accesses, run_through};

/// The header's word for the analysis.
const ANALYSIS: &str = "accesses";

/// The header of a test.
struct Header {
    pass: String,
    is_rule: bool,
    cx: PassContext,
}

/// Reads the header: lines `// KEY: VALUE` before any other line.
fn header(text: &str) -> Header {
    let (mut pass, mut is_rule) = (None, false);
    let mut cx = PassContext {
        target: rtc_abi::Target::named("sm_90a").expect("it is in the table"),
        max_instructions: 50_000,
        structure: rtc_abi::Structure::Auto,
        overlap_launches: true,
        plan: Default::default(),
        instrument: 0,
    };
    for line in text.lines() {
        let Some((key, value)) = line.strip_prefix("// ").and_then(|line| line.split_once(": ")) else { break };
        match key {
            "pass" | "analysis" | "rule" => (pass, is_rule) = (Some(value.trim().to_owned()), key == "rule"),
            "target" => cx.target = rtc_abi::Target::named(value.trim()).expect("a target"),
            "structure" => cx.structure = value.trim().parse().expect("a structure"),
            "instrument" => cx.instrument = value.trim().parse().expect("a number of blocks"),
            "plan" => cx.plan = value.trim().parse().expect("a plan"),
            _ => break,
        }
    }
    Header { pass: pass.expect("`// pass: NAME` in the first line"), is_rule, cx }
}

/// The text of the kernel after the pass, or the diagnostic.
fn run(text: &str) -> String {
    let Header { pass: wanted, is_rule, cx } = header(text);
    let mut kernel = rtc_ir::text::parse(text).unwrap_or_else(|e| panic!("{e}"));
    rtc_ir::verify(&kernel).unwrap_or_else(|e| panic!("{}", rtc_ir::print_errors(&kernel, &e)));
    if wanted == ANALYSIS {
        return print_accesses(&plain(&kernel, &cx).unwrap_or_else(|e| panic!("{e}")));
    }
    if is_rule {
        let outcome = apply_rule(&mut kernel, &wanted).unwrap_or_else(|| panic!("there is no rule `{wanted}`"));
        assert_ne!(outcome.unwrap_or_else(|e| panic!("{e}")), 0, "`{wanted}` does not match");
        rtc_ir::verify(&kernel).unwrap_or_else(|e| panic!("{}", rtc_ir::print_errors(&kernel, &e)));
    } else if wanted == "all" {
        run_through(&mut kernel, &cx, &mut |name, kernel| {
            if let Err(errors) = rtc_ir::verify(kernel) {
                panic!("after {name}:\n{}", rtc_ir::print_errors(kernel, &errors));
            }
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{e}"));
    } else {
        let pass = PASSES.iter().find(|p| p.name == wanted).unwrap_or_else(|| panic!("there is no pass `{wanted}`"));
        match (pass.run)(&mut kernel, &cx) {
            Ok(()) => {}
            Err(PassError::Diagnostic(d)) => return format!("{:?}[{}]: {}\n", d.severity, d.code, d.message),
            Err(e) => panic!("{e}"),
        }
        kernel.phase = pass.leaves;
        rtc_ir::verify(&kernel).unwrap_or_else(|e| panic!("{}", rtc_ir::print_errors(&kernel, &e)));
    }
    let printed = rtc_ir::text::print(&kernel);
    let again = rtc_ir::text::print(&rtc_ir::text::parse(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}")));
    assert_eq!(printed, again, "the text does not read back");
    printed
}

/// Compares one file with the snapshot beside it.
fn check(path: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path)?;
    let after = format!("// after {}", header(&text).pass);
    let both = format!("{}\n\n{after}\n{}", text.trim_end(), run(&text));
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(path.parent().ok_or("a folder")?);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let name = path.file_stem().and_then(|name| name.to_str()).ok_or("a name")?;
    settings.bind(|| insta::assert_snapshot!(name, both));
    Ok(())
}

/// The files with this ending in a folder and those below it, in order.
fn files(folder: &Path, ending: &str, out: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, ending, out)?;
        } else if path.extension().is_some_and(|found| found == ending) {
            out.push(path);
        }
    }
    out.sort();
    Ok(())
}

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests").canonicalize()?;
    let (mut tests, mut snapshots) = (Vec::new(), Vec::new());
    for folder in ["passes", "rules", "analysis/accesses"].map(|folder| root.join(folder)) {
        files(&folder, "tir", &mut tests)?;
        files(&folder, "snap", &mut snapshots)?;
    }
    let stale: Vec<PathBuf> = snapshots.into_iter().filter(|path| !path.with_extension("tir").exists()).collect();
    let shown = |path: &Path| path.strip_prefix(&root).unwrap_or(path).display().to_string();
    let mut trials: Vec<Trial> =
        tests.into_iter().map(|path| Trial::test(shown(&path), move || check(&path))).collect();
    trials.push(Trial::test("every_snapshot_has_its_file", move || {
        if stale.is_empty() { Ok(()) } else { Err(format!("snapshots without a file: {stale:?}").into()) }
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit()
}
