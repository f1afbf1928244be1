//! The functions of the language that need operations of their own. Everything else is a jit function of the standard
//! library.
//!
//! One row per function: its name and what it does. The file `NAME.rt` beside a table declares the rows, with parameters
//! and defaults (`../declared.rs`), and documents them (`../reference.rs`). The code takes its arguments by the declared
//! names (`args.rs`).

mod args;
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

pub(crate) use args::Args;
pub(crate) use external::external;

use rtc_ir::Shape;
use rtc_source::{Code, Diagnostic, Span};

use crate::cx::{Arg, Cx, R};
use crate::declared::{Builtin, Namespace};
use crate::types::{ElemTy, TyVal};
use crate::values::{Const, Val};

/// What a built-in function does.
pub(crate) type Run = for<'a> fn(&mut Cx<'a>, &Args<'a>) -> R<Val<'a>>;

/// The code of a function that is declared in the `.rt` file beside the table.
pub(crate) struct Row {
    name: &'static str,
    run: Run,
}

/// A row of a table.
const fn row(name: &'static str, run: Run) -> Row {
    Row { name, run }
}

/// The tables of a namespace.
fn tables(namespace: Namespace) -> &'static [&'static [Row]] {
    match namespace {
        Namespace::Language => &[
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
        ],
        Namespace::Descriptor => &[descriptor::METHODS],
        Namespace::Type => &[python::TYPE_METHODS],
        Namespace::Constant => &[python::CONSTANT],
        Namespace::Python => &[python::TABLE, host::LOOPS],
        Namespace::Host => &[host::TABLE],
        Namespace::Triton => &[python::TRITON],
        Namespace::PyMath => &[python::MATH],
        Namespace::Cuda => &[cuda::TABLE],
        Namespace::TargetInfo => &[cuda::TARGET_INFO],
        Namespace::NamedTuple => &[named_tuple::TABLE],
        Namespace::Prim => &[prim::TABLE],
        Namespace::External => &[],
    }
}

/// What a function does.
pub(crate) fn implementation(b: &Builtin) -> Option<Run> {
    if b.namespace == Namespace::External {
        return Some(external::call);
    }
    let mut rows = tables(b.namespace).iter().flat_map(|t| t.iter());
    rows.find(|row| row.name == b.name).map(|row| row.run)
}

/// The names of all rows of a namespace.
pub(crate) fn rows(namespace: Namespace) -> impl Iterator<Item = &'static str> {
    tables(namespace).iter().flat_map(|t| t.iter()).map(|row| row.name)
}

impl<'a> Cx<'a> {
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
