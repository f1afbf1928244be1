//! Operations: the row format, and the items generated from the rows of [`table`].

pub mod effects;
pub(crate) mod eval;
mod infer;
mod infer_async;
mod infer_atomic;
mod infer_blocks;
mod infer_shared;
pub mod reference;
mod rounded;
pub mod table;

use std::fmt;

use crate::{AttrValue, Block, Elem, Kernel, Type};
use effects::Effect;

pub use table::{OpKind, view};

/// The properties of an operation that passes may assume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits(u32);

impl Traits {
    /// Nothing.
    pub const NONE: Traits = Traits(0);
    /// No effect other than its results; may be removed, repeated and moved.
    pub const PURE: Traits = Traits(1);
    /// Works on each element alone; operands and result have one shape and layout.
    pub const ELEMENTWISE: Traits = Traits(1 << 1);
    /// The first two operands may be exchanged.
    pub const COMMUTATIVE: Traits = Traits(1 << 2);
    /// Takes any number of operands after the named ones.
    pub const VARIADIC: Traits = Traits(1 << 3);
    /// Ends a block.
    pub const TERMINATOR: Traits = Traits(1 << 4);
    /// The result types cannot be inferred: they are given when it is built.
    pub const EXPLICIT_TYPE: Traits = Traits(1 << 5);
    /// The layout of its result is free; a pass chooses it.
    pub const FREE_LAYOUT: Traits = Traits(1 << 6);
    /// The same on every device, bit for bit; may be folded on constants.
    pub const EXACT: Traits = Traits(1 << 7);
    /// Every thread of the block, or of its partition, must reach it together.
    pub const CONVERGENT: Traits = Traits(1 << 8);
    /// A loop, a branch, or an operation with a combine block.
    pub const NESTED: Traits = Traits(1 << 9);
    /// Takes any number of nested blocks after those of its row.
    pub const MORE_BLOCKS: Traits = Traits(1 << 10);

    /// Stands in phase `Tile` only: a pass lowers it before layouts are chosen.
    pub const TILE_PHASE: Traits = Traits(1 << 11);
    /// Every element of its result is an element of its one operand: only the shape, the layout, the repetition or what
    /// is promised differs. See [`Kernel::source`].
    pub const FORWARDS: Traits = Traits(1 << 12);
    /// Names what it waits for; the pass `insert-waits` replaces it by operations that count. Not in phase `Scheduled`.
    pub const BEFORE_WAITS: Traits = Traits(1 << 13);

    /// These and those.
    pub const fn and(self, other: Traits) -> Traits {
        Traits(self.0 | other.0)
    }

    /// Whether all of `other` are set.
    pub const fn has(self, other: Traits) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The semantics of an operation, for the interpreter and for constant folding.
#[derive(Clone, Copy)]
pub enum Evaluate {
    /// Element by element, on raw bits.
    Each(fn(&EvalContext<'_>, &[u64]) -> u64),
    /// By code of its own in the interpreter.
    Structured,
}

/// The context of an element-wise evaluation.
#[derive(Clone, Copy)]
pub struct EvalContext<'a> {
    /// The operation.
    pub kind: &'a OpKind,
    /// Elements of the operands.
    pub operands: &'a [Elem],
    /// Element of the result.
    pub result: Elem,
}

/// The context of a type rule.
pub struct InferContext<'a> {
    /// The kernel of the operation.
    pub kernel: &'a Kernel,
    /// The operation.
    pub kind: &'a OpKind,
    /// Types of all operands, in order: named, present optional ones, variadic.
    pub operands: &'a [Type],
    /// Which optional operands are present (bit `i` is optional operand `i`).
    pub optional: u8,
    /// The result types that were given, for operations with [`Traits::EXPLICIT_TYPE`]; else empty.
    pub given: &'a [Type],
    /// Nested blocks.
    pub blocks: &'a [Block],
}

impl InferContext<'_> {
    /// The type of optional operand `index`, if it is present.
    pub fn optional(&self, index: usize) -> Option<Type> {
        if self.optional & (1 << index) == 0 {
            return None;
        }
        let before = (self.optional & ((1 << index) - 1)).count_ones() as usize;
        self.operands.get(self.kind.spec().operands.len() + before).copied()
    }

