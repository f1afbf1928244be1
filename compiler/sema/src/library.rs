//! The standard library: its text is cut into functions, and a function is parsed when its name is first used.
//!
//! Most kernels need a handful of its hundreds of functions, so cutting the text by a look at the first column of each
//! line, once per process, is all that every compilation pays for. The text holds comments and jit functions only; the
//! tests below check that nothing else is in it.
//!
//! Every function is a file of its own as far as spans go, so that spans of different functions differ.

use std::collections::HashMap;
use std::sync::OnceLock;

use rtc_source::{Code, Diagnostic, FileId, Span};
use rtc_syntax::ast::{FunctionDef, Module, StmtKind, Symbol};

use crate::cx::{Arg, Cx, R};
use crate::resolve::ModuleId;
use crate::spec::DType;
use crate::values::{Const, Tensor, Val};

/// Files from here on are functions of the standard library.
const FIRST_FILE: u32 = 0xffff_0000;

/// Whether a file belongs to the standard library.
pub(crate) fn is_library(file: FileId) -> bool {
    file.0 >= FIRST_FILE
}

/// One module of the standard library.
pub(crate) struct LibraryModule {
    pub name: &'static str,
    functions: HashMap<&'static str, LibraryFunction>,
}

struct LibraryFunction {
    /// From its decorator to the next function.
    text: &'static str,
    file: FileId,
    tree: OnceLock<Module>,
}

/// The modules in the order in which names are looked up.
pub(crate) fn library() -> &'static [LibraryModule] {
    static LIBRARY: OnceLock<Vec<LibraryModule>> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let mut file = FIRST_FILE;
        let mut module = |(name, text): &(&'static str, &'static str)| {
            let functions = definitions(text).map(|(function, text)| {
                file += 1;
                (function, LibraryFunction { text, file: FileId(file), tree: OnceLock::new() })
            });
            LibraryModule { name, functions: functions.collect() }
        };
        rtc_stdlib::SOURCES.iter().map(&mut module).collect()
    })
}

impl LibraryModule {
    /// Whether the module is a namespace of its own, and not part of the common one.
    pub(crate) fn has_own_namespace(&self) -> bool {
        matches!(self.name, "libdevice" | "triton_helpers")
    }

    /// Whether there is a function of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// The names of all functions, in no order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.functions.keys().copied()
    }

    /// The function of that name.
    pub(crate) fn function(&self, name: &str) -> Option<&FunctionDef> {
        let function = self.functions.get(name)?;
        let tree = function.tree.get_or_init(|| rtc_syntax::parse(function.file, function.text).0);
        tree.body.iter().find_map(|stmt| match &stmt.kind {
            StmtKind::FunctionDef(def) => Some(def),
            _ => None,
        })
    }
}

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
    /// What a user's call of a function may pass; inside of the library every call is right.
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

impl<'a> Cx<'a> {
    /// Checks what a user passes to a function of the library; `pow` takes a whole exponent, too.
    pub(crate) fn check_library_call(
        &mut self,
        module: ModuleId,
        name: &str,
        bound: &mut [(Symbol, Arg<'a>)],
        span: Span,
    ) -> R<()> {
        let Some(library) = self.world.library_module(module) else { return Ok(()) };
        let mut first: Option<(Tensor, Span)> = None;
        for (parameter, arg) in bound {
            let takes = Takes::of(library.name, name, parameter);
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

/// The functions of a text: name, and text from the decorator to the next decorator.
fn definitions(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.split("\n@").filter_map(|block| {
        let def = block.split('\n').find_map(|line| line.strip_prefix("def "))?;
        let name = &def[..def.find('(')?];
        let at = block.as_ptr() as usize - text.as_ptr() as usize;
        // The split takes the `@` away, except before the first function of a text that begins with one.
        let start = if at > 0 { at - 1 } else { 0 };
        Some((name, &text[start..at + block.len()]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cuts_are_the_functions_that_the_parser_sees() {
        for ((_, text), module) in rtc_stdlib::SOURCES.iter().zip(library()) {
            let (whole, diagnostics) = rtc_syntax::parse(FileId(0), text);
            assert!(diagnostics.is_empty(), "{}: {diagnostics:?}", module.name);
            for stmt in &whole.body {
                let StmtKind::FunctionDef(def) = &stmt.kind else {
                    panic!("{} holds something that is no function: {stmt:?}", module.name);
                };
                let cut = module.function(&def.name.text).expect("every function is found");
                assert!(def.is_jit() && cut.is_jit(), "{}", def.name.text);
                assert_eq!((def.params.len(), def.body.len()), (cut.params.len(), cut.body.len()), "{}", def.name.text);
            }
            assert_eq!(module.names().count(), whole.body.len(), "{}", module.name);
        }
    }

    #[test]
    fn functions_are_parsed_when_asked_for() {
        let text = "# comment\n@triton.jit\ndef f(x):\n    return x\n\n\n@triton.jit\ndef g(x):\n    return x\n";
        let found: Vec<_> = definitions(text).collect();
        assert_eq!(
            found,
            [("f", "@triton.jit\ndef f(x):\n    return x\n\n"), ("g", "@triton.jit\ndef g(x):\n    return x\n")]
        );
        assert!(is_library(library()[0].functions.values().next().expect("not empty").file));
    }
}
