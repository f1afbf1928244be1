//! Cases in the kernel language: `tests/filetests/language/*.rt`. The README there says how a case is written.
//!
//! A case is compiled as far as tile IR for each target; from there on it is judged as the kernels of `central/` are,
//! and by its expected values in every stage.

use rtc_compiler::{
    ArgKind, ArgSpec, DType, Failure, LaunchOptions, Observer, Program, Signature, Source, Spec, ValueType,
};
use rtc_ir::{Kernel, Literal, Scalar};
use rtc_source::json_fields::{self, Field};
use rtc_source::{Diagnostic, render};

use crate::case::{Argument, Case, POISON};
use crate::inputs::Further;
use crate::{data, judge, planted};

/// One case of a file.
pub struct Part {
    /// Its name.
    pub name: String,
    /// The file with all other cases blanked out, so that lines keep their numbers.
    pub source: String,
    /// The text before the kernel, without `# `; continuation lines are joined.
    header: Vec<String>,
}

impl Part {
    /// The same case of another kernel.
    pub fn with_source(&self, name: String, source: String) -> Part {
        Part { name, source, header: self.header.clone() }
    }
}

/// The cases of a file: each starts at `# case NAME` and has the lines before the first case as its own.
pub fn split(text: &str) -> Vec<Part> {
    let lines: Vec<&str> = text.lines().collect();
    let mut starts: Vec<usize> = (0..lines.len()).filter(|i| lines[*i].starts_with("# case ")).collect();
    starts.push(lines.len());
    let parts = starts.windows(2).map(|range| {
        let (from, to) = (range[0], range[1]);
        let kept = |i: usize| if i < starts[0] || (from..to).contains(&i) { lines[i] } else { "" };
        let source: Vec<&str> = (0..lines.len()).map(kept).collect();
        let mut header: Vec<String> = Vec::new();
        for line in lines[from..to].iter().map_while(|l| l.strip_prefix('#')) {
            match header.last_mut() {
                Some(last) if line.starts_with("   ") => last.push_str(&format!(" {}", line.trim())),
                _ => header.push(line.trim().to_string()),
            }
        }
        let name = lines[from].trim_start_matches("# case ").split(':').next().unwrap_or_default();
        Part { name: name.trim().to_string(), source: source.join("\n"), header }
    });
    parts.collect()
}

/// A case with what the analysis needs of it.
struct Asked {
    case: Case,
    args: Vec<ArgSpec>,
    options: LaunchOptions,
    /// The output of `static_print`, if the case has one.
    static_prints: Option<Vec<String>>,
}

/// Runs a case through all stages.
pub fn check(part: &Part, file: &str) -> Result<(), String> {
    check_asked(Asked::read(part)?, part, file, &mut || None)
}

/// The same with more inputs, those of cases with the same kernel, and in some of the structures.
pub fn check_all(
    part: &Part,
    more: &[Part],
    further: &mut dyn FnMut() -> Option<Part>,
    sample: u64,
    file: &str,
) -> Result<(), String> {
    let mut asked = Asked::read(part)?;
    asked.case.more = more.iter().map(|part| Ok(Asked::read(part)?.case)).collect::<Result<_, String>>()?;
    asked.case.sample = Some(sample);
    check_asked(asked, part, file, &mut || Some(Asked::read(&further()?).map(|asked| asked.case)))
}

/// The arguments of a case.
pub fn arguments(part: &Part) -> Result<Vec<(String, Argument)>, String> {
    Ok(Asked::read(part)?.case.args)
}

/// The kernel of a case for a target, with what it is launched with.
pub fn made(part: &Part, file: &str, target: &str) -> Result<(Program, Kernel, Case), String> {
    let asked = Asked::read(part)?;
    let program = Program::parse(&[Source::new(file, part.source.as_str())]);
    if program.has_errors() {
        return Err(rendered(program.diagnostics(), &program));
    }
    let kernel = program.kernels().last().ok_or("the case has no `@triton.jit` function")?.name.clone();
    let spec = Spec { kernel: Some(kernel), args: asked.args, options: asked.options, arch: None };
    let specialization = spec.specialize(&program).map_err(|e| e.to_string())?;
    let analysed = rtc_compiler::analyse(&program, &specialization, target, String::new(), &mut Lines::default());
    let kernel = analysed.map_err(|e| e.to_string())?.kernel;
    Ok((program, kernel, asked.case))
}

