//! Diagnostics, and the changes that mend them.

use lsp_types::{
    CodeAction, CodeActionKind, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Position,
    Range, TextEdit, Uri, WorkspaceEdit,
};
use rtc_source::{Diagnostic, FileId, Severity};

use crate::session::Session;
use crate::specialize::Origin;

impl Session {
    /// The diagnostics of a file. `uri` gives the address of a file by its name.
    pub fn diagnostics(&mut self, name: &str, uri: &dyn Fn(&str) -> Option<Uri>) -> Vec<lsp_types::Diagnostic> {
        let Some(id) = self.id(name) else { return Vec::new() };
        let analysis = self.analysis(id);
        analysis.diagnostics.iter().filter_map(|diagnostic| self.shown(id, diagnostic, uri)).collect()
    }

    /// The changes that are offered for a range: those that mend diagnostics, and a comment that chooses a specialization.
    pub fn code_actions(&mut self, name: &str, range: Range, uri: &dyn Fn(&str) -> Option<Uri>) -> Vec<CodeAction> {
        let Some(id) = self.id(name) else { return Vec::new() };
        let analysis = self.analysis(id);
        let mut actions = Vec::new();
        for diagnostic in &analysis.diagnostics {
            let Some(shown) = self.shown(id, diagnostic, uri) else { continue };
            if diagnostic.edits.is_empty() || !touch(shown.range, range) {
                continue;
            }
            if let Some(edit) = self.workspace_edit(diagnostic, uri) {
                let title = diagnostic.help.clone().unwrap_or_else(|| "mend it".into());
                actions.push(CodeAction {
                    title: capitalized(&title),
                    kind: Some(CodeActionKind::QUICKFIX),
                    diagnostics: Some(vec![shown]),
                    edit: Some(edit),
                    is_preferred: Some(true),
                    ..CodeAction::default()
                });
            }
        }
        let file = self.file(id);
        for (span, choice) in analysis.choices.iter().filter(|(_, choice)| choice.origin == Origin::Assumed) {
            let place = file.lines.of_span(&file.text, *span);
            if !touch(place, range) {
                continue;
            }
            // The comment goes above the decorators.
            let statement = file.tree.body.iter().find(|s| s.span.start <= span.start && span.end <= s.span.end);
            let (Some(statement), Some(address)) = (statement, uri(&file.name)) else { continue };
            let at = Position { character: 0, ..file.lines.position(&file.text, statement.span.start as usize) };
            let edit =
                TextEdit { range: Range { start: at, end: at }, new_text: format!("# rtc: {}\n", choice.text()) };
            actions.push(CodeAction {
                title: format!("Choose types and sizes for `{}` in a comment", choice.spec.kernel),
                kind: Some(CodeActionKind::REFACTOR),
                edit: Some(edit_of(address, vec![edit])),
                ..CodeAction::default()
            });
        }
        actions
    }

    fn workspace_edit(&self, diagnostic: &Diagnostic, uri: &dyn Fn(&str) -> Option<Uri>) -> Option<WorkspaceEdit> {
        let (file, _) = self.place(diagnostic.edits[0].span)?;
        let edits = diagnostic.edits.iter().map(|edit| {
            let (name, range) = self.place(edit.span)?;
            (name == file).then(|| TextEdit { range, new_text: edit.text.clone() })
        });
        Some(edit_of(uri(&file)?, edits.collect::<Option<_>>()?))
    }

    /// A diagnostic as the protocol has it; its place is the first in the file.
    fn shown(
        &self,
        id: FileId,
        diagnostic: &Diagnostic,
        uri: &dyn Fn(&str) -> Option<Uri>,
    ) -> Option<lsp_types::Diagnostic> {
        let main = diagnostic.labels.iter().position(|label| label.span.file == id)?;
        let (_, range) = self.place(diagnostic.labels[main].span)?;
        let mut message = diagnostic.message.clone();
        if !diagnostic.labels[main].text.is_empty() {
            message.push_str(&format!("\n{}", diagnostic.labels[main].text));
        }
        for note in &diagnostic.notes {
            message.push_str(&format!("\nnote: {note}"));
        }
        if let Some(help) = &diagnostic.help {
            message.push_str(&format!("\nhelp: {help}"));
        }
        let others = diagnostic.labels.iter().enumerate().filter(|(index, _)| *index != main);
        let related = others.filter_map(|(_, label)| {
            let (file, range) = self.place(label.span)?;
            let message = if label.text.is_empty() { "here".to_owned() } else { label.text.clone() };
            Some(DiagnosticRelatedInformation { location: Location { uri: uri(&file)?, range }, message })
        });
        let related: Vec<_> = related.collect();
        Some(lsp_types::Diagnostic {
            range,
            severity: Some(match diagnostic.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
                Severity::Note => DiagnosticSeverity::INFORMATION,
            }),
            code: Some(NumberOrString::String(diagnostic.code.to_string())),
            source: Some("rtc".into()),
            message,
            related_information: (!related.is_empty()).then_some(related),
            ..lsp_types::Diagnostic::default()
        })
    }
}

/// Edits of one file.
pub(crate) fn edit_of(uri: Uri, edits: Vec<TextEdit>) -> WorkspaceEdit {
    edits_of([(uri, edits)])
}

/// Edits of files.
#[allow(clippy::mutable_key_type)] // The type of the protocol's crate.
pub(crate) fn edits_of(files: impl IntoIterator<Item = (Uri, Vec<TextEdit>)>) -> WorkspaceEdit {
    WorkspaceEdit { changes: Some(files.into_iter().collect()), ..WorkspaceEdit::default() }
}

/// Whether two ranges have a position in common; ends count.
pub(crate) fn touch(a: Range, b: Range) -> bool {
    a.start <= b.end && b.start <= a.end
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}
