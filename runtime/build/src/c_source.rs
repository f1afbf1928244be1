//! A header and a source in C for the kernels of one source file: over the CUDA driver, with the PTX in it.
//!
//! Each case of a kernel (element types and values that were chosen) is a kernel of its own in C. Its specializations are
//! *forms* of it, among which each launch chooses. The text of one launch of one form is made in `c_launch.rs`.

use crate::c_launch::{self, Needs};
use crate::generate::{Built, BuiltSpecial, Embedded};
use crate::launch::{configured, number, sides};
use crate::{Error, error};
use rtc_abi::{Arch, DType, Metadata, Param, ParamType, ValueType};
use std::fmt::{Result as Written, Write};

/// What every kernel is loaded by.
const LOAD: &str = include_str!("c/load.c");

/// A case of a kernel as C has it.
struct Function<'k> {
    /// What its functions begin with.
    name: String,
    kernel: &'k Embedded,
    specials: &'k [BuiltSpecial],
    /// The constexprs that the grid may depend on.
    values: Vec<String>,
}

/// Header and source.
pub(crate) fn c_source(stem: &str, kernels: &[Embedded]) -> Result<(String, String), Error> {
    let functions: Vec<Function<'_>> = kernels.iter().flat_map(functions).collect();
    if let Some(twice) = functions.iter().enumerate().find(|(i, f)| functions[..*i].iter().any(|g| g.name == f.name)) {
        return Err(error(format!("two kernels are called `{}` in C; give them other names", twice.1.name)));
    }
    let prefix = name(stem);
    let guard = format!("RTC_{}_H", prefix.to_uppercase());
    let needs = functions.iter().flat_map(|f| f.specials).flat_map(|s| &s.variants).map(|v| Needs::of(&v.metadata));
    let needs = needs.fold(Needs::default(), Needs::and);
    let mut header = format!(
        "/* Kernels of `{stem}`, compiled by rtc {}.\n *\n * A launch gets bare addresses and checks no lengths. Behind each \
         pointer there must be as many elements as the\n * comment of the kernel states; where it states none, all that the \
         kernel accesses must be memory that it may access. */\n#ifndef {guard}\n#define {guard}\n\n#include <cuda.h>\n\
         #include <stdbool.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n",
        env!("CARGO_PKG_VERSION")
    );
    if needs.descriptors {
        header.push_str(c_launch::TENSOR);
    }
    let mut source = format!(
        "/* Kernels of `{stem}`, compiled by rtc {}. */\n#include \"{stem}.h\"\n\n#include <stddef.h>\n\n\
         /* One kernel for one target. */\nstruct rtc_variant {{\n    int capability; /* as major * 10 + minor */\n    \
         bool only;      /* runs on that capability alone */\n    bool large_cluster;\n    unsigned int shared_bytes;\n    \
         const char *ptx;\n}};\n\n{LOAD}",
        env!("CARGO_PKG_VERSION")
    );
    c_launch::preamble(&mut source, needs);
    for function in &functions {
        // Writing to a string does not fail.
        let _ = function.declare(&mut header);
        let _ = function.define(&mut source)?;
    }
    header.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    Ok((header, source))
}

fn functions(kernel: &Embedded) -> impl Iterator<Item = Function<'_>> {
    kernel.cases.iter().map(move |case: &Built| {
        let picks = kernel.axes.iter().zip(&case.picks).map(|(axis, pick)| format!("_{}", axis.texts[*pick]));
        let own = name(&format!("{}{}", kernel.name, picks.collect::<String>()));
        Function { name: own, kernel, specials: &case.specials, values: configured(kernel) }
    })
}

