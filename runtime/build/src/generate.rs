//! The text of the Rust module for one source file.
//!
//! Per kernel a function that loads it and a struct with a typed `launch`. PTX and metadata stand in files beside the
//! module and are included as text.

use rtc_abi::{DType, ParamType, ValueType};
use rtc_compiler::Artifact;
use std::fmt::Write;

/// A kernel with its variants, one per target.
pub(crate) struct Embedded {
    /// Name of the Rust function.
    pub(crate) name: String,
    /// The signature that it was compiled for.
    pub(crate) signature: String,
    /// At least one; all have the same parameters.
    pub(crate) variants: Vec<Artifact>,
}

/// The whole module.
pub(crate) fn module(stem: &str, kernels: &[Embedded]) -> String {
    let mut text = format!(
        "/// Kernels of `{stem}`, compiled by the build script.\n#[allow(clippy::all, dead_code)]\n\
         pub mod {} {{\n",
        identifier(stem)
    );
    for embedded in kernels {
        // Writing to a string does not fail.
        let _ = kernel(&mut text, stem, embedded);
    }
    text.push_str("}\n");
    text
}

fn kernel(text: &mut String, stem: &str, embedded: &Embedded) -> std::fmt::Result {
    let Embedded { name, signature, variants } = embedded;
    let (function, ty) = (identifier(name), type_name(name));
    let params = variants.first().map_or(&[][..], |v| v.metadata.visible_params());
    writeln!(text, "    /// `{name}`, loaded on a device; compiled for `{}`.", signature.replace('`', "'"))?;
    writeln!(text, "    #[derive(Debug)]\n    pub struct {ty} {{\n        kernel: ::rtc_runtime::Kernel,\n    }}\n")?;
    writeln!(text, "    /// Loads `{name}` on a device.")?;
    writeln!(
        text,
        "    pub fn {function}(device: &::rtc_runtime::Device) -> ::rtc_runtime::Result<{ty}> {{\n        \
         const VARIANTS: &[::rtc_runtime::Variant] = &["
    )?;
    for variant in variants {
        let arch = &variant.metadata.arch;
        writeln!(
            text,
            "            ::rtc_runtime::Variant {{\n                arch: {arch:?},\n                \
             ptx: include_str!({:?}),\n                metadata: include_str!({:?}),\n            }},",
            format!("{stem}.{name}.{arch}.ptx"),
            format!("{stem}.{name}.{arch}.json"),
        )?;
    }
    writeln!(text, "        ];\n        Ok({ty} {{ kernel: device.load_variant({name:?}, VARIANTS)? }})\n    }}\n")?;
    writeln!(text, "    impl {ty} {{")?;
    writeln!(text, "        /// Launches it; the call returns before the kernel has run.\n        pub fn launch<'a>(")?;
    writeln!(text, "            &self,\n            stream: &::rtc_runtime::Stream,")?;
    writeln!(text, "            grid: impl Into<::rtc_runtime::Grid>,")?;
    for param in params {
        writeln!(text, "            {}: {},", argument(&param.name), rust_type(&param.ty))?;
    }
    writeln!(
        text,
        "        ) -> ::rtc_runtime::Result<()> {{\n            let args: [::rtc_runtime::Arg<'a>; {}] = [",
        params.len()
    )?;
    for param in params {
        let value = argument(&param.name);
        if param.ty.is_pointer() {
            writeln!(text, "                Into::<::rtc_runtime::Pointer<'a>>::into({value}).into(),")?;
        } else {
            writeln!(text, "                {value}.into(),")?;
        }
    }
    writeln!(text, "            ];\n            self.kernel.launch(stream, grid, &args)\n        }}\n")?;
    writeln!(text, "        /// The kernel without types.")?;
    writeln!(
        text,
        "        pub fn kernel(&self) -> &::rtc_runtime::Kernel {{\n            &self.kernel\n        }}\n    }}\n"
    )
}

