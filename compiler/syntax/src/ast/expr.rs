//! Expressions.

use super::{BoolOp, CmpOp, Ident, Operator, Param, Symbol, UnaryOp};
use rtc_source::Span;
use std::sync::Arc;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Without surrounding parentheses, except for tuples and generators that are written with them.
    pub span: Span,
    /// The kind.
    pub kind: ExprKind,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A name.
    Name(Symbol),
    /// An integer literal.
    Int(i128),
    /// An integer literal beyond `i128`, as written without underscores.
    BigInt(Symbol),
    /// A float literal.
    Float(f64),
    /// A string literal: adjacent parts joined, escapes decoded.
    Str(Symbol),
    /// A bytes literal: adjacent parts joined, escapes decoded.
    Bytes(Arc<[u8]>),
    /// An f-string: adjacent parts joined.
    FString(Vec<FStringPart>),
    /// `True` or `False`.
    Bool(bool),
    /// `None`.
    None,
    /// `...`.
    Ellipsis,
    /// `a, b` or `(a, b)`.
    Tuple(Vec<Expr>),
    /// `[a, b]`.
    List(Vec<Expr>),
    /// `{a, b}`.
    Set(Vec<Expr>),
    /// `{k: v, **d}`; an entry without a key is a `**d`.
    Dict(Vec<(Option<Expr>, Expr)>),
    /// `left op right`.
    BinOp {
        /// The left operand.
        left: Box<Expr>,
        /// The operator.
        op: Operator,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `op operand`.
    UnaryOp {
        /// The operator.
        op: UnaryOp,
        /// The operand.
        operand: Box<Expr>,
    },
    /// `a and b and c`: at least two values.
    BoolOp {
        /// The operator.
        op: BoolOp,
        /// The operands.
        values: Vec<Expr>,
    },
    /// `left op a op b`: at least one operator.
    Compare {
        /// The first operand.
        left: Box<Expr>,
        /// Each operator with the operand to its right.
        ops: Vec<(CmpOp, Expr)>,
    },
    /// `func(args)`.
    Call {
        /// The callee.
        func: Box<Expr>,
        /// The arguments in source order.
        args: Vec<Arg>,
    },
    /// `value.attr`.
    Attribute {
        /// The object.
        value: Box<Expr>,
        /// The name after the dot.
        attr: Ident,
    },
    /// `value[index]`; `x[:, None]` has a `Tuple` as index.
    Subscript {
        /// The object.
        value: Box<Expr>,
        /// The index.
        index: Box<Expr>,
    },
    /// `lower:upper:step`, only inside an index.
    Slice {
        /// Before the first colon.
        lower: Option<Box<Expr>>,
        /// After the first colon.
        upper: Option<Box<Expr>>,
        /// After the second colon.
        step: Option<Box<Expr>>,
    },
    /// `body if test else orelse`.
    IfExp {
        /// The condition.
        test: Box<Expr>,
        /// The value if true.
        body: Box<Expr>,
        /// The value if false.
        orelse: Box<Expr>,
    },
    /// `lambda params: body`.
    Lambda {
        /// The parameters; no annotations.
        params: Vec<Param>,
        /// The value.
        body: Box<Expr>,
    },
    /// `[element for ...]`.
    ListComp {
        /// The element.
        element: Box<Expr>,
        /// The `for` clauses.
        generators: Vec<Comprehension>,
    },
    /// `{element for ...}`.
    SetComp {
        /// The element.
        element: Box<Expr>,
        /// The `for` clauses.
        generators: Vec<Comprehension>,
    },
    /// `(element for ...)`.
    GeneratorExp {
        /// The element.
        element: Box<Expr>,
        /// The `for` clauses.
        generators: Vec<Comprehension>,
    },
    /// `{key: value for ...}`.
    DictComp {
        /// The key.
        key: Box<Expr>,
        /// The value.
        value: Box<Expr>,
        /// The `for` clauses.
        generators: Vec<Comprehension>,
    },
    /// `*value` in a display, a target or an index.
    Starred(Box<Expr>),
    /// `target := value`.
    NamedExpr {
        /// The name that is bound.
        target: Ident,
        /// The value.
        value: Box<Expr>,
    },
    /// `await value`.
    Await(Box<Expr>),
    /// `yield value`.
    Yield(Option<Box<Expr>>),
    /// `yield from value`.
    YieldFrom(Box<Expr>),
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// The whole argument: stars or name included.
    pub span: Span,
    /// `*value` or `**value`.
    pub star: Star,
    /// The name of `name=value`.
    pub name: Option<Ident>,
    /// The value.
    pub value: Expr,
}

/// How an argument is unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Star {
    /// A plain argument.
    None,
    /// `*value`.
    Star,
    /// `**value`.
    DoubleStar,
}

/// One `for target in iter if ifs...` of a comprehension.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// The loop variable.
    pub target: Expr,
    /// The iterable.
    pub iter: Expr,
    /// The conditions.
    pub ifs: Vec<Expr>,
}

/// A piece of an f-string.
#[derive(Clone, Debug, PartialEq)]
pub enum FStringPart {
    /// Plain text.
    Text(Symbol),
    /// `{value!conversion:format}`; `{value=}` is a text followed by a hole.
    Hole {
        /// The expression.
        value: Box<Expr>,
        /// The letter after `!`: `r`, `s` or `a`.
        conversion: Option<char>,
        /// The format after `:`; empty if there is none.
        format: Vec<FStringPart>,
    },
}

impl Expr {
    /// An expression of a kind at a place.
    pub fn new(span: Span, kind: ExprKind) -> Expr {
        Expr { span, kind }
    }

    /// The name, if the expression is one.
    pub fn as_name(&self) -> Option<&Symbol> {
        match &self.kind {
            ExprKind::Name(name) => Some(name),
            _ => None,
        }
    }

    /// `tl.constexpr` as text, if the expression is a name with attributes.
    pub fn dotted_name(&self) -> Option<String> {
        match &self.kind {
            ExprKind::Name(name) => Some(name.to_string()),
            ExprKind::Attribute { value, attr } => {
                let mut text = value.dotted_name()?;
                text.push('.');
                text.push_str(&attr.text);
                Some(text)
            }
            _ => None,
        }
    }
}
