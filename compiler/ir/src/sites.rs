//! Places of operations as the user wrote them, noted while a kernel is built. Only lints read them.

use std::collections::HashMap;

use rtc_source::Span;

use crate::{Op, Shape};

/// The type of an operand in the words of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceOperandType {
    /// The element: `int32`, `pointer<fp16>`.
    pub elem: String,
    /// Whether numbers have a sign.
    pub signed: bool,
    /// The shape; rank 0 is a scalar.
    pub shape: Shape,
}

impl std::fmt::Display for SourceOperandType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.elem)?;
        if self.shape.rank() == 0 { Ok(()) } else { write!(f, "{:?}", self.shape) }
    }
}

/// An operand as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceOperand {
    /// Where.
    pub span: Span,
    /// Its type, unless it is a constant.
    pub ty: Option<SourceOperandType>,
}

/// An access as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessSite {
    /// The address.
    pub pointer: SourceOperand,
    /// The mask, if there is one.
    pub mask: Option<Span>,
    /// Whether it writes.
    pub store: bool,
}

/// The source locations of a kernel, without the standard library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// Products of integers, with their factors.
    pub products: HashMap<Op, [SourceOperand; 2]>,
    /// Loads and stores.
    pub accesses: HashMap<Op, AccessSite>,
}
