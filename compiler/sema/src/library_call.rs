//! Checks of arguments that users pass to functions of the standard library.

use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::Symbol;

use crate::emitter::{Emitter, R};
use crate::spec::DType;
use crate::values::{Arg, Const, Tensor, Val};

/// The numbers that a parameter of the library takes; constants are fitted to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Anything,
    /// A number, a scalar or a block of any type.
    Value,
    Float,
    Single,
    Double,
    /// An integer of any width.
    Integer,
    /// An integer of 32 or 64 bits.
    WideInteger,
    /// A float or an integer, of 32 or 64 bits.
    Wide,
}

impl Takes {
    /// The allowed arguments of a user's call of a function; calls inside of the library are not checked.
    fn of(module: &str, function: &str, parameter: &str) -> Takes {
        match (module, function) {
            ("math", _) => Takes::Float,
            ("standard", "cdiv") => Takes::Integer,
            ("standard", _) if matches!(parameter, "input" | "x" | "lhs" | "rhs") => Takes::Value,
            ("random", _) if matches!(parameter, "seed" | "offset") => Takes::Integer,
            ("random", "philox_impl" | "uint_to_uniform_float") if parameter != "n_rounds" => Takes::WideInteger,
            ("random", "pair_uniform_to_normal") | ("triton_helpers", "frexp") => Takes::Float,
            ("libdevice", "abs") => Takes::Wide,
            ("libdevice", "ldexp" | "scalbn" | "jn" | "yn") if parameter == "n" => Takes::WideInteger,
            ("libdevice", name) => match name {
                "clz" | "popc" | "brev" | "ffs" | "mulhi" | "mul24" | "hadd" | "rhadd" | "sad" | "byte_perm" => {
                    Takes::WideInteger
                }
                "hiloint2double" => Takes::WideInteger,
                "rcp64h" => Takes::Double,
                "saturatef" | "finitef" => Takes::Single,
                "isfinited" => Takes::Double,
                _ if name.starts_with("fast_") || name.starts_with("float") => Takes::Single,
                _ if name.starts_with("double") => Takes::Double,
                _ if ["int", "uint", "ll2", "ull2", "longlong"].iter().any(|p| name.starts_with(p)) => {
                    Takes::WideInteger
                }
                _ => Takes::Float,
            },
            _ => Takes::Anything,
        }
    }

    fn accepts(self, t: Tensor) -> bool {
        let Some(d) = t.elem.num() else { return matches!(self, Takes::Anything | Takes::Value) };
        let wide = d.bits() >= 32;
        match self {
            Takes::Anything | Takes::Value => true,
            Takes::Float => matches!(d, DType::Fp32 | DType::Fp64),
            Takes::Single => d == DType::Fp32,
            Takes::Double => d == DType::Fp64,
            Takes::Integer => d.is_integer() && d != DType::UInt1,
            Takes::WideInteger => d.is_integer() && wide,
            Takes::Wide => wide,
        }
    }

    /// The types in words, and a type that they are reached by.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Takes::Anything | Takes::Value => ("any number", "float32"),
            Takes::Float => ("fp32 or fp64", "float32"),
            Takes::Single => ("fp32", "float32"),
            Takes::Double => ("fp64", "float64"),
            Takes::Integer => ("integers", "int32"),
            Takes::WideInteger => ("integers of 32 or 64 bits", "int32"),
            Takes::Wide => ("numbers of 32 or 64 bits", "float32"),
        }
    }
}

impl<'a> Emitter<'a> {
    /// Checks what a user passes to a function of the library; `pow` takes a whole exponent, too.
    pub(crate) fn check_library_call(
        &mut self,
        library: &str,
        name: &str,
        bound: &mut [(Symbol, Arg<'a>)],
        span: Span,
    ) -> R<()> {
        let mut first: Option<(Tensor, Span)> = None;
        for (parameter, arg) in bound {
            let takes = Takes::of(library, name, parameter);
            match (&arg.val, takes) {
                (Val::Const(Const::Int(i)), Takes::Float) => arg.val = Val::Const(Const::Float(*i as f64)),
                (Val::Const(Const::Bool(b)), Takes::Float) => arg.val = Val::Const(Const::Float(f64::from(*b))),
                _ => {}
            }
            // Anything but a number is refused here, by the name of the parameter.
            if takes != Takes::Anything && !matches!(arg.val, Val::Tensor(_)) {
                self.tensor(arg, &format!("`{parameter}` of `{name}`"))?;
            }
            let Val::Tensor(mut t) = arg.val else { continue };
            if name == "pow" && &**parameter == "y" && t.elem.num() == Some(DType::Int32) {
                let elem = first.map_or(t.elem, |(x, _)| x.elem);
                t = self.cast(t, elem)?;
                arg.val = Val::Tensor(t);
            }
            if !takes.accepts(t) {
                let (words, near) = takes.words();
                let d = Diagnostic::error(Code::TYPE_MISMATCH, span, format!("`{name}` takes {words}, not {}", t.elem))
                    .label(arg.span, format!("this is {t}"))
                    .help(format!("cast it first: `x.to(tl.{near})`"));
                return self.fail(d);
            }
            match first {
                Some((other, at)) if takes == Takes::Float && other.elem != t.elem => {
                    let d = Diagnostic::error(
                        Code::TYPE_MISMATCH,
                        span,
                        format!("`{name}` takes numbers of one type, not {} and {}", other.elem, t.elem),
                    )
                    .label(at, format!("this is {other}"))
                    .label(arg.span, format!("this is {t}"))
                    .help("cast one of them with `.to(dtype)`");
                    return self.fail(d);
                }
                // The order of a Bessel function comes before its argument.
                None if takes != Takes::WideInteger => first = Some((t, arg.span)),
                _ => {}
            }
        }
        Ok(())
    }
}
