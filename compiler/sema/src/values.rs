//! The values of expressions.
//!
//! A [`Val`] is a compile-time constant, a run-time value of the IR, or something made of several ([`Val::Tuple`]).
//! Everything that exists at run time flattens to a list of IR values plus a skeleton to rebuild
//! it from, which is how values pass through branches, loops and calls.

use std::fmt;
use std::rc::Rc;

use rtc_ir::{Shape, SourceOperand, SourceOperandType, Value};
use rtc_source::Span;
use rtc_syntax::ast::{ClassDef, Expr, ExprKind, FunctionDef, Ident, Param, Symbol};

pub(crate) use crate::const_eval::Const;
use crate::declared::Builtin;
use crate::modules::{ModuleId, ModuleRef};
use crate::types::{ElemTy, TyVal};

/// A run-time scalar (rank 0) or block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tensor {
    pub value: Value,
    pub elem: ElemTy,
    pub shape: Shape,
}

/// A tuple or list; `fields` names the elements of a named tuple.
#[derive(Clone, Debug)]
pub(crate) struct Tuple<'a> {
    pub items: Vec<Val<'a>>,
    pub fields: Option<Rc<[Symbol]>>,
    /// The class of a named tuple or aggregate, if it has one.
    pub class: Option<(&'a ClassDef, ModuleId)>,
}

impl Tuple<'_> {
    /// Whether it is a value of an aggregate class.
    pub(crate) fn is_aggregate(&self) -> bool {
        self.class.is_some_and(|(class, _)| is_aggregate(class))
    }
}

/// Whether a class is an aggregate: fields of declared kinds, methods.
pub(crate) fn is_aggregate(class: &ClassDef) -> bool {
    let mut names = class.decorators.iter().filter_map(decorator_name);
    names.any(|name| matches!(name, "_aggregate" | "aggregate" | "dataclass"))
}

/// The callee of a decorator: `triton.jit` of `@triton.jit(noinline=True)`.
pub(crate) fn decorator_name(decorator: &Expr) -> Option<&str> {
    match &decorator.kind {
        ExprKind::Call { func, .. } => decorator_name(func),
        ExprKind::Name(name) => Some(name),
        ExprKind::Attribute { attr, .. } => Some(&attr.text),
        _ => None,
    }
}

/// A class of named tuples made by a call such as `namedtuple("T", ["a", "b"])`. Its values share `fields`.
#[derive(Clone, Debug)]
pub(crate) struct Record<'a> {
    pub name: Symbol,
    pub fields: Rc<[Symbol]>,
    /// One entry per field.
    pub defaults: Vec<Option<Val<'a>>>,
}

/// How a function of a source file is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FunctionKind {
    /// `@triton.jit`: inlined.
    Jit,
    /// Evaluated while compiling: `@triton.constexpr_function`, `@tl.constexpr`, `tl.constexpr(f)`.
    Constexpr,
    /// Host code; cannot be called by its name.
    Host,
}

/// A function of a source file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function<'a> {
    pub def: &'a FunctionDef,
    pub module: ModuleId,
    pub kind: FunctionKind,
    pub noinline: bool,
}

/// A function without a name; host code only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lambda<'a> {
    pub params: &'a [Param],
    pub body: &'a Expr,
    pub module: ModuleId,
}

/// The value of `range`, `tl.range` and `tl.static_range`.
#[derive(Clone, Debug)]
pub(crate) struct Range<'a> {
    pub start: Val<'a>,
    pub stop: Val<'a>,
    pub step: Val<'a>,
    pub spans: [Span; 3],
    pub is_static: bool,
    pub hints: rtc_ir::LoopHints,
}

/// A block pointer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockPtr {
    pub value: Value,
    /// The type of the pointer that it was made of.
    pub base: ElemTy,
    pub block: Shape,
}

/// A tensor descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor {
    pub value: Value,
    /// The type of the pointer that it was made of.
    pub base: ElemTy,
    pub block: Shape,
    pub padding: Padding,
}

