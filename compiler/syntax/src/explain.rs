//! Why the grammar refused a block, in words.
//!
//! The generated parser provides the unexpected token and every token it would have accepted; a list of forty tokens does
//! not help. This module checks the context, the open bracket and the first word of the line, and names the most likely
//! mistake.

use crate::parse::Block;
use crate::token::{Spanned, Token};
use lalrpop_util::ParseError;
use rtc_source::{Code, Diagnostic, Span};

/// The diagnostic for a refused block.
pub(crate) fn explain(block: Block<'_>, error: ParseError<usize, Token<'_>, Box<Diagnostic>>) -> Diagnostic {
    let (at, expected) = match error {
        ParseError::User { error } => return *error,
        ParseError::UnrecognizedToken { token: (start, token, end), expected } => {
            let at = block.tokens.partition_point(|t| (t.start as usize) < start);
            let found = block.tokens[at..].iter().position(|t| t.end as usize == end && t.token == token);
            (at + found.unwrap_or(0), expected)
        }
        ParseError::UnrecognizedEof { expected, .. } => (block.tokens.len(), expected),
        // Neither can come from tokens that are already read; point to the end.
        ParseError::InvalidToken { .. } | ParseError::ExtraToken { .. } => (block.tokens.len(), Vec::new()),
    };
    Stumble { block, at, expected }.diagnose()
}

/// Where the parser stumbled.
struct Stumble<'a> {
    block: Block<'a>,
    /// The index of the token it did not take; one past the last if the block ended too early.
    at: usize,
    expected: Vec<String>,
}

impl<'a> Stumble<'a> {
    fn diagnose(&self) -> Diagnostic {
        if self.expects("indent") {
            return self.missing_block();
        }
        let previous = self.previous();
        if previous.is_none_or(|previous| is_line_edge(&previous.token))
            && let Some(diagnostic) = self.unfinished_statement()
        {
            return diagnostic;
        }
        let Some(found) = self.block.tokens.get(self.at) else {
            return self.error("the block ends too early");
        };
        if found.token == Token::Indent {
            return self
                .error("this line is indented more than the one before it")
                .help("only the lines after a `:` are indented further");
        }
        if let Some(diagnostic) = self.foreign_habit(found, previous) {
            return diagnostic;
        }
        if let Some(word) = self.unsupported_statement() {
            let span = self.span(self.first_of_line());
            return Diagnostic::error(Code::SYNTAX, span, format!("`{word}` statements are not supported")).help(
                match word {
                    "match" | "case" => "write `if`, `elif` and `else`",
                    "print" => "call the function: `print(...)`",
                    "async" => "leave out `async`",
                    _ => "leave the statement out",
                },
            );
        }
        if self.expects("\":\"") && found.token == Token::Newline && self.first_of_line().token.begins_block() {
            let word = self.text(self.first_of_line());
            let at = Span { end: found.start, ..self.span(found) };
            let missing = self.error(format!("expected `:` at the end of the `{word}` line"));
            return missing.help("write `:` here").edit(at, ":");
        }
        if found.token == Token::Equal {
            if let Some(previous) = previous
                && is_keyword(self.text(previous))
            {
                let text = format!("`{}` is a keyword and cannot be a name", self.text(previous));
                return Diagnostic::error(Code::SYNTAX, self.span(previous), text);
            }
            return self.error("`=` assigns and cannot stand inside an expression").help("to compare, write `==`");
        }
        if let Some(previous) = previous
            && is_keyword(self.text(found))
            && self.expects("name")
            && matches!(previous.token, Token::Def | Token::Class | Token::Dot | Token::Import | Token::As)
        {
            return self.error(format!("`{}` is a keyword and cannot be a name", self.text(found)));
        }
        self.misplaced(found, previous)
    }