fn check_asked(asked: Asked, part: &Part, file: &str, further: Further<'_>) -> Result<(), String> {
    let program = Program::parse(&[Source::new(file, part.source.as_str())]);
    if program.has_errors() {
        return Err(rendered(program.diagnostics(), &program));
    }
    let kernel = program.kernels().last().ok_or("the case has no `@triton.jit` function")?.name.clone();
    let spec = Spec { kernel: Some(kernel), args: asked.args, options: asked.options, arch: None };
    let specialization = spec.specialize(&program).map_err(|e| e.to_string())?;
    let make = |target: &str, warps: Option<u32>| -> Result<Kernel, String> {
        let mut specialization = specialization.clone();
        specialization.options.num_warps = warps.unwrap_or(specialization.options.num_warps);
        let mut lines = Lines::default();
        let analysed = rtc_compiler::analyse(&program, &specialization, target, String::new(), &mut lines);
        let analysed = analysed.map_err(|failure| match failure {
            Failure::Diagnostics(list) => rendered(&list, &program),
            other => other.to_string(),
        })?;
        match &asked.static_prints {
            Some(wanted) if *wanted != lines.0 => Err(format!("static_print gives {:?}", lines.0)),
            _ => Ok(analysed.kernel),
        }
    };
    judge::check_made(&asked.case, &make, program.sources(), further)
}

fn rendered(list: &[Diagnostic], program: &Program) -> String {
    list.iter().map(|d| render(program.sources(), d, false)).collect::<Vec<String>>().join("\n")
}

/// The lines of `static_print`.
#[derive(Default)]
struct Lines(Vec<String>);

impl Observer for Lines {
    fn static_print(&mut self, line: &str) {
        self.0.push(line.to_string());
    }
}

impl Asked {
    fn read(part: &Part) -> Result<Asked, String> {
        let case = Case { values_within: true, ..Case::default() };
        let mut asked = Asked { case, args: Vec::new(), options: LaunchOptions::default(), static_prints: None };
        let (mut free, mut is_agreed) = (Vec::new(), false);
        for line in &part.header {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let read = match word {
                "case" | "note" | "numpy" => Ok(()),
                "agreed" => {
                    is_agreed = true;
                    Ok(())
                }
                "arg" => asked.arg(rest),
                "expect" => asked.expect(rest),
                "option" => asked.option(rest),
                "any" => {
                    free.extend(rest.split(' ').map(str::to_string));
                    Ok(())
                }
                "static_print" => {
                    asked.static_prints.get_or_insert_default().push(rest.to_string());
                    Ok(())
                }
                "grid" | "warps" | "tolerance" | "print" | "only" | "fault:" | "finding:" | "not" | "spills"
                | "reports" | "shape" => asked.case.line(word, rest),
                _ => Err("no header line begins so".to_string()),
            };
            read.map_err(|e| format!("`{line}`: {e}"))?;
        }
        let case = &mut asked.case;
        if part.source.contains(planted::MARK) {
            (case.marks, case.interpreted, case.may_spill) = (Some(planted::marks(&part.source)), false, true);
            return Ok(asked);
        }
        if is_agreed {
            return Ok(asked);
        }
        if case.expects.is_empty() && case.prints.is_empty() && case.fault.is_none() && asked.static_prints.is_none() {
            return Err("nothing is expected of it".to_string());
        }
        // Tensors without an expectation must be unchanged.
        for (name, arg) in &case.args {
            let Argument::Tensor { scalar, bytes, .. } = arg else { continue };
            if case.fault.is_none() && !free.contains(name) && !case.expects.iter().any(|(n, ..)| n == name) {
                case.expects.push((name.clone(), *scalar, bytes.clone()));
            }
        }
        Ok(asked)
    }

    /// `NAME = TYPE CONTENT`, or `NAME = VALUE` for constants.
    fn arg(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text.split_once(" = ").ok_or("NAME = TYPE CONTENT")?;
        let (entry, content) = value.split_once(' ').unwrap_or((value, ""));
        let plain = entry.split(':').next().unwrap_or_default();
        let kind = match ValueType::parse(plain) {
            Some(ty) if entry != "i32:1" => {
                let divisible_by = match entry.split_once(':') {
                    Some((_, by)) => Some(by.parse().map_err(|_| "no number after `:`")?),
                    None => None,
                };
                let arg = match ty {
                    ValueType::Scalar(_) => Argument::Number(data::literal(content)?),
                    ValueType::Pointer { pointee, .. } => tensor(scalar_of(pointee), content, name)?,
                };
                self.case.args.push((name.to_string(), arg));
                ArgKind::Value { ty, divisible_by }
            }
            _ if entry.starts_with("tensordesc<") => self.descriptor(name, entry, content)?,
            _ => kind_of(name, value)?,
        };
        match name.split_once('.') {
            None => self.args.push(ArgSpec { name: name.to_string(), kind }),
            Some((root, field)) => self.element(root, field, kind),
        }
        Ok(())
    }

