//! Examples: fenced blocks of Python are compiled, and run if they have results.
//!
//! A block whose lines begin with `>>>` has expressions and statements of a kernel; the results are below, as [`fill`]
//! writes them. Groups between empty lines are kernels of their own. A last line that ends with `# refused` must be an
//! error; one with `# not run` is compiled only. Any other block is a file with a function `kernel`, and its comments
//! specify the compilation: `# signature: *fp32, 128` and, if it must be an error, `# refused: CODE`.

use std::fmt::Write as _;

use rtc_ir::interp::{ArgValue, HostMemory, LaunchConfig, RunOptions, run};
use rtc_sema::spec::{ArgKind, ArgSpec, ValueType};

use crate::kernels;

/// The variables of every example. The pages list the same in `docs/language/README.md`.
const SETUP: &str = "@triton.jit
def add(a, b):
    return a + b

@triton.jit
def multiply(a, b):
    return a * b

@triton.jit
def kernel(x, y, k, n):
";

/// Types of `x`, `y`, `k`, `n`.
const TYPES: [(&str, &str); 4] = [("x", "*fp32"), ("y", "*fp32"), ("k", "*i32"), ("n", "i32")];
/// Elements behind each pointer.
const ELEMENTS: u32 = 64;
/// The most elements that are shown.
const SHOWN: usize = 64;
/// Marks the lines that show a result.
const MARK: &str = "@@";

/// A page with its blocks checked and the results of examples filled in; errors are added to `wrong`.
pub fn fill(page: &str, text: &str, wrong: &mut Vec<String>) -> String {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if line != "```python" {
            continue;
        }
        let block: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
        if block.first().is_some_and(|l| l.starts_with(">>>")) {
            out.push_str(&filled(page, &block, wrong));
        } else {
            if let Err(why) = check_file(&block) {
                wrong.push(format!("docs/{page}: {why}"));
            }
            block.iter().for_each(|l| writeln!(out, "{l}").expect("writes to memory"));
        }
        out.push_str("```\n");
    }
    out
}

fn filled(page: &str, block: &[&str], wrong: &mut Vec<String>) -> String {
    let mut groups: Vec<Vec<String>> = vec![Vec::new()];
    let mut fresh = true;
    for line in block {
        match line.strip_prefix(">>>") {
            Some(code) => {
                // Code after results begins a new group.
                if !fresh {
                    groups.push(Vec::new());
                    fresh = true;
                }
                groups.last_mut().expect("there is one").push(code.strip_prefix(' ').unwrap_or(code).to_string());
            }
            None => fresh = false,
        }
    }
    let drawn: Vec<String> = groups
        .iter()
        .map(|group| {
            let results = results(group).unwrap_or_else(|why| {
                wrong.push(format!("docs/{page}: {}:\n{why}", group.join("\n")));
                Vec::new()
            });
            let code = group.iter().map(|l| format!(">>> {l}\n"));
            code.chain(results.iter().map(|l| format!("{l}\n"))).collect()
        })
        .collect();
    drawn.join("\n")
}

fn check_file(block: &[&str]) -> Result<(), String> {
    let text = block.join("\n") + "\n";
    let directive = |name: &str| block.iter().find_map(|l| l.strip_prefix(&format!("# {name}: ")));
    if directive("signature").is_none() {
        return Err(format!("nothing checks this; say `# signature: ...`, or fence it as text:\n{text}"));
    }
    let outcome = kernels::compile_file("example.rt", &text);
    let rendered = outcome.rendered.join("\n");
    match directive("refused") {
        Some(_) if outcome.accepted => Err(format!("accepted, but should be refused:\n{text}")),
        Some(code) if !rendered.contains(&format!("error[{code}]")) => {
            Err(format!("not `{code}`:\n{text}\n{rendered}"))
        }
        None if !outcome.accepted => Err(format!("{text}\n{rendered}")),
        _ => Ok(()),
    }
}

