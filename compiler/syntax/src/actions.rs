//! The actions of grammar rules that do more than call a constructor.

mod params;

pub(crate) use params::{ParamItem, params};

use crate::ast::{
    Arg, Comprehension, ExceptHandler, Expr, ExprKind, FStringPart, FunctionDef, Ident, Operator, Star, Stmt, StmtKind,
    Symbol, WithItem,
};
use crate::token::Token;
use lalrpop_util::ParseError;
use rtc_source::{Code, Diagnostic, FileId, Span};
use std::sync::Arc;

/// How many `elif` one `if` may have: each is one level of the tree.
const MAX_ELIFS: usize = 200;

/// The return type of a fallible action.
pub(crate) type Checked<'s, T> = Result<T, ParseError<usize, Token<'s>, Box<Diagnostic>>>;

/// One literal of a run of adjacent strings.
pub(crate) enum StringPart {
    Str(Symbol),
    Bytes(Arc<[u8]>),
    FString(Vec<FStringPart>),
}

/// `first` before `rest`.
pub(crate) fn prepend<T>(first: T, mut rest: Vec<T>) -> Vec<T> {
    rest.insert(0, first);
    rest
}

/// The item alone, or a tuple if there is a comma.
pub(crate) fn tuple_or(span: Span, mut items: Vec<Expr>, comma: bool) -> Expr {
    match items.pop() {
        Some(only) if items.is_empty() && !comma => only,
        last => {
            items.extend(last);
            Expr::new(span, ExprKind::Tuple(items))
        }
    }
}

/// `(items)`: a tuple has the parentheses in its span; parentheses around a single expression leave no trace.
pub(crate) fn parenthesized<'s>(span: Span, items: Vec<Expr>, comma: bool) -> Checked<'s, Expr> {
    match tuple_or(span, items, comma) {
        Expr { span, kind: ExprKind::Starred(_) } => Err(refuse(span, "`*` cannot stand alone in parentheses")),
        inner => Ok(inner),
    }
}

/// `left op right`.
pub(crate) fn binary(left: Expr, op: Operator, right: Expr) -> Expr {
    let span = left.span.to(right.span);
    Expr::new(span, ExprKind::BinOp { left: Box::new(left), op, right: Box::new(right) })
}

/// `left.right` of an import.
pub(crate) fn dotted(left: Ident, right: Ident) -> Ident {
    Ident { span: left.span.to(right.span), text: format!("{}.{}", left.text, right.text).into() }
}

/// `first = rest = ...`: all but the last are targets.
pub(crate) fn assign<'s>(first: Expr, mut rest: Vec<Expr>) -> Checked<'s, StmtKind> {
    let value = rest.pop().ok_or_else(|| refuse(first.span, "an assignment needs a value"))?;
    let targets = prepend(first, rest);
    targets.iter().try_for_each(check_target)?;
    Ok(StmtKind::Assign { targets, value })
}

const STORE: &str = "to write memory, write `tl.store(pointer, value)`; to compare, write `==`";

/// `target op= value`.
pub(crate) fn aug_assign<'s>(target: Expr, op: Operator, value: Expr) -> Checked<'s, StmtKind> {
    if !is_place(&target) {
        let text = format!("`{}=` cannot change {}", op.symbol(), describe(&target));
        let diagnostic = Diagnostic::error(Code::SYNTAX, target.span, text);
        let is_call = matches!(target.kind, ExprKind::Call { .. });
        let help = if is_call { STORE } else { "assign to a name: `x = x + 1`" };
        return Err(ParseError::User { error: Box::new(diagnostic.help(help)) });
    }
    Ok(StmtKind::AugAssign { target, op, value })
}

/// `target: annotation = value`.
pub(crate) fn ann_assign<'s>(target: Expr, annotation: Expr, value: Option<Expr>) -> Checked<'s, StmtKind> {
    if !is_place(&target) {
        return Err(refuse(target.span, format!("{} cannot have an annotation", describe(&target))));
    }
    Ok(StmtKind::AnnAssign { target, annotation, value })
}

