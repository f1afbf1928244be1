//! Names of a source as names of Rust.

use rtc_compiler::DType;

/// A parameter's name as a Rust argument; it must not meet the names that `launch` has already.
pub(crate) fn argument(name: &str) -> String {
    let name = identifier(name);
    let taken = ["stream", "grid", "device", "chosen", "config", "self"];
    if taken.contains(&name.as_str()) { format!("{name}_") } else { name }
}

/// A name that Rust accepts: dots of tuple elements become `_`, keywords become raw.
pub(crate) fn identifier(name: &str) -> String {
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
pub(crate) fn type_name(name: &str) -> String {
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

/// The Rust type of an element in memory; `None` where there is none.
pub(crate) fn element(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::UInt1 => "bool",
        DType::Fp16 => "::rtc_runtime::half::f16",
        DType::Bf16 => "::rtc_runtime::half::bf16",
        DType::Fp32 => "f32",
        DType::Fp64 => "f64",
        DType::Fp8E4Nv => "::rtc_runtime::Fp8E4M3",
        DType::Fp8E5 => "::rtc_runtime::Fp8E5M2",
        dtype if dtype.is_integer() => dtype.name(),
        _ => return None,
    })
}

/// The name of an enum's variant for a value of a constexpr.
pub(crate) fn variant_name(value: &str) -> String {
    let words = value.replace('-', "minus_");
    let name = type_name(words.trim_start_matches("tl."));
    if name == "Self" { "Self_".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_rust_accepts() {
        let names = ["x", "type", "self", "t.0", "0a", "größe", "a-b", ""];
        assert_eq!(names.map(identifier), ["x", "r#type", "self_", "t_0", "_0a", "größe", "a_b", "__"]);
        let types = ["softmax_kernel", "_k", "add2", "2d", "type"].map(type_name);
        assert_eq!(types, ["SoftmaxKernel", "K", "Add2", "Kernel2d", "Type"]);
        let variants = ["\"gelu\"", "None", "leaky_relu", "tl.float16", "-1.5", "self"].map(variant_name);
        assert_eq!(variants, ["Gelu", "None", "LeakyRelu", "Float16", "Minus15", "Self_"]);
        assert_eq!(["stream", "n"].map(argument), ["stream_", "n"]);
    }
}
