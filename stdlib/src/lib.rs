//! The standard library of the kernel language: text only.
//!
//! Functions that the language offers and that need no operation of their own are written here in
//! the kernel language itself: maths without libdevice, reductions, scans, random numbers. A
//! front end resolves `tl.X` and `tl.math.X` first among its own operations and then in the
//! modules [`MATH`], [`STANDARD`] and [`RANDOM`]; `libdevice.X` in [`LIBDEVICE`] and then in
//! [`MATH`]; `triton_helpers.X` in [`TRITON_HELPERS`]. Inside a module, plain names are that
//! module's; `tl.X` reaches the others. Names with a leading underscore are private to their
//! module. No other names are in scope than `triton`, `tl`, `libdevice` and `prim`. `MATH.md`
//! beside this crate lists the worst measured errors.
//!
//! # Primitives
//!
//! The sources use these operations under the name `prim`. Each is element-wise on blocks and
//! scalars, broadcasts its arguments, and takes the dtype of its tensor arguments; a Python number
//! is converted directly to that dtype (never by way of fp32).
//!
//! | name | dtypes | meaning |
//! | --- | --- | --- |
//! | `fma(a, b, c)` | fp32, fp64 | a * b + c, rounded once |
//! | `mul_rn(a, b)` | fp32, fp64 | a * b, rounded; never contracted with an addition |
//! | `div_approx(a, b)` | fp32 | `div.approx.f32`: a / b for |b| up to 2^126 |
//! | `div_rn(a, b)` | fp32, fp64 | a / b, correctly rounded |
//! | `sqrt_rn(a)` | fp32, fp64 | square root, correctly rounded |
//! | `exp2_approx(a)` | fp32 | `ex2.approx.f32`: denormal results are kept |
//! | `exp2_approx_ftz(a)` | fp32 | `ex2.approx.ftz.f32` |
//! | `log2_approx(a)` | fp32 | `lg2.approx.ftz.f32`: zero gives -inf, negative NaN |
//! | `sin_approx(a)`, `cos_approx(a)` | fp32 | `sin.approx.ftz.f32`, `cos.approx.ftz.f32` |
//! | `tanh_approx(a)` | fp32 | `tanh.approx.f32` |
//! | `sqrt_approx(a)` | fp32 | `sqrt.approx.ftz.f32` |
//! | `rsqrt_approx(a)` | fp32 | `rsqrt.approx.ftz.f32` |
//! | `rcp_approx(a)` | fp32 | `rcp.approx.ftz.f32` |
//! | `add_rounded(a, b, mode)`, `mul_rounded(a, b, mode)`, `div_rounded(a, b, mode)`, `fma_rounded(a, b, c, mode)`, `sqrt_rounded(a, mode)` | fp32, fp64 | rounded as the constexpr `mode` says: "rn", "rz", "rd", "ru"; never contracted |
//! | `to_fp32_rounded(a, mode)` | fp64 | as fp32, rounded as `mode` says |
//! | `floor(a)`, `ceil(a)`, `trunc(a)`, `rint(a)` | fp32, fp64 | to a whole number: down, up, towards zero, to nearest even; no flushing, the sign of zero kept |
//! | `abs(a)` | fp32, fp64 | clears the sign bit |
//! | `neg(a)` | fp32, fp64 | flips the sign bit (unlike unary minus, which is 0 - a) |
//! | `copysign(a, b)` | fp32, fp64 | magnitude of a, sign bit of b |
//! | `min_num(a, b)`, `max_num(a, b)` | fp32, fp64 | `min`, `max`: a NaN loses to a number |
//! | `umulhi(a, b)` | 32- and 64-bit ints | high half of the product of the bits as unsigned; dtype kept |
//! | `clz(a)`, `popc(a)` | 32- and 64-bit ints | leading zero bits, one bits; int32 |
//! | `brev(a)` | 32- and 64-bit ints | the bits in reverse; dtype kept |
//! | `iota(a, axis)` | any block | int32 block of the shape of `a` that holds the position along `axis` (constexpr, may be negative) |
//!
//! # Example
//!
//! ```
//! let (name, text) = rtc_stdlib::SOURCES[0];
//! assert_eq!(name, rtc_stdlib::MATH);
//! assert!(text.contains("def exp(x):"));
//! ```

/// Module of the elementary functions.
pub const MATH: &str = "math";
/// Module of reductions, scans and shape functions.
pub const STANDARD: &str = "standard";
/// Module of random numbers.
pub const RANDOM: &str = "random";
/// Module of what `libdevice` has beyond [`MATH`].
pub const LIBDEVICE: &str = "libdevice";
/// Module of the helpers that kernels written by TorchInductor call; a namespace of its own.
pub const TRITON_HELPERS: &str = "triton_helpers";