/// `del targets`.
pub(crate) fn delete<'s>(targets: Vec<Expr>) -> Checked<'s, StmtKind> {
    targets.iter().try_for_each(check_target)?;
    Ok(StmtKind::Delete(targets))
}

/// A statement with a body: it ends where its last statement ends, not at the dedent.
pub(crate) fn compound(file: FileId, start: usize, kind: StmtKind) -> Stmt {
    let last = match &kind {
        StmtKind::FunctionDef(FunctionDef { body, .. }) | StmtKind::With { body, .. } => body,
        StmtKind::ClassDef(class) => &class.body,
        StmtKind::If { body, orelse, .. }
        | StmtKind::For { body, orelse, .. }
        | StmtKind::While { body, orelse, .. } => {
            if orelse.is_empty() {
                body
            } else {
                orelse
            }
        }
        StmtKind::Try { body, handlers, orelse, finalbody } => match handlers.last() {
            _ if !finalbody.is_empty() => finalbody,
            _ if !orelse.is_empty() => orelse,
            Some(handler) => &handler.body,
            None => body,
        },
        _ => return Stmt::new(Span::new(file, start, start), kind),
    };
    let span = Span::new(file, start, end_of(last, start));
    Stmt::new(span, kind)
}

/// `if` with its `elif`s, nested from the last to the first.
pub(crate) fn if_chain<'s>(
    file: FileId,
    start: usize,
    test: Expr,
    body: Vec<Stmt>,
    elifs: Vec<(usize, Expr, Vec<Stmt>)>,
    mut orelse: Vec<Stmt>,
) -> Checked<'s, Stmt> {
    if elifs.len() > MAX_ELIFS {
        return Err(refuse(elifs[MAX_ELIFS].1.span, format!("an `if` with more than {MAX_ELIFS} `elif`")));
    }
    for (start, test, body) in elifs.into_iter().rev() {
        orelse = vec![compound(file, start, StmtKind::If { test, body, orelse })];
    }
    Ok(compound(file, start, StmtKind::If { test, body, orelse }))
}

/// `for target in iter`.
pub(crate) fn for_loop<'s>(
    file: FileId,
    start: usize,
    target: Expr,
    iter: Expr,
    body: Vec<Stmt>,
    orelse: Vec<Stmt>,
) -> Checked<'s, Stmt> {
    check_target(&target)?;
    Ok(compound(file, start, StmtKind::For { target, iter, body, orelse }))
}

/// `def name(params)`.
pub(crate) fn function<'s>(
    file: FileId,
    start: usize,
    decorators: Vec<Expr>,
    name: Ident,
    items: Vec<ParamItem>,
    returns: Option<Expr>,
    body: Vec<Stmt>,
) -> Checked<'s, Stmt> {
    let params = params(items)?;
    Ok(compound(file, start, StmtKind::FunctionDef(FunctionDef { name, params, returns, decorators, body })))
}

/// One `except` clause.
pub(crate) fn handler(
    file: FileId,
    start: usize,
    ty: Option<Expr>,
    name: Option<Ident>,
    body: Vec<Stmt>,
) -> ExceptHandler {
    ExceptHandler { span: Span::new(file, start, end_of(&body, start)), ty, name, body }
}

/// `context as target`.
pub(crate) fn with_item<'s>(context: Expr, target: Expr) -> Checked<'s, WithItem> {
    check_target(&target)?;
    Ok(WithItem { context, target: Some(target) })
}

/// One `for` of a comprehension.
pub(crate) fn comprehension<'s>(target: Expr, iter: Expr, ifs: Vec<Expr>) -> Checked<'s, Comprehension> {
    check_target(&target)?;
    Ok(Comprehension { target, iter, ifs })
}

