//! The text of the Rust module for one source file.
//!
//! Per kernel a function that loads it and a struct with a typed `launch`. PTX and metadata stand in files beside the
//! module and are included as text.

use crate::expand::{Axis, AxisKind};
use crate::names::{argument, identifier, type_name};
use crate::{launch, named};
use rtc_abi::Access;
use rtc_abi::spec::{ArgSpec, LaunchOptions};
use rtc_compiler::{Artifact, KernelInfo};
use std::fmt::{Result, Write};

/// A kernel with everything that it was compiled for.
pub(crate) struct Embedded {
    /// Name of the Rust function.
    pub(crate) name: String,
    /// What the source says of it.
    pub(crate) info: KernelInfo,
    /// The signature that it was compiled for.
    pub(crate) signature: String,
    /// What its cases differ in.
    pub(crate) axes: Vec<Axis>,
    /// For each axis the parameters that point to its type.
    pub(crate) typed: Vec<Vec<String>>,
    /// At least one.
    pub(crate) cases: Vec<Built>,
}

/// One case: a choice along every axis.
pub(crate) struct Built {
    pub(crate) picks: Vec<usize>,
    /// At least one; the general one is last.
    pub(crate) specials: Vec<BuiltSpecial>,
}

/// One specialization of a case.
pub(crate) struct BuiltSpecial {
    /// The condition under which a launch takes it.
    pub(crate) condition: Option<String>,
    pub(crate) args: Vec<ArgSpec>,
    pub(crate) options: LaunchOptions,
    /// The target that it is for alone; the others take the next one that fits.
    pub(crate) arch: Option<String>,
    /// The parameters that a tuning has set.
    pub(crate) sets: Vec<String>,
    /// One per target; all have the same parameters.
    pub(crate) variants: Vec<Artifact>,
    /// Machine code of each; empty if none is wanted.
    pub(crate) cubins: Vec<Vec<u8>>,
    /// The files without target and ending.
    pub(crate) stem: String,
}

impl Embedded {
    /// Whether some specialization is for one target alone.
    pub(crate) fn has_tuned(&self) -> bool {
        self.cases.iter().flat_map(|case| &case.specials).any(|special| special.arch.is_some())
    }

    /// All that was compiled.
    pub(crate) fn artifacts(&self) -> impl Iterator<Item = &Artifact> {
        self.cases.iter().flat_map(|case| &case.specials).flat_map(|special| &special.variants)
    }

    /// The general form for the first target: it has all parameters.
    pub(crate) fn general(&self) -> Option<&Artifact> {
        self.cases.first()?.specials.last()?.variants.first()
    }

    /// Whether some variant may write behind a parameter.
    pub(crate) fn writes(&self, param: &str) -> bool {
        let mut params = self.artifacts().flat_map(|a| a.metadata.visible_params()).filter(|p| p.name == param);
        params.any(|p| p.access != Some(Access::Read))
    }

    /// Why a launch cannot be known to stay within the slices that it gets; empty if it can.
    pub(crate) fn unproved(&self) -> Vec<(String, String)> {
        let mut out: Vec<(String, String)> = Vec::new();
        if let Some(why) = self.artifacts().find_map(|a| a.metadata.elsewhere.clone()) {
            out.push((self.name.clone(), why));
        }
        for param in self.artifacts().flat_map(|a| a.metadata.visible_params()) {
            let why = match (param.ty.is_pointer(), &param.extent) {
                (true, None) => param.extent_unknown.clone().unwrap_or_else(|| "nothing is proved".into()),
                _ => continue,
            };
            if !out.iter().any(|(name, _)| *name == param.name) {
                out.push((param.name.clone(), why));
            }
        }
        out
    }

    /// The names of its struct, its configuration and its choices.
    pub(crate) fn type_names(&self) -> Vec<String> {
        let choices = self.axes.iter().map(|axis| match axis.kind {
            AxisKind::Type => format!("{}{}", self.ty(), identifier(&axis.name)),
            _ => self.enum_name(axis),
        });
        choices.chain([self.ty(), format!("{}Config", self.ty())]).collect()
    }

    /// The name of the struct.
    pub(crate) fn ty(&self) -> String {
        type_name(&self.name)
    }

