//! Files to trees: cuts the tokens into blocks, has each read by the grammar, and decides what to do with those it refuses.
//!
//! A block is a statement with its decorators, its indented lines and its `else`, `except` and the like. Blocks are read
//! one by one, so that host code which uses more of Python than the grammar has costs only itself:
//!
//! - a refused block whose decorators speak of `jit` is kernel code: its diagnostic is reported;
//! - any other refused block is host code: it becomes `Unreadable` and is passed over in silence, but kernels inside it
//!   are still looked for. Those under a refused `if`, `try` or `with` follow the `Unreadable` statement in its place.
//!
//! Invariants: never panics; the depth of the trees is bounded by [`MAX_NESTING`] and the lexer's limit on indentation.

use crate::ast::{Module, Stmt, StmtKind};
use crate::explain::explain;
use crate::grammar::BlockParser;
use crate::lexer::lex;
use crate::parse::names::bound_names;
use crate::token::{Spanned, Token};
use rtc_source::{Code, Diagnostic, Diagnostics, FileId, Span};

/// The nesting limit of brackets and operators in one expression.
const MAX_NESTING: u32 = 300;

/// Reads a whole file; never fails. The diagnostics are the syntax errors of kernel code.
pub fn parse(file: FileId, text: &str) -> (Module, Diagnostics) {
    if u32::try_from(text.len()).is_err() {
        let large = Diagnostic::error(Code::SYNTAX, Span::new(file, 0, 0), "the file is larger than 4 GiB");
        return (Module { file, body: Vec::new() }, vec![large]);
    }
    let mut lexed = lex(file, text);
    mark_with_brackets(&mut lexed.tokens);
    let mut reader = Reader { file, text, errors: lexed.errors, diagnostics: Vec::new() };
    let mut body = Vec::new();
    for block in blocks(&lexed.tokens) {
        match reader.block(block) {
            Ok(statements) => body.extend(statements),
            Err(diagnostic) => reader.refused(block, diagnostic, &mut body),
        }
    }
    (Module { file, body }, reader.diagnostics)
}

/// The tokens of one block, as the messages about it need them.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    pub file: FileId,
    pub text: &'a str,
    pub tokens: &'a [Spanned<'a>],
}

struct Reader<'a> {
    file: FileId,
    text: &'a str,
    errors: Vec<Diagnostic>,
    diagnostics: Diagnostics,
}

impl<'a> Reader<'a> {
    fn block(&mut self, tokens: &'a [Spanned<'a>]) -> Result<Vec<Stmt>, Box<Diagnostic>> {
        for token in tokens {
            if let Token::Error(number) = token.token {
                return Err(Box::new(self.errors[number as usize].clone()));
            }
        }
        if let Some(deep) = too_deep(tokens) {
            let span = Span::new(self.file, deep.start as usize, deep.end as usize);
            let diagnostic = Diagnostic::error(Code::SYNTAX, span, "this expression is nested too deeply");
            return Err(Box::new(diagnostic.help("split it into several statements")));
        }
        let triples = tokens.iter().map(|t| (t.start as usize, t.token.clone(), t.end as usize));
        BlockParser::new()
            .parse(self.file, triples)
            .map_err(|error| Box::new(explain(Block { file: self.file, text: self.text, tokens }, error)))
    }

    /// Keeps a refused block as `Unreadable`, reports it if it is kernel code, and looks for kernels inside it.
    fn refused(&mut self, tokens: &'a [Spanned<'a>], diagnostic: Box<Diagnostic>, body: &mut Vec<Stmt>) {
        let start = tokens.first().map_or(0, |t| t.start as usize);
        let end = tokens.iter().rev().find(|t| t.token != Token::Dedent && t.token != Token::Newline);
        let span = Span::new(self.file, start, end.map_or(start, |t| t.end as usize));
        let head = tokens.iter().find(|t| t.token != Token::Indent).map(|t| &t.token);
        let kernel = is_kernel(tokens);
        if kernel {
            self.diagnostics.push((*diagnostic).clone());
        }
        let names = bound_names(self.file, tokens);
        body.push(Stmt::new(span, StmtKind::Unreadable { why: diagnostic, names }));
        if kernel {
            return;
        }
        // The contents of a function or class are not visible at the level of the module.
        let visible = !matches!(head, Some(Token::Def | Token::Class | Token::At));
        for inner in suites(tokens).flat_map(blocks).filter(|inner| mentions_kernel(inner)) {
            match self.block(inner) {
                Ok(statements) if visible => body.extend(statements),
                Ok(_) => {}
                Err(diagnostic) if visible => self.refused(inner, diagnostic, body),
                Err(diagnostic) => self.refused(inner, diagnostic, &mut Vec::new()),
            }
        }
    }
}