/// An argument: the text before `=` must be a name.
pub(crate) fn arg<'s>(span: Span, (star, name, value): (Star, Option<Expr>, Expr)) -> Checked<'s, Arg> {
    let name = match name {
        None => None,
        Some(Expr { span, kind: ExprKind::Name(text) }) => Some(Ident { span, text }),
        Some(other) => {
            let text = format!("{} cannot be the name of an argument", describe(&other));
            let diagnostic = Diagnostic::error(Code::SYNTAX, other.span, text).help("to compare, write `==`");
            return Err(ParseError::User { error: Box::new(diagnostic) });
        }
    };
    Ok(Arg { span, star, name, value })
}

/// An integer literal without its underscores; the lexer has checked the digits.
pub(crate) fn integer(text: &str) -> ExprKind {
    let plain = text.replace('_', "");
    let (digits, radix) = match plain.get(..2) {
        Some("0x" | "0X") => (&plain[2..], 16),
        Some("0o" | "0O") => (&plain[2..], 8),
        Some("0b" | "0B") => (&plain[2..], 2),
        _ => (plain.as_str(), 10),
    };
    match i128::from_str_radix(digits, radix) {
        Ok(value) => ExprKind::Int(value),
        Err(_) => ExprKind::BigInt(plain.as_str().into()),
    }
}

/// A float literal; one beyond the range is infinite, as in Python.
pub(crate) fn float(text: &str) -> ExprKind {
    let plain = text.replace('_', "");
    // Rust reads every form of Python's literals, `1.`, `.5` and `1e5` included.
    ExprKind::Float(plain.parse().unwrap_or(f64::INFINITY))
}

/// Joins adjacent string literals.
pub(crate) fn string<'s>(span: Span, parts: Vec<StringPart>) -> Checked<'s, Expr> {
    let bytes = parts.iter().filter(|part| matches!(part, StringPart::Bytes(_))).count();
    if bytes > 0 && bytes < parts.len() {
        return Err(refuse(span, "text and bytes literals cannot be joined"));
    }
    if bytes > 0 {
        let joined: Vec<u8> = parts
            .iter()
            .flat_map(|part| match part {
                StringPart::Bytes(bytes) => &bytes[..],
                _ => &[],
            })
            .copied()
            .collect();
        return Ok(Expr::new(span, ExprKind::Bytes(joined.into())));
    }
    let is_format = parts.iter().any(|part| matches!(part, StringPart::FString(_)));
    let mut pieces = Vec::new();
    for part in parts {
        match part {
            StringPart::Str(text) => pieces.push(FStringPart::Text(text)),
            StringPart::FString(more) => pieces.extend(more),
            StringPart::Bytes(_) => {}
        }
    }
    let mut pieces = join_text(pieces);
    if is_format {
        return Ok(Expr::new(span, ExprKind::FString(pieces)));
    }
    let text = match pieces.pop() {
        Some(FStringPart::Text(text)) => text,
        _ => "".into(),
    };
    Ok(Expr::new(span, ExprKind::Str(text)))
}

/// `{value=!conversion:format}`.
pub(crate) fn hole<'s>(
    value: Expr,
    text: Option<Symbol>,
    conversion: Option<Ident>,
    format: Option<Vec<Vec<FStringPart>>>,
) -> Checked<'s, Vec<FStringPart>> {
    let letter = match &conversion {
        None => None,
        Some(name) if matches!(&*name.text, "r" | "s" | "a") => name.text.chars().next(),
        Some(name) => return Err(refuse(name.span, "a conversion in an f-string is `!r`, `!s` or `!a`")),
    };
    // `{x=}` shows the value with `repr` unless it has a format.
    let letter = letter.or((text.is_some() && format.is_none()).then_some('r'));
    let format = join_text(format.unwrap_or_default().into_iter().flatten().collect());
    let mut parts: Vec<FStringPart> = text.map(FStringPart::Text).into_iter().collect();
    parts.push(FStringPart::Hole { value: Box::new(value), conversion: letter, format });
    Ok(parts)
}

