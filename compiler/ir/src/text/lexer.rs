//! Tokens of the text form.

use std::fmt;

use logos::Logos;

/// A token; the texts of values, symbols and layouts come without their mark.
#[derive(Logos, Clone, Copy, Debug, PartialEq)]
#[logos(skip r"[ \t\r\n]+")]
#[logos(skip(r"//[^\n]*", allow_greedy = true))]
pub(crate) enum Token<'t> {
    /// `%name`.
    #[regex(r"%[A-Za-z0-9_.$]+", |lex| &lex.slice()[1..])]
    Value(&'t str),
    /// `@name`.
    #[regex(r"@[A-Za-z0-9_.$]+", |lex| &lex.slice()[1..])]
    Symbol(&'t str),
    /// `@` before a quoted name.
    #[token("@")]
    At,
    /// A line of the preamble: `#l0 = linear(..)`, `#s0 = shared(..)`.
    #[regex(r"#[ls][0-9]+[ \t]*=[^\n]*", |lex| lex.slice(), allow_greedy = true)]
    LayoutDef(&'t str),
    /// A type with angle brackets.
    #[regex(r"(tile|shared)<[^<>\n]*(<[^<>\n]*>)?[^<>\n]*>|(ptr|barrier|desc|block_ptr)<[^<>\n]*>", |lex| lex.slice())]
    Type(&'t str),
    /// A source location.
    #[regex(r"loc\([^()\n]*\)", |lex| &lex.slice()[4..lex.slice().len() - 1])]
    Loc(&'t str),
    /// A word.
    #[regex(r"[A-Za-z_][A-Za-z0-9_]*", |lex| lex.slice())]
    Word(&'t str),
    /// A whole number.
    #[regex(r"-?[0-9]+", |lex| lex.slice())]
    Int(&'t str),
    /// A float.
    #[regex(r"-?[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?", |lex| lex.slice())]
    #[regex(r"-?[0-9]+[eE][+-]?[0-9]+", |lex| lex.slice())]
    #[token("-inf", |lex| lex.slice())]
    #[regex(r"nan\(0x[0-9a-f]+\)", |lex| lex.slice())]
    Float(&'t str),
    /// A quoted string, quotes included.
    #[regex(r#""([^"\\\n]|\\[^\n])*""#, |lex| lex.slice())]
    Str(&'t str),
    /// `=`
    #[token("=")]
    Equals,
    /// `,`
    #[token(",")]
    Comma,
    /// `:`
    #[token(":")]
    Colon,
    /// `(`
    #[token("(")]
    Open,
    /// `)`
    #[token(")")]
    Close,
    /// `{`
    #[token("{")]
    OpenBrace,
    /// `}`
    #[token("}")]
    CloseBrace,
    /// `[`
    #[token("[")]
    OpenList,
    /// `]`
    #[token("]")]
    CloseList,
    /// `^`
    #[token("^")]
    Caret,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Value(name) => write!(f, "`%{name}`"),
            Token::Symbol(name) => write!(f, "`@{name}`"),
            Token::LayoutDef(_) => f.write_str("a layout"),
            Token::Loc(_) => f.write_str("a location"),
            Token::Type(text) | Token::Word(text) | Token::Int(text) | Token::Float(text) | Token::Str(text) => {
                write!(f, "`{text}`")
            }
            Token::At => f.write_str("`@`"),
            Token::Equals => f.write_str("`=`"),
            Token::Comma => f.write_str("`,`"),
            Token::Colon => f.write_str("`:`"),
            Token::Open => f.write_str("`(`"),
            Token::Close => f.write_str("`)`"),
            Token::OpenBrace => f.write_str("`{`"),
            Token::CloseBrace => f.write_str("`}`"),
            Token::OpenList => f.write_str("`[`"),
            Token::CloseList => f.write_str("`]`"),
            Token::Caret => f.write_str("`^`"),
        }
    }
}

/// The text inside the quotes with its escapes resolved; `None` if one is wrong.
pub(crate) fn unescape(quoted: &str) -> Option<String> {
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next()? {
            '"' => out.push('"'),
            '\\' => out.push('\\'),
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'u' => {
                let rest = chars.as_str().strip_prefix('{')?;
                let (digits, rest) = rest.split_once('}')?;
                out.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
                chars = rest.chars();
            }
            _ => return None,
        }
    }
    Some(out)
}

/// The bits of a float token.
pub(crate) fn float_bits(text: &str) -> Option<u64> {
    match text.strip_prefix("nan(0x").and_then(|t| t.strip_suffix(')')) {
        Some(hex) => u64::from_str_radix(hex, 16).ok().filter(|bits| f64::from_bits(*bits).is_nan()),
        None => text.parse::<f64>().ok().map(f64::to_bits),
    }
}