impl Function<'_> {
    /// The form for arguments of which nothing more is known.
    fn general(&self) -> &Metadata {
        &self.specials[self.specials.len() - 1].variants[0].metadata
    }

    fn declare(&self, out: &mut String) -> Written {
        let (fun, kernel, metadata) = (&self.name, self.kernel, self.general());
        writeln!(out, "\n/*")?;
        for line in kernel.info.doc.lines() {
            writeln!(out, "{}", format!(" * {}", words(line)).trim_end())?;
        }
        if !kernel.info.doc.is_empty() {
            writeln!(out, " *")?;
        }
        writeln!(out, " * `{}`, compiled for {}.", kernel.name, words(&kernel.signature))?;
        for param in metadata.visible_params() {
            writeln!(out, " *   {}: {}", param.name, words(&described(kernel, param)))?;
        }
        let forms = self.specials.len();
        writeln!(
            out,
            " */\ntypedef struct {fun}_s {{\n    struct {{\n        CUmodule module;\n        CUfunction function;\n        \
             int variant;\n    }} forms[{forms}];\n    int capability, sm_count;\n}} {fun}_t;\n"
        )?;
        if !self.values.is_empty() {
            writeln!(out, "/* What a launch was compiled with, for its grid. */\ntypedef struct {fun}_config_s {{")?;
            self.values.iter().try_for_each(|value| writeln!(out, "    unsigned int {};", argument(value)))?;
            writeln!(out, "    unsigned int num_warps;\n}} {fun}_config_t;\n")?;
        }
        let best = if forms > 1 { "of each form the best variant" } else { "the best variant" };
        writeln!(out, "/* Loads it for the current context: {best} that its device can run. */")?;
        writeln!(out, "CUresult {fun}_load({fun}_t *kernel);\n")?;
        writeln!(out, "/* Unloads it. */\nCUresult {fun}_unload({fun}_t *kernel);\n")?;
        writeln!(
            out,
            "/* Launches it and returns before it has run. CUDA_ERROR_INVALID_VALUE: an argument breaks a promise. */"
        )?;
        if !self.values.is_empty() {
            writeln!(out, "/* `grid` gives the numbers of programs; `context` is handed to it. */")?;
        }
        writeln!(out, "{};", self.prototype())
    }

    fn prototype(&self) -> String {
        let fun = &self.name;
        let mut args = vec![format!("const {fun}_t *kernel"), "CUstream stream".into()];
        match self.values.is_empty() {
            true => args.extend(["x", "y", "z"].map(|axis| format!("unsigned int grid_{axis}"))),
            false => {
                let grid = format!("void (*grid)(const {fun}_config_t *config, void *context, unsigned int size[3])");
                args.extend([grid, "void *context".into()]);
            }
        }
        args.extend(self.general().visible_params().iter().map(taken));
        format!("CUresult {fun}_launch({})", args.join(", "))
    }

    fn define(&self, out: &mut String) -> Result<Written, Error> {
        for (number, special) in self.specials.iter().enumerate() {
            let name = format!("{}_{number}", self.name);
            for artifact in &special.variants {
                let arch = &artifact.metadata.arch;
                let _ = write_ptx(out, &format!("{name}_{arch}"), &artifact.ptx);
                let form = format!("{name}_{arch}_launch");
                c_launch::launch(out, &self.name, &form, number, &artifact.metadata, self.general())?;
            }
            let _ = write_variants(out, &name, special);
        }
        Ok(self.write_load(out).and_then(|()| self.write_launch(out)))
    }

    fn write_load(&self, out: &mut String) -> Written {
        let (fun, last) = (&self.name, self.specials.len() - 1);
        writeln!(out, "\nCUresult {fun}_load({fun}_t *kernel) {{")?;
        writeln!(out, "    CUdevice device;\n    int major = 0, minor = 0;")?;
        writeln!(
            out,
            "    for (int form = 0; form < {}; form++)\n        kernel->forms[form].variant = -1;",
            last + 1
        )?;
        writeln!(out, "    CUresult result = cuCtxGetDevice(&device);")?;
        for (to, what) in [
            ("&kernel->sm_count", "MULTIPROCESSOR_COUNT"),
            ("&major", "COMPUTE_CAPABILITY_MAJOR"),
            ("&minor", "COMPUTE_CAPABILITY_MINOR"),
        ] {
            writeln!(out, "    if (result == CUDA_SUCCESS)")?;
            writeln!(out, "        result = cuDeviceGetAttribute({to}, CU_DEVICE_ATTRIBUTE_{what}, device);")?;
        }
        writeln!(out, "    kernel->capability = major * 10 + minor;")?;
        for (number, special) in self.specials.iter().enumerate() {
            writeln!(out, "    if (result == CUDA_SUCCESS)")?;
            writeln!(
                out,
                "        result = rtc_load({fun}_{number}_variants, {}, {}, \"{}\", &kernel->forms[{number}].module,",
                special.variants.len(),
                special.arch.is_some(),
                special.variants[0].metadata.symbol
            )?;
            writeln!(
                out,
                "                          &kernel->forms[{number}].function, &kernel->forms[{number}].variant);"
            )?;
            if special.arch.is_some() {
                // What was tuned for another target is done by the next form that fits.
                writeln!(out, "    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)\n        result = CUDA_SUCCESS;")?;
            }
        }
        writeln!(out, "    if (result != CUDA_SUCCESS)\n        {fun}_unload(kernel);\n    return result;\n}}\n")?;
        writeln!(out, "CUresult {fun}_unload({fun}_t *kernel) {{\n    CUresult result = CUDA_SUCCESS;")?;
        writeln!(out, "    for (int form = 0; form < {}; form++) {{", last + 1)?;
        writeln!(out, "        if (kernel->forms[form].variant < 0)\n            continue;")?;
        writeln!(out, "        CUresult unloaded = cuModuleUnload(kernel->forms[form].module);")?;
        writeln!(out, "        if (unloaded != CUDA_SUCCESS)\n            result = unloaded;")?;
        writeln!(out, "        kernel->forms[form].variant = -1;\n    }}\n    return result;\n}}\n")
    }

    fn write_launch(&self, out: &mut String) -> Written {
        let (fun, params, last) = (&self.name, self.general().visible_params(), self.specials.len() - 1);
        writeln!(out, "{} {{", self.prototype())?;
        for param in params.iter().filter(|p| p.divisible_by > 1) {
            writeln!(out, "    if ({} % {} != 0)", argument(&param.name), param.divisible_by)?;
            writeln!(out, "        return CUDA_ERROR_INVALID_VALUE;")?;
        }
        if last > 0 {
            writeln!(out, "    int form = {last};")?;
            for (number, special) in self.specials[..last].iter().enumerate() {
                let or = if number > 0 { "else if" } else { "if" };
                writeln!(out, "    {or} ({})\n        form = {number};", guard(number, special, params))?;
            }
        }
        if !self.values.is_empty() {
            writeln!(out, "    static const {fun}_config_t configs[] = {{")?;
            for special in self.specials {
                let values = self.values.iter().map(|value| number(special, value).to_string());
                let warps = special.options.num_warps.to_string();
                writeln!(out, "        {{{}}},", values.chain([warps]).collect::<Vec<_>>().join(", "))?;
            }
            let form = if last > 0 { "form" } else { "0" };
            writeln!(
                out,
                "    }};\n    unsigned int size[3] = {{1, 1, 1}};\n    grid(&configs[{form}], context, size);"
            )?;
            writeln!(out, "    unsigned int grid_x = size[0], grid_y = size[1], grid_z = size[2];")?;
        }
        writeln!(out, "    if (grid_x == 0 || grid_y == 0 || grid_z == 0)\n        return CUDA_SUCCESS;")?;
        let form = if last > 0 { "form" } else { "0" };
        writeln!(out, "    switch ({form} * 16 + kernel->forms[{form}].variant) {{")?;
        for (number, special) in self.specials.iter().enumerate() {
            for (variant, artifact) in special.variants.iter().enumerate() {
                let given = params.iter().map(|p| argument(&p.name));
                let given: Vec<String> = ["kernel", "stream", "grid_x", "grid_y", "grid_z"]
                    .map(String::from)
                    .into_iter()
                    .chain(given)
                    .collect();
                writeln!(out, "    case {}:", number * 16 + variant_number(special, variant))?;
                let arch = &artifact.metadata.arch;
                writeln!(out, "        return {fun}_{number}_{arch}_launch({});", given.join(", "))?;
            }
        }
        writeln!(out, "    }}\n    return CUDA_ERROR_INVALID_HANDLE;\n}}")
    }
}