    /// `<T: AddKernelT, const BLOCK: i64>` and `<T, BLOCK>`; both empty where nothing is generic.
    fn generics(&self) -> (String, String) {
        let (mut declared, mut used) = (Vec::new(), Vec::new());
        for axis in &self.axes {
            let name = identifier(&axis.name);
            match axis.kind {
                AxisKind::Type => declared.push(format!("{name}: {}{name}", self.ty())),
                AxisKind::Int => declared.push(format!("const {name}: i64")),
                AxisKind::Bool => declared.push(format!("const {name}: bool")),
                AxisKind::Enum => continue,
            }
            used.push(name);
        }
        let brackets =
            |list: Vec<String>| if list.is_empty() { String::new() } else { format!("<{}>", list.join(", ")) };
        (brackets(declared), brackets(used))
    }

    /// The name of the enum of values, or of types.
    fn enum_name(&self, axis: &Axis) -> String {
        format!("{}{}", self.ty(), type_name(&axis.name.to_lowercase()))
    }

    fn axes_of(&self, kind: AxisKind) -> impl Iterator<Item = &Axis> {
        self.axes.iter().filter(move |axis| axis.kind == kind)
    }
}

/// The whole module.
pub(crate) fn module(stem: &str, words: &str, kernels: &[Embedded], deny_jit: bool) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write_module(&mut out, stem, words, kernels, deny_jit);
    out
}

fn write_module(out: &mut String, stem: &str, words: &str, kernels: &[Embedded], deny_jit: bool) -> Result {
    if !words.is_empty() {
        doc(out, 0, words)?;
        writeln!(out, "///")?;
    }
    writeln!(out, "/// Kernels of `{stem}`, compiled ahead of time.")?;
    writeln!(out, "#[allow(clippy::all, dead_code, nonstandard_style)]")?;
    writeln!(out, "#[allow(unsafe_code)]\npub mod {} {{", identifier(stem))?;
    if deny_jit {
        writeln!(
            out,
            "    const _: () = assert!(!::rtc_runtime::HAS_JIT, \"`rtc-runtime` has the feature `jit`, which the build \
             script denies\");\n"
        )?;
    }
    for (kernel, args) in kernels.iter().zip(named::names(kernels)) {
        write_kernel(out, kernel, args.as_deref())?;
    }
    writeln!(out, "}}")
}

fn write_kernel(out: &mut String, kernel: &Embedded, args: Option<&str>) -> Result {
    let (ty, (declared, used)) = (kernel.ty(), kernel.generics());
    for axis in &kernel.axes {
        write_choice(out, kernel, axis)?;
    }
    launch::write_config(out, kernel)?;
    if let Some(args) = args {
        named::write_struct(out, kernel, args)?;
    }
    if !kernel.info.doc.is_empty() {
        doc(out, 1, &kernel.info.doc)?;
        writeln!(out, "    ///")?;
    }
    writeln!(out, "    /// `{}`, loaded on a device; compiled for `{}`.", kernel.name, plain(&kernel.signature))?;
    writeln!(out, "    #[derive(Debug)]\n    pub struct {ty}{declared} {{")?;
    writeln!(out, "        kernels: Box<[::rtc_runtime::Kernel]>,")?;
    if launch::knows_case(kernel) {
        writeln!(out, "        case: usize,")?;
    }
    if kernel.has_tuned() {
        writeln!(out, "        /// Which of them are for the target of the device.\n        tuned: Box<[bool]>,")?;
    }
    let types: Vec<String> = kernel.axes_of(AxisKind::Type).map(|axis| identifier(&axis.name)).collect();
    if !types.is_empty() {
        writeln!(out, "        types: ::core::marker::PhantomData<({},)>,", types.join(", "))?;
    }
    writeln!(out, "    }}\n")?;
    write_loader(out, kernel)?;
    writeln!(out, "    impl{declared} {ty}{used} {{")?;
    launch::write_launch(out, kernel)?;
    if let Some(args) = args {
        named::write_method(out, kernel, args)?;
    }
    writeln!(out, "        /// The kernel without types, as it is for arguments of which nothing more is known.")?;
    writeln!(out, "        pub fn kernel(&self) -> &::rtc_runtime::Kernel {{")?;
    writeln!(out, "            &self.kernels[self.kernels.len() - 1]\n        }}\n    }}\n")?;
    // So that functions that take a kernel take it.
    writeln!(out, "    impl{declared} ::core::convert::AsRef<::rtc_runtime::Kernel> for {ty}{used} {{")?;
    writeln!(
        out,
        "        fn as_ref(&self) -> &::rtc_runtime::Kernel {{\n            self.kernel()\n        }}\n    }}\n"
    )
}

