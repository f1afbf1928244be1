//! Warnings about kernels that are right for small inputs only: each analyses the finished tile IR, where the data flow
//! is explicit, and the source locations that sema recorded while it built it.
//!
//! | file | codes |
//! | --- | --- |
//! | `index.rs` | `index-overflow`, `index-may-overflow`: products in 32 bits that become addresses |
//! | `masks.rs`, `lanes.rs` | `missing-mask`, `missing-other`: accesses past a bound, lanes that were not loaded |
//! | `accumulator.rs` | `half-accumulator`: sums of products in 16 bits |
//!
//! `narrowing-store` needs the types only and is found by sema. All are reported whatever their level; the levels
//! are applied where they are shown (`rtc_source::Levels`). Code of the standard library is not looked at.

mod accumulator;
mod index;
mod lanes;
mod masks;

use std::collections::HashSet;

use rtc_ir::{Kernel, Loc, Sites};
use rtc_source::{Diagnostic, SourceMap, Span};

/// How many values a search goes through before it gives up: kernels of many unrolled steps have long chains.
const REACH: usize = 512;
/// The deepest nesting of loops in which a search wraps around more than once.
const NESTING: u32 = 3;

/// The input of lints.
struct About<'a> {
    kernel: &'a Kernel,
    sites: &'a Sites,
    sources: &'a SourceMap,
}

impl<'a> About<'a> {
    fn source_text(&self, span: Span) -> Option<&'a str> {
        self.sources.get(span.file)?.text.get(span.start as usize..span.end as usize)
    }
}

/// Looks at a kernel as sema leaves it, with the places that sema noted; `sources` has the user's files.
pub fn check(kernel: &Kernel, sites: &Sites, sources: &SourceMap) -> Vec<Diagnostic> {
    let about = About { kernel, sites, sources };
    let mut found = index::check(&about);
    found.extend(masks::check(&about));
    found.extend(lanes::check(&about));
    found.extend(accumulator::check(&about));
    let mut seen = HashSet::new();
    // Unrolled and inlined code repeats; one report for each place is enough.
    found.retain(|(diagnostic, _)| seen.insert((diagnostic.code, diagnostic.span())));
    // Code of the standard library is nothing that a user could mend.
    found.retain(|(diagnostic, _)| sources.get(diagnostic.span().file).is_some());
    found.into_iter().map(|(diagnostic, loc)| with_calls(&about, diagnostic, loc)).collect()
}

/// Labels the calls through which the code was inlined.
fn with_calls(about: &About<'_>, mut diagnostic: Diagnostic, loc: Loc) -> Diagnostic {
    let mut next = about.kernel.loc(loc).caller;
    while let Some(caller) = next {
        let data = about.kernel.loc(caller);
        if let Some(span) = data.span
            && diagnostic.labels.iter().all(|l| l.span != span)
        {
            let name = about.source_text(span).and_then(|text| text.split('(').next()).unwrap_or_default().trim();
            diagnostic = diagnostic.label(span, format!("in this call of `{name}`"));
        }
        next = data.caller;
    }
    diagnostic
}

/// The source text of a location, on one line; `None` if it is too long to repeat.
fn text<'a>(about: &About<'a>, span: Span) -> Option<&'a str> {
    about.source_text(span).filter(|text| !text.is_empty() && text.len() <= 60 && !text.contains('\n'))
}
