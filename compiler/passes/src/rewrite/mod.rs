//! Rewrite rules and the driver that applies them until none applies.
//!
//! A [`Rule`] starts from an operation, and rewrites it and operations around it if they match. A pass applies a list of rules
//! ([`apply`]); the first one that matches an operation is applied. The driver keeps a worklist of operations: at first all in
//! print order, then users and producers of changed ones, and at the end all once more, as a pattern may be larger than that.
//! Dead operations are removed on the way.
//!
//! ```text
//! %c = addi %two, %three     fold-constants        →   %c = constant {value = 5}
//! %d = muli %x, %one         repeated-operand      →   uses of %d become %x; %d is dead
//! ```

pub(crate) mod dead;
mod driver;
mod rewriter;
mod worklist;

use rtc_ir::{Op, OpKind};

use crate::PassError;

pub(crate) use driver::apply;
pub use rewriter::Rewriter;

/// A rewrite rule.
pub struct Rule {
    /// Its name, unique among all rules.
    pub name: &'static str,
    /// The kinds of operations that it starts from.
    pub starts_from: fn(&OpKind) -> bool,
    /// Rewrites the operation, or those around it; false, and no change, where it does not match.
    pub rewrite: fn(&mut Rewriter<'_>, Op) -> Result<bool, PassError>,
}
