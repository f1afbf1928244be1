//! A header and a source in C for the kernels of one source file: over the CUDA driver, with the PTX in it.

use crate::generate::{BuiltSpecial, Embedded};
use crate::{Error, error};
use rtc_abi::{Arch, DType, Hidden, Metadata, Param, ParamType, ValueType};
use std::fmt::{Result as Written, Write};

/// Header and source.
pub(crate) fn c_source(stem: &str, kernels: &[Embedded]) -> Result<(String, String), Error> {
    let prefix = name(stem);
    let guard = format!("RTC_{}_H", prefix.to_uppercase());
    let mut header = format!(
        "/* Kernels of `{stem}`, compiled by rtc {}. */\n#ifndef {guard}\n#define {guard}\n\n#include <cuda.h>\n\
         #include <stdbool.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n",
        env!("CARGO_PKG_VERSION")
    );
    let mut source = format!(
        "/* Kernels of `{stem}`, compiled by rtc {}. */\n#include \"{stem}.h\"\n\n#include <stddef.h>\n\n\
         /* One kernel for one target. */\nstruct rtc_variant {{\n    int capability; /* as major * 10 + minor */\n    \
         bool only;      /* runs on that capability alone */\n    unsigned int shared_bytes;\n    const char *ptx;\n}};\n\n\
         {LOAD}",
        env!("CARGO_PKG_VERSION")
    );
    for kernel in kernels {
        let Some(special) = kernel.cases.first().and_then(|case| case.specials.last()) else { continue };
        check(kernel, special)?;
        // Writing to a string does not fail.
        let _ = declare(&mut header, kernel, special);
        let _ = define(&mut source, kernel, special);
    }
    header.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    Ok((header, source))
}

/// What every kernel is loaded by.
const LOAD: &str = r#"static CUresult rtc_load(const struct rtc_variant *variants, int count, const char *symbol, CUmodule *module,
                         CUfunction *function, int *chosen) {
    CUdevice device;
    int major = 0, minor = 0, best = -1;
    CUresult result = cuCtxGetDevice(&device);
    if (result == CUDA_SUCCESS)
        result = cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (result == CUDA_SUCCESS)
        result = cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    if (result != CUDA_SUCCESS)
        return result;
    int capability = major * 10 + minor;
    for (int i = 0; i < count; i++) {
        bool runs = variants[i].only ? variants[i].capability == capability : variants[i].capability <= capability;
        /* Among those of one capability the last one is for that alone. */
        if (runs && (best < 0 || variants[i].capability >= variants[best].capability))
            best = i;
    }
    if (best < 0)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    result = cuModuleLoadData(module, variants[best].ptx);
    if (result != CUDA_SUCCESS)
        return result;
    result = cuModuleGetFunction(function, *module, symbol);
    if (result == CUDA_SUCCESS && variants[best].shared_bytes > 48 * 1024)
        result = cuFuncSetAttribute(*function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    (int)variants[best].shared_bytes);
    if (result != CUDA_SUCCESS)
        cuModuleUnload(*module);
    *chosen = best;
    return result;
}
"#;

/// What a launch from C cannot do is refused here.
fn check(kernel: &Embedded, special: &BuiltSpecial) -> Result<(), Error> {
    for metadata in special.variants.iter().map(|v| &v.metadata) {
        let what = if metadata.cluster != [1, 1, 1] {
            "clusters of blocks"
        } else if metadata.launch_pdl || metadata.launch_cooperative_grid {
            "attributes of its launch"
        } else if metadata.persistent.is_some() {
            "a grid that the launch chooses"
        } else if metadata.global_scratch_bytes > 0 {
            "scratch memory that the launch allocates"
        } else if metadata.params.iter().any(|p| !matches!(p.ty, ParamType::Value(_))) {
            "tensor maps"
        } else {
            continue;
        };
        return Err(error(format!("kernel `{}` needs {what}, which the C source does not do", kernel.name)));
    }
    Ok(())
}