/// The padding of a descriptor's block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Padding {
    Zero,
    Nan,
    /// The launch decides.
    Run,
}

impl BlockPtr {
    /// The pointee.
    pub(crate) fn pointee(&self) -> ElemTy {
        self.base.pointee().unwrap_or(self.base)
    }
}

impl Descriptor {
    /// The elements of the tensor.
    pub(crate) fn pointee(&self) -> ElemTy {
        self.base.pointee().unwrap_or(self.base)
    }
}

/// The result of evaluating an expression.
#[derive(Clone, Debug)]
pub(crate) enum Val<'a> {
    Const(Const),
    Tensor(Tensor),
    Tuple(Rc<Tuple<'a>>),
    /// A dictionary: keys, all constant and different, with their values.
    Dict(Rc<Vec<(Val<'a>, Val<'a>)>>),
    Type(TyVal),
    Function(Function<'a>),
    Lambda(Lambda<'a>),
    Builtin(&'static Builtin),
    Module(ModuleRef),
    /// A method with its receiver.
    Method(Rc<(Val<'a>, Val<'a>)>),
    Class(&'a ClassDef, ModuleId),
    Record(Rc<Record<'a>>),
    Range(Rc<Range<'a>>),
    BlockPtr(BlockPtr),
    Descriptor(Descriptor),
    /// A host object, by its printed form.
    Opaque(Symbol),
    /// The outcome of an error that was reported.
    Error,
}

/// A value and the expression that it came from.
#[derive(Clone, Debug)]
pub(crate) struct Arg<'a> {
    pub val: Val<'a>,
    pub span: Span,
}

impl<'a> Arg<'a> {
    pub(crate) fn new(val: Val<'a>, span: Span) -> Arg<'a> {
        Arg { val, span }
    }

    /// Its location and kind, for lints.
    pub(crate) fn site(&self) -> SourceOperand {
        let ty = match &self.val {
            Val::Tensor(t) => {
                Some(SourceOperandType { elem: t.elem.to_string(), signed: t.elem.is_signed(), shape: t.shape })
            }
            _ => None,
        };
        SourceOperand { span: self.span, ty }
    }
}

/// Arguments of a call, evaluated.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallArgs<'a> {
    pub positional: Vec<Arg<'a>>,
    pub named: Vec<(Ident, Arg<'a>)>,
    /// The first argument is the receiver of a method.
    pub method: bool,
}

impl<'a> Val<'a> {
    pub(crate) const NONE: Val<'static> = Val::Const(Const::None);

    pub(crate) fn int(x: impl Into<i128>) -> Val<'a> {
        Val::Const(Const::Int(x.into()))
    }

    pub(crate) fn bool(x: bool) -> Val<'a> {
        Val::Const(Const::Bool(x))
    }

    pub(crate) fn str(x: &str) -> Val<'a> {
        Val::Const(Const::Str(x.into()))
    }

    pub(crate) fn tuple(items: Vec<Val<'a>>) -> Val<'a> {
        Val::Tuple(Rc::new(Tuple { items, fields: None, class: None }))
    }

    /// The sizes of a shape as a tuple of constants.
    pub(crate) fn sizes(shape: Shape) -> Val<'a> {
        Val::tuple(shape.iter().map(|d| Val::int(*d)).collect())
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Val::Const(Const::None))
    }

    /// The IR values inside, in a fixed order.
    pub(crate) fn flatten(&self, out: &mut Vec<Value>) {
        match self {
            Val::Tensor(t) => out.push(t.value),
            Val::Tuple(t) => t.items.iter().for_each(|v| v.flatten(out)),
            Val::Dict(d) => d.iter().for_each(|(_, v)| v.flatten(out)),
            Val::BlockPtr(p) => out.push(p.value),
            Val::Descriptor(d) => out.push(d.value),
            _ => {}
        }
    }

    /// The same with other IR values, taken from `values` in the order of [`Val::flatten`].
    pub(crate) fn rebuild(&self, values: &mut impl Iterator<Item = Value>) -> Val<'a> {
        let mut next = |value: Value| values.next().unwrap_or(value);
        match self {
            Val::Tensor(t) => Val::Tensor(Tensor { value: next(t.value), ..*t }),
            Val::BlockPtr(p) => Val::BlockPtr(BlockPtr { value: next(p.value), ..*p }),
            Val::Descriptor(d) => Val::Descriptor(Descriptor { value: next(d.value), ..*d }),
            Val::Tuple(t) => {
                let items = t.items.iter().map(|v| v.rebuild(values)).collect();
                Val::Tuple(Rc::new(Tuple { items, fields: t.fields.clone(), class: t.class }))
            }
            Val::Dict(d) => Val::Dict(Rc::new(d.iter().map(|(k, v)| (k.clone(), v.rebuild(values))).collect())),
            other => other.clone(),
        }
    }

    /// Whether the two have one type: the same skeleton with the same types, and the same constants.
    pub(crate) fn same_type(&self, other: &Val<'a>) -> bool {
        match (self, other) {
            (Val::Tensor(a), Val::Tensor(b)) => a.elem == b.elem && a.shape == b.shape,
            (Val::Tuple(a), Val::Tuple(b)) => {
                a.items.len() == b.items.len() && a.items.iter().zip(&b.items).all(|(a, b)| a.same_type(b))
            }
            (Val::Dict(a), Val::Dict(b)) => {
                a.len() == b.len() && a.iter().zip(&**b).all(|(a, b)| a.0.identical(&b.0) && a.1.same_type(&b.1))
            }
            (Val::BlockPtr(a), Val::BlockPtr(b)) => a.base == b.base && a.block == b.block,
            (Val::Descriptor(a), Val::Descriptor(b)) => {
                a.base == b.base && a.block == b.block && a.padding == b.padding
            }
            (a, b) => a.identical(b),
        }
    }

    /// Python's `is`, as far as it is defined here.
    pub(crate) fn identical(&self, other: &Val<'a>) -> bool {
        match (self, other) {
            (Val::Const(Const::Float(a)), Val::Const(Const::Float(b))) => a.to_bits() == b.to_bits(),
            (Val::Const(a), Val::Const(b)) => a == b,
            (Val::Type(a), Val::Type(b)) => a == b,
            (Val::Tensor(a), Val::Tensor(b)) => a == b,
            (Val::Function(a), Val::Function(b)) => std::ptr::eq(a.def, b.def),
            (Val::Lambda(a), Val::Lambda(b)) => std::ptr::eq(a.body, b.body),
            (Val::Builtin(a), Val::Builtin(b)) => std::ptr::eq(*a, *b),
            (Val::Module(a), Val::Module(b)) => a == b,
            (Val::Class(a, _), Val::Class(b, _)) => std::ptr::eq(*a, *b),
            (Val::Record(a), Val::Record(b)) => Rc::ptr_eq(a, b),
            (Val::Tuple(a), Val::Tuple(b)) => {
                a.items.len() == b.items.len() && a.items.iter().zip(&b.items).all(|(a, b)| a.identical(b))
            }
            (Val::Dict(a), Val::Dict(b)) => Rc::ptr_eq(a, b),
            (Val::Opaque(a), Val::Opaque(b)) => a == b,
            _ => false,
        }
    }

    /// The value of `tl.constexpr(value)`: plain Python functions in it can be called.
    pub(crate) fn into_constexpr(self) -> Val<'a> {
        match self {
            Val::Function(f) if f.kind == FunctionKind::Host => {
                Val::Function(Function { kind: FunctionKind::Constexpr, ..f })
            }
            Val::Tuple(t) => {
                let items = t.items.iter().map(|v| v.clone().into_constexpr()).collect();
                Val::Tuple(Rc::new(Tuple { items, fields: t.fields.clone(), class: t.class }))
            }
            other => other,
        }
    }

    /// Whether nothing in it exists only at run time.
    pub(crate) fn is_constant(&self) -> bool {
        match self {
            Val::Tensor(_) | Val::BlockPtr(_) | Val::Descriptor(_) | Val::Error => false,
            Val::Tuple(t) => t.items.iter().all(Val::is_constant),
            Val::Dict(d) => d.iter().all(|(_, v)| v.is_constant()),
            Val::Range(r) => r.start.is_constant() && r.stop.is_constant() && r.step.is_constant(),
            _ => true,
        }
    }

    /// The type as diagnostics name it: `fp32[128, 64]`, `int32`, `the constant 3`, `a tuple of 2`.
    pub(crate) fn describe(&self) -> String {
        match self {
            Val::Const(Const::Str(s)) => format!("the string {s:?}"),
            Val::Const(Const::None) => "None".into(),
            Val::Const(c) => format!("the constant {c}"),
            Val::Tensor(t) => t.to_string(),
            Val::Tuple(t) if t.items.is_empty() => "an empty tuple".into(),
            Val::Tuple(t) => {
                let items: Vec<String> = t.items.iter().take(4).map(Val::describe).collect();
                format!("a tuple ({}{})", items.join(", "), if t.items.len() > 4 { ", ..." } else { "" })
            }
            Val::Dict(d) => format!("a dictionary of {}", d.len()),
            Val::Type(t) => format!("the type {t}"),
            Val::Function(f) => match f.kind {
                FunctionKind::Jit => format!("the jit function `{}`", f.def.name.text),
                FunctionKind::Constexpr => format!("the constexpr function `{}`", f.def.name.text),
                FunctionKind::Host => format!("the host function `{}`", f.def.name.text),
            },
            Val::Lambda(_) => "a lambda".into(),
            Val::Builtin(b) => format!("the built-in `{}`", b.name),
            Val::Module(m) => format!("the module `{m}`"),
            Val::Method(m) => match &m.1 {
                Val::Builtin(b) => format!("the method `{}`", b.name),
                other => other.describe(),
            },
            Val::Class(c, _) => format!("the class `{}`", c.name.text),
            Val::Record(r) => format!("the class `{}`", r.name),
            Val::Range(_) => "a range".into(),
            Val::BlockPtr(p) => format!("a block pointer to {}{:?}", p.pointee(), p.block),
            Val::Descriptor(d) => format!("a tensor descriptor of {}{:?}", d.pointee(), d.block),
            Val::Opaque(text) => format!("the host object `{text}`"),
            Val::Error => "an erroneous value".into(),
        }
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.shape.rank() == 0 { write!(f, "{}", self.elem) } else { write!(f, "{}{:?}", self.elem, self.shape) }
    }
}

