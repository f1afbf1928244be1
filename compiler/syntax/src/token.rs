//! The tokens of the language, with the rules by which `logos` finds them.
//!
//! Four families never come from `logos` itself: layout (`Indent`, `Dedent`), decoded strings, the pieces of f-strings,
//! and `Error`; the [`lexer`](crate::lexer) makes them. A string's opening quote is a token here, its text is read by
//! the lexer.

use logos::Logos;
use std::sync::Arc;

/// One token; names and numbers borrow from the source.
#[derive(Logos, Clone, Debug, PartialEq)]
#[logos(skip r"[ \t\x0C]+")]
#[logos(skip(r"#[^\r\n]*", allow_greedy = true))]
#[logos(skip r"\\(\r\n|\n|\r)")]
pub(crate) enum Token<'s> {
    #[regex(r"[A-Za-z_\u{80}-\u{10FFFF}][A-Za-z0-9_\u{80}-\u{10FFFF}]*")]
    Name(&'s str),
    #[regex(r"[0-9](_?[0-9])*")]
    #[regex(r"0[xX](_?[0-9a-fA-F])+")]
    #[regex(r"0[oO](_?[0-7])+")]
    #[regex(r"0[bB](_?[01])+")]
    Int(&'s str),
    #[regex(r"[0-9](_?[0-9])*\.([0-9](_?[0-9])*)?([eE][+-]?[0-9](_?[0-9])*)?")]
    #[regex(r"\.[0-9](_?[0-9])*([eE][+-]?[0-9](_?[0-9])*)?")]
    #[regex(r"[0-9](_?[0-9])*[eE][+-]?[0-9](_?[0-9])*")]
    Float(&'s str),
    #[regex(r"[0-9](_?[0-9])*(\.([0-9](_?[0-9])*)?)?([eE][+-]?[0-9](_?[0-9])*)?[jJ]")]
    #[regex(r"\.[0-9](_?[0-9])*([eE][+-]?[0-9](_?[0-9])*)?[jJ]")]
    Imaginary,
    #[regex(r#"([rRuUbB]|[rR][bB]|[bB][rR])?("""|'''|"|')"#)]
    StringOpen(&'s str),
    #[regex(r#"([fF]|[fF][rR]|[rR][fF])("""|'''|"|')"#)]
    FStringOpen(&'s str),
    #[regex(r"\r\n|\n|\r")]
    Newline,

    // Made by the lexer.
    Str(Arc<str>),
    Bytes(Arc<[u8]>),
    FStringStart,
    FStringText(Arc<str>),
    HoleOpen,
    HoleText(Arc<str>),
    HoleFormat,
    HoleClose,
    FStringEnd,
    WithOpen,
    WithClose,
    Indent,
    Dedent,
    /// The number of the lexer's diagnostic.
    Error(u32),

    // Keywords.
    #[token("and")]
    And,
    #[token("as")]
    As,
    #[token("assert")]
    Assert,
    #[token("async")]
    Async,
    #[token("await")]
    Await,
    #[token("break")]
    Break,
    #[token("class")]
    Class,
    #[token("continue")]
    Continue,
    #[token("def")]
    Def,
    #[token("del")]
    Del,
    #[token("elif")]
    Elif,
    #[token("else")]
    Else,
    #[token("except")]
    Except,
    #[token("False")]
    False,
    #[token("finally")]
    Finally,
    #[token("for")]
    For,
    #[token("from")]
    From,
    #[token("global")]
    Global,
    #[token("if")]
    If,
    #[token("import")]
    Import,
    #[token("in")]
    In,
    #[token("is")]
    Is,
    #[token("lambda")]
    Lambda,
    #[token("None")]
    None,
    #[token("nonlocal")]
    Nonlocal,
    #[token("not")]
    Not,
    #[token("or")]
    Or,
    #[token("pass")]
    Pass,
    #[token("raise")]
    Raise,
    #[token("return")]
    Return,
    #[token("True")]
    True,
    #[token("try")]
    Try,
    #[token("while")]
    While,
    #[token("with")]
    With,
    #[token("yield")]
    Yield,

    // Brackets and marks.
    #[token("(")]
    LParen,
    #[token(")")]
    RParen,
    #[token("[")]
    LBracket,
    #[token("]")]
    RBracket,
    #[token("{")]
    LBrace,
    #[token("}")]
    RBrace,
    #[token(",")]
    Comma,
    #[token(":")]
    Colon,
    #[token(";")]
    Semicolon,
    #[token(".")]
    Dot,
    #[token("...")]
    Ellipsis,
    #[token("->")]
    Arrow,
    #[token("!")]
    Bang,
    #[token(":=")]
    ColonEqual,
    #[token("=")]
    Equal,

    // Operators.
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("//")]
    DoubleSlash,
    #[token("%")]
    Percent,
    #[token("@")]
    At,
    #[token("**")]
    DoubleStar,
    #[token("<<")]
    ShiftLeft,
    #[token(">>")]
    ShiftRight,
    #[token("&")]
    Ampersand,
    #[token("|")]
    Pipe,
    #[token("^")]
    Caret,
    #[token("~")]
    Tilde,
    #[token("<")]
    Less,
    #[token(">")]
    Greater,
    #[token("<=")]
    LessEqual,
    #[token(">=")]
    GreaterEqual,
    #[token("==")]
    EqualEqual,
    #[token("!=")]
    NotEqual,
    #[token("+=")]
    PlusEqual,
    #[token("-=")]
    MinusEqual,
    #[token("*=")]
    StarEqual,
    #[token("/=")]
    SlashEqual,
    #[token("//=")]
    DoubleSlashEqual,
    #[token("%=")]
    PercentEqual,
    #[token("@=")]
    AtEqual,
    #[token("**=")]
    DoubleStarEqual,
    #[token("<<=")]
    ShiftLeftEqual,
    #[token(">>=")]
    ShiftRightEqual,
    #[token("&=")]
    AmpersandEqual,
    #[token("|=")]
    PipeEqual,
    #[token("^=")]
    CaretEqual,
}

/// A token with its byte range.
#[derive(Clone, Debug)]
pub(crate) struct Spanned<'s> {
    pub start: u32,
    pub token: Token<'s>,
    pub end: u32,
}

impl Token<'_> {
    /// True for keywords that only ever begin a statement: inside brackets they show that a bracket was left open.
    pub(crate) fn begins_statement_only(&self) -> bool {
        matches!(
            self,
            Token::Assert
                | Token::Break
                | Token::Class
                | Token::Continue
                | Token::Def
                | Token::Del
                | Token::Elif
                | Token::Except
                | Token::Finally
                | Token::Global
                | Token::Import
                | Token::Nonlocal
                | Token::Pass
                | Token::Raise
                | Token::Return
                | Token::Try
                | Token::While
                | Token::With
        )
    }

    /// True for the keywords whose line ends with a colon.
    pub(crate) fn begins_block(&self) -> bool {
        matches!(
            self,
            Token::Class
                | Token::Def
                | Token::Elif
                | Token::Else
                | Token::Except
                | Token::Finally
                | Token::For
                | Token::If
                | Token::Try
                | Token::While
                | Token::With
        )
    }

    /// True for opening brackets.
    pub(crate) fn opens(&self) -> bool {
        matches!(self, Token::LParen | Token::LBracket | Token::LBrace | Token::WithOpen | Token::HoleOpen)
    }

    /// True for closing brackets.
    pub(crate) fn closes(&self) -> bool {
        matches!(self, Token::RParen | Token::RBracket | Token::RBrace | Token::WithClose | Token::HoleClose)
    }

    /// True for tokens that are operands on their own.
    pub(crate) fn is_operand(&self) -> bool {
        matches!(
            self,
            Token::Name(_)
                | Token::Int(_)
                | Token::Float(_)
                | Token::Str(_)
                | Token::Bytes(_)
                | Token::True
                | Token::False
                | Token::None
                | Token::Ellipsis
        )
    }
}
