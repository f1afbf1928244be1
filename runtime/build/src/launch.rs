//! The text of a typed `launch`.

use crate::generate::{Built, BuiltSpecial, Embedded, doc, plain};
use crate::names::{argument, element, identifier};
use crate::{Error, error};
use rtc_abi::{Expr, Param, ParamType, ValueType};
use rtc_compiler::{ArgKind, ArgSpec, ConstValue, DType};
use std::fmt::{Result, Write};

/// The struct that tells a grid which configuration was taken; nothing if all have the same values.
pub(crate) fn write_config(out: &mut String, kernel: &Embedded) -> Result {
    let values = configured(kernel);
    if values.is_empty() {
        return Ok(());
    }
    writeln!(out, "    /// What a launch of `{}` was compiled with, for its grid.", kernel.name)?;
    writeln!(out, "    #[derive(Clone, Copy, Debug, PartialEq, Eq)]\n    pub struct {}Config {{", kernel.ty())?;
    for name in &values {
        writeln!(out, "        /// `{name}`\n        pub {}: u32,", field(name))?;
    }
    writeln!(out, "        /// Warps per program.\n        pub num_warps: u32,\n    }}\n")
}

/// The constexprs in which configurations differ.
pub(crate) fn configured(kernel: &Embedded) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let tuned: Vec<String> = kernel.cases.iter().flat_map(|c| &c.specials).flat_map(|s| s.sets.clone()).collect();
    for case in &kernel.cases {
        let Some(general) = case.specials.last() else { continue };
        let configurations = case.specials.iter().filter(|special| special.condition.is_some());
        for arg in configurations.flat_map(|special| &special.args) {
            let is_number = |arg: &ArgSpec| {
                matches!(arg.kind, ArgKind::Constexpr(ConstValue::Int(_)) | ArgKind::Constexpr(ConstValue::Bool(_)))
            };
            let other = general.args.iter().find(|a| a.name == arg.name && is_number(a));
            // Tuned values are not in the signature.
            let is_open = other.is_some_and(|other| other != arg) || tuned.contains(&arg.name);
            if is_number(arg) && is_open && !out.contains(&arg.name) {
                out.push(arg.name.clone());
            }
        }
    }
    out
}

fn field(name: &str) -> String {
    identifier(&name.to_lowercase())
}

pub(crate) fn number(special: &BuiltSpecial, name: &str) -> u32 {
    let arg = special.args.iter().find(|arg| arg.name == name);
    match arg.map(|arg| &arg.kind) {
        Some(ArgKind::Constexpr(ConstValue::Int(number))) => u32::try_from(*number).unwrap_or(0),
        Some(ArgKind::Constexpr(ConstValue::Bool(value))) => u32::from(*value),
        _ => 0,
    }
}

/// The method.
pub(crate) fn write_launch(out: &mut String, kernel: &Embedded) -> Result {
    let Some(general) = kernel.general() else { return Ok(()) };
    let (params, unproved, values) = (general.metadata.visible_params(), kernel.unproved(), configured(kernel));
    writeln!(out, "        /// Launches it; the call returns before the kernel has run.\n        ///")?;
    for param in params {
        write_param_doc(out, kernel, param, &format!("- `{}`: ", argument(&param.name)))?;
    }
    write_safety(out, &unproved)?;
    let words: &[&str] =
        if unproved.is_empty() { &["pub", "fn", "launch"] } else { &["pub", "unsafe", "fn", "launch_unchecked"] };
    let generic = if values.is_empty() { "" } else { ", G: Into<::rtc_runtime::Grid>" };
    writeln!(out, "        {}<'a{generic}>(", words.join(" "))?;
    writeln!(out, "            &self,\n            stream: &::rtc_runtime::Stream,")?;
    match values.is_empty() {
        true => writeln!(out, "            grid: impl Into<::rtc_runtime::Grid>,")?,
        false => writeln!(out, "            grid: impl FnOnce({}Config) -> G,", kernel.ty())?,
    }
    for param in params {
        writeln!(out, "            {}: {},", argument(&param.name), taken(kernel, param, "impl Into<", ">"))?;
    }
    writeln!(out, "        ) -> ::rtc_runtime::Result<()> {{")?;
    for param in params.iter().filter(|param| param.ty.is_pointer()) {
        let name = argument(&param.name);
        writeln!(out, "            let {name}: {} = {name}.into();", taken(kernel, param, "", ""))?;
    }
    let bodies = bodies(kernel);
    match differ(&bodies) {
        false => out.push_str(bodies.first().map_or("", String::as_str)),
        true => {
            writeln!(out, "            match self.case {{")?;
            for (number, body) in bodies.iter().enumerate() {
                let pattern = if number + 1 == bodies.len() { "_".to_owned() } else { number.to_string() };
                writeln!(out, "                {pattern} => {{")?;
                for line in body.lines() {
                    writeln!(out, "        {line}")?;
                }
                writeln!(out, "                }}")?;
            }
            writeln!(out, "            }}")?;
        }
    }
    writeln!(out, "        }}\n")
}

