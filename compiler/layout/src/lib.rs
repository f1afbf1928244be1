//! Linear layouts: which thread of a block holds which element of a tile, and the offsets of elements in shared memory.
//!
//! Pure mathematics over GF(2), with no dependency on the IR. There is one distributed type, [`Layout`], and one for
//! shared memory, [`SharedLayout`]; blocked, mma and wgmma are constructors of the first, swizzles of the second. The
//! queries of a compiler are linear algebra: see `linear.rs`, which opens with the tutorial.
//!
//! | file | holds |
//! | --- | --- |
//! | `linear.rs` | the tutorial, [`Layout`], basic queries |
//! | `blocked.rs`, `mma.rs`, `wgmma.rs` | constructors |
//! | `algebra.rs` | layouts of transposed, reshaped, broadcast, reduced, joined tiles |
//! | `query.rs` | copies, contiguity, register maps |
//! | `convert.rs`, `shuffle.rs` | from one layout to another: registers, shuffles or shared memory |
//! | `shared.rs`, `access.rs`, `swizzle.rs` | shared memory: layouts, vector and matrix accesses, conflict-free swizzles |
//! | `descriptor.rs` | operands of `wgmma` in shared memory |
//! | `dot_operands.rs`, `fragments.rs` | operands of dots in shared memory |
//! | `reduce.rs` | reduction trees: registers, lanes, warps |
//! | `text.rs`, `describe.rs` | text form and its reader; names of known layouts |
//! | `gf2.rs`, `coord.rs` | vectors, spans and coordinates |
//!
//! ```
//! use rtc_layout::{Coord, Layout};
//! let layout = Layout::blocked(&[16, 64], &[1, 4], &[2, 16], &[4, 1], &[1, 0]);
//! assert_eq!(layout.registers(), 8);
//! assert_eq!(layout.coords(1, 17, 2), Coord::from([5, 5]));
//! ```

mod access;
mod algebra;
mod blocked;
mod convert;
mod coord;
mod describe;
mod descriptor;
mod dot_operands;
mod fragments;
pub mod gf2;
mod linear;
mod mma;
mod query;
mod reduce;
mod shared;
mod shuffle;
mod swizzle;
mod text;
mod wgmma;

pub use access::{AccessKind, AccessStep, SharedAccess};
pub use convert::{Conversion, conversion};
pub use coord::{Coord, MAX_RANK};
pub use descriptor::MatrixDescriptor;
pub use dot_operands::{MOST_ROOM, Multiplier, OperandPlan, operand_plan, unrolled_in_buffers, unrolled_steps};
pub use fragments::{FragmentPlan, fragment_plan};
pub use linear::{Bases, InputBit, LANES, Layout};
pub use mma::MmaShape;
pub use query::Copies;
pub use reduce::{ReduceLaneStep, ReducePlan, ReduceWarpStep, reduce_plan};
pub use shared::SharedLayout;
pub use shuffle::{LaneXor, ShufflePlan, ShuffleRound, shuffle_plan};
pub use swizzle::{MatrixInstructions, SharedPlan, shared_plan, swizzle_for};
pub use text::ParseLayoutError;