/// Neighbouring texts become one.
fn join_text(pieces: Vec<FStringPart>) -> Vec<FStringPart> {
    let mut joined: Vec<FStringPart> = Vec::with_capacity(pieces.len());
    let mut run = String::new();
    let mut pieces = pieces.into_iter().peekable();
    while let Some(piece) = pieces.next() {
        match (piece, pieces.peek()) {
            (FStringPart::Text(text), Some(FStringPart::Text(_))) => run.push_str(&text),
            (FStringPart::Text(text), _) if run.is_empty() => joined.push(FStringPart::Text(text)),
            (FStringPart::Text(text), _) => {
                run.push_str(&text);
                joined.push(FStringPart::Text(std::mem::take(&mut run).into()));
            }
            (hole, _) => joined.push(hole),
        }
    }
    joined
}

fn end_of(body: &[Stmt], start: usize) -> usize {
    body.last().map_or(start, |last| last.span.end as usize)
}

fn refuse<'s>(span: Span, message: impl Into<String>) -> ParseError<usize, Token<'s>, Box<Diagnostic>> {
    ParseError::User { error: Box::new(Diagnostic::error(Code::SYNTAX, span, message)) }
}

fn is_place(target: &Expr) -> bool {
    matches!(target.kind, ExprKind::Name(_) | ExprKind::Attribute { .. } | ExprKind::Subscript { .. })
}

fn check_target<'s>(target: &Expr) -> Checked<'s, ()> {
    match &target.kind {
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().try_for_each(check_target),
        ExprKind::Starred(inner) => check_target(inner),
        _ if is_place(target) => Ok(()),
        _ => {
            let text = format!("{} cannot be assigned to", describe(target));
            let mut diagnostic = Diagnostic::error(Code::SYNTAX, target.span, text);
            if let ExprKind::Call { .. } = &target.kind {
                diagnostic = diagnostic.help(STORE);
            } else if !matches!(target.kind, ExprKind::Bool(_) | ExprKind::None) {
                diagnostic = diagnostic.help("to compare, write `==`");
            }
            Err(ParseError::User { error: Box::new(diagnostic) })
        }
    }
}

/// The kind of an expression, for a message.
fn describe(expr: &Expr) -> &'static str {
    match expr.kind {
        ExprKind::Name(_) => "a name",
        ExprKind::Int(_) | ExprKind::BigInt(_) | ExprKind::Float(_) => "a number",
        ExprKind::Str(_) | ExprKind::Bytes(_) | ExprKind::FString(_) => "a string",
        ExprKind::Bool(true) => "`True`",
        ExprKind::Bool(false) => "`False`",
        ExprKind::None => "`None`",
        ExprKind::Ellipsis => "`...`",
        ExprKind::Tuple(_) => "a tuple",
        ExprKind::List(_) => "a list",
        ExprKind::Set(_) | ExprKind::SetComp { .. } => "a set",
        ExprKind::Dict(_) | ExprKind::DictComp { .. } => "a dictionary",
        ExprKind::BinOp { .. } | ExprKind::UnaryOp { .. } | ExprKind::BoolOp { .. } => "the result of an operator",
        ExprKind::Compare { .. } => "a comparison",
        ExprKind::Call { .. } => "the result of a call",
        ExprKind::Attribute { .. } => "an attribute",
        ExprKind::Subscript { .. } => "an element",
        ExprKind::Slice { .. } => "a slice",
        ExprKind::IfExp { .. } => "a conditional expression",
        ExprKind::Lambda { .. } => "a lambda",
        ExprKind::ListComp { .. } | ExprKind::GeneratorExp { .. } => "a comprehension",
        ExprKind::Starred(_) => "a starred expression",
        ExprKind::NamedExpr { .. } => "an assignment expression",
        ExprKind::Await(_) | ExprKind::Yield(_) | ExprKind::YieldFrom(_) => "the result of `await` or `yield`",
    }
}