/// The trait of element types, or the enum of values.
fn write_choice(out: &mut String, kernel: &Embedded, axis: &Axis) -> Result {
    let name = kernel.enum_name(axis);
    match axis.kind {
        AxisKind::Type => {
            let name = format!("{}{}", kernel.ty(), identifier(&axis.name));
            writeln!(
                out,
                "    /// An element type that `{}` is compiled for: {}.",
                kernel.name,
                axis.texts.join(", ")
            )?;
            writeln!(out, "    pub trait {name}: ::rtc_runtime::Element {{")?;
            writeln!(out, "        #[doc(hidden)]\n        const NUMBER: usize;\n    }}\n")?;
            for (number, ty) in axis.options.iter().enumerate() {
                writeln!(out, "    impl {name} for {ty} {{\n        const NUMBER: usize = {number};\n    }}\n")?;
            }
        }
        AxisKind::Enum => {
            writeln!(out, "    /// A value of `{}` that `{}` is compiled for.", axis.name, kernel.name)?;
            writeln!(out, "    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\n    pub enum {name} {{")?;
            for (option, text) in axis.options.iter().zip(&axis.texts) {
                writeln!(out, "        /// `{}`\n        {option},", plain(text))?;
            }
            writeln!(out, "    }}\n")?;
        }
        AxisKind::Int | AxisKind::Bool => {}
    }
    Ok(())
}

fn write_loader(out: &mut String, kernel: &Embedded) -> Result {
    let (ty, (declared, used)) = (kernel.ty(), kernel.generics());
    writeln!(
        out,
        "    /// Loads `{}` on a device: for each specialization the best variant that the device can run.",
        kernel.name
    )?;
    write!(out, "    pub fn {}{declared}(device: &::rtc_runtime::Device", identifier(&kernel.name))?;
    for axis in kernel.axes_of(AxisKind::Enum) {
        write!(out, ", {}: {}", argument(&axis.name.to_lowercase()), kernel.enum_name(axis))?;
    }
    writeln!(out, ") -> ::rtc_runtime::Result<{ty}{used}> {{")?;
    for axis in kernel.axes.iter().filter(|axis| matches!(axis.kind, AxisKind::Int | AxisKind::Bool)) {
        let (name, options) = (identifier(&axis.name), axis.options.join(" | "));
        writeln!(out, "        const {{")?;
        writeln!(
            out,
            "            assert!(matches!({name}, {options}), \"`{}` is compiled for {} = {}\");\n        }};",
            kernel.name,
            axis.name,
            axis.options.join(", ")
        )?;
    }
    writeln!(out, "        // SAFETY: `rtc-build` wrote these files together, in one run of the compiler.")?;
    writeln!(out, "        const CASES: &[&[&[::rtc_runtime::Variant]]] = &[")?;
    for case in &kernel.cases {
        writeln!(out, "            &[")?;
        for special in &case.specials {
            writeln!(out, "                &[")?;
            for (number, variant) in special.variants.iter().enumerate() {
                let (stem, arch) = (&special.stem, &variant.metadata.arch);
                let cubin = match special.cubins.get(number) {
                    Some(_) => format!("Some(include_bytes!(\"{stem}.{arch}.cubin\"))"),
                    None => "None".to_owned(),
                };
                writeln!(out, "                    unsafe {{ ::rtc_runtime::Variant::new(")?;
                writeln!(out, "                        {arch:?},")?;
                writeln!(out, "                        include_str!({:?}),", format!("{stem}.{arch}.ptx"))?;
                writeln!(out, "                        include_str!({:?}),", format!("{stem}.{arch}.json"))?;
                writeln!(out, "                        {cubin},")?;
                writeln!(out, "                    ) }},")?;
            }
            writeln!(out, "                ],")?;
        }
        writeln!(out, "            ],")?;
    }
    writeln!(out, "        ];")?;
    write_case(out, kernel)?;
    let mut fields = String::from("kernels");
    match kernel.has_tuned() {
        false => {
            writeln!(out, "        let load = |variants: &&[_]| device.load_variant({:?}, variants);", kernel.name)?;
            writeln!(
                out,
                "        let kernels = CASES[case].iter().map(load).collect::<::rtc_runtime::Result<_>>()?;"
            )?;
        }
        true => {
            write_tuned_loader(out, kernel)?;
            fields.push_str(", tuned");
        }
    }
    if launch::knows_case(kernel) {
        fields.push_str(", case");
    }
    if kernel.axes_of(AxisKind::Type).next().is_some() {
        fields.push_str(", types: ::core::marker::PhantomData");
    }
    writeln!(out, "        Ok({ty} {{ {fields} }})\n    }}\n")
}