/// The modules: name and text.
pub const SOURCES: &[(&str, &str)] = &[
    (
        MATH,
        concat!(
            include_str!("../exponential.rt"),
            "\n\n",
            include_str!("../trigonometric.rt"),
            "\n\n",
            include_str!("../special.rt"),
            "\n\n",
            include_str!("../elementary.rt"),
            "\n\n",
            include_str!("../gamma.rt"),
            "\n\n",
            include_str!("../normal.rt"),
            "\n\n",
            include_str!("../bessel.rt"),
        ),
    ),
    (STANDARD, concat!(include_str!("../standard.rt"), "\n\n", include_str!("../scaled.rt"))),
    (RANDOM, include_str!("../random.rt")),
    (TRITON_HELPERS, include_str!("../triton_helpers.rt")),
    (
        LIBDEVICE,
        concat!(
            include_str!("../libdevice.rt"),
            "\n\n",
            include_str!("../conversions.rt"),
            "\n\n",
            include_str!("../rounded.rt"),
            "\n\n",
            include_str!("../orders.rt"),
        ),
    ),
];

/// The functions of `libdevice`, one a line: `name argument-types -> result-type symbol`, where `__nv_symbol` is the
/// function of NVIDIA's library with the same meaning. Lines that begin with `#` are comments.
pub const LIBDEVICE_FUNCTIONS: &str = include_str!("../libdevice.txt");

/// Text of a module.
///
/// ```
/// assert!(rtc_stdlib::source("random").is_some());
/// assert!(rtc_stdlib::source("nothing").is_none());
/// ```
pub fn source(module: &str) -> Option<&'static str> {
    SOURCES.iter().find(|(name, _)| *name == module).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::SOURCES;

    /// The primitives that the table in the head comment promises.
    const PRIMITIVES: &[&str] = &[
        "fma",
        "mul_rn",
        "div_approx",
        "div_rn",
        "sqrt_rn",
        "exp2_approx",
        "exp2_approx_ftz",
        "log2_approx",
        "sin_approx",
        "cos_approx",
        "tanh_approx",
        "sqrt_approx",
        "rsqrt_approx",
        "rcp_approx",
        "add_rounded",
        "mul_rounded",
        "div_rounded",
        "fma_rounded",
        "sqrt_rounded",
        "to_fp32_rounded",
        "floor",
        "ceil",
        "trunc",
        "rint",
        "abs",
        "neg",
        "copysign",
        "min_num",
        "max_num",
        "umulhi",
        "clz",
        "popc",
        "brev",
        "iota",
    ];

    fn definitions(text: &str) -> Vec<&str> {
        text.lines().filter_map(|line| line.strip_prefix("def ")).filter_map(|rest| rest.split('(').next()).collect()
    }

    #[test]
    fn every_name_is_defined_once() {
        for (module, text) in SOURCES {
            let names = definitions(text);
            let distinct: BTreeSet<_> = names.iter().collect();
            assert_eq!(names.len(), distinct.len(), "{module}");
        }
    }

    #[test]
    fn public_functions_are_jit_and_documented() {
        for (module, text) in SOURCES {
            let lines: Vec<&str> = text.lines().collect();
            for (i, line) in lines.iter().enumerate() {
                let Some(rest) = line.strip_prefix("def ") else {
                    continue;
                };
                assert_eq!(lines[i - 1], "@triton.jit", "{module}: {line}");
                if !rest.starts_with('_') {
                    // A signature may take several lines.
                    let end = (i..lines.len()).find(|j| lines[*j].ends_with(':')).unwrap_or(i);
                    assert!(lines[end + 1].trim_start().starts_with("\"\"\""), "{module}: {line}");
                }
            }
        }
    }

    #[test]
    fn public_tl_names_do_not_clash_between_modules() {
        let mut seen = BTreeMap::new();
        for (module, text) in SOURCES.iter().filter(|(m, _)| ![super::LIBDEVICE, super::TRITON_HELPERS].contains(m)) {
            for name in definitions(text) {
                if !name.starts_with('_') {
                    assert_eq!(seen.insert(name, module), None, "{name}");
                }
            }
        }
    }

    #[test]
    fn primitives_used_are_the_documented_ones() {
        let mut used = BTreeSet::new();
        for (_, text) in SOURCES {
            for rest in text.split("prim.").skip(1) {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                used.insert(&rest[..end]);
            }
        }
        let documented: BTreeSet<_> = PRIMITIVES.iter().copied().collect();
        assert_eq!(used, documented);
        let head = include_str!("lib.rs");
        for name in PRIMITIVES {
            assert!(head.contains(&format!("`{name}(")), "{name} is not in the table");
        }
    }
}