    /// The types of the operands after the named and optional ones.
    pub fn variadic(&self) -> &[Type] {
        let fixed = self.kind.spec().operands.len() + self.optional.count_ones() as usize;
        &self.operands[fixed.min(self.operands.len())..]
    }
}

/// Why operands do not fit an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{op}: {message}")]
pub struct TypeError {
    /// Mnemonic of the operation.
    pub op: &'static str,
    /// One plain sentence.
    pub message: String,
}

/// One row of the table, as data.
pub struct OpSpec {
    /// Name in the text form.
    pub mnemonic: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Attribute names.
    pub attrs: &'static [&'static str],
    /// Their types.
    pub attr_types: &'static [&'static str],
    /// Operands that must be there.
    pub operands: &'static [&'static str],
    /// Operands that may be absent.
    pub optional: &'static [&'static str],
    /// How many nested blocks; at least as many with [`Traits::MORE_BLOCKS`].
    pub blocks: usize,
    /// Traits.
    pub traits: Traits,
    /// Its effects in addition to its results.
    pub effects: &'static [Effect],
    /// Name of the type rule in `infer.rs`.
    pub rule: &'static str,
    /// The type rule.
    pub infer: fn(&InferContext<'_>) -> Result<Vec<Type>, String>,
    /// The semantics.
    pub eval: Evaluate,
}

impl fmt::Debug for OpSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mnemonic)
    }
}

/// Reads the attribute `name` out of `attrs`.
pub(crate) fn take_attr<T: crate::Attr>(attrs: &[(String, AttrValue)], name: &str) -> Result<T, String> {
    match attrs.iter().find(|(n, _)| n == name) {
        Some((_, value)) => T::from_value(value).ok_or_else(|| format!("attribute `{name}` has the wrong form")),
        None => T::absent().ok_or_else(|| format!("attribute `{name}` is missing")),
    }
}

/// The place of an operand in a list of names; for constants.
pub(crate) const fn position(names: &[&str], name: &str) -> u32 {
    let mut place = 0;
    while place < names.len() {
        if is_equal(names[place].as_bytes(), name.as_bytes()) {
            return place as u32;
        }
        place += 1;
    }
    panic!("no operand has this name")
}

