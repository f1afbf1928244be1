//! Programs rewritten for newer versions of Triton.

use rtc_source::{Code, Diagnostic, SourceMap};

/// A file without block pointers, as far as they could be rewritten.
#[derive(Debug)]
pub struct Fix {
    /// The file as it was, for diagnostics.
    pub sources: SourceMap,
    /// The new text.
    pub text: String,
    /// The uses that are unchanged, each with its reason.
    pub left: Vec<Diagnostic>,
    name: String,
    old: String,
}

/// Rewrites the block pointers of a file to pointers with masks.
///
/// ```
/// let text = "@triton.jit\ndef f(x, n):\n    p = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))\n    tl.store(p, 0)\n";
/// let fix = rtc_compiler::fix("f.py", text);
/// assert!(fix.diff().contains("+    p_i0 = tl.arange(0, 16).to(tl.int64)\n"));
/// assert!(fix.left.is_empty());
/// ```
pub fn fix(name: &str, text: &str) -> Fix {
    let mut sources = SourceMap::new();
    let file = sources.add(name, text);
    let fixed = rtc_syntax::fix::block_pointers(file, text);
    let left = fixed.left.iter().map(|left| {
        let d = Diagnostic::warning(Code::UNSUPPORTED, left.span, "this use of a block pointer is left as it is");
        match left.at == left.span {
            true => d.primary(left.reason.clone()),
            false => d.label(left.at, left.reason.clone()),
        }
    });
    let left = left.collect();
    Fix { text: fixed.apply(text), left, name: name.to_owned(), old: text.to_owned(), sources }
}

impl Fix {
    /// Whether anything was rewritten.
    pub fn is_changed(&self) -> bool {
        self.text != self.old
    }

    /// The changes as a unified diff; empty if there are none.
    pub fn diff(&self) -> String {
        if !self.is_changed() {
            return String::new();
        }
        let diff = similar::TextDiff::from_lines(&self.old, &self.text);
        diff.unified_diff().header(&self.name, &self.name).to_string()
    }
}
