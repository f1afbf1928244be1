//! The functions of the language that need operations of their own. Everything else is a jit function of the standard
//! library.
//!
//! One row per function: name, parameters, what it does. A parameter that ends in `?` may be left out, one that begins
//! with `*` takes the rest. The file `NAME.rt` beside a table declares and documents its rows (`../reference.rs`).

mod atomics;
mod block_pointer;
mod creation;
mod cuda;
mod debug;
mod descriptor;
mod dot;
mod external;
mod host;
mod map;
mod maths;
mod memory;
mod named_tuple;
mod prim;
mod program;
mod python;
mod reduce;
mod select;
mod shape;

use rtc_ir::Shape;
use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::Symbol;

use crate::cx::{Arg, Cx, R};
use crate::resolve::ModuleRef;
use crate::types::{ElemTy, TyVal};
use crate::values::{Const, Tensor, Val};

/// A function that is built in.
pub(crate) struct Builtin {
    pub name: &'static str,
    pub params: &'static [&'static str],
    pub run: for<'a> fn(&mut Cx<'a>, &Args<'a>) -> R<Val<'a>>,
}

/// A row of a table.
pub(crate) const fn row(
    name: &'static str,
    params: &'static [&'static str],
    run: for<'a> fn(&mut Cx<'a>, &Args<'a>) -> R<Val<'a>>,
) -> Builtin {
    Builtin { name, params, run }
}

/// The arguments of a call of a built-in function, bound to its parameters.
pub(crate) struct Args<'a> {
    pub name: &'static str,
    pub span: Span,
    pub params: &'static [&'static str],
    /// One entry per parameter.
    pub vals: Vec<Option<Arg<'a>>>,
    /// What a `*` parameter took.
    pub rest: Vec<Arg<'a>>,
    /// What a `**` parameter took.
    pub named: Vec<(Symbol, Arg<'a>)>,
    /// Called as a method: the first argument is the receiver.
    pub method: bool,
}

impl<'a> Args<'a> {
    /// The argument of a parameter that must be there.
    pub(crate) fn arg(&self, index: usize) -> Arg<'a> {
        self.vals[index].clone().unwrap_or_else(|| Arg::new(Val::Error, self.span))
    }

    /// The argument of a parameter, unless it was left out or is `None`.
    pub(crate) fn given(&self, index: usize) -> Option<Arg<'a>> {
        self.vals[index].clone().filter(|a| !a.val.is_none())
    }

    /// The name of a parameter, without its marks.
    pub(crate) fn param(&self, index: usize) -> &'static str {
        self.params[index].trim_matches(['*', '?'])
    }

    /// As messages name a parameter.
    pub(crate) fn what(&self, index: usize) -> String {
        format!("`{}` of `{}`", self.param(index), self.name)
    }
}

fn find(tables: &[&'static [Builtin]], name: &str) -> Option<&'static Builtin> {
    tables.iter().flat_map(|t| t.iter()).find(|b| b.name == name)
}

const LANGUAGE: &[&[Builtin]] = &[
    program::TABLE,
    creation::TABLE,
    shape::TABLE,
    memory::TABLE,
    block_pointer::TABLE,
    atomics::TABLE,
    descriptor::TABLE,
    select::TABLE,
    maths::TABLE,
    dot::TABLE,
    reduce::TABLE,
    map::TABLE,
    debug::TABLE,
    external::TABLE,
];

/// `tl.name`.
pub(crate) fn language(name: &str) -> Option<&'static Builtin> {
    find(LANGUAGE, name)
}

/// A function that needs no module.
pub(crate) fn python(name: &str) -> Option<&'static Builtin> {
    find(&[python::TABLE, host::LOOPS], name)
}

/// A function of Python that only constexpr functions can call.
pub(crate) fn host(name: &str) -> Option<&'static Builtin> {
    find(&[host::TABLE], name)
}

/// `triton.name`.
pub(crate) fn triton(name: &str) -> Option<&'static Builtin> {
    find(&[python::TRITON], name)
}

/// `math.name` of Python, on constants.
pub(crate) fn py_math(name: &str) -> Option<&'static Builtin> {
    find(&[python::MATH], name)
}

/// `tl.extra.cuda.name`.
pub(crate) fn cuda(name: &str) -> Option<&'static Builtin> {
    find(&[cuda::TABLE], name)
}

/// `tl.target_info.name`.
pub(crate) fn target_info(name: &str) -> Option<&'static Builtin> {
    find(&[cuda::TARGET_INFO], name)
}

/// `prim.name`, for the standard library.
pub(crate) fn prim(name: &str) -> Option<&'static Builtin> {
    find(&[prim::TABLE], name)
}

pub(crate) use external::external;

/// `libdevice.name`, where the library has no text for it.
pub(crate) fn libdevice(name: &str) -> Option<&'static Builtin> {
    find(&[prim::LIBDEVICE], name)
}