/// The lines that an example gives.
fn results(code: &[String]) -> Result<Vec<String>, String> {
    let (last, before) = code.split_last().ok_or("an empty example")?;
    if before.iter().any(|line| line.contains("# refused")) {
        return Err("only the last line can be refused: leave a line empty before the next example".into());
    }
    let (last, refused) = match last.split_once("# refused") {
        Some((code, _)) => (code.trim_end(), true),
        None => (last.as_str(), false),
    };
    if let Some((code, _)) = last.split_once("# not run") {
        let (analysis, rendered) = compiled(before, &[format!("tl.static_print({})", code.trim_end())]);
        return analysis.map(|a| a.prints).ok_or(rendered.unwrap_or_default());
    }
    if refused {
        let (_, rendered) = compiled(before, &[last.to_string()]);
        return match rendered {
            // The code alone: words of messages change.
            Some(text) => Ok(vec![text.split("]: ").next().map_or(String::new(), |code| format!("{code}]"))]),
            None => Err("should be refused".into()),
        };
    }
    if !is_expression(last) {
        return outcome(before, &[last.to_string()]).map(|o| o.printed);
    }
    // The kind decides how it is shown.
    let look = |text: String| {
        let (analysis, rendered) = compiled(before, &[text]);
        analysis.ok_or(rendered.unwrap_or_default())
    };
    let analysis = look(format!("tl.static_print({last})"))?;
    let shown = analysis.prints.last().ok_or("prints nothing")?.clone();
    let kind = format!("isinstance({last}, tl.tensor), len({last}) if isinstance({last}, tl.tuple) else -1");
    let kind = look(format!("tl.static_print({kind})"))?.prints.pop().unwrap_or_default();
    let (is_tensor, count) = kind.split_once(' ').unwrap_or(("", "-1"));
    let count: i64 = count.parse().unwrap_or(-1);
    let told = rtc_source::Levels::default().apply(analysis.warnings.clone());
    let warnings = told.iter().map(|d| format!("warning[{}]", d.code));
    let mut lines: Vec<String> = warnings.collect();
    lines.dedup();
    let types: Vec<String> = if is_tensor == "True" {
        vec![shown.clone()]
    } else if count > 0 && shown.contains('[') {
        split_types(&shown)
    } else {
        let out = outcome(before, &[last.to_string()])?;
        lines.extend(out.printed);
        if shown != "None" {
            lines.push(shown.clone());
        }
        return Ok(lines);
    };
    let mut show = vec![format!("shown = {last}")];
    if is_tensor == "True" {
        show.push(format!("tl.device_print(\"{MARK}\", shown, hex=True)"));
    } else {
        show.extend((0..types.len()).map(|i| format!("tl.device_print(\"{MARK}{i} \", shown[{i}], hex=True)")));
    }
    let outcome = outcome(before, &show)?;
    lines.extend(outcome.printed);
    for (i, ty) in types.iter().enumerate() {
        let mark = if is_tensor == "True" { format!(" {MARK}:") } else { format!(" {MARK}{i}:") };
        let values = outcome.values.iter().filter(|l| l.contains(&mark)).filter_map(|l| l.rsplit("0x").next());
        let values: Vec<u64> = values.filter_map(|v| u64::from_str_radix(v.trim(), 16).ok()).collect();
        lines.push(drawn(ty, &values));
    }
    Ok(lines)
}

/// Whether the line is an expression, and not another statement.
fn is_expression(line: &str) -> bool {
    let (module, findings) = rtc_syntax::parse(rtc_source::FileId(0), &format!("{line}\n"));
    let only = module.body.first().map(|s| &s.kind);
    findings.is_empty() && matches!(only, Some(rtc_syntax::ast::StmtKind::Expr(_)))
}

struct Run {
    /// The output of the example itself.
    printed: Vec<String>,
    /// The lines that show its result.
    values: Vec<String>,
}

fn source(before: &[String], last: &[String]) -> String {
    let mut text = String::from(SETUP);
    for line in before.iter().chain(last) {
        writeln!(text, "    {line}").expect("writes to memory");
    }
    text
}

fn compiled(before: &[String], last: &[String]) -> (Option<rtc_sema::Analysis>, Option<String>) {
    let args = |_: &[String]| {
        let spec = |(name, ty): (&str, &str)| {
            let ty = ValueType::parse(ty).expect("a type");
            ArgSpec { name: name.into(), kind: ArgKind::Value { ty, divisible_by: None } }
        };
        TYPES.map(spec).to_vec()
    };
    let (sources, result) = kernels::analyse("example.rt", &source(before, last), "kernel", args, 90);
    match result {
        Ok(analysis) => (Some(analysis), None),
        Err(findings) => {
            let text: Vec<String> = findings.iter().map(|d| rtc_source::render(&sources, d, false)).collect();
            (None, Some(text.join("\n")))
        }
    }
}

