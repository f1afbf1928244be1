//! From text to tokens: layout, strings and recovery around the rules of [`token`](crate::token).
//!
//! - Lines become `Newline`, `Indent` and `Dedent` as in Python: none inside brackets, none for blank lines.
//! - A mistake becomes an `Error` token in its line, and reading continues, so that one bad line of host code costs its
//!   own block only. An open bracket ends where a line starts with a word that can only start a statement.
//!
//! Invariants: `Indent` and `Dedent` are balanced; each `Error(n)` has its diagnostic at `errors[n]`; the last token of a
//! non-empty file is a `Newline` or a `Dedent`; at most [`MAX_INDENTATION`] levels.

mod string;

use crate::token::{Spanned, Token};
use rtc_source::{Code, Diagnostic, FileId, Span};

/// Levels of indentation that are accepted, as in Python.
const MAX_INDENTATION: usize = 100;

/// The tokens of a file, with the diagnostics of its `Error` tokens.
pub(crate) struct Lexed<'s> {
    pub tokens: Vec<Spanned<'s>>,
    pub errors: Vec<Diagnostic>,
}

/// Reads a whole file.
pub(crate) fn lex(file: FileId, text: &str) -> Lexed<'_> {
    let mut raw = logos::Lexer::new(text);
    let bom = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    raw.bump(bom);
    let mut lexer = Lexer {
        file,
        text,
        raw,
        tokens: Vec::with_capacity(text.len() / 4),
        errors: Vec::new(),
        brackets: Vec::new(),
        indents: vec![Indentation { column: 0, width: 0 }],
        line_start: bom,
        fresh_line: true,
        fresh_statement: true,
        string_depth: 0,
        newline_in_string: None,
    };
    while let Some(token) = lexer.raw.next() {
        let span = lexer.raw.span();
        lexer.token(token, span.start, span.end);
    }
    lexer.finish();
    Lexed { tokens: lexer.tokens, errors: lexer.errors }
}

/// How far a line is indented, counted in two ways so that mixed tabs and spaces are noticed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Indentation {
    /// A tab goes to the next multiple of eight.
    column: usize,
    /// A tab counts as one.
    width: usize,
}

struct Lexer<'s> {
    file: FileId,
    text: &'s str,
    raw: logos::Lexer<'s, Token<'s>>,
    tokens: Vec<Spanned<'s>>,
    errors: Vec<Diagnostic>,
    /// The open brackets with their places; `HoleOpen` for a hole of an f-string.
    brackets: Vec<(Token<'s>, usize)>,
    indents: Vec<Indentation>,
    line_start: usize,
    /// No token yet on this line of text.
    fresh_line: bool,
    /// No token yet in this statement.
    fresh_statement: bool,
    /// Open f-strings and formats.
    string_depth: usize,
    /// A line end that broke off an f-string: to be handled once that is left.
    newline_in_string: Option<(usize, usize)>,
}

impl<'s> Lexer<'s> {
    fn token(&mut self, token: Result<Token<'s>, ()>, start: usize, end: usize) {
        if let Ok(Token::Newline) = token {
            self.newline(start, end);
            return;
        }
        if self.fresh_line && !self.brackets.is_empty() {
            self.close_forgotten_brackets(&token, start);
        }
        if self.fresh_statement {
            self.indentation(start);
            self.fresh_statement = false;
        }
        self.fresh_line = false;
        match token {
            Err(()) => self.unexpected_character(start, end),
            Ok(Token::StringOpen(open)) => self.string(open, start, end),
            Ok(Token::FStringOpen(open)) => self.fstring(open, start, end),
            Ok(Token::Imaginary) => self.error(start, end, "imaginary numbers are not supported"),
            Ok(token @ (Token::LParen | Token::LBracket | Token::LBrace)) => {
                self.brackets.push((token.clone(), start));
                self.push(start, token, end);
            }
            Ok(token @ (Token::RParen | Token::RBracket | Token::RBrace)) => self.closing(token, start, end),
            Ok(token) => self.word(token, start, end),
        }
    }