/// Of a method that is unsafe, why it is.
pub(crate) fn write_safety(out: &mut String, unproved: &[(String, String)]) -> Result {
    if unproved.is_empty() {
        return Ok(());
    }
    writeln!(out, "        ///\n        /// # Safety\n        ///")?;
    writeln!(out, "        /// What the kernel accesses must lie within the slices. That is not proved of")?;
    for (name, why) in unproved {
        writeln!(out, "        /// - `{name}`: {}", plain(why))?;
    }
    Ok(())
}

/// How each case chooses among its specializations.
fn bodies(kernel: &Embedded) -> Vec<String> {
    let Some(general) = kernel.general() else { return Vec::new() };
    let (params, values) = (general.metadata.visible_params(), configured(kernel));
    let body = |case: &Built| {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = write_dispatch(&mut out, kernel, &case.specials, params, &values);
        out
    };
    kernel.cases.iter().map(body).collect()
}

fn differ(bodies: &[String]) -> bool {
    bodies.iter().any(|body| body != &bodies[0])
}

/// Whether a launch must know which case it is of.
pub(crate) fn knows_case(kernel: &Embedded) -> bool {
    differ(&bodies(kernel))
}

fn write_dispatch(
    out: &mut String,
    kernel: &Embedded,
    specials: &[BuiltSpecial],
    params: &[Param],
    values: &[String],
) -> Result {
    let is_proved = kernel.unproved().is_empty();
    let method = if is_proved { "launch" } else { "launch_unchecked" };
    let last = specials.len() - 1;
    if last > 0 {
        writeln!(out, "            let chosen = match () {{")?;
        for (number, special) in specials[..last].iter().enumerate() {
            let fits = special.arch.as_ref().map_or(String::new(), |_| format!("self.tuned[{number}] && "));
            writeln!(out, "                _ if {fits}{} => {number},", guard(special, params))?;
        }
        writeln!(out, "                _ => {last},\n            }};")?;
        writeln!(out, "            match chosen {{")?;
    }
    for (index, special) in specials.iter().enumerate() {
        let metadata = &special.variants[0].metadata;
        let args: Vec<String> =
            metadata.visible_params().iter().map(|param| format!("{}.into()", argument(&param.name))).collect();
        let grid = match values.is_empty() {
            true => "grid".to_owned(),
            false => {
                let set: Vec<String> =
                    values.iter().map(|name| format!("{}: {}", field(name), number(special, name))).collect();
                let warps = special.options.num_warps;
                format!("grid({}Config {{ {}, num_warps: {warps} }})", kernel.ty(), set.join(", "))
            }
        };
        let call = format!("self.kernels[{index}].{method}(stream, {grid}, &[{}])", args.join(", "));
        let call = if is_proved { call } else { format!("unsafe {{ {call} }}") };
        match (last, index == last) {
            (0, _) => writeln!(out, "            {call}")?,
            (_, false) => writeln!(out, "                {index} => {call},")?,
            (_, true) => writeln!(out, "                _ => {call},\n            }}")?,
        }
    }
    Ok(())
}

/// What must hold of the arguments for a specialization.
fn guard(special: &BuiltSpecial, params: &[Param]) -> String {
    let own = special.variants[0].metadata.visible_params();
    let mut parts = Vec::new();
    for param in params {
        let name = argument(&param.name);
        match own.iter().find(|p| p.name == param.name) {
            None => parts.push(format!("{name} == 1")),
            Some(own) if own.divisible_by > param.divisible_by => {
                let value = if param.ty.is_pointer() { format!("{name}.address()") } else { name };
                parts.push(format!("i128::from({value}) % {} == 0", own.divisible_by));
            }
            Some(_) => {}
        }
    }
    let conditions = special.condition.iter().flat_map(|text| text.split("&&"));
    parts.extend(conditions.map(|text| condition(text, params).unwrap_or_else(|_| "false".into())));
    if parts.is_empty() { "true".into() } else { parts.join(" && ") }
}