/// Compiles and runs one program.
fn outcome(before: &[String], last: &[String]) -> Result<Run, String> {
    let (analysis, rendered) = compiled(before, last);
    let analysis = analysis.ok_or(rendered.unwrap_or_default())?;
    let mut memory = HostMemory::new();
    let floats: Vec<u8> = (0..ELEMENTS).flat_map(|i| (i as f32 / 2.0).to_le_bytes()).collect();
    let zeros = vec![0; 4 * ELEMENTS as usize];
    let args = vec![
        ArgValue::Pointer(memory.alloc("x", floats)),
        ArgValue::Pointer(memory.alloc("y", zeros.clone())),
        ArgValue::Pointer(memory.alloc("k", zeros)),
        ArgValue::Int(5),
    ];
    let kernel = rtc_ir::verify(&analysis.kernel).map_err(|errors| format!("{errors:?}"))?;
    let launch = LaunchConfig { grid: [1, 1, 1], args };
    let report = run(kernel, &mut memory, &launch, &RunOptions::default()).map_err(|fault| format!("{fault:?}"))?;
    if !report.findings.is_empty() {
        return Err(format!("{:?}", report.findings));
    }
    let lines = report.printed.lines().map(str::to_string);
    let (values, device): (Vec<String>, Vec<String>) = lines.partition(|l| l.contains(MARK));
    let mut printed = analysis.prints;
    printed.extend(device);
    Ok(Run { printed, values })
}

/// The types in `(int32[2], fp32[])`.
fn split_types(text: &str) -> Vec<String> {
    let inner = text.trim_start_matches('(').trim_end_matches(')').trim_end_matches(',');
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for c in inner.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("there is one").push(c);
    }
    parts.iter().map(|p| p.trim().to_string()).collect()
}

/// `int32[2, 2]: [[1, 2], [3, 4]]`.
fn drawn(ty: &str, bits: &[u64]) -> String {
    let (elem, dims) = ty.split_once('[').unwrap_or((ty, "]"));
    let dims: Vec<usize> = dims.trim_end_matches(']').split(", ").filter_map(|d| d.parse().ok()).collect();
    let name = if dims.is_empty() { elem } else { ty };
    let count: usize = dims.iter().product();
    if count > SHOWN || bits.len() != count {
        return name.to_string();
    }
    let mut level: Vec<String> = bits.iter().map(|b| number(elem, *b)).collect();
    for size in dims.iter().rev() {
        level = level.chunks((*size).max(1)).map(|chunk| format!("[{}]", chunk.join(", "))).collect();
    }
    format!("{name}: {}", level.join(""))
}

/// A number by its type and bits; floats with six digits.
fn number(elem: &str, bits: u64) -> String {
    match elem {
        "int1" => if bits & 1 == 1 { "True" } else { "False" }.to_string(),
        "int8" => (bits as i8).to_string(),
        "int16" => (bits as i16).to_string(),
        "int32" => (bits as i32).to_string(),
        "int64" => (bits as i64).to_string(),
        "fp16" => float(half::f16::from_bits(bits as u16).to_f64()),
        "bf16" => float(half::bf16::from_bits(bits as u16).to_f64()),
        "fp32" => float(f64::from(f32::from_bits(bits as u32))),
        "fp64" => float(f64::from_bits(bits)),
        _ => bits.to_string(),
    }
}

fn float(x: f64) -> String {
    if !x.is_finite() {
        return x.to_string().to_lowercase();
    }
    if x == x.trunc() && x.abs() < 1e7 {
        return format!("{x:.1}");
    }
    let (digits, exponent) =
        format!("{x:.5e}").split_once('e').map(|(d, e)| (d.to_string(), e.parse().unwrap_or(0))).unwrap_or_default();
    if (-5..7).contains(&exponent) {
        let places = usize::try_from(5 - exponent).unwrap_or(0);
        let text = format!("{x:.places$}");
        let text = text.trim_end_matches('0');
        return if text.ends_with('.') { format!("{text}0") } else { text.to_string() };
    }
    format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'))
}