fn rust_type(ty: &ParamType) -> &'static str {
    match ty {
        ParamType::Value(ValueType::Scalar(dtype)) => match dtype {
            DType::UInt1 => "bool",
            DType::Fp64 => "f64",
            dtype if dtype.is_integer() => dtype.name(),
            _ => "f32",
        },
        ParamType::Value(ValueType::Pointer { .. }) => "impl Into<::rtc_runtime::Pointer<'a>>",
        // The launch refuses every value, with the reason.
        ParamType::Descriptor { .. } | ParamType::TensorMap => "impl Into<::rtc_runtime::Arg<'a>>",
    }
}

/// A parameter's name as a Rust argument; it must not meet the names that `launch` has already.
fn argument(name: &str) -> String {
    let name = identifier(name);
    if matches!(name.as_str(), "stream" | "grid" | "args") { format!("{name}_") } else { name }
}

/// A name that Rust accepts: dots of tuple elements become `_`, keywords become raw.
fn identifier(name: &str) -> String {
    let mut name: String = name.chars().map(|c| if c == '_' || c.is_alphanumeric() { c } else { '_' }).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_numeric()) {
        name.insert(0, '_');
    }
    const KEYWORDS: &[&str] = &[
        "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
        "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
        "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type",
        "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
    ];
    match name.as_str() {
        "self" | "Self" | "super" | "crate" | "_" => format!("{name}_"),
        keyword if KEYWORDS.contains(&keyword) => format!("r#{name}"),
        _ => name,
    }
}

/// `softmax_kernel` to `SoftmaxKernel`.
fn type_name(name: &str) -> String {
    let name = identifier(name);
    let words = name.trim_start_matches("r#").split('_').filter(|w| !w.is_empty());
    let camel: String = words
        .map(|word| {
            let mut chars = word.chars();
            chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
        })
        .collect();
    if camel.is_empty() || camel.starts_with(|c: char| c.is_numeric()) { format!("Kernel{camel}") } else { camel }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtc_abi::Param;
    use rtc_abi::metadata::{Metadata, lay_out};

    #[test]
    fn a_module() {
        let param = |name: &str, ty: &str| Param::new(name, ty.parse::<ParamType>().unwrap());
        let metadata = Metadata::from_json(
            r#"{"kernel": "scale_kernel", "symbol": "scale_kernel", "arch": "sm_80", "ptx_version": 83, "num_warps": 4,
            "num_ctas": 1, "threads_per_block": 128, "shared_bytes": 0, "global_scratch_bytes": 0, "global_scratch_align": 1,
            "cluster": [1, 1, 1], "params": [], "constexprs": {}, "source_hash": "", "compiler_version": ""}"#,
        );
        let mut metadata = metadata.unwrap();
        let params = [("x_ptr", "*fp32"), ("n", "i32"), ("type", "fp16"), ("t.0", "u64"), ("stream", "u1")];
        metadata.params = lay_out(params.into_iter().map(|(name, ty)| param(name, ty)).collect());
        let second = Metadata { arch: "sm_90a".into(), ..metadata.clone() };
        let variants = [metadata, second].map(|metadata| Artifact { ptx: String::new(), metadata }).into();
        let embedded = Embedded { name: "scale_kernel".into(), signature: "*fp32:16, i32".into(), variants };
        insta::assert_snapshot!(module("scale", &[embedded]));
    }

    #[test]
    fn names_that_rust_accepts() {
        let names = ["x", "type", "self", "t.0", "0a", "größe", "a-b", ""];
        assert_eq!(names.map(identifier), ["x", "r#type", "self_", "t_0", "_0a", "größe", "a_b", "__"]);
        let types = ["softmax_kernel", "_k", "add2", "2d", "type"].map(type_name);
        assert_eq!(types, ["SoftmaxKernel", "K", "Add2", "Kernel2d", "Type"]);
    }
}
