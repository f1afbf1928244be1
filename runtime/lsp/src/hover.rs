//! Hover: the type and the value of an expression, the documentation of a function.

use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind, Position};
use rtc_sema::Refers;
use rtc_source::{FileId, Span};

use crate::analysis::{Analysis, Known, Value};
use crate::names::Kind;
use crate::reference;
use crate::session::{File, Session};
use crate::specialize::Origin;

/// Long constants are cut.
const MAX_CONSTANT: usize = 200;

impl Session {
    /// Type, value or documentation of the expression at a position.
    pub fn hover(&mut self, name: &str, position: Position) -> Option<Hover> {
        let id = self.id(name)?;
        let analysis = self.analysis(id);
        let names = self.names(id);
        let file = self.file(id);
        let offset = file.lines.offset(&file.text, position);
        let word = word_at(&file.text, offset)?;
        // The innermost expression that ends in the word: `tl.load` for `load`, `x` for `x`.
        let fact =
            analysis.at(offset).find(|fact| fact.span.end as usize == word.1 || fact.span.start as usize == word.0);
        let fact = fact.filter(|fact| fact.span.end as usize <= word.1);
        let mut sections = Vec::new();
        let mut span = Span::new(id, word.0, word.1);
        if let Some(fact) = fact {
            span = fact.span;
            let text = file.text.get(span.start as usize..span.end as usize).unwrap_or_default();
            sections.extend(self.described(fact, text));
        }
        if sections.is_empty() {
            sections.extend(dotted_at(&file.text, word).and_then(reference::by_path).map(reference::markdown));
        }
        if sections.is_empty() {
            let binding = &names.bindings[names.at(offset)?.binding];
            let kind = match &binding.kind {
                Kind::Parameter { constexpr: true } => "constexpr parameter",
                Kind::Parameter { .. } => "parameter",
                Kind::Local => "variable",
                Kind::Global => "global",
                Kind::Function { jit: true } => "kernel function",
                Kind::Function { .. } => "function",
                Kind::Class => "class",
                Kind::Import { .. } => "import",
            };
            sections.push(format!("{kind} `{}`", binding.name));
        }
        if let Some(note) = fact.and_then(|fact| origin_note(&analysis, file, id, fact)) {
            sections.push(note);
        }
        let range = file.lines.of_span(&file.text, span);
        let layouts = fact.filter(|fact| fact.refers.is_none() && is_tile(fact)).and_then(|fact| {
            let name = self.file(id).text.get(word.0..word.1)?.to_owned();
            // Assumed sizes have names in place of numbers.
            let types = types(fact);
            self.layouts(id, fact.span, &name, (!fact.assumed).then_some(types.as_slice()))
        });
        sections.extend(layouts);
        let contents = MarkupContent { kind: MarkupKind::Markdown, value: sections.join("\n\n") };
        Some(Hover { contents: HoverContents::Markup(contents), range: Some(range) })
    }

    fn described(&self, fact: &Known, text: &str) -> Option<String> {
        match fact.refers.as_deref() {
            Some(Refers::Entry(namespace, name)) => return reference::entry(namespace, name).map(reference::markdown),
            Some(Refers::Definition(span)) => return self.definition_text(*span),
            None => {}
        }
        let lines: Vec<String> = fact
            .values
            .iter()
            .map(|value| match value {
                Value::Tensor { language, ir } => format!("{text}: {ir}  # {language}"),
                Value::Constant(constant) => format!("{text} = {}", cut(constant)),
                Value::Other(description) => format!("{text}: {description}"),
            })
            .collect();
        let more = if fact.more { "\n# and more" } else { "" };
        Some(format!("```python\n{}{more}\n```", lines.join("\n")))
    }

    /// The head of a function or class, and its docstring.
    fn definition_text(&self, name: Span) -> Option<String> {
        let file = self.files.get(name.file.0 as usize)?;
        let text = &file.text;
        let start = text.get(..name.start as usize)?.rfind('\n').map_or(0, |at| at + 1);
        let rest = text.get(start..)?;
        // Up to the colon that is not inside of brackets.
        let mut depth = 0;
        let end = rest.char_indices().find(|(_, c)| {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                _ => {}
            }
            *c == ':' && depth <= 0
        });
        let head = rest.get(..end.map_or(rest.len(), |(at, _)| at))?.trim();
        let docs = rest.get(end?.0 + 1..).map(str::trim_start);
        let docs = docs.and_then(|body| body.strip_prefix("\"\"\"")).and_then(|body| body.split("\"\"\"").next());
        let docs = docs.map_or(String::new(), |docs| format!("\n\n{}", docs.trim()));
        Some(format!("```python\n{head}\n```{docs}"))
    }
}

/// The types in tile IR of the run-time values of a place.
fn types(fact: &Known) -> Vec<&str> {
    let mut found = Vec::new();
    for value in fact.values.iter() {
        if let Value::Tensor { ir, .. } = value {
            found.push(ir.as_str());
        }
    }
    found
}

fn is_tile(fact: &Known) -> bool {
    types(fact).iter().any(|ty| ty.starts_with("tile<"))
}

/// Which types and sizes the values are for.
fn origin_note(analysis: &Analysis, file: &File, id: FileId, fact: &Known) -> Option<String> {
    let values_matter = fact.refers.is_none();
    let inside = |span: &Span| {
        let statement = file.tree.body.iter().find(|s| s.span.start <= span.start && span.end <= s.span.end);
        statement.is_some_and(|s| s.span.start <= fact.span.start && fact.span.end <= s.span.end)
    };
    let (_, choice) =
        analysis.choices.iter().find(|(span, _)| span.file == id && inside(span)).filter(|_| values_matter)?;
    Some(match &choice.origin {
        Origin::Comment(line) => format!("for the specialization of line {}", line + 1),
        Origin::File(name) => format!("for the specialization of `{}`", name.rsplit('/').next().unwrap_or(name)),
        Origin::Assumed => {
            let args = choice.spec.args.iter().map(|arg| format!("{}: {}", arg.name, arg.kind)).collect::<Vec<_>>();
            format!(
                "assumed: {}; a comment `# rtc: {}(...)` chooses types and sizes",
                args.join(", "),
                choice.spec.kernel
            )
        }
    })
}

/// The bytes of the word at a byte.
pub(crate) fn word_at(text: &str, offset: usize) -> Option<(usize, usize)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (before, after) = (text.get(..offset)?, text.get(offset..)?);
    let start = offset - before.chars().rev().take_while(|c| is_word(*c)).map(char::len_utf8).sum::<usize>();
    let end = offset + after.chars().take_while(|c| is_word(*c)).map(char::len_utf8).sum::<usize>();
    (start < end).then_some((start, end))
}

/// The dotted name that ends in a word: `tl.math.exp` for `exp`.
pub(crate) fn dotted_at(text: &str, (mut start, end): (usize, usize)) -> Option<&str> {
    while text.get(..start)?.ends_with('.') {
        match word_at(text, start - 1) {
            Some((from, to)) if to == start - 1 => start = from,
            _ => break,
        }
    }
    text.get(start..end)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CONSTANT) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}
