//! Remarks of the compiler and findings of the sanitizer at their places.

use crate::model::Remark;
use crate::places::Places;
use rtc_emulator::sanitize::Report;
use rtc_source::{Diagnostic, Severity, SourceMap};

/// A remark or a warning.
pub fn remark(diagnostic: &Diagnostic, sources: &SourceMap, places: &mut Places<'_>) -> Remark {
    let mut labels: Vec<_> = diagnostic.labels.iter().collect();
    labels.sort_by_key(|label| !label.primary);
    let texts = labels.iter().filter(|label| !label.text.is_empty()).map(|label| {
        let line = sources.get(label.span.file).map_or(0, |_| sources.position(label.span).line);
        format!("line {line}: {}", label.text)
    });
    Remark {
        severity: match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        },
        code: diagnostic.code.0.to_owned(),
        message: diagnostic.message.clone(),
        places: labels.iter().filter_map(|label| places.span(label.span)).collect(),
        notes: texts.chain(diagnostic.notes.iter().cloned()).collect(),
        help: diagnostic.help.clone(),
    }
}

/// A finding.
pub fn finding(report: &Report, places: &mut Places<'_>) -> Remark {
    let mut found = report.place.location.as_ref().map_or(Vec::new(), |location| places.location(location));
    let mut notes = vec![report.place.to_string()];
    if let Some(related) = &report.related {
        notes.push(format!("{}: {}", related.what, related.place));
        found.extend(related.place.location.iter().flat_map(|location| places.location(location)));
    }
    if report.count > 1 {
        notes.push(format!("seen {} times; this is the first", report.count));
    }
    Remark {
        severity: "error",
        code: report.code.to_owned(),
        message: report.message.clone(),
        places: found,
        notes,
        help: None,
    }
}