/// When a launch takes a specialization.
fn guard(number: usize, special: &BuiltSpecial, params: &[Param]) -> String {
    let own = special.variants[0].metadata.visible_params();
    let mut parts = Vec::new();
    if special.arch.is_some() {
        parts.push(format!("kernel->forms[{number}].variant >= 0"));
    }
    for param in params {
        let name = argument(&param.name);
        match own.iter().find(|p| p.name == param.name) {
            None => parts.push(format!("{name} == 1")),
            Some(own) if own.divisible_by > param.divisible_by => {
                parts.push(format!("{name} % {} == 0", own.divisible_by));
            }
            Some(_) => {}
        }
    }
    for text in special.condition.iter().flat_map(|text| text.split("&&")) {
        let side = |expr: &rtc_abi::Expr| {
            let number = |value: i64| if value == i64::MIN { "INT64_MIN".into() } else { format!("INT64_C({value})") };
            expr.written(number, |name| format!("(int64_t){}", argument(name)), |op, a, b| format!("({a} {op} {b})"))
        };
        // It was read before: `check_condition`.
        let text = sides(text, params).map_or("false".into(), |(a, op, b)| format!("{} {op} {}", side(&a), side(&b)));
        parts.push(text);
    }
    if parts.is_empty() { "true".into() } else { parts.join(" && ") }
}