/// Cuts tokens into blocks.
fn blocks<'a>(mut tokens: &'a [Spanned<'a>]) -> impl Iterator<Item = &'a [Spanned<'a>]> {
    std::iter::from_fn(move || {
        if tokens.is_empty() {
            return None;
        }
        let mut end = 0;
        loop {
            let decorator = tokens[end].token == Token::At;
            end += statement_length(&tokens[end..]);
            let goes_on = match tokens.get(end).map(|t| &t.token) {
                None => false,
                Some(Token::Elif | Token::Else | Token::Except | Token::Finally) => true,
                Some(_) => decorator,
            };
            if !goes_on {
                break;
            }
        }
        let (block, rest) = tokens.split_at(end);
        tokens = rest;
        Some(block)
    })
}

/// The length of a line with the indented lines behind it; at least 1.
fn statement_length(tokens: &[Spanned<'_>]) -> usize {
    let mut depth = 0usize;
    for (index, token) in tokens.iter().enumerate() {
        match token.token {
            Token::Indent => depth += 1,
            Token::Dedent => depth = depth.saturating_sub(1),
            Token::Newline => {}
            _ => continue,
        }
        let next = tokens.get(index + 1).map(|t| &t.token);
        if depth == 0 && token.token != Token::Indent && next != Some(&Token::Indent) && next != Some(&Token::Dedent) {
            return index + 1;
        }
    }
    tokens.len()
}

/// The indented parts of a block, without their `Indent` and `Dedent`.
fn suites<'a>(tokens: &'a [Spanned<'a>]) -> impl Iterator<Item = &'a [Spanned<'a>]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + tokens[at..].iter().position(|t| t.token == Token::Indent)? + 1;
        let mut depth = 1usize;
        let mut end = start;
        while end < tokens.len() {
            match tokens[end].token {
                Token::Indent => depth += 1,
                Token::Dedent => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            end += 1;
        }
        at = (end + 1).min(tokens.len());
        Some(&tokens[start..end])
    })
}

/// True if the block's own decorators make it kernel code.
fn is_kernel(tokens: &[Spanned<'_>]) -> bool {
    let mut rest = tokens;
    while rest.first().is_some_and(|t| t.token == Token::At) {
        let (line, more) = rest.split_at(statement_length(rest));
        if line.iter().any(names_kernel) {
            return true;
        }
        rest = more;
    }
    false
}

/// True if some decorator in the block, at any depth, makes kernel code.
fn mentions_kernel(tokens: &[Spanned<'_>]) -> bool {
    let mut decorator = false;
    let mut fresh = true;
    tokens.iter().any(|token| {
        match token.token {
            Token::Newline | Token::Indent | Token::Dedent => (fresh, decorator) = (true, false),
            Token::At if fresh => (fresh, decorator) = (false, true),
            _ => fresh = false,
        }
        decorator && names_kernel(token)
    })
}

/// True for the names in decorators of kernel code: `jit` in any form, and the two for compile-time code.
fn names_kernel(token: &Spanned<'_>) -> bool {
    match token.token {
        Token::Name(name) => name.contains("jit") || name == "constexpr_function" || name.ends_with("aggregate"),
        _ => false,
    }
}

/// The position where nesting exceeds [`MAX_NESTING`].
///
/// Counts the tokens that may add a level of the tree: brackets and operators, up to the next comma. The count is never
/// smaller than the depth.
fn too_deep<'a>(tokens: &'a [Spanned<'a>]) -> Option<&'a Spanned<'a>> {
    #[derive(Clone, Copy, Default)]
    struct Level {
        count: u32,
        /// Lambdas whose colon has not come: commas among their parameters end nothing.
        lambdas: u32,
    }
    let mut outer: Vec<Level> = Vec::new();
    let mut total = 0;
    let mut here = Level::default();
    for token in tokens {
        match token.token {
            Token::Newline | Token::Semicolon if outer.is_empty() => (here, total) = (Level::default(), 0),
            Token::Comma if here.lambdas == 0 => {
                total -= here.count;
                here.count = 0;
            }
            Token::Colon if here.lambdas > 0 => here.lambdas -= 1,
            Token::FStringEnd => {}
            ref closing if closing.closes() => {
                total -= here.count;
                here = outer.pop().unwrap_or_default();
            }
            ref operand if operand.is_operand() => {}
            Token::Newline | Token::Indent | Token::Dedent | Token::Comma | Token::Colon | Token::FStringText(_) => {}
            ref other => {
                here.count += 1;
                total += 1;
                if total > MAX_NESTING {
                    return Some(token);
                }
                if matches!(other, Token::Lambda) {
                    here.lambdas += 1;
                }
                if other.opens() {
                    outer.push(here);
                    here = Level::default();
                }
            }
        }
    }
    None
}

/// Marks the brackets of `with (a as b, c as d):`, which a tuple's would hide.
fn mark_with_brackets(tokens: &mut [Spanned<'_>]) {
    for open in 1..tokens.len() {
        if tokens[open - 1].token != Token::With || tokens[open].token != Token::LParen {
            continue;
        }
        let mut depth = 0usize;
        let mut has_as = false;
        for close in open..tokens.len() {
            match &tokens[close].token {
                token if token.opens() => depth += 1,
                token if token.closes() => depth -= 1,
                Token::As if depth == 1 => has_as = true,
                // None of these occurs inside a bracket; `With` also keeps the search linear.
                Token::Newline | Token::Error(_) | Token::With => break,
                _ => {}
            }
            if depth == 0 {
                if has_as && tokens.get(close + 1).is_some_and(|t| t.token == Token::Colon) {
                    tokens[open].token = Token::WithOpen;
                    tokens[close].token = Token::WithClose;
                }
                break;
            }
        }
    }
}

mod names;
#[cfg(test)]
mod tests;
