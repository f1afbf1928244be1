//! PTX text to tokens; comments and white space are dropped.

/// A token with the line it starts on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token<'a> {
    /// The kind.
    pub kind: TokenKind<'a>,
    /// Line, from 1.
    pub line: u32,
    /// Byte offset of its first character.
    pub start: usize,
}

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TokenKind<'a> {
    /// A name: `add`, `%r1`, `$L__BB0_1`, `_`.
    Name(&'a str),
    /// `.word`, without the dot; may hold `::`.
    Dot(&'a str),
    /// Something that starts with a digit.
    Number(&'a str),
    /// Between quotes, escapes left as they are.
    Text(&'a str),
    /// One of `, ; : { } ( ) [ ] < > + - ! | @ =`.
    Sign(char),
    /// End of the text.
    End,
}

impl std::fmt::Display for TokenKind<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TokenKind::Name(s) | TokenKind::Number(s) => write!(f, "`{s}`"),
            TokenKind::Dot(s) => write!(f, "`.{s}`"),
            TokenKind::Text(s) => write!(f, "\"{s}\""),
            TokenKind::Sign(c) => write!(f, "`{c}`"),
            TokenKind::End => f.write_str("end of text"),
        }
    }
}

/// Splits PTX into tokens, the last being `End`; the error is a line and its text.
pub fn tokens(text: &str) -> Result<Vec<Token<'_>>, (u32, String)> {
    let bytes = text.as_bytes();
    let mut list = Vec::with_capacity(text.len() / 4);
    let (mut at, mut line) = (0, 1);
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'$';
    while at < bytes.len() {
        let start = at;
        let kind = match bytes[at] {
            b'\n' => {
                line += 1;
                at += 1;
                continue;
            }
            b' ' | b'\t' | b'\r' | 0x0c => {
                at += 1;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let Some(n) = text[at + 2..].find("*/") else {
                    return Err((line, "a comment without its end".to_string()));
                };
                line += text[at..at + 2 + n].matches('\n').count() as u32;
                at += n + 4;
                continue;
            }
            b'"' => {
                let end = bytes[at + 1..].iter().position(|b| *b == b'"' || *b == b'\n').map(|n| at + 1 + n);
                match end {
                    Some(end) if bytes[end] == b'"' => {
                        at = end + 1;
                        TokenKind::Text(&text[start + 1..end])
                    }
                    _ => return Err((line, "a string without its end".to_string())),
                }
            }
            b'.' => {
                at += 1;
                loop {
                    if at < bytes.len() && is_word(bytes[at]) {
                        at += 1;
                    } else if bytes[at..].starts_with(b"::") {
                        at += 2;
                    } else {
                        break;
                    }
                }
                TokenKind::Dot(&text[start + 1..at])
            }
            b'0'..=b'9' => {
                while at < bytes.len() && (is_word(bytes[at]) || is_fraction(bytes, at)) {
                    at += 1;
                }
                TokenKind::Number(&text[start..at])
            }
            b'%' | b'_' | b'$' | b'a'..=b'z' | b'A'..=b'Z' => {
                at += 1;
                while at < bytes.len() && is_word(bytes[at]) {
                    at += 1;
                }
                TokenKind::Name(&text[start..at])
            }
            b @ (b',' | b';' | b':' | b'{' | b'}' | b'(' | b')' | b'[' | b']' | b'<' | b'>' | b'+' | b'-' | b'!'
            | b'|' | b'@' | b'=') => {
                at += 1;
                TokenKind::Sign(b as char)
            }
            _ => {
                let c = text[at..].chars().next().unwrap_or(' ');
                return Err((line, format!("unexpected character `{}`", c.escape_default())));
            }
        };
        list.push(Token { kind, line, start });
    }
    list.push(Token { kind: TokenKind::End, line, start: text.len() });
    Ok(list)
}

/// A dot inside a decimal number, or a sign after its exponent letter.
fn is_fraction(bytes: &[u8], at: usize) -> bool {
    match bytes[at] {
        b'.' => bytes.get(at + 1).is_some_and(u8::is_ascii_digit),
        b'+' | b'-' => {
            let start =
                bytes[..at].iter().rposition(|b| !(b.is_ascii_alphanumeric() || *b == b'.')).map_or(0, |n| n + 1);
            matches!(bytes[at - 1], b'e' | b'E') && bytes[start..at].contains(&b'.')
        }
        _ => false,
    }
}