    /// The fallback: something is missing before the token, or the token does not belong there.
    fn misplaced(&self, found: &Spanned<'a>, previous: Option<&Spanned<'a>>) -> Diagnostic {
        let shown = self.show(found);
        if found.token == Token::LBrace && previous.is_some_and(|previous| previous.token == Token::RParen) {
            return self
                .error(format!("unexpected {shown}"))
                .help("write `:` and indent the lines below; blocks have no braces");
        }
        let starts_line = previous.is_none_or(|previous| is_line_edge(&previous.token));
        if starts_line && matches!(found.token, Token::Else | Token::Elif | Token::Except | Token::Finally) {
            return self.error(format!("this {shown} belongs to no statement before it"));
        }
        let wants_operand = self.expects("name") && self.expects("int");
        if wants_operand
            && !starts_line
            && let Some(previous) = previous
        {
            if found.token.closes() || matches!(found.token, Token::Newline | Token::Comma | Token::Colon) {
                return self.error(format!("an expression is missing between {} and {shown}", self.show(previous)));
            }
            return self.error(format!("expected an expression after {}, found {shown}", self.show(previous)));
        }
        if self.expects("\"else\"") && previous.is_some_and(|previous| !is_line_edge(&previous.token)) {
            return self
                .error(format!("expected `else` before {shown}"))
                .help("a conditional expression is written `a if condition else b`");
        }
        if let Some(opening) = self.opening()
            && !found.token.closes()
        {
            let bracket = self.text(opening);
            let close = match opening.token {
                Token::LBracket => "]",
                Token::LBrace | Token::HoleOpen => "}",
                _ => ")",
            };
            let wanted = if self.expects("\",\"") { format!("`,` or `{close}`") } else { format!("`{close}`") };
            return self
                .error(format!("expected {wanted} before {shown}"))
                .label(self.span(opening), format!("this `{bracket}` is open"));
        }
        let starts_operand = found.token.is_operand() || is_keyword(self.text(found));
        match previous {
            Some(previous) if starts_operand && !is_line_edge(&previous.token) => self.error(format!(
                "expected an operator or the end of the line between {} and {shown}",
                self.show(previous)
            )),
            Some(previous) if found.token == Token::Newline => {
                self.error(format!("the line ends too early, after {}", self.show(previous)))
            }
            Some(previous) if !is_line_edge(&previous.token) => {
                self.error(format!("unexpected {shown} after {}", self.show(previous)))
            }
            _ => self.error(format!("unexpected {shown} at the start of a line")),
        }
    }

    /// At the start of a line or the end of the block: what the statement before still lacks.
    fn unfinished_statement(&self) -> Option<Diagnostic> {
        if self.expects("\"except\"") && !self.expects("name") {
            return Some(self.error("this `try` has neither `except` nor `finally`"));
        }
        if self.expects("\"def\"") && !self.expects("name") {
            let is_async = self.block.tokens.get(self.at).is_some_and(|t| t.token == Token::Async);
            return Some(self.error("expected `def` or `class` after the decorator").help(match is_async {
                true => "leave out `async`: a kernel is a plain function",
                false => "write the function in the next line",
            }));
        }
        None
    }

    /// A word that replaces a place, with spaces between it and its neighbours.
    fn spaced(&self, place: Span, word: &str) -> String {
        let text = self.block.text;
        let before = text[..place.start as usize].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
        let after = text[place.end as usize..].chars().next().is_some_and(|c| !c.is_whitespace());
        format!("{}{word}{}", if before { " " } else { "" }, if after { " " } else { "" })
    }

    /// Mistakes that users of other languages make.
    fn foreign_habit(&self, found: &Spanned<'a>, previous: Option<&Spanned<'a>>) -> Option<Diagnostic> {
        let previous = previous?;
        let adjacent = previous.end == found.start;
        let pair =
            |first: &Token<'_>, second: &Token<'_>| previous.token == *first && found.token == *second && adjacent;
        let both = self.span(previous).to(self.span(found));
        if pair(&Token::Ampersand, &Token::Ampersand) {
            return Some(
                self.error("`&&` is not an operator").help("write `and`").edit(both, self.spaced(both, "and")),
            );
        }
        if pair(&Token::Pipe, &Token::Pipe) {
            return Some(self.error("`||` is not an operator").help("write `or`").edit(both, self.spaced(both, "or")));
        }
        if found.token == Token::Bang {
            let span = self.span(found);
            return Some(self.error("`!` is not an operator").help("write `not`").edit(span, self.spaced(span, "not")));
        }
        if previous.token == Token::Else && found.token == Token::If {
            return Some(self.error("`else if` is one word").help("write `elif`").edit(both, "elif"));
        }
        if found.token == Token::Newline && self.at >= 2 {
            let before = &self.block.tokens[self.at - 2].token;
            for (token, text) in [(Token::Plus, "+"), (Token::Minus, "-")] {
                if previous.token == token && *before == token {
                    return Some(
                        self.error(format!("`{text}{text}` is not an operator"))
                            .help(format!("write `{text}= 1` instead")),
                    );
                }
            }
        }
        None
    }

