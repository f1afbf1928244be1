//! Strings: finding their end, decoding escapes, and cutting f-strings into text and holes.
//!
//! An f-string becomes `FStringStart`, then `FStringText` and holes, then `FStringEnd`. A hole is `HoleOpen`, the tokens
//! of its expression, `HoleText` if it ends with `=`, `!` and a name, `HoleFormat` with the pieces of the format, and
//! `HoleClose`. Holes may hold strings with the same quotes, as in Python 3.12.

use super::Lexer;
use crate::token::Token;
use rtc_source::{Code, Diagnostic};

/// F-strings inside holes of f-strings that are accepted.
const MAX_STRING_DEPTH: usize = 8;

/// The end of a piece of an f-string.
enum PieceEnd {
    Quote,
    Hole,
    FormatEnd,
    Unterminated,
}

impl<'s> Lexer<'s> {
    /// Reads the string whose opening, prefix and quotes, is `start..body`.
    pub(super) fn string(&mut self, open: &'s str, start: usize, body: usize) {
        let (prefix, quote) = split_opening(open);
        let raw = prefix.contains(['r', 'R']);
        let Some(close) = self.find_quote(quote, body) else {
            self.unterminated(quote, start, body);
            return;
        };
        let end = close + quote.len();
        self.raw.bump(end - self.raw.span().end);
        let text = &self.text[body..close];
        if prefix.contains(['b', 'B']) {
            match decode_bytes(text, raw) {
                Ok(bytes) => self.push(start, Token::Bytes(bytes.into()), end),
                Err((at, message)) => self.error(body + at, end, message),
            }
            return;
        }
        match decode(text, raw, false) {
            Ok(text) => self.push(start, Token::Str(text.into()), end),
            Err((at, len, message)) => self.error(body + at, body + at + len, message),
        }
    }

    /// Where the closing quotes begin.
    fn find_quote(&self, quote: &str, body: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = body;
        while at < bytes.len() {
            match bytes[at] {
                // The character after a backslash never ends the string; `\` + CRLF is one line end.
                b'\\' if self.text[at + 1..].starts_with("\r\n") => at += 3,
                b'\\' => at += 2,
                b'\n' | b'\r' if quote.len() == 1 => return None,
                _ if self.text.as_bytes()[at..].starts_with(quote.as_bytes()) => return Some(at),
                _ => at += 1,
            }
        }
        None
    }

    /// Reports a string without end and goes on at the end of its first line.
    fn unterminated(&mut self, quote: &str, start: usize, body: usize) {
        let end = self.line_end(body);
        let at = self.raw.span().end;
        self.raw.bump(end.saturating_sub(at));
        let diagnostic = Diagnostic::error(Code::SYNTAX, self.span(start, end), "this string is never closed")
            .help(format!("close it with `{quote}`"));
        self.report(diagnostic, start, end);
    }

    fn line_end(&self, from: usize) -> usize {
        self.text[from..].find(['\n', '\r']).map_or(self.text.len(), |at| from + at)
    }

    /// Reads the f-string whose opening is `start..body`.
    pub(super) fn fstring(&mut self, open: &'s str, start: usize, body: usize) {
        let (prefix, quote) = split_opening(open);
        let raw = prefix.contains(['r', 'R']);
        if self.string_depth == MAX_STRING_DEPTH {
            self.error(start, body, "f-strings are nested too deeply");
            return;
        }
        self.string_depth += 1;
        let outer_brackets = self.brackets.len();
        self.push(start, Token::FStringStart, body);
        if self.pieces(quote, raw, false, body) {
            let end = self.raw.span().end;
            self.push(end - quote.len(), Token::FStringEnd, end);
        } else {
            self.brackets.truncate(outer_brackets);
            let end = match self.newline_in_string {
                Some((line_end, _)) => line_end,
                None => {
                    let at = self.raw.span().end;
                    let resume = self.line_end(at);
                    self.raw.bump(resume - at);
                    resume
                }
            };
            let diagnostic = Diagnostic::error(
                Code::SYNTAX,
                self.span(start, self.line_end(start)),
                "this f-string is never closed",
            )
            .help(format!("close every `{{` with `}}` and the string with `{quote}`"));
            self.report(diagnostic, start, end);
        }
        self.string_depth -= 1;
        if self.string_depth == 0
            && let Some((start, end)) = self.newline_in_string.take()
        {
            self.newline(start, end);
        }
    }