    /// Adds an element to a tuple argument; fields that are numbers are places.
    fn element(&mut self, root: &str, field: &str, kind: ArgKind) {
        if self.args.last().is_none_or(|a| a.name != root) {
            let fields = field.parse::<usize>().is_err().then(Vec::new);
            self.args.push(ArgSpec { name: root.to_string(), kind: ArgKind::Tuple { items: Vec::new(), fields } });
        }
        if let Some(ArgSpec { kind: ArgKind::Tuple { items, fields }, .. }) = self.args.last_mut() {
            items.push(kind);
            if let Some(names) = fields {
                names.push(field.to_string());
            }
        }
    }

    /// A descriptor made by the host: `tensordesc<fp16[4,8]> 16x32 CONTENT`, rows without gaps, padded with zeros.
    fn descriptor(&mut self, name: &str, entry: &str, content: &str) -> Result<ArgKind, String> {
        let kind = kind_of(name, entry)?;
        let ArgKind::Descriptor { element, .. } = &kind else { return Err("no descriptor".to_string()) };
        let (shape, content) = content.split_once(' ').ok_or("SHAPE CONTENT")?;
        let sizes: Vec<i64> = shape.split('x').filter_map(|s| s.parse().ok()).collect();
        let number = |n: i64| Argument::Number(Literal::Int(n));
        let args = &mut self.case.args;
        args.push((format!("{name}.base"), tensor(scalar_of(*element), content, name)?));
        for (i, size) in sizes.iter().enumerate() {
            args.push((format!("{name}.shape.{i}"), number(*size)));
            args.push((format!("{name}.strides.{i}"), number(sizes[i + 1..].iter().product())));
        }
        args.push((format!("{name}.padding"), number(0)));
        Ok(kind)
    }

    fn expect(&mut self, text: &str) -> Result<(), String> {
        let (name, content) = text.split_once(" = ").ok_or("NAME = CONTENT")?;
        let scalar = self.case.args.iter().find_map(|(n, arg)| match arg {
            Argument::Tensor { scalar, .. } if n == name => Some(*scalar),
            _ => None,
        });
        let scalar = scalar.ok_or("there is no such tensor")?;
        self.case.expects.push((name.to_string(), scalar, data::content(scalar, content, name)?));
        Ok(())
    }

    fn option(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text.split_once(" = ").ok_or("NAME = VALUE")?;
        let value = json_fields::parse(value).map_err(|e| e.message)?;
        rtc_compiler::set_option(&mut self.options, name, &Field::root(&value)).map_err(|e| e.message)
    }
}

/// An entry of a signature.
fn kind_of(name: &str, entry: &str) -> Result<ArgKind, String> {
    let name = name.split('.').next().unwrap_or_default();
    let signature = Signature::parse(&format!("{name}={entry}")).map_err(|e| e.to_string())?;
    let bound = signature.bind(&[name]).map_err(|e| e.to_string())?;
    bound.into_iter().next().map(|arg| arg.kind).ok_or_else(|| "no entry".to_string())
}

fn tensor(scalar: Scalar, content: &str, name: &str) -> Result<Argument, String> {
    if let Some(count) = content.strip_prefix("uninit ") {
        let count: usize = count.trim().parse().map_err(|_| "a count")?;
        let bytes = vec![POISON; count * scalar.bytes() as usize];
        return Ok(Argument::Tensor { scalar, bytes, written: false });
    }
    Ok(Argument::Tensor { scalar, bytes: data::content(scalar, content, name)?, written: true })
}

fn scalar_of(dtype: DType) -> Scalar {
    match dtype {
        DType::UInt1 => Scalar::I1,
        DType::Int8 | DType::UInt8 => Scalar::I8,
        DType::Int16 | DType::UInt16 => Scalar::I16,
        DType::Int32 | DType::UInt32 => Scalar::I32,
        DType::Int64 | DType::UInt64 => Scalar::I64,
        DType::Fp8E5 | DType::Fp8E5B16 => Scalar::F8E5,
        DType::Fp8E4Nv | DType::Fp8E4B8 => Scalar::F8E4,
        DType::Fp8E4B15 => Scalar::F8E4B15,
        DType::Fp16 => Scalar::F16,
        DType::Bf16 => Scalar::BF16,
        DType::Fp32 => Scalar::F32,
        DType::Fp64 => Scalar::F64,
    }
}
