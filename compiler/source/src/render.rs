//! Renders diagnostics for people and as JSON.
//!
//! The first line is exactly `error[code]: text`; scripts rely on it. Then come the picture with `--> file:line:col`,
//! one picture more for each further file, the notes, and the help.
//!
//! Both functions accept every span: positions outside of its file or inside of a character are moved to the nearest
//! valid one.
//!
//! ```
//! use rtc_source::{Code, Diagnostic, SourceMap, Span, render};
//! let mut sources = SourceMap::new();
//! let file = sources.add("k.rt", "x = y\n");
//! let diagnostic = Diagnostic::error(Code::UNDEFINED_NAME, Span::new(file, 4, 5), "`y` is not defined");
//! let text = render(&sources, &diagnostic, false);
//! assert!(text.starts_with("error[undefined-name]: `y` is not defined\n --> k.rt:1:5\n"));
//! ```

use crate::{Diagnostic, Edit, FileId, Label, Severity, SourceFile, SourceMap, Span};
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde::Serialize;
use std::ops::Range;

/// Draws one diagnostic: `error[code]: text`, then the picture. Ends with a line end.
pub fn render(sources: &SourceMap, diagnostic: &Diagnostic, color: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(&*diagnostic.message).id(diagnostic.code.0);
    let report = title
        .elements(files_of(diagnostic).into_iter().filter_map(|file| picture(sources, diagnostic, file)))
        .elements(diagnostic.notes.iter().map(|note| Level::NOTE.message(&**note)))
        .elements(diagnostic.help.iter().map(|help| Level::HELP.message(&**help)));
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let mut text = renderer.render(&[report]);
    text.push('\n');
    text
}

/// One diagnostic as a line of JSON, without a line end.
pub fn render_json(sources: &SourceMap, diagnostic: &Diagnostic) -> String {
    let labels = diagnostic.labels.iter().filter_map(|label| json_label(sources, label)).collect();
    let json = JsonDiagnostic {
        severity: match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        },
        code: diagnostic.code.0,
        message: &diagnostic.message,
        labels,
        notes: &diagnostic.notes,
        help: diagnostic.help.as_deref(),
        edits: diagnostic.edits.iter().filter_map(|edit| json_edit(sources, edit)).collect(),
        rendered: render(sources, diagnostic, false),
    };
    serde_json::to_string(&json).expect("a struct of strings and numbers is always JSON")
}

#[derive(Serialize)]
struct JsonDiagnostic<'a> {
    severity: &'static str,
    code: &'static str,
    message: &'a str,
    labels: Vec<JsonLabel<'a>>,
    notes: &'a [String],
    help: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edits: Vec<JsonEdit<'a>>,
    rendered: String,
}

/// Lines and columns count from 1; the end is one past the last character.
#[derive(Serialize)]
struct JsonLabel<'a> {
    file: &'a str,
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
    text: &'a str,
    primary: bool,
}

/// A replacement of the text from line and column to the end; an insertion where they are equal.
#[derive(Serialize)]
struct JsonEdit<'a> {
    file: &'a str,
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
    text: &'a str,
}

fn json_edit<'a>(sources: &'a SourceMap, edit: &'a Edit) -> Option<JsonEdit<'a>> {
    let file = sources.get(edit.span.file)?;
    let place = |at: u32| sources.position(Span { start: at, end: at, ..edit.span });
    let (start, end) = (place(edit.span.start), place(edit.span.end));
    Some(JsonEdit {
        file: &file.name,
        line: start.line,
        column: start.column,
        end_line: end.line,
        end_column: end.column,
        text: &edit.text,
    })
}

fn json_label<'a>(sources: &'a SourceMap, label: &'a Label) -> Option<JsonLabel<'a>> {
    let file = sources.get(label.span.file)?;
    let Range { start, end } = inside(file, label.span);
    let start = sources.position(Span::new(label.span.file, start, start));
    let end = sources.position(Span::new(label.span.file, end, end));
    Some(JsonLabel {
        file: &file.name,
        line: start.line,
        column: start.column,
        end_line: end.line,
        end_column: end.column,
        text: &label.text,
        primary: label.primary,
    })
}

/// The files with labels: the one of the first primary label first, then in the order of the labels.
fn files_of(diagnostic: &Diagnostic) -> Vec<FileId> {
    let primary = diagnostic.labels.iter().filter(|label| label.primary);
    let mut files: Vec<FileId> = Vec::new();
    for label in primary.chain(&diagnostic.labels) {
        if !files.contains(&label.span.file) {
            files.push(label.span.file);
        }
    }
    files
}

fn picture<'a>(
    sources: &'a SourceMap,
    diagnostic: &'a Diagnostic,
    id: FileId,
) -> Option<Snippet<'a, annotate_snippets::Annotation<'a>>> {
    let file = sources.get(id)?;
    let labels = diagnostic.labels.iter().filter(|label| label.span.file == id).map(|label| {
        let kind = if label.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
        let text = Some(&*label.text).filter(|text| !text.is_empty());
        kind.span(inside(file, label.span)).label(text)
    });
    Some(Snippet::source(&*file.text).path(&*file.name).annotations(labels))
}