const fn is_equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// Makes the enum, the specifications, the attribute access, the operands by name and the builder methods out of the
/// rows.
macro_rules! define_ops {
    ($(
        $mnemonic:ident $name:ident { $($attr:ident : $aty:ty),* } ($($operand:ident),*) [$($optional:ident),*] $blocks:literal
        $traits:expr $(; [$($effect:expr),*])?, $infer:expr, $eval:expr, $doc:literal -> $ret:ty;
    )*) => {
        /// The kind of an operation, with its attributes.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum OpKind {
            $(
                #[doc = $doc]
                $name { $(
                    #[doc = concat!("The attribute `", stringify!($attr), "`.")]
                    $attr: $aty
                ),* },
            )*
        }

        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Row { $($name,)* }

        /// The specifications of all operations, in the order of the table.
        pub const SPECS: &[OpSpec] = &[$(OpSpec {
            mnemonic: stringify!($mnemonic),
            doc: $doc,
            attrs: &[$(stringify!($attr)),*],
            attr_types: &[$(stringify!($aty)),*],
            operands: &[$(stringify!($operand)),*],
            optional: &[$(stringify!($optional)),*],
            blocks: $blocks,
            traits: $traits,
            effects: &[$($($effect),*)?],
            rule: stringify!($infer),
            infer: $infer,
            eval: $eval,
        },)*];

        impl OpKind {
            /// The row of the operation.
            pub fn spec(&self) -> &'static OpSpec {
                match self { $(OpKind::$name { .. } => &SPECS[Row::$name as usize],)* }
            }

            /// Whether each element of its result is made of the one element at that place of its one operand, as by a cast.
            pub fn is_unary(&self) -> bool {
                let OpSpec { traits, operands, .. } = self.spec();
                traits.has(Traits::ELEMENTWISE.and(Traits::PURE))
                    && operands.len() == 1
                    && !traits.has(Traits::NESTED)
            }

            /// The number of the operand whose elements its result consists of, if it only arranges, repeats or moves them
            /// or promises something about them ([`Traits::FORWARDS`]). Casts change elements and are not among these.
            pub fn forwards(&self) -> Option<u32> {
                self.spec().traits.has(Traits::FORWARDS).then_some(0)
            }

            /// The attributes that are not at their default, with their text form.
            pub fn attrs(&self) -> Vec<(&'static str, AttrValue)> {
                match self { $(OpKind::$name { $($attr),* } => {
                    let all: Vec<(&'static str, Option<AttrValue>)> = vec![$((stringify!($attr), Attr::to_value($attr))),*];
                    all.into_iter().filter_map(|(n, v)| v.map(|v| (n, v))).collect()
                })* }
            }

            /// The operation called `mnemonic` with these attributes.
            pub fn from_attrs(mnemonic: &str, attrs: &[(String, AttrValue)]) -> Result<OpKind, String> {
                match mnemonic {
                    $(stringify!($mnemonic) => {
                        const NAMES: &[&str] = &[$(stringify!($attr)),*];
                        if let Some((name, _)) = attrs.iter().find(|(n, _)| !NAMES.contains(&n.as_str())) {
                            return Err(format!("`{mnemonic}` has no attribute `{name}`"));
                        }
                        Ok(OpKind::$name { $($attr: $crate::ops::take_attr(attrs, stringify!($attr))?),* })
                    })*
                    _ => Err(format!("there is no operation `{mnemonic}`")),
                }
            }
        }

        /// Operations with their operands by name: `view::Load::of(kernel, op)?.mask()`, or `at` in place of `of` where the
        /// kind has been matched before.
        pub mod view {
            use super::{OpKind, Row, SPECS};
            use crate::ops::position;
            use crate::{Kernel, Op, Value};

            $(
                #[doc = $doc]
                #[derive(Clone, Copy)]
                pub struct $name<'k> {
                    #[allow(dead_code)]
                    kernel: &'k Kernel,
                    op: Op,
                }

                impl<'k> $name<'k> {
                    /// The operation, if it is of this kind.
                    pub fn of(kernel: &'k Kernel, op: Op) -> Option<$name<'k>> {
                        matches!(kernel.kind(op), OpKind::$name { .. }).then_some($name { kernel, op })
                    }

                    /// An operation that is known to be of this kind.
                    pub fn at(kernel: &'k Kernel, op: Op) -> $name<'k> {
                        debug_assert!(matches!(kernel.kind(op), OpKind::$name { .. }), "{:?}", kernel.kind(op));
                        $name { kernel, op }
                    }

                    /// The operation that gives a value, if it is of this kind.
                    pub fn defining(kernel: &'k Kernel, value: Value) -> Option<$name<'k>> {
                        $name::of(kernel, kernel.def_op(value)?)
                    }

                    /// The operation itself.
                    pub fn op(&self) -> Op {
                        self.op
                    }

                    $(
                        #[doc = concat!("The operand `", stringify!($operand), "`.")]
                        pub fn $operand(&self) -> Value {
                            self.kernel.operand(self.op, const {
                                position(SPECS[Row::$name as usize].operands, stringify!($operand)) as usize
                            })
                        }
                    )*

                    $(
                        #[doc = concat!("The operand `", stringify!($optional), "`, if it is there.")]
                        pub fn $optional(&self) -> Option<Value> {
                            self.kernel.optional(self.op, const {
                                position(SPECS[Row::$name as usize].optional, stringify!($optional)) as usize
                            })
                        }
                    )*
                }
            )*
        }

        /// One method per operation; the optional operands follow the others, the attributes come last.
        impl Builder<'_> {
            $(
                #[doc = $doc]
                #[allow(clippy::too_many_arguments)]
                pub fn $mnemonic(&mut self $(, $operand: Value)* $(, $optional: Option<Value>)* $(, $attr: $aty)*) -> Result<$ret, TypeError> {
                    let optional: &[Option<Value>] = &[$($optional),*];
                    let op = self.build(OpKind::$name { $($attr),* }, &[$($operand),*], optional, &[], &[], &[])?;
                    Ok(FromOp::from_op(self.kernel(), op))
                }
            )*
        }
    };
}
pub(crate) use define_ops;
