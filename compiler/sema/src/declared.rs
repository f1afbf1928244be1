//! The built-in functions, as the files `builtins/*.rt` declare them: names, parameters, defaults.
//!
//! The build script reads the files into a table. The code of the functions is next to the declarations, in
//! `builtins/*.rs`.

use std::borrow::Cow;
use std::fmt;

use crate::const_eval::Const;

/// Where a function is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Namespace {
    /// `tl`.
    Language,
    /// Methods of tensor descriptors.
    Descriptor,
    /// Methods of types.
    Type,
    /// Methods of constants.
    Constant,
    /// Python's functions that kernels can call.
    Python,
    /// Python's functions that only constexpr functions can call.
    Host,
    /// `triton`.
    Triton,
    /// Python's `math`, on constants.
    PyMath,
    /// `tl.extra.cuda`.
    Cuda,
    /// `tl.target_info`.
    TargetInfo,
    /// The functions that make classes of named tuples.
    NamedTuple,
    /// The functions that the host code of autotuning calls.
    Tuning,
    /// Primitives of the standard library.
    Prim,
    /// Functions of an external library, which no text declares.
    External,
}

impl Namespace {
    /// Those that the texts have.
    pub(crate) const ALL: [Namespace; 13] = [
        Namespace::Language,
        Namespace::Descriptor,
        Namespace::Type,
        Namespace::Constant,
        Namespace::Python,
        Namespace::Host,
        Namespace::Triton,
        Namespace::PyMath,
        Namespace::Cuda,
        Namespace::TargetInfo,
        Namespace::NamedTuple,
        Namespace::Tuning,
        Namespace::Prim,
    ];

    /// As the head of a section names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Namespace::Language => "tl",
            Namespace::Descriptor => "descriptor",
            Namespace::Type => "type",
            Namespace::Constant => "constant",
            Namespace::Python => "python",
            Namespace::Host => "host",
            Namespace::Triton => "triton",
            Namespace::PyMath => "math",
            Namespace::Cuda => "tl.extra.cuda",
            Namespace::TargetInfo => "tl.target_info",
            Namespace::NamedTuple => "named tuple",
            Namespace::Tuning => "tuning",
            Namespace::Prim => "prim",
            Namespace::External => "external",
        }
    }
}

/// A function that is built in.
pub(crate) struct Builtin {
    pub namespace: Namespace,
    pub name: &'static str,
    /// Its place in the table of all that are declared.
    pub index: usize,
    /// Its parameters.
    pub signature: Signature,
}

impl Builtin {
    /// A function that no text declares, with positional parameters only.
    pub(crate) fn external(name: &'static str, parameters: &[&'static str]) -> Builtin {
        let parameters = parameters.iter().map(|name| Parameter { name, is_rest: false, default: None }).collect();
        Builtin { namespace: Namespace::External, name, index: usize::MAX, signature: Signature { parameters } }
    }
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The parameters of a function that is built in.
#[derive(Debug)]
pub(crate) struct Signature {
    pub parameters: Cow<'static, [Parameter]>,
}

/// A declared parameter.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub name: &'static str,
    /// Whether it takes the rest of the positional arguments.
    pub is_rest: bool,
    pub default: Option<Default>,
}

/// The default of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Default {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(&'static str),
    /// The default in the documentation, such as `tl.float32`; the function checks `Args::given`.
    Described,
}

impl Signature {
    /// The place of a parameter.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|p| p.name == name)
    }

    /// The place of the parameter that takes the rest of the positional arguments.
    pub(crate) fn rest(&self) -> Option<usize> {
        self.parameters.iter().position(|p| p.is_rest)
    }

    /// The parameters as messages list them.
    pub(crate) fn listed(&self) -> String {
        let star = |p: &Parameter| if p.is_rest { "*" } else { "" };
        let names: Vec<String> = self.parameters.iter().map(|p| format!("`{}{}`", star(p), p.name)).collect();
        if names.is_empty() { "none".into() } else { names.join(", ") }
    }
}

impl Default {
    /// The constant that it is; `None` where the declaration only describes it.
    pub(crate) fn constant(self) -> Const {
        match self {
            Default::None | Default::Described => Const::None,
            Default::Bool(b) => Const::Bool(b),
            Default::Int(i) => Const::Int(i),
            Default::Float(x) => Const::Float(x),
            Default::Str(s) => Const::Str(s.into()),
        }
    }
}

/// All functions that the texts declare, ordered by namespace and name.
static TABLE: &[Builtin] = include!(concat!(env!("OUT_DIR"), "/declared.rs"));

/// The function of that name.
pub(crate) fn find(namespace: Namespace, name: &str) -> Option<&'static Builtin> {
    let first = TABLE.partition_point(|b| (b.namespace, b.name) < (namespace, name));
    TABLE.get(first).filter(|b| b.namespace == namespace && b.name == name)
}

/// All functions.
pub(crate) fn all() -> impl Iterator<Item = &'static Builtin> {
    TABLE.iter()
}

/// The names in a namespace.
pub(crate) fn names(namespace: Namespace) -> impl Iterator<Item = &'static str> {
    all().filter(move |b| b.namespace == namespace).map(|b| b.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_defaults_are_those_of_the_text() {
        let print = &find(Namespace::Language, "static_print").expect("it is declared").signature;
        assert_eq!(print.listed(), "`*values`, `sep`, `end`, `file`, `flush`");
        assert_eq!(print.rest(), Some(0));
        let default = |name| print.parameters[print.position(name).expect("it is declared")].default;
        assert_eq!(default("values"), None);
        assert_eq!((default("sep"), default("end")), (Some(Default::Str(" ")), Some(Default::Str("\n"))));
        let dot = &find(Namespace::Language, "dot").expect("it is declared").signature;
        let out = dot.position("out_dtype").expect("it is declared");
        assert_eq!(dot.parameters[out].default, Some(Default::Described));
    }

    #[test]
    fn every_function_is_found() {
        assert!(all().count() > 230);
        for b in all() {
            assert!(find(b.namespace, b.name).is_some_and(|found| std::ptr::eq(found, b)), "{}", b.name);
        }
        assert!(find(Namespace::Language, "no_such_function").is_none());
    }
}