/// The span's bytes, moved to the nearest characters of the file.
fn inside(file: &SourceFile, span: Span) -> Range<usize> {
    let boundary = |at: u32| {
        let mut at = (at as usize).min(file.text.len());
        while !file.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = boundary(span.start);
    start..boundary(span.end).max(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;
    use insta::assert_snapshot;

    fn sources(text: &str) -> (SourceMap, FileId) {
        let mut sources = SourceMap::new();
        let file = sources.add("kernel.rt", text);
        (sources, file)
    }

    /// An error over the first occurrence of `part`.
    fn error(sources: &SourceMap, file: FileId, part: &str) -> Diagnostic {
        let at = sources.file(file).text.find(part).expect("the part is in the text");
        Diagnostic::error(Code::SHAPE_MISMATCH, Span::new(file, at, at + part.len()), "the shapes do not fit")
    }

    fn draw(text: &str, part: &str) -> String {
        let (sources, file) = sources(text);
        render(&sources, &error(&sources, file, part).primary("here"), false)
    }

    #[test]
    fn labels_notes_and_help() {
        let (sources, file) = sources("a = tl.zeros([4])\nb = tl.zeros([8])\n\n\n\n\n\nc = a + b\n");
        let diagnostic = error(&sources, file, "a + b")
            .primary("4 and 8 differ")
            .label(Span::new(file, 4, 17), "`fp32[4]`")
            .label(Span::new(file, 22, 35), "")
            .note("dimensions must be equal, or one of them 1")
            .note("a second note")
            .help("use `tl.reshape`");
        assert_snapshot!(render(&sources, &diagnostic, false), @r"
        error[shape-mismatch]: the shapes do not fit
         --> kernel.rt:8:5
          |
        1 | a = tl.zeros([4])
          |     ------------- `fp32[4]`
        2 | b = tl.zeros([8])
          |     -------------
        ...
        8 | c = a + b
          |     ^^^^^ 4 and 8 differ
          |
          = note: dimensions must be equal, or one of them 1
          = note: a second note
          = help: use `tl.reshape`
        ");
        assert_snapshot!(render_json(&sources, &diagnostic), @r#"{"severity":"error","code":"shape-mismatch","message":"the shapes do not fit","labels":[{"file":"kernel.rt","line":8,"column":5,"end_line":8,"end_column":10,"text":"4 and 8 differ","primary":true},{"file":"kernel.rt","line":1,"column":5,"end_line":1,"end_column":18,"text":"`fp32[4]`","primary":false},{"file":"kernel.rt","line":2,"column":5,"end_line":2,"end_column":18,"text":"","primary":false}],"notes":["dimensions must be equal, or one of them 1","a second note"],"help":"use `tl.reshape`","rendered":"error[shape-mismatch]: the shapes do not fit\n --> kernel.rt:8:5\n  |\n1 | a = tl.zeros([4])\n  |     ------------- `fp32[4]`\n2 | b = tl.zeros([8])\n  |     -------------\n...\n8 | c = a + b\n  |     ^^^^^ 4 and 8 differ\n  |\n  = note: dimensions must be equal, or one of them 1\n  = note: a second note\n  = help: use `tl.reshape`\n"}"#);
    }

    #[test]
    fn severities_begin_the_first_line() {
        let (sources, file) = sources("x\n");
        let warning = Diagnostic::warning(Code::UNSUPPORTED, Span::new(file, 0, 1), "deprecated");
        assert_snapshot!(render(&sources, &warning, false), @r"
        warning[unsupported]: deprecated
         --> kernel.rt:1:1
          |
        1 | x
          | ^
        ");
        let note = Diagnostic { severity: Severity::Note, ..warning };
        assert!(render(&sources, &note, false).starts_with("note[unsupported]: deprecated\n"));
    }

    #[test]
    fn colour_adds_escapes_only() {
        let (sources, file) = sources("x = y\n");
        let diagnostic = error(&sources, file, "y").help("define it");
        let colored = render(&sources, &diagnostic, true);
        assert!(colored.contains("\x1b["));
        let mut plain = String::new();
        let mut parts = colored.split("\x1b[");
        plain.extend(parts.next());
        parts.for_each(|part| plain.extend(part.split_once('m').map(|(_, rest)| rest)));
        assert_eq!(plain, render(&sources, &diagnostic, false));
    }

    #[test]
    fn empty_span() {
        let (sources, file) = sources("if x\n    pass\n");
        let diagnostic = Diagnostic::error(Code::SYNTAX, Span::new(file, 4, 4), "expected `:`").help("write `:` here");
        assert_snapshot!(render(&sources, &diagnostic, false), @r"
        error[syntax]: expected `:`
         --> kernel.rt:1:5
          |
        1 | if x
          |     ^
          |
          = help: write `:` here
        ");
    }

    #[test]
    fn span_at_the_end_of_the_file() {
        for text in ["x = (", "x = (\n"] {
            let (sources, file) = sources(text);
            let end = text.len();
            let diagnostic = Diagnostic::error(Code::SYNTAX, Span::new(file, end, end), "the file ends here");
            let drawn = render(&sources, &diagnostic, false);
            assert!(drawn.starts_with("error[syntax]: the file ends here\n --> kernel.rt:"), "{drawn}");
        }
        let (sources, file) = sources("");
        let diagnostic = Diagnostic::error(Code::SYNTAX, Span::new(file, 0, 0), "the file is empty");
        assert_snapshot!(render(&sources, &diagnostic, false), @r"
        error[syntax]: the file is empty
         --> kernel.rt:1:1
          |
        1 |
          | ^
        ");
    }

    #[test]
    fn several_lines() {
        assert_snapshot!(draw("x = tl.dot(\n    a,\n    b,\n)\ny = 1\n", "tl.dot(\n    a,\n    b,\n)"), @r"
        error[shape-mismatch]: the shapes do not fit
         --> kernel.rt:1:5
          |
        1 |   x = tl.dot(
          |  _____^
        2 | |     a,
        3 | |     b,
        4 | | )
          | |_^ here
        ");
    }

    #[test]
    fn tabs() {
        assert_snapshot!(draw("if x:\n\ty = \tz + 1\n", "z + 1"), @r"
        error[shape-mismatch]: the shapes do not fit
         --> kernel.rt:2:7
          |
        2 |     y =     z + 1
          |             ^^^^^ here
        ");
    }

    #[test]
    fn characters_of_several_bytes() {
        assert_snapshot!(draw("s = \"größe 漢字\" + wert\n", "wert"), @r#"
        error[shape-mismatch]: the shapes do not fit
         --> kernel.rt:1:18
          |
        1 | s = "größe 漢字" + wert
          |                    ^^^^ here
        "#);
        assert_snapshot!(draw("# é\nx = \"漢字\"\n", "\"漢字\""), @r#"
        error[shape-mismatch]: the shapes do not fit
         --> kernel.rt:2:5
          |
        2 | x = "漢字"
          |     ^^^^^^ here
        "#);
    }

    #[test]
    fn line_ends_of_windows() {
        assert_snapshot!(draw("a = 1\r\nb = 2\r\n", "b = 2"), @r"
        error[shape-mismatch]: the shapes do not fit
         --> kernel.rt:2:1
          |
        2 | b = 2
          | ^^^^^ here
        ");
    }

    #[test]
    fn two_files() {
        let mut sources = SourceMap::new();
        let library = sources.add("library.rt", "def f(x):\n    return x.y\n");
        let user = sources.add("user.rt", "z = f(1)\n");
        let diagnostic = Diagnostic::error(Code::TYPE_MISMATCH, Span::new(user, 4, 8), "no attribute `y`")
            .label(Span::new(library, 21, 24), "in this function");
        assert_snapshot!(render(&sources, &diagnostic, false), @r"
        error[type-mismatch]: no attribute `y`
         --> user.rt:1:5
          |
        1 | z = f(1)
          |     ^^^^
          |
         ::: library.rt:2:12
          |
        2 |     return x.y
          |            --- in this function
        ");
    }

    #[test]
    fn spans_outside_are_moved_inside() {
        let (sources, file) = sources("é = 1\n");
        for (start, end) in [(1, 1), (1, 2), (0, 900), (900, 901), (3, 1)] {
            let span = Span { file, start, end };
            let diagnostic = Diagnostic::error(Code::SYNTAX, span, "odd span");
            assert!(render(&sources, &diagnostic, false).starts_with("error[syntax]: odd span\n"));
            assert!(render_json(&sources, &diagnostic).contains("\"line\":"));
        }
        let nowhere = Diagnostic::error(Code::INTERNAL, Span::new(FileId(7), 0, 1), "no such file");
        assert_eq!(render(&sources, &nowhere, false), "error[internal]: no such file\n");
    }

    #[test]
    fn json_is_one_line_with_all_fields() {
        let (sources, file) = sources("s = \"漢\"\nt = 2\n");
        let diagnostic = error(&sources, file, "\"漢\"\nt").primary("two lines").note("n");
        let line = render_json(&sources, &diagnostic);
        assert!(!line.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&line).expect("valid JSON");
        let label = &value["labels"][0];
        assert_eq!(label["file"], "kernel.rt");
        assert_eq!((label["line"].as_u64(), label["column"].as_u64()), (Some(1), Some(5)));
        assert_eq!((label["end_line"].as_u64(), label["end_column"].as_u64()), (Some(2), Some(2)));
        assert_eq!(value["notes"][0], "n");
        assert!(value["help"].is_null());
        assert_eq!(value["rendered"], render(&sources, &diagnostic, false));
    }
}
