//! The abstract syntax tree: Python's, as far as kernels and the host code beside them use it.
//!
//! Names follow Python's own `ast` module (`BinOp`, `Compare`, `AugAssign`, `LtE`, ...), so whoever knows that one knows
//! this one. Differences: a parameter list is one `Vec<Param>` with a kind per parameter, call arguments are one
//! `Vec<Arg>` in source order, operators are plain enums, and a block of host code that cannot be read is kept as
//! [`StmtKind::Unreadable`].
//!
//! Invariants: every node has a span; the depth of a tree is bounded by the parser, so walking it recursively is safe;
//! number literals are never negative (`-1` is `UnaryOp { USub, 1 }`, as in Python).
//!
//! ```
//! use rtc_syntax::{ast::StmtKind, parse};
//! let (module, diagnostics) = parse(rtc_source::FileId(0), "@triton.jit\ndef f(x, N: tl.constexpr):\n    pass\n");
//! assert!(diagnostics.is_empty());
//! let StmtKind::FunctionDef(function) = &module.body[0].kind else { panic!() };
//! assert_eq!(&*function.name.text, "f");
//! assert_eq!(function.params[1].annotation.as_ref().and_then(|a| a.dotted_name()).as_deref(), Some("tl.constexpr"));
//! ```

use rtc_source::{Diagnostic, FileId, Span};
use std::sync::Arc;

/// Text of an identifier or a string: cheap to clone.
pub type Symbol = Arc<str>;

/// A name with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Ident {
    /// Where.
    pub span: Span,
    /// The name.
    pub text: Symbol,
}

/// A whole source file.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// The file it was read from.
    pub file: FileId,
    /// Top-level statements, in order.
    pub body: Vec<Stmt>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// From the first token (a decorator's `@` included) to the last.
    pub span: Span,
    /// What it is.
    pub kind: StmtKind,
}

/// The kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `def name(params) -> returns: body`, with its decorators.
    FunctionDef(FunctionDef),
    /// `class name(args): body`, with its decorators.
    ClassDef(ClassDef),
    /// `a = b = value`: one target per `=`.
    Assign {
        /// The targets, left to right.
        targets: Vec<Expr>,
        /// The right side.
        value: Expr,
    },
    /// `target op= value`.
    AugAssign {
        /// What is changed.
        target: Expr,
        /// The operator without `=`.
        op: Operator,
        /// The right side.
        value: Expr,
    },
    /// `target: annotation = value`; the value may be missing.
    AnnAssign {
        /// What is declared.
        target: Expr,
        /// Its annotation.
        annotation: Expr,
        /// The right side, if any.
        value: Option<Expr>,
    },
    /// An expression on its own.
    Expr(Expr),
    /// `return value`.
    Return(Option<Expr>),
    /// `if test: body else: orelse`; `elif` is an `If` alone in `orelse`.
    If {
        /// The condition.
        test: Expr,
        /// The branch taken if true.
        body: Vec<Stmt>,
        /// The branch taken if false; may be empty.
        orelse: Vec<Stmt>,
    },
    /// `for target in iter: body else: orelse`.
    For {
        /// The loop variable.
        target: Expr,
        /// What is iterated over.
        iter: Expr,
        /// The loop body.
        body: Vec<Stmt>,
        /// The `else` part; may be empty.
        orelse: Vec<Stmt>,
    },
    /// `while test: body else: orelse`.
    While {
        /// The condition.
        test: Expr,
        /// The loop body.
        body: Vec<Stmt>,
        /// The `else` part; may be empty.
        orelse: Vec<Stmt>,
    },
    /// `with a as b, c: body`.
    With {
        /// The context managers.
        items: Vec<WithItem>,
        /// The body.
        body: Vec<Stmt>,
    },
    /// `assert test, msg`.
    Assert {
        /// The condition.
        test: Expr,
        /// The message, if any.
        msg: Option<Expr>,
    },
    /// `raise exc from cause`.
    Raise {
        /// The exception, if any.
        exc: Option<Expr>,
        /// What follows `from`, if any.
        cause: Option<Expr>,
    },
    /// `try: ... except: ... else: ... finally: ...`.
    Try {
        /// The guarded statements.
        body: Vec<Stmt>,
        /// The `except` clauses.
        handlers: Vec<ExceptHandler>,
        /// The `else` part; may be empty.
        orelse: Vec<Stmt>,
        /// The `finally` part; may be empty.
        finalbody: Vec<Stmt>,
    },
    /// `import a.b as c, d`.
    Import {
        /// The modules.
        names: Vec<Alias>,
    },
    /// `from ..module import names`.
    ImportFrom {
        /// The dotted module name; none for `from . import x`.
        module: Option<Ident>,
        /// How many leading dots.
        level: u32,
        /// The names; one `*` for `import *`.
        names: Vec<Alias>,
    },
    /// `global a, b`.
    Global(Vec<Ident>),
    /// `nonlocal a, b`.
    Nonlocal(Vec<Ident>),
    /// `del a, b[0]`.
    Delete(Vec<Expr>),
    /// `pass`.
    Pass,
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// Host code that could not be read, skipped by indentation; the diagnostic says why.
    Unreadable(Box<Diagnostic>),
}

/// A function definition.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionDef {
    /// Its name.
    pub name: Ident,
    /// Its parameters, in order.
    pub params: Vec<Param>,
    /// The annotation after `->`.
    pub returns: Option<Expr>,
    /// The expressions after `@`, top to bottom.
    pub decorators: Vec<Expr>,
    /// The body; a docstring is its first statement.
    pub body: Vec<Stmt>,
}