    /// Reads text and holes up to the closing quote or, in a format, up to the hole's `}`; false if there is none.
    fn pieces(&mut self, quote: &'s str, raw: bool, format: bool, mut at: usize) -> bool {
        loop {
            let (end, why) = self.text_piece(quote, raw, format, at);
            if matches!(why, PieceEnd::Unterminated) {
                return false;
            }
            let now = self.raw.span().end;
            self.raw.bump(end.saturating_sub(now));
            if !matches!(why, PieceEnd::Hole) {
                return true;
            }
            if !self.hole(quote, raw, end) {
                return false;
            }
            at = self.raw.span().end;
        }
    }

    /// Reads plain text from `at`; returns the place after the quote, `{` or `}` that ended it.
    fn text_piece(&mut self, quote: &str, raw: bool, format: bool, from: usize) -> (usize, PieceEnd) {
        let bytes = self.text.as_bytes();
        // Doubled braces mean one; the text is decoded in parts around them.
        let mut text = String::new();
        let mut part = from;
        let mut at = from;
        let mut failure: Option<(usize, usize, String)> = None;
        let source = self.text;
        let flush =
            |text: &mut String, failure: &mut Option<(usize, usize, String)>, part: usize, at: usize| match decode(
                &source[part..at],
                raw,
                false,
            ) {
                Ok(decoded) => text.push_str(&decoded),
                Err((offset, len, message)) => {
                    failure.get_or_insert((part + offset, part + offset + len, message));
                }
            };
        let (end, why) = loop {
            if at >= bytes.len() {
                break (bytes.len(), PieceEnd::Unterminated);
            }
            let rest = &bytes[at..];
            match rest[0] {
                b'\\' if !raw && rest.starts_with(b"\\N{") => {
                    at += rest.iter().position(|b| *b == b'}').map_or(rest.len(), |n| n + 1);
                }
                // A backslash before a brace is only a backslash.
                b'\\' if matches!(rest.get(1), Some(b'{' | b'}')) => at += 1,
                b'\\' if rest[1..].starts_with(b"\r\n") => at += 3,
                b'\\' => at += 2,
                b'\n' | b'\r' if quote.len() == 1 => break (at, PieceEnd::Unterminated),
                b'{' | b'}' if !format && rest.get(1) == Some(&rest[0]) => {
                    flush(&mut text, &mut failure, part, at + 1);
                    at += 2;
                    part = at;
                }
                b'{' => break (at + 1, PieceEnd::Hole),
                b'}' if format => break (at + 1, PieceEnd::FormatEnd),
                b'}' => {
                    flush(&mut text, &mut failure, part, at);
                    part = at + 1;
                    at += 1;
                    failure.get_or_insert((at - 1, at, "a single `}` in an f-string is written `}}`".to_owned()));
                    continue;
                }
                _ if rest.starts_with(quote.as_bytes()) => {
                    // A quote ends a format only by mistake: its hole is open.
                    let why = if format { PieceEnd::Unterminated } else { PieceEnd::Quote };
                    break (at + quote.len(), why);
                }
                _ => at += 1,
            }
        };
        if !matches!(why, PieceEnd::Unterminated) {
            flush(&mut text, &mut failure, part, at);
        }
        if let Some((start, end, message)) = failure {
            self.error(start, end, message);
        } else if !text.is_empty() {
            self.push(from, Token::FStringText(text.into()), at);
        }
        (end, why)
    }

