//! Inlay hints: types and shapes of variables and parameters.

use lsp_types::{InlayHint, InlayHintKind, InlayHintLabel, InlayHintTooltip, Range};

use crate::analysis::{Known, Value};
use crate::names::Kind;
use crate::session::Session;

/// Longer hints would hide the code.
const MAX_LENGTH: usize = 60;

impl Session {
    /// The hints of a range: at each assignment of a name the type of its value, at each parameter the type or value that
    /// it is specialized for.
    pub fn inlay_hints(&mut self, name: &str, range: Range) -> Vec<InlayHint> {
        let Some(id) = self.id(name) else { return Vec::new() };
        let analysis = self.analysis(id);
        let names = self.names(id);
        let file = self.file(id);
        let (start, end) = (file.lines.offset(&file.text, range.start), file.lines.offset(&file.text, range.end));
        let inside = |at: u32| (start..=end).contains(&(at as usize));
        let mut hints = Vec::new();
        for place in names.occurrences.iter().filter(|o| o.is_definition && inside(o.span.start)) {
            let Some(known) = analysis.of(place.span) else { continue };
            let is_parameter = matches!(names.bindings[place.binding].kind, Kind::Parameter { .. });
            let Some(label) = label(known, is_parameter) else { continue };
            hints.push(InlayHint {
                position: file.lines.position(&file.text, place.span.end as usize),
                label: InlayHintLabel::String(label),
                kind: Some(InlayHintKind::TYPE),
                text_edits: None,
                tooltip: known.assumed.then(|| InlayHintTooltip::String("for assumed types and sizes".into())),
                padding_left: None,
                padding_right: None,
                data: None,
            });
        }
        hints
    }
}

/// The hint of a value. A constant is a hint for parameters only: elsewhere the code has it.
fn label(known: &Known, is_parameter: bool) -> Option<String> {
    let texts: Vec<&str> = known
        .values
        .iter()
        .filter_map(|value| match value {
            Value::Tensor { language, .. } => Some(language.as_str()),
            Value::Constant(text) if is_parameter => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let first = texts.first()?;
    let mark = if matches!(known.values.first(), Some(Value::Constant(_))) { " = " } else { ": " };
    let all = texts.join(" | ");
    let shown = if all.chars().count() > MAX_LENGTH { (*first).to_owned() + " | .." } else { all };
    (shown.chars().count() <= MAX_LENGTH).then(|| format!("{mark}{shown}"))
}