/// A class definition.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassDef {
    /// Its name.
    pub name: Ident,
    /// Base classes and keywords.
    pub args: Vec<Arg>,
    /// The expressions after `@`, top to bottom.
    pub decorators: Vec<Expr>,
    /// The body.
    pub body: Vec<Stmt>,
}

/// A parameter of a function or a lambda.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// The whole parameter: stars, name, annotation and default.
    pub span: Span,
    /// How arguments bind to it.
    pub kind: ParamKind,
    /// Its name.
    pub name: Ident,
    /// The annotation, if any.
    pub annotation: Option<Expr>,
    /// The default, if any.
    pub default: Option<Expr>,
}

/// How arguments bind to a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamKind {
    /// Before `/`.
    PositionalOnly,
    /// An ordinary one: by position or by name.
    Positional,
    /// `*args`.
    VarArgs,
    /// After `*` or `*args`.
    KeywordOnly,
    /// `**kwargs`.
    KwArgs,
}

/// One manager of a `with`.
#[derive(Clone, Debug, PartialEq)]
pub struct WithItem {
    /// The manager.
    pub context: Expr,
    /// What follows `as`, if any.
    pub target: Option<Expr>,
}

/// One `except` clause.
#[derive(Clone, Debug, PartialEq)]
pub struct ExceptHandler {
    /// The clause's head and body.
    pub span: Span,
    /// The exception type, if any.
    pub ty: Option<Expr>,
    /// The name after `as`, if any.
    pub name: Option<Ident>,
    /// The body.
    pub body: Vec<Stmt>,
}

/// An imported name.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    /// The name with its dots, or `*`.
    pub name: Ident,
    /// The name after `as`, if any.
    pub asname: Option<Ident>,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Without surrounding parentheses, except for tuples and generators that are written with them.
    pub span: Span,
    /// What it is.
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
        /// What is called.
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
    /// What is iterated over.
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

/// Binary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names of Python's `ast` module; `symbol` tells each one's meaning
pub enum Operator {
    Add,
    Sub,
    Mult,
    MatMult,
    Div,
    FloorDiv,
    Mod,
    Pow,
    LShift,
    RShift,
    BitOr,
    BitXor,
    BitAnd,
}

impl Operator {
    /// As written in the source: `+`, `//`, ...
    pub fn symbol(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Sub => "-",
            Operator::Mult => "*",
            Operator::MatMult => "@",
            Operator::Div => "/",
            Operator::FloorDiv => "//",
            Operator::Mod => "%",
            Operator::Pow => "**",
            Operator::LShift => "<<",
            Operator::RShift => ">>",
            Operator::BitOr => "|",
            Operator::BitXor => "^",
            Operator::BitAnd => "&",
        }
    }
}

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum UnaryOp {
    Invert,
    Not,
    UAdd,
    USub,
}

impl UnaryOp {
    /// As written in the source: `~`, `not`, `+`, `-`.
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Invert => "~",
            UnaryOp::Not => "not",
            UnaryOp::UAdd => "+",
            UnaryOp::USub => "-",
        }
    }
}

/// `and` and `or`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BoolOp {
    And,
    Or,
}

impl BoolOp {
    /// As written in the source.
    pub fn symbol(self) -> &'static str {
        match self {
            BoolOp::And => "and",
            BoolOp::Or => "or",
        }
    }
}

/// Comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum CmpOp {
    Eq,
    NotEq,
    Lt,
    LtE,
    Gt,
    GtE,
    Is,
    IsNot,
    In,
    NotIn,
}

impl CmpOp {
    /// As written in the source: `==`, `is not`, ...
    pub fn symbol(self) -> &'static str {
        match self {
            CmpOp::Eq => "==",
            CmpOp::NotEq => "!=",
            CmpOp::Lt => "<",
            CmpOp::LtE => "<=",
            CmpOp::Gt => ">",
            CmpOp::GtE => ">=",
            CmpOp::Is => "is",
            CmpOp::IsNot => "is not",
            CmpOp::In => "in",
            CmpOp::NotIn => "not in",
        }
    }
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

impl Stmt {
    /// A statement of a kind at a place.
    pub fn new(span: Span, kind: StmtKind) -> Stmt {
        Stmt { span, kind }
    }
}

impl FunctionDef {
    /// True if a decorator is `jit`, `triton.jit`, `triton.jit(...)` or the like: the function is kernel code.
    pub fn is_jit(&self) -> bool {
        self.decorators.iter().any(|decorator| {
            let callee = match &decorator.kind {
                ExprKind::Call { func, .. } => func,
                _ => decorator,
            };
            match &callee.kind {
                ExprKind::Name(name) => &**name == "jit",
                ExprKind::Attribute { attr, .. } => &*attr.text == "jit",
                _ => false,
            }
        })
    }
}

impl Module {
    /// All functions at module level, those under `if`, `try` and `with` included, in source order.
    pub fn functions(&self) -> Vec<&FunctionDef> {
        let mut found = Vec::new();
        collect_functions(&self.body, &mut found);
        found
    }
}

fn collect_functions<'a>(body: &'a [Stmt], found: &mut Vec<&'a FunctionDef>) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::FunctionDef(function) => found.push(function),
            StmtKind::If { body, orelse, .. } => {
                collect_functions(body, found);
                collect_functions(orelse, found);
            }
            StmtKind::Try { body, handlers, orelse, finalbody } => {
                collect_functions(body, found);
                handlers.iter().for_each(|handler| collect_functions(&handler.body, found));
                collect_functions(orelse, found);
                collect_functions(finalbody, found);
            }
            StmtKind::With { body, .. } => collect_functions(body, found),
            _ => {}
        }
    }
}