    /// The word of a statement that the language has not.
    fn unsupported_statement(&self) -> Option<&'a str> {
        let first = self.first_of_line();
        match first.token {
            Token::Async => Some("async"),
            Token::Name(word @ ("match" | "case" | "type" | "print" | "exec")) => {
                let second = self.line_start() + 1;
                (second == self.at && self.block.tokens.get(second)?.token.is_operand()
                    || self.block.tokens[self.at].token == Token::Colon && word != "print" && word != "exec")
                    .then_some(word)
            }
            _ => None,
        }
    }

    fn missing_block(&self) -> Diagnostic {
        let header = self.header();
        let diagnostic = self.error("expected an indented block");
        match header {
            Some(header) => {
                let word = self.text(header);
                diagnostic
                    .label(self.span(header), format!("after this `{word}`"))
                    .help("indent the lines that belong to it; an empty block is written `pass`")
            }
            None => diagnostic,
        }
    }

    /// The first word of the line before the one where the parser stumbled.
    fn header(&self) -> Option<&Spanned<'a>> {
        let before = &self.block.tokens[..self.at.min(self.block.tokens.len())];
        let newline = before.iter().rposition(|t| t.token == Token::Newline)?;
        let start = before[..newline].iter().rposition(|t| is_line_edge(&t.token)).map_or(0, |at| at + 1);
        before.get(start)
    }

    fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(Code::SYNTAX, self.place(), message)
    }

    /// The token itself; for line ends, the empty place where the line ends.
    fn place(&self) -> Span {
        match self.block.tokens.get(self.at) {
            Some(Spanned { start, token: Token::Newline | Token::Indent | Token::Dedent, .. }) => {
                Span::new(self.block.file, *start as usize, *start as usize)
            }
            Some(token) => self.span(token),
            None => {
                let end = self.block.tokens.last().map_or(0, |t| t.start as usize);
                Span::new(self.block.file, end, end)
            }
        }
    }

    fn span(&self, token: &Spanned<'_>) -> Span {
        Span::new(self.block.file, token.start as usize, token.end as usize)
    }

    fn expects(&self, terminal: &str) -> bool {
        self.expected.iter().any(|e| e == terminal)
    }

    fn previous(&self) -> Option<&Spanned<'a>> {
        self.at.checked_sub(1).and_then(|at| self.block.tokens.get(at))
    }

    fn line_start(&self) -> usize {
        self.block.tokens[..self.at].iter().rposition(|t| is_line_edge(&t.token)).map_or(0, |at| at + 1)
    }

    fn first_of_line(&self) -> &Spanned<'a> {
        &self.block.tokens[self.line_start()]
    }

    /// The innermost bracket that is open where the parser stumbled.
    fn opening(&self) -> Option<&Spanned<'a>> {
        let mut open: Vec<&Spanned<'a>> = Vec::new();
        for token in &self.block.tokens[self.line_start()..self.at] {
            if token.token.opens() {
                open.push(token);
            } else if token.token.closes() {
                open.pop();
            }
        }
        open.pop()
    }

    fn text(&self, token: &Spanned<'_>) -> &'a str {
        &self.block.text[token.start as usize..token.end as usize]
    }

    /// A token in a message.
    fn show(&self, token: &Spanned<'_>) -> String {
        match token.token {
            Token::Newline => "the end of the line".to_owned(),
            Token::Indent | Token::Dedent => "the start of the line".to_owned(),
            Token::Str(_) | Token::Bytes(_) | Token::FStringStart | Token::FStringEnd => "a string".to_owned(),
            _ => format!("`{}`", self.text(token)),
        }
    }
}

fn is_line_edge(token: &Token<'_>) -> bool {
    matches!(token, Token::Newline | Token::Indent | Token::Dedent | Token::Semicolon)
}

/// True for words that the lexer takes for keywords.
fn is_keyword(text: &str) -> bool {
    let mut lexer = logos::Lexer::<Token<'_>>::new(text);
    let first = lexer.next();
    text.bytes().all(|b| b.is_ascii_alphabetic()) && !matches!(first, None | Some(Err(()) | Ok(Token::Name(_))))
}
