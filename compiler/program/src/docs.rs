//! The documentation of a kernel in its source: comments above it, its docstring, and comments on its parameters.

use rtc_source::Span;
use rtc_syntax::ast::{ExprKind, FunctionDef, StmtKind};

/// The comments at the start of a file, unless they belong to the following definition.
pub(crate) fn of_file(text: &str) -> String {
    let comments: Vec<&str> = text.lines().take_while(|line| line.starts_with('#')).collect();
    match text.lines().nth(comments.len()) {
        Some(next) if !next.trim().is_empty() => String::new(),
        _ => comments.iter().map(|line| comment(&line[1..])).collect::<Vec<_>>().join("\n"),
    }
}

/// The comments directly above a function and its docstring, with an empty line between them; `span` is that of the whole
/// definition in `text`.
pub(crate) fn of_function(text: &str, span: Span, function: &FunctionDef) -> String {
    let above = text.get(..span.start as usize).map(comments_above).unwrap_or_default();
    let docstring = function.body.first().and_then(|first| match &first.kind {
        StmtKind::Expr(expr) => match &expr.kind {
            ExprKind::Str(text) => Some(dedented(text)),
            _ => None,
        },
        _ => None,
    });
    let parts: Vec<String> = [above, docstring.unwrap_or_default()].into_iter().filter(|p| !p.is_empty()).collect();
    parts.join("\n\n")
}

/// The comment after a parameter on its line, if there is no other parameter in between.
pub(crate) fn of_param(text: &str, span: Span) -> String {
    let rest = text.get(span.end as usize..).unwrap_or_default().lines().next().unwrap_or_default();
    let rest = rest.trim_start_matches([',', ' ', '\t', ')', ':']);
    rest.strip_prefix('#').map(comment).unwrap_or_default()
}

/// The block of comment lines that a text ends with.
fn comments_above(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    // The line of the definition itself has only its indentation before it.
    let whole = text.rfind('\n').map_or("", |at| &text[..at]);
    for line in whole.lines().rev() {
        match line.trim_start().strip_prefix('#') {
            Some(words) => lines.push(comment(words)),
            None => break,
        }
    }
    lines.reverse();
    lines.join("\n").trim().to_owned()
}

/// The words of a comment without the space in front.
fn comment(words: &str) -> String {
    words.strip_prefix(' ').unwrap_or(words).trim_end().to_owned()
}

/// A docstring without the indentation that its lines after the first share.
fn dedented(text: &str) -> String {
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let common = text.lines().skip(1).filter(|line| !line.trim().is_empty()).map(|line| indent(&line)).min();
    let rest = text.lines().skip(1).map(|line| line.get(common.unwrap_or(0)..).unwrap_or_default().trim_end());
    let lines: Vec<&str> = text.lines().take(1).map(str::trim).chain(rest).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use crate::{Program, Source};

    #[test]
    fn kernels_and_parameters_have_words() {
        let text = "# Not this.\n\n# Scales a row.\n#\n# In place.\n@triton.jit\ndef scale(\n    x_ptr,  # the row\n    n, by,\n    \
                    BLOCK: tl.constexpr,  # a power of two\n):\n    \"\"\"More of it:\n\n        an example\n    the end\n    \"\"\"\n    \
                    tl.store(x_ptr, by)\n\n@triton.jit\ndef bare(x): # no comment of x\n    tl.store(x, 1)\n";
        let program = Program::parse(&[Source::new("k.rt", text)]);
        let [scale, bare] = program.kernels() else { panic!("{:?}", program.diagnostics()) };
        assert_eq!(scale.doc, "Scales a row.\n\nIn place.\n\nMore of it:\n\n    an example\nthe end");
        let words: Vec<&str> = scale.params.iter().map(|p| p.doc.as_str()).collect();
        assert_eq!(words, ["the row", "", "", "a power of two"]);
        assert_eq!(bare.doc, "");
        assert_eq!(program.doc(), "Not this.");
        let of = |text: &str| Program::parse(&[Source::new("k.rt", text)]).doc().to_owned();
        assert_eq!(of("# Two\n# lines.\n\nX = 1\n"), "Two\nlines.");
        assert_eq!(of("# Of the number.\nX = 1\n"), "");
    }
}