/// Checks the condition of a configuration.
pub(crate) fn check_condition(text: &str, params: &[Param]) -> std::result::Result<(), Error> {
    text.split("&&").try_for_each(|part| condition(part, params).map(|_| ()))
}

/// A comparison of sums of integer arguments, in Rust.
fn condition(text: &str, params: &[Param]) -> std::result::Result<String, Error> {
    let (left, operator, right) = sides(text, params)?;
    let in_rust = |expr: &Expr| {
        let name = |name: &str| format!("i128::from({})", argument(name));
        expr.written(|number| number.to_string(), name, |op, a, b| format!("({a} {op} {b})"))
    };
    Ok(format!("{} {operator} {}", in_rust(&left), in_rust(&right)))
}

/// The sides of a comparison and its operator.
pub(crate) fn sides(text: &str, params: &[Param]) -> std::result::Result<(Expr, &'static str, Expr), Error> {
    let fail = |why: &str| error(format!("the condition `{}` {why}", text.trim()));
    let operator = [">=", "<=", "==", "!=", ">", "<"].into_iter().find(|operator| text.contains(operator));
    let operator = operator.ok_or_else(|| fail("has no comparison"))?;
    let (left, right) = text.split_once(operator).unwrap_or_default();
    let read = |side: &str| {
        let side = side.trim();
        if side.contains(['/', '%', ',']) {
            return Err(fail("has more than sums and products"));
        }
        let expr: Expr = side.parse().map_err(|e: rtc_abi::expr::ParseError| fail(&format!("cannot be read: {e}")))?;
        let is_integer = |name: &String| params.iter().any(|p| p.name == *name && p.ty.is_integer());
        match expr.names().iter().find(|name| !is_integer(name)) {
            Some(name) => Err(fail(&format!("names `{name}`, which is no integer argument"))),
            None => Ok(expr),
        }
    };
    Ok((read(left)?, operator, read(right)?))
}

/// The Rust type of a parameter; `open` and `close` stand around that of a pointer.
pub(crate) fn taken(kernel: &Embedded, param: &Param, open: &str, close: &str) -> String {
    match &param.ty {
        ParamType::Value(ValueType::Scalar(dtype)) => match dtype {
            DType::UInt1 => "bool",
            DType::Fp64 => "f64",
            dtype if dtype.is_integer() => dtype.name(),
            _ => "f32",
        }
        .into(),
        ParamType::Value(ValueType::Pointer { pointee, .. }) => {
            let axis = kernel.typed.iter().position(|names| names.contains(&param.name));
            let own = axis.map(|axis| identifier(&kernel.axes[axis].name)).or(element(*pointee).map(String::from));
            let slice = if kernel.writes(&param.name) { "SliceMut" } else { "Slice" };
            match own {
                Some(own) => format!("{open}::rtc_runtime::{slice}<'a, {own}>{close}"),
                None => format!("{open}::rtc_runtime::{slice}<'a, u8>{close}"),
            }
        }
        // The launch refuses every other value, with the reason.
        ParamType::Descriptor { .. } | ParamType::TensorMap => "impl Into<::rtc_runtime::Arg<'a>>".into(),
    }
}

/// One line on a parameter: what is promised of it, what is done with it, and its comment in the source.
pub(crate) fn write_param_doc(out: &mut String, kernel: &Embedded, param: &Param, before: &str) -> Result {
    let axis = kernel.typed.iter().position(|names| names.contains(&param.name));
    let mut parts = vec![match axis {
        Some(axis) => format!("`*{}`", kernel.axes[axis].name),
        None => format!("`{}`", param.ty),
    }];
    if param.divisible_by > 1 {
        let what = if param.ty.is_pointer() { "its address is" } else { "it is" };
        parts.push(format!("{what} a multiple of {}", param.divisible_by));
    }
    if param.ty.is_pointer() {
        parts.push(if kernel.writes(&param.name) { "written".into() } else { "read".into() });
        parts.extend(param.extent.as_ref().map(|extent| format!("at most `{extent}` elements")));
    }
    let words = kernel.info.params.iter().find(|p| p.name == param.name).map_or("", |p| p.doc.as_str());
    let words = if words.is_empty() { String::new() } else { format!("; {words}") };
    doc(out, 2, &format!("{before}{}{words}", parts.join(", ")))
}