/// Where a variant stands in the list, which goes by targets.
fn variant_number(special: &BuiltSpecial, variant: usize) -> usize {
    order(special).iter().position(|other| *other == variant).unwrap_or(0)
}

fn order(special: &BuiltSpecial) -> Vec<usize> {
    let mut order: Vec<usize> = (0..special.variants.len()).collect();
    order.sort_by_key(|variant| special.variants[*variant].metadata.arch.parse::<Arch>().ok());
    order
}

fn write_ptx(out: &mut String, name: &str, ptx: &str) -> Written {
    writeln!(out, "\nstatic const char {name}[] =")?;
    for line in ptx.lines() {
        writeln!(out, "    \"{}\\n\"", line.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', "\\t"))?;
    }
    writeln!(out, "    ;")
}

fn write_variants(out: &mut String, name: &str, special: &BuiltSpecial) -> Written {
    writeln!(out, "\nstatic const struct rtc_variant {name}_variants[] = {{")?;
    for variant in order(special) {
        let Metadata { arch, shared_bytes, cluster, .. } = &special.variants[variant].metadata;
        let (capability, only) = (arch.parse::<Arch>().map_or(0, |a| a.capability), arch.ends_with('a'));
        let large = cluster.iter().product::<u32>() > 8;
        writeln!(out, "    {{{capability}, {only}, {large}, {shared_bytes}, {name}_{arch}}},")?;
    }
    writeln!(out, "}};")
}

/// The type of a parameter and what is promised of it and done with it.
fn described(kernel: &Embedded, param: &Param) -> String {
    let mut text = param.ty.to_string();
    if param.divisible_by > 1 {
        let _ = write!(text, ", a multiple of {}", param.divisible_by);
    }
    if param.ty.is_pointer() {
        text.push_str(if kernel.writes(&param.name) { ", written" } else { ", read" });
        match (&param.extent, &param.extent_unknown) {
            (Some(extent), _) => drop(write!(text, ", at most {extent} elements")),
            (None, Some(why)) => drop(write!(text, "; how far is not known: {why}")),
            (None, None) => {}
        }
    }
    let own = kernel.info.params.iter().find(|p| p.name == param.name).filter(|p| !p.doc.is_empty());
    own.map_or(text.clone(), |own| format!("{text}; {}", own.doc))
}

/// A parameter of a launch.
pub(crate) fn taken(param: &Param) -> String {
    format!("{} {}", c_type(&param.ty), argument(&param.name))
}

pub(crate) fn is_bool(ty: &ParamType) -> bool {
    matches!(ty, ParamType::Value(ValueType::Scalar(DType::UInt1)))
}

/// The C type of a parameter; 16-bit floats are passed as their bits.
fn c_type(ty: &ParamType) -> &'static str {
    let dtype = match ty {
        ParamType::Value(ValueType::Scalar(dtype)) => dtype,
        ParamType::Value(ValueType::Pointer { .. }) => return "CUdeviceptr",
        ParamType::Descriptor { .. } | ParamType::TensorMap => return "const rtc_tensor_t *",
    };
    match dtype {
        DType::UInt1 => "bool",
        DType::Int8 => "int8_t",
        DType::Int16 => "int16_t",
        DType::Int32 => "int32_t",
        DType::Int64 => "int64_t",
        DType::UInt16 | DType::Fp16 | DType::Bf16 => "uint16_t",
        DType::UInt32 => "uint32_t",
        DType::UInt64 => "uint64_t",
        DType::Fp32 => "float",
        DType::Fp64 => "double",
        _ => "uint8_t",
    }
}

/// A name that C accepts.
fn name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let name: String = text.chars().map(plain).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// The name of a parameter: no word of C or C++, and none that the function has already.
pub(crate) fn argument(text: &str) -> String {
    const TAKEN: &str = "kernel stream grid_x grid_y grid_z params auto bool break case char class const continue default \
                         delete do double else enum extern false float for goto if inline int long namespace new operator \
                         private protected public register restrict return short signed sizeof static struct switch \
                         template this true typedef typename union unsigned using virtual void volatile while grid \
                         context form size configs";
    let name = name(text);
    if TAKEN.split(' ').any(|taken| taken == name) { format!("{name}_") } else { name }
}

/// Words that do not end a comment.
fn words(text: &str) -> String {
    text.replace("*/", "* /")
}
