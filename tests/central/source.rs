//! Cases in the kernel language: the files of `tests/filetests/language/`, for the meaning of the language rather than
//! of an operation.
//!
//! The header is that of `case.rs` after `#` instead of `//`, with one line more:

use rtc_compiler::{Failure, Program, Signature, Silent, Source, Spec, analyse};

use crate::case::Case;

/// Reads a case and compiles it as far as tile IR.
pub fn case(text: &str) -> Result<Case, String> {
    let header: String = text.lines().map_while(|l| l.strip_prefix("# ")).map(|l| format!("// {l}\n")).collect();
    let mut case = Case::parse(&header)?;
    if case.expects.is_empty() && case.prints.is_empty() && case.fault.is_none() {
        return Err("the header does not say what comes out".into());
    }
    let signature = header.lines().find_map(|l| l.strip_prefix("// signature ")).unwrap_or_default();
    // Language that only newer targets have is marked by `only`.
    let arch = case.only.first().map_or("sm_80", String::as_str);
    case.text = format!("{header}{}", tile_ir(text, signature, arch)?);
    Ok(case)
}

fn tile_ir(text: &str, signature: &str, arch: &str) -> Result<String, String> {
    let program = Program::parse(&[Source::new("kernel.rt", text)]);
    if program.has_errors() {
        return Err(Failure::Diagnostics(program.diagnostics().to_vec()).to_string());
    }
    let kernel = program.kernel(Some("kernel")).map_err(|e| e.to_string())?;
    let names: Vec<&str> = kernel.params.iter().map(|p| p.name.as_str()).collect();
    let args = Signature::parse(signature).and_then(|s| s.bind(&names)).map_err(|e| e.to_string())?;
    let spec = Spec { kernel: Some("kernel".into()), args, ..Spec::default() };
    let analysed = spec
        .specialize(&program)
        .and_then(|specialization| analyse(&program, &specialization, arch, String::new(), &mut Silent));
    analysed.map(|a| rtc_ir::text::print(&a.kernel)).map_err(|e| e.to_string())
}
