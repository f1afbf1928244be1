//! The functions of the language, as data: one [`Entry`] per function, method and attribute, for the reference pages
//! and for listing or explaining names.
//!
//! The text comes from the definitions. Functions of the standard library have docstrings; built-in functions have no
//! text of their own, so next to each table `builtins/NAME.rs` there is `builtins/NAME.rt`, which declares its rows in
//! the kernel language, with defaults and docstrings. A test compares rows and declarations.
//!
//! A docstring begins with one sentence. Then come, in any order, lines `NAME: what it takes` for parameters,
//! `returns:` and `errors:` (codes of diagnostics), paragraphs, and examples:
//!
//! ```text
//! """Sum along an axis.
//!
//! input: numbers
//! axis: which one; None adds up all elements
//! returns: `input` without that axis
//! errors: out-of-range
//!
//! >>> tl.sum(tl.arange(0, 8), axis=0)
//! """
//! ```
//!
//! Each group of lines that start with `>>>` is an example. The tests run all of them, and the pages show the results.

mod docstring;

use rtc_source::FileId;
use rtc_syntax::ast::{Expr, ExprKind, FunctionDef, ParamKind, StmtKind};

pub use docstring::Doc;

use crate::attrs::METHODS;
use crate::builtins;
use crate::declared::{self, Namespace};

/// Something that a kernel can name.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Where it is found: a module such as `tl`, or what it is an attribute of.
    pub namespace: String,
    /// Title of the group that it belongs to.
    pub group: String,
    /// Its name.
    pub name: String,
    /// The object of the call or access.
    pub kind: EntryKind,
    /// Parameters as they are written: name, annotation, default.
    pub params: Vec<String>,
    /// Names of the parameters, with the stars of variadic ones and `?` after those with a default.
    pub names: Vec<String>,
    /// Whether a block or scalar has it as a method, too.
    pub method: bool,
    /// Its documentation.
    pub doc: Doc,
}

/// How an entry is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// By a call.
    Function,
    /// By reading it.
    Attribute,
}

impl Entry {
    /// The name with the module or value before it: `tl.load`, `x.dtype`, `len`.
    pub fn path(&self) -> String {
        if self.namespace == "python" { self.name.clone() } else { format!("{}.{}", self.namespace, self.name) }
    }

    /// How it is written: `tl.arange(start, end)`, `x.dtype`.
    pub fn usage(&self) -> String {
        match self.kind {
            EntryKind::Attribute => self.path(),
            EntryKind::Function => {
                // A method's first parameter comes before the dot.
                let params: Vec<&str> = self.params.iter().map(String::as_str).filter(|p| *p != "self").collect();
                format!("{}({})", self.path(), params.join(", "))
            }
        }
    }
}

/// The declarations that the reference shows. A line `#: NAMESPACE | TITLE` begins a section.
const DECLARED: &[&str] = &[
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
];

/// Modules of the standard library: where kernels find their functions, and the title of the group.
const LIBRARY: &[(&str, &str, &str)] = &[
    (rtc_stdlib::STANDARD, "tl", "Reductions, scans, sorting"),
    (rtc_stdlib::RANDOM, "tl", "Random numbers"),
    (rtc_stdlib::MATH, "libdevice", "Elementary functions"),
    (rtc_stdlib::LIBDEVICE, "libdevice", "Rounding, bits, conversions, fast forms"),
    (rtc_stdlib::TRITON_HELPERS, "triton_helpers", "Helpers of TorchInductor"),
];

/// Functions of the library's mathematics that only `tl` has.
const ONLY_IN_TL: &[&str] = &["sigmoid"];

/// Functions of the library that belong to other groups than the rest of their module.
const TOPICS: &[(&str, &[&str])] = &[
    ("Programs and ranges", &["swizzle2d"]),
    ("Making blocks, casts, types", &["zeros", "zeros_like"]),
    ("Shapes", &["ravel", "flip", "interleave"]),
    ("Mathematics", &["sigmoid", "softmax", "cdiv"]),
    ("Matrix multiplication", &["dot_scaled"]),
];