/// Loads what was tuned for just this target, and the general form in the place of what was tuned for others.
fn write_tuned_loader(out: &mut String, kernel: &Embedded) -> Result {
    writeln!(out, "        const TARGETS: &[&[Option<&str>]] = &[")?;
    for case in &kernel.cases {
        let targets: Vec<String> = case.specials.iter().map(|special| format!("{:?}", special.arch)).collect();
        writeln!(out, "            &[{}],", targets.join(", "))?;
    }
    writeln!(out, "        ];")?;
    writeln!(out, "        let arch = device.arch().to_string();")?;
    writeln!(
        out,
        "        let tuned: Box<[bool]> = TARGETS[case].iter().map(|only| only.is_none_or(|only| only == arch)).collect();"
    )?;
    writeln!(out, "        let last = CASES[case].len() - 1;")?;
    writeln!(out, "        let general = device.load_variant({:?}, CASES[case][last])?;", kernel.name)?;
    writeln!(out, "        let load = |(number, variants): (usize, &&[_])| match number != last && tuned[number] {{")?;
    writeln!(out, "            true => device.load_variant({:?}, variants),", kernel.name)?;
    writeln!(out, "            false => Ok(general.clone()),\n        }};")?;
    writeln!(
        out,
        "        let kernels = CASES[case].iter().enumerate().map(load).collect::<::rtc_runtime::Result<_>>()?;"
    )
}

/// The number of the case that the choices mean.
fn write_case(out: &mut String, kernel: &Embedded) -> Result {
    if kernel.axes.is_empty() {
        return writeln!(out, "        let case = 0;");
    }
    let chosen = |axis: &Axis| match axis.kind {
        AxisKind::Type => format!("{}::NUMBER", identifier(&axis.name)),
        AxisKind::Int | AxisKind::Bool => identifier(&axis.name),
        AxisKind::Enum => argument(&axis.name.to_lowercase()),
    };
    let all: Vec<String> = kernel.axes.iter().map(chosen).collect();
    writeln!(out, "        let case = match ({},) {{", all.join(", "))?;
    for (number, case) in kernel.cases.iter().enumerate() {
        let pick = |(axis, pick): (&Axis, &usize)| match axis.kind {
            AxisKind::Type => pick.to_string(),
            AxisKind::Int | AxisKind::Bool => axis.options[*pick].clone(),
            AxisKind::Enum => format!("{}::{}", kernel.enum_name(axis), axis.options[*pick]),
        };
        let picks: Vec<String> = kernel.axes.iter().zip(&case.picks).map(pick).collect();
        writeln!(out, "            ({},) => {number},", picks.join(", "))?;
    }
    if !kernel.axes.iter().all(|axis| axis.kind == AxisKind::Enum) {
        writeln!(out, "            #[allow(unreachable_patterns)]")?;
        writeln!(out, "            _ => unreachable!(\"other values do not compile\"),")?;
    }
    writeln!(out, "        }};")
}

/// Words of a source as a doc comment: never an example that Rust would run, and no link.
pub(crate) fn doc(out: &mut String, depth: usize, text: &str) -> Result {
    let indent = "    ".repeat(depth);
    let is_code = text.lines().any(|line| line.starts_with("    ") || line.starts_with('\t') || line.contains("```"));
    if is_code {
        writeln!(out, "{indent}/// ~~~text")?;
    }
    for line in text.lines() {
        let line = if is_code { line.to_owned() } else { escaped(line) };
        writeln!(out, "{}", format!("{indent}/// {line}").trim_end())?;
    }
    if is_code {
        writeln!(out, "{indent}/// ~~~")?;
    }
    Ok(())
}

/// A line in which brackets are brackets, save for what stands between backticks.
fn escaped(line: &str) -> String {
    let parts = line.split('`').enumerate();
    let escape = |(i, part): (usize, &str)| match i % 2 {
        0 => part.replace('[', "\\[").replace('<', "\\<"),
        _ => part.to_owned(),
    };
    parts.map(escape).collect::<Vec<_>>().join("`")
}

/// A text that may stand between backticks.
pub(crate) fn plain(text: &str) -> String {
    text.replace('`', "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_source_are_no_code_of_rust() {
        let of = |text: &str| {
            let mut out = String::new();
            doc(&mut out, 1, text).unwrap();
            out
        };
        assert_eq!(of("Adds `x[i]`, not [this] <b>."), "    /// Adds `x[i]`, not \\[this] \\<b>.\n");
        assert_eq!(
            of("An example:\n\n    x = 1"),
            "    /// ~~~text\n    /// An example:\n    ///\n    ///     x = 1\n    /// ~~~\n"
        );
    }
}
