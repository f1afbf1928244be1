//! The abstract syntax tree: Python's, as far as kernels and the host code in their files use it.
//!
//! Names follow Python's own `ast` module (`BinOp`, `Compare`, `AugAssign`, `LtE`, ...), so a reader of that one knows
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

mod expr;
mod operator;
mod walk;

pub use expr::{Arg, Comprehension, Expr, ExprKind, FStringPart, Star};
pub use operator::{BoolOp, CmpOp, Operator, UnaryOp};
pub use walk::{walk_children, walk_expressions, walk_scope};

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
    /// The kind.
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
        /// The target.
        target: Expr,
        /// The operator without `=`.
        op: Operator,
        /// The right side.
        value: Expr,
    },
    /// `target: annotation = value`; the value may be missing.
    AnnAssign {
        /// The declared names.
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
        /// The iterable.
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
        /// The module after `from`, if any.
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
    /// Host code that could not be read, skipped by indentation.
    Unreadable {
        /// Why.
        why: Box<Diagnostic>,
        /// The names that its tokens may bind, or whose values they may change.
        names: Vec<Ident>,
    },
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
    /// The name after `as`, if any.
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