/// The text of a value in `static_print` and f-strings.
impl fmt::Display for Val<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Val::Const(c) => write!(f, "{c}"),
            Val::Tensor(t) => write!(f, "{}{:?}", t.elem, t.shape),
            Val::Tuple(t) => {
                f.write_str("(")?;
                for (i, item) in t.items.iter().enumerate() {
                    let name = t.fields.as_ref().and_then(|names| names.get(i));
                    write!(f, "{}", if i > 0 { ", " } else { "" })?;
                    if let Some(name) = name {
                        write!(f, "{name}=")?;
                    }
                    match item {
                        Val::Const(Const::Str(s)) => write!(f, "'{s}'")?,
                        other => write!(f, "{other}")?,
                    }
                }
                f.write_str(if t.items.len() == 1 { ",)" } else { ")" })
            }
            Val::Type(t) => write!(f, "{t}"),
            Val::Function(x) => f.write_str(&x.def.name.text),
            Val::Builtin(b) => f.write_str(b.name),
            other => f.write_str(&other.describe()),
        }
    }
}

/// Whether an annotation says `constexpr`, in any spelling.
pub(crate) fn is_constexpr(annotation: &Expr) -> bool {
    match &annotation.kind {
        ExprKind::Str(text) => text.contains("constexpr"),
        ExprKind::Subscript { value, .. } => is_constexpr(value),
        _ => annotation.dotted_name().is_some_and(|n| n == "constexpr" || n.ends_with(".constexpr")),
    }
}