/// All entries, group by group.
pub fn entries() -> Vec<Entry> {
    let mut all = Vec::new();
    for text in DECLARED {
        for section in text.split("\n#: ").skip(1) {
            let (head, text) = section.split_once('\n').unwrap_or((section, ""));
            let (namespace, title) = head.split_once(" | ").unwrap_or((head, head));
            all.extend(definitions(text, namespace, title));
        }
    }
    for (module, namespace, title) in LIBRARY {
        let mut found = definitions(rtc_stdlib::source(module).unwrap_or_default(), namespace, title);
        found.retain(|e| !e.name.starts_with('_'));
        for entry in &mut found {
            if *namespace == "libdevice" && ONLY_IN_TL.contains(&entry.name.as_str()) {
                entry.namespace = "tl".into();
            }
            if let Some((topic, _)) =
                TOPICS.iter().find(|(_, names)| entry.namespace == "tl" && names.contains(&entry.name.as_str()))
            {
                entry.group = (*topic).into();
            }
            // Built-in functions that go through the library are documented once.
            let same = |e: &&mut Entry| e.namespace == "tl" && e.name == entry.name;
            if let Some(built_in) = all.iter_mut().find(same).filter(|_| *module == rtc_stdlib::MATH) {
                built_in.doc.fill(&entry.doc);
            }
        }
        // A function of `libdevice` itself is used instead of the one of `math`.
        all.retain(|e: &Entry| {
            e.namespace != "libdevice" || !found.iter().any(|own| own.namespace == "libdevice" && own.name == e.name)
        });
        all.extend(found);
    }
    for entry in all.iter_mut().filter(|e| matches!(e.namespace.as_str(), "tl" | "libdevice")) {
        entry.method = METHODS.contains(&entry.name.as_str());
    }
    // Of two functions of one name the one of `tl` is the method.
    let of_tl: Vec<String> = all.iter().filter(|e| e.namespace == "tl").map(|e| e.name.clone()).collect();
    all.iter_mut().filter(|e| e.namespace == "libdevice" && of_tl.contains(&e.name)).for_each(|e| e.method = false);
    all
}

/// Every function that is built in: its namespace, its name, the parameters as [`Entry::names`] has them, and whether it
/// has code.
pub fn built_in() -> Vec<(&'static str, &'static str, Vec<String>, bool)> {
    let marked = |p: &declared::Parameter| match (p.is_rest, &p.default) {
        (true, _) => format!("*{}", p.name),
        (_, Some(_)) => format!("{}?", p.name),
        (_, None) => p.name.to_string(),
    };
    let all = declared::all().map(|b| {
        let names = b.signature.parameters.iter().map(marked).collect();
        (b.namespace.name(), b.name, names, builtins::implementation(b).is_some())
    });
    all.collect()
}

/// The rows of the tables that no text declares.
pub fn undeclared() -> Vec<String> {
    let rows = |n: &Namespace| builtins::rows(*n).map(|name| (*n, name)).collect::<Vec<_>>();
    let missing = Namespace::ALL.iter().flat_map(rows).filter(|(n, name)| declared::find(*n, name).is_none());
    missing.map(|(n, name)| format!("{}.{name}", n.name())).collect()
}

/// The common element type of two run-time operands by their names (`fp16`), or why there is none; `division` for `/`,
/// `//` and `%`.
pub fn promotion(a: &str, b: &str, division: bool) -> Option<&'static str> {
    let dtype = |name| crate::spec::DType::ALL.iter().copied().find(|d| crate::types::dtype_name(*d) == name);
    crate::promote::tensors(dtype(a)?, dtype(b)?, division).ok().map(crate::types::dtype_name)
}

fn definitions(text: &str, namespace: &str, group: &str) -> Vec<Entry> {
    let (module, _) = rtc_syntax::parse(FileId(0), text);
    let functions = module.body.iter().filter_map(|stmt| match &stmt.kind {
        StmtKind::FunctionDef(def) => Some(entry(def, text, namespace, group)),
        _ => None,
    });
    functions.collect()
}

fn entry(def: &FunctionDef, text: &str, namespace: &str, group: &str) -> Entry {
    let is_attribute = def.decorators.iter().any(|d| crate::values::decorator_name(d) == Some("property"));
    let written = |p: &rtc_syntax::ast::Param| {
        let source = text.get(p.span.start as usize..p.span.end as usize).unwrap_or_default();
        source.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let marked = |p: &rtc_syntax::ast::Param| match p.kind {
        ParamKind::VarArgs => format!("*{}", p.name.text),
        ParamKind::KwArgs => format!("**{}", p.name.text),
        _ => format!("{}{}", p.name.text, if p.default.is_some() { "?" } else { "" }),
    };
    let docstring = match def.body.first().map(|s| &s.kind) {
        Some(StmtKind::Expr(Expr { kind: ExprKind::Str(text), .. })) => text.to_string(),
        _ => String::new(),
    };
    let parameters: Vec<&str> = def.params.iter().map(|p| &*p.name.text).collect();
    Entry {
        namespace: namespace.into(),
        group: group.into(),
        name: def.name.text.to_string(),
        kind: if is_attribute { EntryKind::Attribute } else { EntryKind::Function },
        params: def.params.iter().map(written).collect(),
        names: def.params.iter().map(marked).collect(),
        method: false,
        doc: Doc::parse(&docstring, &parameters),
    }
}