/// Methods of tensor descriptors.
pub(crate) fn descriptor(name: &str) -> Option<&'static Builtin> {
    find(&[descriptor::METHODS], name)
}

/// What makes classes of named tuples, by its full name.
pub(crate) fn tuple_maker(path: &str) -> Option<&'static Builtin> {
    match path {
        "collections.namedtuple" => find(&[named_tuple::TABLE], "namedtuple"),
        "typing.NamedTuple" => find(&[named_tuple::TABLE], "NamedTuple"),
        _ => None,
    }
}

/// Methods of types.
pub(crate) fn type_method(name: &str) -> Option<&'static Builtin> {
    find(&[python::TYPE_METHODS], name)
}

/// The names of a module's built-in functions, for suggestions.
pub(crate) fn names(module: &ModuleRef) -> Vec<&'static str> {
    let tables: &[&[Builtin]] = match module {
        ModuleRef::Language => LANGUAGE,
        ModuleRef::Triton => &[python::TRITON],
        ModuleRef::PyMath => &[python::MATH],
        ModuleRef::Cuda => &[cuda::TABLE],
        ModuleRef::TargetInfo => &[cuda::TARGET_INFO],
        ModuleRef::Prim => &[prim::TABLE],
        _ => &[],
    };
    tables.iter().flat_map(|t| t.iter()).map(|b| b.name).collect()
}

/// Python's functions that kernels can call.
pub(crate) fn python_names() -> impl Iterator<Item = &'static str> {
    python::TABLE.iter().chain(host::LOOPS).map(|b| b.name).filter(|n| !n.starts_with('_'))
}