    fn push(&mut self, start: usize, token: Token<'s>, end: usize) {
        self.tokens.push(Spanned { start: start as u32, token, end: end as u32 });
    }

    fn report(&mut self, diagnostic: Diagnostic, start: usize, end: usize) {
        let number = self.errors.len() as u32;
        self.errors.push(diagnostic);
        self.push(start, Token::Error(number), end);
    }

    fn error(&mut self, start: usize, end: usize, message: impl Into<String>) {
        self.report(Diagnostic::error(Code::SYNTAX, self.span(start, end), message), start, end);
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start, end)
    }

    fn newline(&mut self, start: usize, end: usize) {
        self.line_start = end;
        self.fresh_line = true;
        if self.brackets.is_empty() && !self.fresh_statement {
            self.push(start, Token::Newline, end);
            self.fresh_statement = true;
        }
    }

    /// Emits `Indent` and `Dedent` before the first token of a statement.
    fn indentation(&mut self, start: usize) {
        let new = measure(&self.text[self.line_start..start]);
        let mut top = self.top();
        while new.column < top.column {
            // A line between two levels stays in the inner one, so that the mistake is found in the block it belongs to.
            if new.column > self.indents[self.indents.len() - 2].column {
                let diagnostic = Diagnostic::error(
                    Code::SYNTAX,
                    self.span(self.line_start, start),
                    "this line's indentation matches no outer level",
                )
                .help("indent it like one of the lines above it");
                self.report(diagnostic, start, start);
                return;
            }
            self.indents.pop();
            self.push(start, Token::Dedent, start);
            top = self.top();
        }
        if new.column > top.column && new.width > top.width {
            if self.indents.len() > MAX_INDENTATION {
                let text = format!("more than {MAX_INDENTATION} levels of indentation");
                self.error(start, start, text);
                return;
            }
            self.indents.push(new);
            self.push(start, Token::Indent, start);
        } else if new != top {
            let diagnostic = Diagnostic::error(
                Code::SYNTAX,
                self.span(self.line_start, start),
                "tabs and spaces are mixed so that the indentation depends on the width of a tab",
            )
            .help("indent with spaces only");
            self.report(diagnostic, start, start);
        }
    }

    fn top(&self) -> Indentation {
        // The bottom level is never popped: no line has a column below 0.
        self.indents[self.indents.len() - 1]
    }

    fn closing(&mut self, token: Token<'s>, start: usize, end: usize) {
        let (wanted, open) = match self.brackets.last() {
            Some((Token::LParen, at)) => (Token::RParen, *at),
            Some((Token::LBracket, at)) => (Token::RBracket, *at),
            Some((_, at)) => (Token::RBrace, *at),
            None => {
                let text = format!("`{}` closes nothing", &self.text[start..end]);
                self.error(start, end, text);
                return;
            }
        };
        if token == wanted {
            self.brackets.pop();
            self.push(start, token, end);
            return;
        }
        let (opened, closed) = (&self.text[open..open + 1], &self.text[start..end]);
        let diagnostic = Diagnostic::error(
            Code::SYNTAX,
            self.span(start, end),
            format!("`{closed}` does not close the `{opened}` before it"),
        )
        .label(self.span(open, open + 1), "opened here");
        // If the bracket fits one further out, the inner ones were forgotten; a hole must stay open to its own end.
        let hole = self.brackets.iter().rposition(|(t, _)| *t == Token::HoleOpen).map_or(0, |at| at + 1);
        let fits = self.brackets[hole..].iter().rposition(|(t, _)| {
            matches!(
                (t, &token),
                (Token::LParen, Token::RParen) | (Token::LBracket, Token::RBracket) | (Token::LBrace, Token::RBrace)
            )
        });
        if let Some(at) = fits {
            self.brackets.truncate(hole + at);
        }
        self.report(diagnostic, start, end);
    }

    /// Ends the statement before a line that can only begin another one.
    fn close_forgotten_brackets(&mut self, token: &Result<Token<'s>, ()>, start: usize) {
        let Ok(token) = token else { return };
        let at_margin = start == self.line_start;
        if self.string_depth > 0
            || !(token.begins_statement_only() || (at_margin && matches!(token, Token::At | Token::From)))
        {
            return;
        }
        self.report_open_bracket();
        let end = self.tokens.last().map_or(start, |t| t.end as usize);
        self.push(end, Token::Newline, end);
        self.fresh_statement = true;
    }

    fn report_open_bracket(&mut self) {
        if let Some((_, open)) = self.brackets.last().cloned() {
            let text = &self.text[open..open + 1];
            let diagnostic =
                Diagnostic::error(Code::SYNTAX, self.span(open, open + 1), format!("this `{text}` is never closed"))
                    .help("write the bracket that closes it; all lines below belong to it until then");
            let at = self.tokens.last().map_or(open, |t| t.end as usize);
            self.report(diagnostic, at, at);
        }
        self.brackets.clear();
    }

    fn unexpected_character(&mut self, start: usize, end: usize) {
        let text = &self.text[start..end];
        let message = match text.chars().next() {
            Some('\\') => "a backslash may only stand at the end of a line".to_owned(),
            Some(c) if c.is_control() => format!("unexpected character U+{:04X}", c as u32),
            _ => format!("unexpected character `{text}`"),
        };
        let mut found = Diagnostic::error(Code::SYNTAX, self.span(start, end), message);
        if text == "?" {
            found = found.help("a conditional expression is written `a if condition else b`");
        }
        self.report(found, start, end);
    }

    /// Names, keywords, numbers and marks.
    fn word(&mut self, token: Token<'s>, start: usize, end: usize) {
        if let Token::Name(name) = token
            && let Some(odd) = name.chars().find(|c| !c.is_ascii() && !c.is_alphanumeric())
        {
            let text = format!("unexpected character `{}`", odd.escape_debug());
            self.error(start, end, text);
            return;
        }
        if let Token::Int(_) | Token::Float(_) | Token::Name(_) = token
            && let Some(Spanned { start: begin, token: Token::Int(_) | Token::Float(_), end: before }) =
                self.tokens.last()
            && *before as usize == start
        {
            let begin = *begin as usize;
            let text = format!("`{}` is not a number", &self.text[begin..end]);
            let found = Diagnostic::error(Code::SYNTAX, self.span(begin, end), text);
            let help =
                "numbers have no suffix, and names do not begin with a digit; a value is cast by `.to(tl.float32)`";
            self.report(found.help(help), begin, end);
            return;
        }
        if let Token::Int(digits) = token
            && digits.starts_with('0')
            && digits.bytes().all(|b| b.is_ascii_digit() || b == b'_')
            && digits.bytes().any(|b| matches!(b, b'1'..=b'9'))
        {
            let diagnostic =
                Diagnostic::error(Code::SYNTAX, self.span(start, end), "a decimal number may not begin with `0`")
                    .help("for an octal number, write `0o`")
                    .edit(self.span(start, start + 1), "0o");
            self.report(diagnostic, start, end);
            return;
        }
        self.push(start, token, end);
    }

    fn finish(&mut self) {
        let end = self.text.len();
        self.report_open_bracket();
        if !self.fresh_statement {
            self.push(end, Token::Newline, end);
        }
        for _ in 1..self.indents.len() {
            self.push(end, Token::Dedent, end);
        }
    }
}

fn measure(line: &str) -> Indentation {
    let mut indentation = Indentation { column: 0, width: 0 };
    for byte in line.bytes() {
        match byte {
            b' ' => {
                indentation.column += 1;
                indentation.width += 1;
            }
            b'\t' => {
                indentation.column = (indentation.column / 8 + 1) * 8;
                indentation.width += 1;
            }
            b'\x0C' => indentation = Indentation { column: 0, width: 0 },
            _ => break,
        }
    }
    indentation
}