fn declare(out: &mut String, kernel: &Embedded, special: &BuiltSpecial) -> Written {
    let (fun, metadata) = (name(&kernel.name), &special.variants[0].metadata);
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
    writeln!(
        out,
        " */\ntypedef struct {fun}_s {{\n    CUmodule module;\n    CUfunction function;\n    int variant;\n}} {fun}_t;\n"
    )?;
    writeln!(out, "/* Loads it for the current context: the newest variant that its device can run. */")?;
    writeln!(out, "CUresult {fun}_load({fun}_t *kernel);\n")?;
    writeln!(out, "/* Unloads it. */\nCUresult {fun}_unload({fun}_t *kernel);\n")?;
    writeln!(
        out,
        "/* Launches it and returns before it has run. CUDA_ERROR_INVALID_VALUE: an argument breaks a promise. */"
    )?;
    writeln!(out, "{};", prototype(&fun, metadata))
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

fn prototype(fun: &str, metadata: &Metadata) -> String {
    let mut args = vec![
        format!("const {fun}_t *kernel"),
        "CUstream stream".into(),
        "unsigned int grid_x".into(),
        "unsigned int grid_y".into(),
        "unsigned int grid_z".into(),
    ];
    args.extend(metadata.visible_params().iter().map(|p| format!("{} {}", c_type(&p.ty), argument(&p.name))));
    format!("CUresult {fun}_launch({})", args.join(", "))
}

fn define(out: &mut String, kernel: &Embedded, special: &BuiltSpecial) -> Written {
    let (fun, metadata) = (name(&kernel.name), &special.variants[0].metadata);
    for variant in &special.variants {
        writeln!(out, "\nstatic const char {fun}_{}[] =", variant.metadata.arch)?;
        for line in variant.ptx.lines() {
            writeln!(out, "    \"{}\\n\"", line.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', "\\t"))?;
        }
        writeln!(out, "    ;")?;
    }
    let mut variants: Vec<_> = special.variants.iter().collect();
    variants.sort_by_key(|v| v.metadata.arch.parse::<Arch>().ok());
    writeln!(out, "\nstatic const struct rtc_variant {fun}_variants[] = {{")?;
    for variant in &variants {
        let Metadata { arch, shared_bytes, .. } = &variant.metadata;
        let (capability, only) = (arch.parse::<Arch>().map_or(0, |a| a.capability), arch.ends_with('a'));
        writeln!(out, "    {{{capability}, {only}, {shared_bytes}, {fun}_{arch}}},")?;
    }
    writeln!(out, "}};\n")?;
    writeln!(out, "CUresult {fun}_load({fun}_t *kernel) {{")?;
    writeln!(
        out,
        "    return rtc_load({fun}_variants, {}, \"{}\", &kernel->module, &kernel->function, &kernel->variant);\n}}\n",
        variants.len(),
        metadata.symbol
    )?;
    writeln!(out, "CUresult {fun}_unload({fun}_t *kernel) {{\n    return cuModuleUnload(kernel->module);\n}}\n")?;
    writeln!(out, "{} {{", prototype(&fun, metadata))?;
    for param in metadata.visible_params().iter().filter(|p| p.divisible_by > 1) {
        writeln!(out, "    if ({} % {} != 0)", argument(&param.name), param.divisible_by)?;
        writeln!(out, "        return CUDA_ERROR_INVALID_VALUE;")?;
    }
    writeln!(out, "    if (grid_x == 0 || grid_y == 0 || grid_z == 0)\n        return CUDA_SUCCESS;")?;
    let mut places = Vec::new();
    for param in &metadata.params {
        let own = argument(&param.name);
        match param.hidden {
            Some(Hidden::Grid(axis)) => {
                writeln!(out, "    int32_t {own} = (int32_t)grid_{};", ['x', 'y', 'z'][axis.min(2) as usize])?;
            }
            _ if is_bool(&param.ty) => {
                writeln!(out, "    uint8_t {own}_byte = {own};")?;
                places.push(format!("&{own}_byte"));
                continue;
            }
            _ => {}
        }
        places.push(format!("&{own}"));
    }
    let places = if places.is_empty() { "NULL".into() } else { places.join(", ") };
    writeln!(out, "    void *params[] = {{{places}}};")?;
    writeln!(
        out,
        "    return cuLaunchKernel(kernel->function, grid_x, grid_y, grid_z, {}, 1, 1,",
        metadata.threads_per_block
    )?;
    writeln!(out, "                          {fun}_variants[kernel->variant].shared_bytes, stream, params, NULL);\n}}")
}

fn is_bool(ty: &ParamType) -> bool {
    matches!(ty, ParamType::Value(ValueType::Scalar(DType::UInt1)))
}

/// The C type of a parameter; 16-bit floats are passed as their bits.
fn c_type(ty: &ParamType) -> &'static str {
    let ParamType::Value(ValueType::Scalar(dtype)) = ty else { return "CUdeviceptr" };
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
fn argument(text: &str) -> String {
    const TAKEN: &[&str] = &[
        "kernel",
        "stream",
        "grid_x",
        "grid_y",
        "grid_z",
        "params",
        "auto",
        "bool",
        "break",
        "case",
        "char",
        "class",
        "const",
        "continue",
        "default",
        "delete",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "false",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "namespace",
        "new",
        "operator",
        "private",
        "protected",
        "public",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "template",
        "this",
        "true",
        "typedef",
        "typename",
        "union",
        "unsigned",
        "using",
        "virtual",
        "void",
        "volatile",
        "while",
    ];
    let name = name(text);
    if TAKEN.contains(&name.as_str()) { format!("{name}_") } else { name }
}

/// Words that do not end a comment.
fn words(text: &str) -> String {
    text.replace("*/", "* /")
}