    /// Reads a hole whose `{` ends at `body`; false if it is never closed.
    fn hole(&mut self, quote: &'s str, raw: bool, body: usize) -> bool {
        self.push(body - 1, Token::HoleOpen, body);
        self.brackets.push((Token::HoleOpen, body - 1));
        let depth = self.brackets.len();
        while let Some(token) = self.raw.next() {
            let (start, end) = (self.raw.span().start, self.raw.span().end);
            let own = self.brackets.len() == depth;
            match token {
                Ok(Token::Newline) if quote.len() == 1 => {
                    self.newline_in_string = Some((start, end));
                    return false;
                }
                Ok(Token::RBrace) if own => {
                    self.brackets.pop();
                    self.push(start, Token::HoleClose, end);
                    return true;
                }
                Ok(Token::Colon | Token::ColonEqual) if own => {
                    self.push(start, Token::HoleFormat, start + 1);
                    if self.string_depth >= MAX_STRING_DEPTH {
                        return false;
                    }
                    self.string_depth += 1;
                    let closed = self.pieces(quote, raw, true, start + 1);
                    self.string_depth -= 1;
                    let end = self.raw.span().end;
                    self.brackets.truncate(depth - 1);
                    self.push(end - 1, Token::HoleClose, end);
                    return closed;
                }
                Ok(Token::Equal) if own => {
                    let spaces = self.text[end..].len() - self.text[end..].trim_start().len();
                    let text = self.text[body..end + spaces].into();
                    self.push(start, Token::HoleText(text), end);
                }
                token => {
                    self.token(token, start, end);
                    if self.newline_in_string.is_some() {
                        return false;
                    }
                }
            }
        }
        false
    }
}

fn split_opening(open: &str) -> (&str, &str) {
    open.split_at(open.find(['"', '\'']).unwrap_or(0))
}

/// Decodes the escapes of a string; the error gives offset and length of the bad escape. `\u`, `\U` and `\N` mean
/// nothing in bytes.
fn decode(text: &str, raw: bool, bytes: bool) -> Result<String, (usize, usize, String)> {
    if raw || !text.contains('\\') {
        return Ok(if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text.to_owned() });
    }
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        decoded.push_str(&rest[..at]);
        let offset = text.len() - rest.len() + at;
        let escape = &rest[at + 1..];
        let (length, replacement) = match escape.as_bytes().first() {
            Some(b'\n') => (1, None),
            Some(b'\r') => (if escape.starts_with("\r\n") { 2 } else { 1 }, None),
            Some(b'a') => (1, Some('\x07')),
            Some(b'b') => (1, Some('\x08')),
            Some(b'f') => (1, Some('\x0C')),
            Some(b'n') => (1, Some('\n')),
            Some(b'r') => (1, Some('\r')),
            Some(b't') => (1, Some('\t')),
            Some(b'v') => (1, Some('\x0B')),
            Some(b'\\' | b'\'' | b'"') => (1, escape.chars().next()),
            Some(b'0'..=b'7') => {
                let digits = escape.bytes().take(3).take_while(|b| matches!(b, b'0'..=b'7')).count();
                (digits, u32::from_str_radix(&escape[..digits], 8).ok().and_then(char::from_u32))
            }
            Some(letter @ (b'x' | b'u' | b'U')) if *letter == b'x' || !bytes => {
                let digits = match letter {
                    b'x' => 2,
                    b'u' => 4,
                    _ => 8,
                };
                let code = escape.get(1..1 + digits).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
                let code = code.and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
                let Some(code) = code else {
                    let message = format!("`\\{}` needs {digits} hexadecimal digits of a character", *letter as char);
                    return Err((offset, 2, message));
                };
                (1 + digits, Some(code))
            }
            Some(b'N') if !bytes => {
                return Err((offset, 2, "characters by name, `\\N{...}`, are not supported".to_owned()));
            }
            // An unknown escape stays as it is written.
            _ => (0, Some('\\')),
        };
        decoded.extend(replacement);
        rest = &escape[length..];
    }
    decoded.push_str(rest);
    Ok(if decoded.contains('\r') && text.contains('\r') { decoded.replace("\r\n", "\n") } else { decoded })
}

/// Decodes the escapes of a bytes literal.
fn decode_bytes(text: &str, raw: bool) -> Result<Vec<u8>, (usize, String)> {
    if let Some(at) = text.find(|c: char| !c.is_ascii()) {
        return Err((at, "a bytes literal may only hold ASCII characters".to_owned()));
    }
    let decoded = decode(text, raw, true).map_err(|(at, _, message)| (at, message))?;
    Ok(decoded.chars().map(|c| c as u8).collect())
}
