//! The text of `launch_args`, a launch whose arguments have names, and of the struct that it takes.
//!
//! A list of sizes and strides is easily put in the wrong order, and all of them are integers. Each pointer is a type parameter of the
//! struct, so that a field takes what `launch` takes: `&buffer`, `&mut buffer` or a slice.

use crate::generate::Embedded;
use crate::launch::{configured, taken, write_param_doc, write_safety};
use crate::names::{argument, type_name};
use rtc_abi::{Param, ParamType, ValueType};
use std::fmt::{Result, Write};

/// The names of the structs of all kernels of a module; none where a kernel takes no arguments.
pub(crate) fn names(kernels: &[Embedded]) -> Vec<Option<String>> {
    let mut used: Vec<String> = kernels.iter().flat_map(Embedded::type_names).collect();
    let name = |kernel: &Embedded| {
        kernel.general().filter(|general| !general.metadata.visible_params().is_empty())?;
        let name = unused(format!("{}Args", kernel.ty()), &used);
        used.push(name.clone());
        Some(name)
    };
    kernels.iter().map(name).collect()
}

/// The name, with as many `_` as make it another one than these.
fn unused(mut name: String, used: &[String]) -> String {
    while used.contains(&name) {
        name.push('_');
    }
    name
}

fn is_number(param: &Param) -> bool {
    matches!(param.ty, ParamType::Value(ValueType::Scalar(_)))
}

/// The type parameter of each parameter that is no number.
fn type_parameters(params: &[Param]) -> Vec<Option<String>> {
    let mut used = Vec::new();
    let name = |param: &Param| {
        let name = (!is_number(param)).then(|| unused(type_name(&param.name), &used));
        used.extend(name.clone());
        name
    };
    params.iter().map(name).collect()
}

/// The struct.
pub(crate) fn write_struct(out: &mut String, kernel: &Embedded, name: &str) -> Result {
    let Some(general) = kernel.general() else { return Ok(()) };
    let params = general.metadata.visible_params();
    let types = type_parameters(params);
    let generics: Vec<&str> = types.iter().flatten().map(String::as_str).collect();
    let generics = if generics.is_empty() { String::new() } else { format!("<{}>", generics.join(", ")) };
    writeln!(
        out,
        "    /// The arguments of a launch of `{}`, for [`{}::{}`].",
        kernel.name,
        kernel.ty(),
        method(kernel)
    )?;
    writeln!(out, "    #[derive(Clone, Copy, Debug)]\n    pub struct {name}{generics} {{")?;
    for (param, ty) in params.iter().zip(&types) {
        write_param_doc(out, kernel, param, "")?;
        let ty = ty.clone().unwrap_or_else(|| taken(kernel, param, "", ""));
        writeln!(out, "        pub {}: {ty},", argument(&param.name))?;
    }
    writeln!(out, "    }}\n")
}

/// The method.
pub(crate) fn write_method(out: &mut String, kernel: &Embedded, name: &str) -> Result {
    let Some(general) = kernel.general() else { return Ok(()) };
    let (params, unproved) = (general.metadata.visible_params(), kernel.unproved());
    let (method, called) = (method(kernel), if unproved.is_empty() { "launch" } else { "launch_unchecked" });
    writeln!(out, "        /// [`Self::{called}`] with arguments by name.")?;
    write_safety(out, &unproved)?;
    let has_config = !configured(kernel).is_empty();
    let words: &[&str] = if unproved.is_empty() { &["pub", "fn"] } else { &["pub", "unsafe", "fn"] };
    let words = words.join(" ");
    let generic = if has_config { ", G: Into<::rtc_runtime::Grid>" } else { "" };
    writeln!(out, "        {words} {method}<'a{generic}>(")?;
    writeln!(out, "            &self,\n            stream: &::rtc_runtime::Stream,")?;
    match has_config {
        false => writeln!(out, "            grid: impl Into<::rtc_runtime::Grid>,")?,
        true => writeln!(out, "            grid: impl FnOnce({}Config) -> G,", kernel.ty())?,
    }
    let types: Vec<String> =
        params.iter().filter(|param| !is_number(param)).map(|param| taken(kernel, param, "impl Into<", ">")).collect();
    let types = if types.is_empty() { String::new() } else { format!("<{}>", types.join(", ")) };
    writeln!(out, "            args: {name}{types},")?;
    writeln!(out, "        ) -> ::rtc_runtime::Result<()> {{")?;
    let fields: Vec<String> = params.iter().map(|param| format!("args.{}", argument(&param.name))).collect();
    let call = format!("self.{called}(stream, grid, {})", fields.join(", "));
    let call = if unproved.is_empty() { call } else { format!("unsafe {{ {call} }}") };
    writeln!(out, "            {call}")?;
    writeln!(out, "        }}\n")
}

/// What the method is called.
fn method(kernel: &Embedded) -> &'static str {
    if kernel.unproved().is_empty() { "launch_args" } else { "launch_args_unchecked" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_taken_are_not_given_again() {
        let used = ["AddArgs", "AddArgs_"].map(String::from);
        assert_eq!(unused("AddArgs".into(), &used), "AddArgs__");
        assert_eq!(unused("MulArgs".into(), &used), "MulArgs");
    }
}
