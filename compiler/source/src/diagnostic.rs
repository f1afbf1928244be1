//! Diagnostics as data.

use crate::{Code, Span};

/// How grave a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Severity {
    /// Compilation fails.
    Error,
    /// Probably not intended.
    Warning,
    /// For information.
    Note,
}

/// A labelled place.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// The text at that place; may be empty.
    pub text: String,
    /// The place the diagnostic is about; the first primary label gives its position.
    pub primary: bool,
}

/// A change of the source text: an insertion where the span is empty.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Edit {
    /// The text that is replaced.
    pub span: Span,
    /// The new text.
    pub text: String,
}

/// One finding for the user: a code, one plain sentence, labelled places, notes, and a help that says what to write.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Stable code, with documentation in [`CODES`](crate::CODES).
    pub code: Code,
    /// One plain sentence.
    pub message: String,
    /// All guilty places.
    pub labels: Vec<Label>,
    /// Further facts.
    pub notes: Vec<String>,
    /// The replacement.
    pub help: Option<String>,
    /// The changes of the text that carry out the help; empty where it leaves a choice.
    #[serde(default)]
    pub edits: Vec<Edit>,
}

/// Several findings, in the order of discovery.
pub type Diagnostics = Vec<Diagnostic>;

impl Diagnostic {
    /// An error at `span`.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, code, span, message)
    }

    /// A warning at `span`.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, code, span, message)
    }

    /// For information, about `span`.
    pub fn remark(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Note, code, span, message)
    }

    fn new(severity: Severity, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        let label = Label { span, text: String::new(), primary: true };
        Diagnostic {
            severity,
            code,
            message: message.into(),
            labels: vec![label],
            notes: Vec::new(),
            help: None,
            edits: Vec::new(),
        }
    }

    /// Sets the text of the primary label.
    pub fn primary(mut self, text: impl Into<String>) -> Diagnostic {
        self.labels[0].text = text.into();
        self
    }

    /// Adds a labelled place.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, text: text.into(), primary: false });
        self
    }

    /// Adds a note.
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// Sets the help: what to write instead.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(text.into());
        self
    }

    /// Adds a change of the text that carries out the help.
    pub fn edit(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.edits.push(Edit { span, text: text.into() });
        self
    }

    /// The place the diagnostic is about.
    pub fn span(&self) -> Span {
        self.labels[0].span
    }
}
