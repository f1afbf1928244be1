//! The functions that are built in, as the files `builtins/*.rt` declare them: names, parameters, defaults.
//!
//! The texts are cut into functions once per process; a signature is parsed when its function is first called. What
//! the functions do stands beside the declarations, in `builtins/*.rs`.

use std::fmt;
use std::sync::OnceLock;

use indexmap::IndexMap;

use crate::const_eval::Const;

/// The declarations. A line `#: NAMESPACE | TITLE` begins a section; without a title, the section is left out of the
/// reference.
pub(crate) const TEXTS: &[&str] = &[
    include_str!("builtins/program.rt"),
    include_str!("builtins/creation.rt"),
    include_str!("builtins/shape.rt"),
    include_str!("builtins/memory.rt"),
    include_str!("builtins/block_pointer.rt"),
    include_str!("builtins/descriptor.rt"),
    include_str!("builtins/atomics.rt"),
    include_str!("builtins/select.rt"),
    include_str!("builtins/maths.rt"),
    include_str!("builtins/dot.rt"),
    include_str!("builtins/reduce.rt"),
    include_str!("builtins/map.rt"),
    include_str!("builtins/debug.rt"),
    include_str!("builtins/external.rt"),
    include_str!("builtins/cuda.rt"),
    include_str!("builtins/python.rt"),
    include_str!("builtins/attributes.rt"),
    include_str!("builtins/host.rt"),
    include_str!("builtins/named_tuple.rt"),
    include_str!("builtins/prim.rt"),
];

/// Where a function is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// What makes classes of named tuples.
    NamedTuple,
    /// Primitives of the standard library.
    Prim,
    /// Functions of an external library, which no text declares.
    External,
}

impl Namespace {
    /// Those that the texts have.
    pub(crate) const ALL: [Namespace; 12] = [
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
            Namespace::Prim => "prim",
            Namespace::External => "external",
        }
    }
}

/// A function that is built in.
pub(crate) struct Builtin {
    pub namespace: Namespace,
    pub name: &'static str,
    /// `def name(...)`.
    header: &'static str,
    signature: OnceLock<Signature>,
}

impl Builtin {
    /// A function that no text declares, with positional parameters only.
    pub(crate) fn external(name: &'static str, parameters: &[&str]) -> Builtin {
        let positional = |name: &&str| Parameter { name: (*name).into(), is_rest: false, default: None };
        let signature = Signature { parameters: parameters.iter().map(positional).collect() };
        Builtin { namespace: Namespace::External, name, header: "", signature: signature.into() }
    }

    /// Its parameters.
    pub(crate) fn signature(&self) -> &Signature {
        self.signature.get_or_init(|| Signature::parse(self.header))
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
    pub parameters: Vec<Parameter>,
}

/// A declared parameter.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub name: Box<str>,
    /// Whether it takes the rest of the positional arguments.
    pub is_rest: bool,
    pub default: Option<Default>,
}

/// What a parameter stands for when it is left out.
#[derive(Debug)]
pub(crate) enum Default {
    /// This constant.
    Const(Const),
    /// What the declaration says to readers, such as `tl.float32`; the function tells by `Args::given`.
    Described,
}

impl Signature {
    /// Reads `def name(a, *rest, b: annotation = default)`, which is plain enough to do without the parser; the tests of
    /// the reference compare both.
    fn parse(header: &str) -> Signature {
        let inside = header.split_once('(').map_or("", |(_, rest)| rest.trim_end_matches(')'));
        let parts = inside.split(", ").map(str::trim).filter(|part| !part.is_empty());
        Signature { parameters: parts.map(Parameter::parse).collect() }
    }

    /// The place of a parameter.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|p| &*p.name == name)
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

impl Parameter {
    fn parse(text: &str) -> Parameter {
        let (declared, default) = match text.split_once('=') {
            Some((declared, default)) => (declared, Some(Default::parse(default.trim()))),
            None => (text, None),
        };
        let name = declared.split(':').next().unwrap_or(declared).trim();
        Parameter { is_rest: name.starts_with('*'), name: name.trim_start_matches('*').into(), default }
    }
}

impl Default {
    fn parse(text: &str) -> Default {
        let number = || Some(Const::Int(text.parse().ok()?)).or_else(|| Some(Const::Float(text.parse().ok()?)));
        let string = || text.strip_prefix('"')?.strip_suffix('"').map(|s| Const::Str(s.replace("\\n", "\n").into()));
        match text {
            "None" => Default::Const(Const::None),
            "True" => Default::Const(Const::Bool(true)),
            "False" => Default::Const(Const::Bool(false)),
            _ => number().or_else(string).map_or(Default::Described, Default::Const),
        }
    }
}

type Table = IndexMap<(Namespace, &'static str), Builtin>;

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let sections = TEXTS.iter().flat_map(|text| text.split("\n#: ").skip(1));
        sections.flat_map(functions).map(|b| ((b.namespace, b.name), b)).collect()
    })
}

/// The functions of a section; attributes are declared for the reference only.
fn functions(section: &'static str) -> impl Iterator<Item = Builtin> {
    let (head, text) = section.split_once('\n').unwrap_or((section, ""));
    let head = head.split(" | ").next().unwrap_or(head);
    let namespace = Namespace::ALL.into_iter().find(|n| n.name() == head);
    let starts = text.match_indices("\ndef ").filter(|(at, _)| !text[..*at].ends_with("@property"));
    starts.filter_map(move |(at, _)| {
        let header = text[at + 1..].split("):\n").next()?;
        let header = &text[at + 1..at + 1 + header.len() + 1];
        let name = header["def ".len()..].split('(').next()?;
        Some(Builtin { namespace: namespace?, name, header, signature: OnceLock::new() })
    })
}

/// The function of that name.
pub(crate) fn find(namespace: Namespace, name: &str) -> Option<&'static Builtin> {
    table().get(&Key(namespace, name))
}

/// All functions, in the order of the declarations.
pub(crate) fn all() -> impl Iterator<Item = &'static Builtin> {
    table().values()
}

/// The names in a namespace.
pub(crate) fn names(namespace: Namespace) -> impl Iterator<Item = &'static str> {
    all().filter(move |b| b.namespace == namespace).map(|b| b.name)
}

/// A key of any lifetime.
#[derive(Hash)]
struct Key<'s>(Namespace, &'s str);

impl indexmap::Equivalent<(Namespace, &'static str)> for Key<'_> {
    fn equivalent(&self, key: &(Namespace, &'static str)) -> bool {
        (self.0, self.1) == *key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_defaults_are_those_of_the_text() {
        let print = find(Namespace::Language, "static_print").expect("it is declared").signature();
        assert_eq!(print.listed(), "`*values`, `sep`, `end`, `file`, `flush`");
        assert_eq!(print.rest(), Some(0));
        let default = |name| &print.parameters[print.position(name).expect("it is declared")].default;
        assert!(matches!(default("sep"), Some(Default::Const(Const::Str(s))) if &**s == " "));
        assert!(default("values").is_none());
        assert!(matches!(default("end"), Some(Default::Const(Const::Str(s))) if &**s == "\n"));
        let dot = find(Namespace::Language, "dot").expect("it is declared").signature();
        let out = dot.position("out_dtype").expect("it is declared");
        assert!(matches!(dot.parameters[out].default, Some(Default::Described)));
    }
}
