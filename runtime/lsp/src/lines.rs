//! Places of a text: bytes, as the compiler counts, and lines with columns in UTF-16 units, as the protocol counts.

use lsp_types::{Position, Range};
use rtc_source::Span;

/// The lines of a text.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// The first byte of each line.
    starts: Vec<usize>,
}

impl Lines {
    /// The lines of a text; they end with `\n`, `\r\n` or `\r`.
    pub fn new(text: &str) -> Lines {
        let bytes = text.as_bytes();
        let ends = (0..bytes.len()).filter(|at| match bytes[*at] {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        });
        Lines { starts: std::iter::once(0).chain(ends.map(|at| at + 1)).collect() }
    }

    /// The position of a byte; one inside of a character counts as the character's first.
    pub fn position(&self, text: &str, at: usize) -> Position {
        let at = floor(text, at);
        let line = self.starts.partition_point(|start| *start <= at).saturating_sub(1);
        let start = floor(text, self.starts.get(line).copied().unwrap_or(0)).min(at);
        let column = text[start..at].chars().map(char::len_utf16).sum::<usize>();
        Position { line: line as u32, character: column as u32 }
    }

    /// The byte of a position; behind the end of its line, the line's end.
    pub fn offset(&self, text: &str, position: Position) -> usize {
        let Some(start) = self.starts.get(position.line as usize).copied() else { return text.len() };
        let start = floor(text, start);
        let mut left = position.character as usize;
        for (at, c) in text[start..].char_indices() {
            if left == 0 || matches!(c, '\n' | '\r') {
                return start + at;
            }
            // Half of a pair of units is in the character.
            left = match left.checked_sub(c.len_utf16()) {
                Some(left) => left,
                None => return start + at,
            };
        }
        text.len()
    }

    /// The range of bytes as positions.
    pub fn range(&self, text: &str, start: usize, end: usize) -> Range {
        Range { start: self.position(text, start), end: self.position(text, end.max(start)) }
    }

    /// A span as positions.
    pub fn of_span(&self, text: &str, span: Span) -> Range {
        self.range(text, span.start as usize, span.end as usize)
    }
}

/// The last boundary between characters up to a byte.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_utf16_units() {
        let text = "a🚀b\r\nµ = '🚀🚀'\rlast";
        let lines = Lines::new(text);
        let at = |line, character| lines.offset(text, Position { line, character });
        assert_eq!(at(0, 3), "a🚀".len());
        assert_eq!(at(0, 2), 1, "half of a pair");
        assert_eq!(at(0, 99), "a🚀b".len());
        assert_eq!(at(2, 1), text.len() - 3);
        assert_eq!(at(9, 0), text.len());
        for (offset, _) in text.char_indices().filter(|(_, c)| *c != '\n') {
            assert_eq!(lines.offset(text, lines.position(text, offset)), offset, "{offset}");
        }
        assert_eq!(lines.position(text, "a🚀b\r\nµ = '🚀".len()), Position { line: 1, character: 7 });
        assert_eq!(lines.position(text, 2), Position { line: 0, character: 1 }, "inside of a character");
    }
}
