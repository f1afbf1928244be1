//! The call that a position is in, read from the text: it works while the line is being written and no parser accepts it.

use crate::hover::{dotted_at, word_at};

/// An unfinished call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call<'t> {
    /// The dotted name that is called.
    pub(crate) callee: &'t str,
    /// The byte at which the name ends.
    pub(crate) callee_end: usize,
    /// The number of commas before the position.
    pub(crate) index: usize,
    /// The name of the argument, if it is given by name.
    pub(crate) keyword: Option<&'t str>,
}

/// How far back a call may begin.
const REACH: usize = 4000;

/// The innermost call around a byte.
pub(crate) fn call_at(text: &str, offset: usize) -> Option<Call<'_>> {
    let mut from = offset.saturating_sub(REACH);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    // Brackets that are open at the position: the byte, and the first byte of the current argument.
    let mut open: Vec<(usize, char, usize, usize)> = Vec::new();
    let mut chars = text.get(from..offset)?.char_indices().map(|(at, c)| (from + at, c)).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '#' => while chars.next_if(|(_, c)| *c != '\n').is_some() {},
            '\'' | '"' => {
                while let Some((_, inner)) = chars.next_if(|(_, c)| *c != '\n') {
                    if inner == '\\' {
                        chars.next();
                    } else if inner == c {
                        break;
                    }
                }
            }
            '(' | '[' | '{' => open.push((at, c, 0, at + 1)),
            ')' | ']' | '}' => drop(open.pop()),
            ',' => {
                if let Some((_, _, index, start)) = open.last_mut() {
                    (*index, *start) = (*index + 1, at + 1);
                }
            }
            // A statement cannot begin inside of brackets.
            '\n' if text[at + 1..offset].starts_with(['@']) || text[at + 1..offset].starts_with("def ") => open.clear(),
            _ => {}
        }
    }
    let (bracket, kind, index, start) = open.pop()?;
    if kind != '(' {
        return None;
    }
    let word = word_at(text, bracket).filter(|(_, end)| *end == bracket)?;
    let callee = dotted_at(text, word)?;
    let keyword = text.get(start..offset)?.split_once('=').map(|(name, _)| name.trim());
    let is_definition = text[..bracket - callee.len()].trim_end().ends_with("def");
    (!is_definition).then_some(Call { callee, callee_end: bracket, index, keyword })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_end(text: &str) -> Option<(&str, usize, Option<&str>)> {
        call_at(text, text.len()).map(|call| (call.callee, call.index, call.keyword))
    }

    #[test]
    fn the_innermost_open_call_is_found() {
        assert_eq!(at_end("x = tl.load(p + f(1, 2), mask = (a"), None, "in a parenthesis");
        assert_eq!(at_end("x = tl.load(p + f(1, 2), mask = a"), Some(("tl.load", 1, Some("mask"))));
        assert_eq!(at_end("x = tl.load(p + f(1, (2, 3)[0], "), Some(("f", 2, None)));
        assert_eq!(at_end("f('(', \"🚀)\", # (\n"), Some(("f", 2, None)));
        assert_eq!(at_end("f(a)[1"), None);
        assert_eq!(at_end("def f(a, b"), None);
        assert_eq!(at_end("f(\n@triton.jit\ndef g(a):\n    h("), Some(("h", 0, None)));
        assert_eq!(at_end(""), None);
    }
}
