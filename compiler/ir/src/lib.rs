//! The tile IR: an arena IR with structured control flow whose values are whole tiles.
//!
//! A [`Kernel`] owns arenas of operations, values and blocks; [`Op`], [`Value`] and [`Block`] are `Copy`
//! handles into them. An operation is an [`OpKind`] (its attributes live there, typed), a list of
//! operands, a list of results and a list of nested blocks. Integers carry no sign: signedness lives in
//! the operation (`divsi`, `divui`).
//!
//! A kernel goes through three [`Phase`]s: `Tile` (shapes and element types), `Laid` (every tile type also
//! has a layout), `Scheduled` (shared memory is placed, barriers are in).
//!
//! One operation is one row of `ops/table.rs`, which generates the enum variant, the builder method, the printer, the
//! reader and the reference. `ops/infer.rs` has the type rules, `interp/` the semantics.

pub mod analysis;
mod assembly;
mod attrs;
mod builder;
mod copies;
mod descriptor;
mod entity;
mod fold;
mod forward;
mod groups;
mod hidden;
pub mod interp;
mod kernel;
mod layout_rules;
mod linear_terms;
mod metadata;
mod operands;
mod ops;
mod order;
mod places;
mod reductions;
pub mod regions;
mod rewrite;
mod scratch;
mod sites;
mod sort;
pub mod text;
mod types;
mod verify;
mod walk;
mod wgmma;

pub use assembly::{MAX_PACK, assembly_registers, constraint_counts};
pub use attrs::{
    Attr, AttrValue, CacheModifier, DotKind, Eviction, HintKind, Literal, LoopHints, MemScope, MemSemantic, Padding,
    Precision, Predicate, RmwOp, Rounding, RoundingMode, Text,
};
pub use builder::{Builder, FromOp};
pub use descriptor::{BlockPtrType, DescType, LARGEST_BOX_SIZE};
pub use entity::{Block, LayoutId, Loc, Op, SharedLayoutId, Value};
pub use fold::{
    KnownBits, constant_bits, constant_int, fold, greatest_common_divisor, known_bits, literal_of, trip_count,
};
pub use groups::{MAX_PARTITIONS, WarpGroup, warps_of_partition};
pub use hidden::{Hidden, MapSource, TFLOAT32};
pub use kernel::{BlockData, Kernel, KernelOptions, LocData, OpData, Param, Phase, ValueData, ValueDef};
pub use layout_rules::{register_sources, required_operand_layout, result_layout_from_operand};
pub use linear_terms::{address_operands, linear_sources};
pub use ops::effects;
pub use ops::eval::{decode as decode_float, encode as encode_float};
pub use ops::{
    EvalContext, Evaluate, InferContext, OpKind, OpSpec, Traits, TypeError, reference::reference, table::SPECS, view,
};
pub use order::{Ops, Position};
pub use rewrite::ValueMap;
pub use scratch::{MAP_BYTES, SCRATCH_ALIGN, multiplier, part_bytes, scan_partials, scratch_align, scratch_bytes};
pub use sites::{AccessSite, Sites, SourceOperand, SourceOperandType};
pub use sort::sort_is_rolled;
pub use types::{Elem, MAX_RANK, MAX_SLOTS, MAX_TILE_ELEMENTS, Scalar, Shape, SharedType, TileType, Type};
pub use verify::{BARRIER_BYTES, Verified, VerifyError, may_stand_in, place_bytes, print_errors, verify};
pub use walk::{walk, walk_block, walk_nested, walk_op};
pub use wgmma::{AccumulatorForm, BESIDE_SUMS, MmaForm, widest_instruction};