/// All tables with the modules that they belong to, but for the primitives of the standard library.
pub(crate) fn reference_tables() -> Vec<(&'static str, &'static [&'static [Builtin]])> {
    vec![
        ("tl", LANGUAGE),
        ("descriptor", &[descriptor::METHODS]),
        ("python", &[python::TABLE, host::LOOPS]),
        ("triton", &[python::TRITON]),
        ("math", &[python::MATH]),
        ("type", &[python::TYPE_METHODS]),
        ("tl.extra.cuda", &[cuda::TABLE]),
        ("tl.target_info", &[cuda::TARGET_INFO]),
        ("libdevice", &[prim::LIBDEVICE]),
    ]
}

impl<'a> Cx<'a> {
    /// An argument as a tensor; constants are typed as they stand.
    pub(crate) fn tensor_arg(&mut self, args: &Args<'a>, index: usize) -> R<Tensor> {
        let what = args.what(index);
        self.tensor(&args.arg(index), &what)
    }

    /// An optional argument as a tensor.
    pub(crate) fn optional_tensor(&mut self, args: &Args<'a>, index: usize) -> R<Option<Tensor>> {
        match args.given(index) {
            Some(_) => self.tensor_arg(args, index).map(Some),
            None => Ok(None),
        }
    }

    /// An argument that must be a compile-time constant.
    pub(crate) fn const_arg(&mut self, arg: &Arg<'a>, what: &str) -> R<Const> {
        match &arg.val {
            Val::Const(c) => Ok(c.clone()),
            Val::Error => Err(crate::cx::Fault),
            other => {
                let text = other.describe();
                let (message, help) = self.not_constexpr(other, arg.span, what);
                let d = Diagnostic::error(Code::EXPECTED_CONSTEXPR, arg.span, message)
                    .primary(format!("this is {text}, known only at run time"))
                    .help(help);
                self.fail(d)
            }
        }
    }

    /// What to say of a run-time value where a constant is needed: it depends on how the name came about.
    fn not_constexpr(&self, val: &Val<'a>, span: Span, what: &str) -> (String, String) {
        let name = self.sources.get(span.file).map_or("", |_| self.sources.text(span));
        let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.is_empty();
        if !is_name || self.in_library() {
            let help = "pass a literal, a `tl.constexpr` parameter or an expression of these".to_string();
            return (format!("{what} must be a constexpr"), help);
        }
        let parameter = self.frame().def.is_some_and(|def| def.params.iter().any(|p| &*p.name.text == name));
        let declared = matches!(val, Val::Tensor(t) if self.declared.contains(&t.value));
        let help = if declared {
            format!("compute `{name}` from constexprs only")
        } else if parameter {
            format!("annotate the parameter and pass a constant: `{name}: tl.constexpr`")
        } else {
            format!("a plain assignment makes a run-time value; declare the constant: `{name}: tl.constexpr = ...`")
        };
        (format!("`{name}` is not a constexpr, but {what} must be one"), help)
    }

    /// An argument that must be a compile-time integer.
    pub(crate) fn int_of(&mut self, arg: &Arg<'a>, what: &str) -> R<i128> {
        match self.const_arg(arg, what)? {
            Const::Int(i) => Ok(i),
            Const::Bool(b) => Ok(i128::from(b)),
            other => {
                let d = Diagnostic::error(Code::TYPE_MISMATCH, arg.span, format!("{what} must be an integer"))
                    .primary(format!("this is the constant {other}"));
                self.fail(d)
            }
        }
    }

    /// An integer argument, or `default` if it was left out.
    pub(crate) fn int_arg(&mut self, args: &Args<'a>, index: usize, default: i128) -> R<i128> {
        match args.given(index) {
            Some(arg) => self.int_of(&arg, &args.what(index)),
            None => Ok(default),
        }
    }

    /// A truth value, or `default` if it was left out.
    pub(crate) fn bool_arg(&mut self, args: &Args<'a>, index: usize, default: bool) -> R<bool> {
        match args.given(index) {
            Some(arg) => {
                let c = self.const_arg(&arg, &args.what(index))?;
                Ok(crate::const_eval::truth(&c))
            }
            None => Ok(default),
        }
    }

    /// A string, or the empty one if it was left out.
    pub(crate) fn str_arg(&mut self, args: &Args<'a>, index: usize) -> R<Option<Symbol>> {
        let Some(arg) = args.given(index) else { return Ok(None) };
        match self.const_arg(&arg, &args.what(index))? {
            Const::Str(s) => Ok(Some(s)),
            other => {
                let d =
                    Diagnostic::error(Code::TYPE_MISMATCH, arg.span, format!("{} must be a string", args.what(index)))
                        .primary(format!("this is the constant {other}"));
                self.fail(d)
            }
        }
    }

    /// An element type.
    pub(crate) fn type_of(&mut self, arg: &Arg<'a>, what: &str) -> R<ElemTy> {
        match &arg.val {
            Val::Type(TyVal::Elem(elem)) => Ok(*elem),
            Val::Type(TyVal::Block(elem, _)) => Ok(*elem),
            Val::Const(Const::Str(name)) => match crate::spec::ValueType::parse(name) {
                Some(ty) => Ok(ty.into()),
                None => self.not_a_type(arg, what),
            },
            Val::Error => Err(crate::cx::Fault),
            _ => self.not_a_type(arg, what),
        }
    }

    fn not_a_type<T>(&mut self, arg: &Arg<'a>, what: &str) -> R<T> {
        let text = arg.val.describe();
        let d = Diagnostic::error(Code::TYPE_MISMATCH, arg.span, format!("{what} must be a type"))
            .primary(format!("this is {text}"))
            .help("write a type such as `tl.float32` or `x.dtype`");
        self.fail(d)
    }

    /// Compile-time integers: one sequence, or separate arguments.
    pub(crate) fn ints_of(&mut self, args: &[Arg<'a>], what: &str) -> R<Vec<i128>> {
        if let [only] = args
            && let Val::Tuple(t) = &only.val
        {
            let items: Vec<Arg<'a>> = t.items.iter().map(|v| Arg::new(v.clone(), only.span)).collect();
            return items.iter().map(|a| self.int_of(a, &format!("a size in {what}"))).collect();
        }
        args.iter().map(|a| self.int_of(a, what)).collect()
    }

    /// A shape given as a sequence.
    pub(crate) fn shape_of(&mut self, arg: &Arg<'a>, what: &str) -> R<Shape> {
        match &arg.val {
            Val::Tuple(_) => {
                let dims = self.ints_of(std::slice::from_ref(arg), what)?;
                self.shape(&dims, arg.span)
            }
            Val::Error => Err(crate::cx::Fault),
            other => {
                let text = other.describe();
                let d = Diagnostic::error(
                    Code::TYPE_MISMATCH,
                    arg.span,
                    format!("{what} must be a tuple or list of sizes"),
                )
                .primary(format!("this is {text}"))
                .help("write `[n]` or `(n,)` for one dimension");
                self.fail(d)
            }
        }
    }

    /// An axis, counted from the end if it is negative.
    pub(crate) fn axis_of(&mut self, arg: &Arg<'a>, rank: usize, what: &str) -> R<usize> {
        let axis = self.int_of(arg, what)?;
        let wrapped = if axis < 0 { axis + rank as i128 } else { axis };
        if (0..rank as i128).contains(&wrapped) {
            return Ok(wrapped as usize);
        }
        let d = Diagnostic::error(Code::OUT_OF_RANGE, arg.span, format!("invalid axis {axis}"))
            .primary(format!("the block has {}", dimensions(rank)))
            .help("axes count from 0, or from -1 at the end");
        self.fail(d)
    }
}

/// `1 dimension`, `2 dimensions`.
pub(crate) fn dimensions(rank: usize) -> String {
    format!("{rank} dimension{}", if rank == 1 { "" } else { "s" })
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
