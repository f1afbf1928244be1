//! Block pointers rewritten to pointers with masks, source to source.
//!
//! `tl.make_block_ptr`, `tl.advance` and `boundary_check` are gone from the language since Triton 3.8; this says what to
//! write instead. A block pointer `p` becomes a block of `int64` positions for each dimension, `p_i0`, `p_i1`, ..; moving it
//! adds to them, an access computes its addresses and its mask from them:
//!
//! ```text
//! p = tl.make_block_ptr(x, (M, N), (sm, 1), (0, n), (BM, BN), (1, 0))    p_i0 = tl.arange(0, BM).to(tl.int64)
//!                                                                        p_i1 = n + tl.arange(0, BN).to(tl.int64)
//! v = tl.load(p, boundary_check=(0,), padding_option="zero")             v = tl.load(x + p_i0[:, None] * sm + p_i1[None, :],
//!                                                                            mask=(p_i0[:, None] >= 0) & (p_i0[:, None] < M),
//!                                                                            other=0)
//! p = tl.advance(p, (BM, 0))                                             p_i0 += BM
//! ```
//!
//! Pointers with masks mean the same for all strides, alignments and orders. Descriptors do not: they need a base and strides
//! that are multiples of 16 bytes, which the source of a kernel does not show.
//!
//! Functions of the file that hand block pointers to each other hand over these parts instead.
//!
//! A variable is rewritten only if each of its uses can be. Else all of them stay, and [`Fixed::left`] says where and why.

mod access;
mod calls;
mod function;
mod handed;
mod names;
mod pointer;
mod scan;
mod uses;

use rtc_source::{FileId, Span};

use crate::ast::{ExprKind, FunctionDef, Stmt, StmtKind, walk_expressions};

/// Text to be put in the place of a part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The replaced text.
    pub span: Span,
    /// By what.
    pub text: String,
}

/// A place that was not rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The use of a block pointer that stays.
    pub span: Span,
    /// Where the reason lies.
    pub at: Span,
    /// Why it stays.
    pub reason: String,
}

/// The result of [`block_pointers`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fixed {
    /// Changes in the order of the file, which do not overlap.
    pub edits: Vec<Edit>,
    /// The uses that stay, in the order of the file.
    pub left: Vec<Left>,
}

impl Fixed {
    /// The text with all edits made; all other bytes are as before.
    pub fn apply(&self, text: &str) -> String {
        let mut result = String::with_capacity(text.len());
        let mut at = 0;
        for edit in &self.edits {
            result.push_str(text.get(at..edit.span.start as usize).unwrap_or_default());
            result.push_str(&edit.text);
            at = edit.span.end as usize;
        }
        result.push_str(text.get(at..).unwrap_or_default());
        result
    }
}

/// How the block pointers of a file are written without them.
///
/// ```
/// use rtc_source::FileId;
/// let text = "@triton.jit\ndef f(x, n):\n    p = tl.make_block_ptr(x, (n,), (1,), (4,), (16,), (0,))\n    tl.store(p, 0)\n";
/// let fixed = rtc_syntax::fix::block_pointers(FileId(0), text);
/// assert!(fixed.left.is_empty());
/// assert_eq!(
///     fixed.apply(text),
///     "@triton.jit\ndef f(x, n):\n    p_i0 = 4 + tl.arange(0, 16).to(tl.int64)\n    tl.store(x + p_i0, 0)\n"
/// );
/// ```
pub fn block_pointers(file: FileId, text: &str) -> Fixed {
    if !["make_block_ptr", "boundary_check", "padding_option", "tl.advance"].iter().any(|word| text.contains(word)) {
        return Fixed::default();
    }
    let (module, _) = crate::parse(file, text);
    let mut functions = Vec::new();
    collect(&module.body, &mut functions);
    let mut fixed = Fixed::default();
    let mut top: Vec<&FunctionDef> = Vec::new();
    for stmt in scan::flat(&module.body) {
        if let StmtKind::FunctionDef(function) = &stmt.kind {
            top.push(function);
        }
    }
    function::rewrite(text, &module, &functions, &top, &mut fixed);
    // Uses outside of functions, and in what could not be read as one.
    let mut outside = Vec::new();
    walk_expressions(&module.body, &mut |e| {
        if let ExprKind::Call { func, args } = &e.kind
            && calls::is_block_pointer_call(func, args)
        {
            outside.push(e.span);
        }
    });
    let covered = |span: &Span| {
        let inside = |outer: &Span| outer.start <= span.start && span.end <= outer.end;
        fixed.edits.iter().any(|edit| inside(&edit.span) || edit.span.start == span.start)
            || fixed.left.iter().any(|left| left.span == *span)
    };
    let missed: Vec<Span> = outside.into_iter().filter(|span| !covered(span)).collect();
    let reason = "it belongs to no variable that could be followed";
    fixed.left.extend(missed.into_iter().map(|span| Left { span, at: span, reason: reason.to_owned() }));
    if text.contains("\r\n") {
        // Further lines end as those of the file do.
        fixed.edits.iter_mut().for_each(|edit| edit.text = edit.text.replace("\r\n", "\n").replace('\n', "\r\n"));
    }
    fixed.edits.sort_by_key(|edit| edit.span.start);
    fixed.left.sort_by_key(|left| left.span.start);
    fixed
}

/// All functions, those of classes and those inside of others included.
fn collect<'a>(body: &'a [Stmt], found: &mut Vec<&'a FunctionDef>) {
    for stmt in scan::flat(body) {
        match &stmt.kind {
            StmtKind::FunctionDef(function) => {
                found.push(function);
                collect(&function.body, found);
            }
            StmtKind::ClassDef(class) => collect(&class.body, found),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
