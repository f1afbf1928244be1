//! The operations, one row each:
//!
//! ```text
//! mnemonic Variant { attribute: Type } (operands) [optional operands] nested-blocks
//!     traits; [effects], type rule, semantics, "One sentence." -> what the builder method returns;
//! ```
//!
//! `; [..]` is left out where there are none.
//!
//! Operations with explicit types, nested blocks or variadic operands are built with `Builder::build`
//! or the methods of `builder.rs`; their generated methods suit only the plain case.

use super::effects::{Effect, EffectKind, Space};
use super::eval::*;
use super::infer::*;
use super::infer_async::*;
use super::infer_atomic::*;
use super::infer_blocks::*;
use super::infer_shared::*;
use super::rounded::rounded;
use super::{Evaluate, OpSpec, Traits, TypeError, define_ops};
use crate::builder::{Builder, FromOp};
use crate::{
    Attr, AttrValue, CacheModifier, DotKind, Elem, Eviction, HintKind, Literal, LoopHints, MemScope, MemSemantic, Op,
    Padding, Precision, Predicate, RmwOp, Rounding, RoundingMode, Text, Value,
};
use Evaluate::{Each, Structured};

const PURE: Traits = Traits::PURE;
const EACH: Traits = PURE.and(Traits::ELEMENTWISE);
const EXACT: Traits = EACH.and(Traits::EXACT);
const COMM: Traits = EXACT.and(Traits::COMMUTATIVE);
const FREE: Traits = PURE.and(Traits::EXPLICIT_TYPE).and(Traits::FREE_LAYOUT);
const SHAPE: Traits = PURE.and(Traits::FREE_LAYOUT);
/// Its operand in another shape or layout.
const FORWARDS: Traits = Traits::FORWARDS;
const STATED: Traits = Traits::EXPLICIT_TYPE;
const VIEW: Traits = PURE.and(STATED);
const TOGETHER: Traits = PURE.and(Traits::CONVERGENT);
const VARIADIC: Traits = Traits::CONVERGENT.and(Traits::VARIADIC);
const NESTED: Traits = Traits::NESTED.and(Traits::VARIADIC);
const PARTITIONS: Traits = Traits::NESTED.and(Traits::MORE_BLOCKS).and(Traits::CONVERGENT);
const COMBINE: Traits = TOGETHER.and(NESTED);
const BLOCK: Traits = Traits::TILE_PHASE.and(Traits::CONVERGENT);
const BLOCK_AT: Traits = BLOCK.and(Traits::VARIADIC);
const BLOCK_VIEW: Traits = PURE.and(Traits::TILE_PHASE);
const NEW_VIEW: Traits = BLOCK_VIEW.and(STATED).and(Traits::VARIADIC);
const NEW_MAP: Traits = VARIADIC.and(STATED);
/// Replaced before code is made.
const TOKENS: Traits = Traits::CONVERGENT.and(Traits::BEFORE_WAITS);
const END: Traits = Traits::TERMINATOR.and(Traits::VARIADIC);

const LOADS: Effect = Effect::read(Space::Global, "pointer");
const STORES: Effect = Effect::write(Space::Global, "pointer");
const SCRATCH: Effect = Effect::SCRATCH;
/// Something is seen outside of the kernel: it must stay, and keep its place.
const OUTSIDE: Effect = Effect::any(Space::Outside, EffectKind::Write);
const READS_ALL: Effect = Effect::any(Space::Global, EffectKind::Read);
const FILLS: Effect = Effect::write(Space::Shared, "buffer");
const DRAINS: Effect = Effect::read(Space::Shared, "buffer");
const SIGNALS: Effect = Effect::write(Space::Barrier, "barrier");
const READS_LHS: Effect = Effect::read(Space::Shared, "lhs");
const READS_RHS: Effect = Effect::read(Space::Shared, "rhs");
const LOADS_BLOCK: Effect = Effect::read(Space::Global, "desc");
const STORES_BLOCK: Effect = Effect::write(Space::Global, "desc");
const WRITES_ALL: Effect = Effect::any(Space::Global, EffectKind::Write);

define_ops! {
    // Creation.
    constant Constant { value: Literal } () [] 0 FREE, given_one, Structured, "A number, or a tile filled with it." -> Value;
    program_id ProgramId { axis: u32 } () [] 0 PURE, always_i32, Structured, "Index of the program along a grid axis." -> Value;
    num_programs NumPrograms { axis: u32 } () [] 0 PURE, always_i32, Structured, "Number of programs along a grid axis." -> Value;
    arange Arange { start: i64, end: i64 } () [] 0 SHAPE, arange, Structured, "The `i32` numbers `start..end`; their count is a power of two." -> Value;
    splat Splat {} (scalar) [] 0 FREE.and(FORWARDS), splat, Structured, "A tile filled with a scalar." -> Value;

    // Integers.
    addi AddI {} (lhs, rhs) [] 0 COMM, same_int, Each(|c, v| c.int(v[0].wrapping_add(v[1]))), "Sum; wraps." -> Value;
    subi SubI {} (lhs, rhs) [] 0 EXACT, same_int, Each(|c, v| c.int(v[0].wrapping_sub(v[1]))), "Difference; wraps." -> Value;
    muli MulI {} (lhs, rhs) [] 0 COMM, same_int, Each(|c, v| c.int(v[0].wrapping_mul(v[1]))), "Product; wraps." -> Value;
    divsi DivSI {} (lhs, rhs) [] 0 EXACT, same_int, Each(|c, v| c.signed2(v, div_signed)), "Signed quotient toward zero; 0 for a zero divisor here, undefined on a GPU." -> Value;
    divui DivUI {} (lhs, rhs) [] 0 EXACT, same_int, Each(|c, v| c.int(v[0].checked_div(v[1]).unwrap_or(0))), "Unsigned quotient; 0 for a zero divisor here, undefined on a GPU." -> Value;
    remsi RemSI {} (lhs, rhs) [] 0 EXACT, same_int, Each(|c, v| c.signed2(v, rem_signed)), "Signed remainder with the sign of the dividend." -> Value;
    remui RemUI {} (lhs, rhs) [] 0 EXACT, same_int, Each(|c, v| c.int(v[0].checked_rem(v[1]).unwrap_or(0))), "Unsigned remainder." -> Value;
    andi AndI {} (lhs, rhs) [] 0 COMM, same_int, Each(|_, v| v[0] & v[1]), "Bitwise and." -> Value;
    ori OrI {} (lhs, rhs) [] 0 COMM, same_int, Each(|_, v| v[0] | v[1]), "Bitwise or." -> Value;
    xori XorI {} (lhs, rhs) [] 0 COMM, same_int, Each(|_, v| v[0] ^ v[1]), "Bitwise exclusive or." -> Value;
    shli ShlI {} (lhs, rhs) [] 0 EXACT, same_int, Each(|c, v| c.shift_left(v)), "Shift to the left; 0 when the count reaches the width." -> Value;
    shrsi ShrSI {} (lhs, rhs) [] 0 EXACT, same_int, Each(|c, v| c.shift_right_signed(v)), "Arithmetic shift to the right." -> Value;
    shrui ShrUI {} (lhs, rhs) [] 0 EXACT, same_int, Each(|c, v| c.shift_right_unsigned(v)), "Logical shift to the right." -> Value;
    minsi MinSI {} (lhs, rhs) [] 0 COMM, same_int, Each(|c, v| c.signed2(v, i64::min)), "Signed minimum." -> Value;
    maxsi MaxSI {} (lhs, rhs) [] 0 COMM, same_int, Each(|c, v| c.signed2(v, i64::max)), "Signed maximum." -> Value;
    minui MinUI {} (lhs, rhs) [] 0 COMM, same_int, Each(|_, v| v[0].min(v[1])), "Unsigned minimum." -> Value;
    maxui MaxUI {} (lhs, rhs) [] 0 COMM, same_int, Each(|_, v| v[0].max(v[1])), "Unsigned maximum." -> Value;
    mulhui MulHiUI {} (lhs, rhs) [] 0 COMM, same_int, Each(|c, v| c.mul_high_unsigned(v)), "High half of the unsigned product of 32- or 64-bit integers." -> Value;
    mulhsi MulHiSI {} (lhs, rhs) [] 0 COMM, same_int, Each(|c, v| c.mul_high_signed(v)), "High half of the signed product of 32- or 64-bit integers." -> Value;
    absi AbsI {} (value) [] 0 EXACT, same_int, Each(|c, v| c.signed1(v, i64::wrapping_abs)), "Absolute value of a signed integer; the least one stays." -> Value;
    clz Clz {} (value) [] 0 EXACT, same_int, Each(|c, v| c.count_leading_zeros(v)), "Number of leading zero bits of a 32- or 64-bit integer." -> Value;
    popc PopC {} (value) [] 0 EXACT, same_int, Each(|_, v| u64::from(v[0].count_ones())), "Number of one bits of a 32- or 64-bit integer." -> Value;
    brev BRev {} (value) [] 0 EXACT, same_int, Each(|c, v| c.reverse_bits(v)), "The bits of a 32- or 64-bit integer in reverse order." -> Value;
    cmpi CmpI { predicate: Predicate } (lhs, rhs) [] 0 EXACT, compare_int, Each(compare_ints), "Integer comparison." -> Value;

    // Floats. Arithmetic rounds to nearest even.
    addf AddF {} (lhs, rhs) [] 0 COMM, same_float, Each(|c, v| c.float2(v, |a, b| a + b)), "Sum." -> Value;
    subf SubF {} (lhs, rhs) [] 0 EXACT, same_float, Each(|c, v| c.float2(v, |a, b| a - b)), "Difference." -> Value;
    mulf MulF {} (lhs, rhs) [] 0 COMM, same_float, Each(|c, v| c.float2(v, |a, b| a * b)), "Product." -> Value;
    rescale Rescale {} (value, factor) [] 0 EXACT, same_float, Each(|c, v| c.float2(v, |a, b| a * b)), "Product; a warp whose factors are all one has no work." -> Value;
    divf DivF {} (lhs, rhs) [] 0 EACH, same_float, Each(|c, v| c.float2(v, |a, b| a / b)), "Quotient; within 2 ulp in `f32` (`div.full`), exact in `f64`." -> Value;
    divf_approx DivFApprox {} (lhs, rhs) [] 0 EACH, same_f32, Each(|c, v| c.float2(v, |a, b| a / b)), "Quotient of `f32` for divisors up to 2^126; `div.approx`." -> Value;
    divf_rn DivFRn {} (lhs, rhs) [] 0 EXACT, same_float, Each(|c, v| c.float2(v, |a, b| a / b)), "Correctly rounded quotient." -> Value;
    fma Fma {} (a, b, c) [] 0 EXACT, same_float, Each(|c, v| c.fused_multiply_add(v)), "`a * b + c` rounded once." -> Value;
    negf NegF {} (value) [] 0 EXACT, same_float, Each(|c, v| c.flip_sign(v)), "The sign bit flipped." -> Value;
    absf AbsF {} (value) [] 0 EXACT, same_float_any, Each(|c, v| c.clear_sign(v)), "The sign bit cleared." -> Value;
    copysign CopySign {} (magnitude, sign) [] 0 EXACT, same_float, Each(|c, v| c.copy_sign(v)), "The magnitude of one, the sign of the other." -> Value;
    minnum MinNum {} (lhs, rhs) [] 0 COMM, same_float, Each(|c, v| c.float2(v, min_num)), "Minimum; a NaN loses to a number." -> Value;
    maxnum MaxNum {} (lhs, rhs) [] 0 COMM, same_float, Each(|c, v| c.float2(v, max_num)), "Maximum; a NaN loses to a number." -> Value;
    minimum Minimum {} (lhs, rhs) [] 0 COMM, same_float, Each(|c, v| c.float2(v, min_nan)), "Minimum; a NaN wins." -> Value;
    maximum Maximum {} (lhs, rhs) [] 0 COMM, same_float, Each(|c, v| c.float2(v, max_nan)), "Maximum; a NaN wins." -> Value;
    floor Floor {} (value) [] 0 EXACT, same_float, Each(|c, v| c.float1(v, f64::floor)), "Largest whole number not above." -> Value;
    ceil Ceil {} (value) [] 0 EXACT, same_float, Each(|c, v| c.float1(v, f64::ceil)), "Least whole number not below." -> Value;
    truncate Truncate {} (value) [] 0 EXACT, same_float, Each(|c, v| c.float1(v, f64::trunc)), "Whole part." -> Value;
    rint Rint {} (value) [] 0 EXACT, same_float, Each(|c, v| c.float1(v, f64::round_ties_even)), "Nearest whole number, ties to even." -> Value;
    sqrt Sqrt { ftz: bool } (value) [] 0 EACH, same_wide_float, Each(|c, v| c.approximate(v, f64::sqrt)), "Square root; `sqrt.approx` in `f32`, exact in `f64`." -> Value;
    sqrt_rn SqrtRn {} (value) [] 0 EXACT, same_wide_float, Each(|c, v| c.float1(v, f64::sqrt)), "Correctly rounded square root." -> Value;
    addf_rounded AddFRounded { mode: RoundingMode } (lhs, rhs) [] 0 COMM, same_wide_float, Each(rounded), "Sum in the given rounding; never contracted." -> Value;
    mulf_rounded MulFRounded { mode: RoundingMode } (lhs, rhs) [] 0 COMM, same_wide_float, Each(rounded), "Product in the given rounding; never contracted." -> Value;
    divf_rounded DivFRounded { mode: RoundingMode } (lhs, rhs) [] 0 EXACT, same_wide_float, Each(rounded), "Quotient in the given rounding." -> Value;
    fma_rounded FmaRounded { mode: RoundingMode } (a, b, c) [] 0 EXACT, same_wide_float, Each(rounded), "`a * b + c` in the given rounding." -> Value;
    sqrt_rounded SqrtRounded { mode: RoundingMode } (value) [] 0 EXACT, same_wide_float, Each(rounded), "Square root in the given rounding." -> Value;
    rsqrt Rsqrt { ftz: bool } (value) [] 0 EACH, same_wide_float, Each(|c, v| c.approximate(v, |x| 1.0 / x.sqrt())), "Reciprocal square root; `rsqrt.approx`." -> Value;
    rcp Rcp {} (value) [] 0 EACH, same_wide_float, Each(|c, v| c.flushed(v, |x| 1.0 / x)), "Reciprocal; `rcp.approx.ftz` in `f32`, correctly rounded in `f64`." -> Value;
    exp2 Exp2 { ftz: bool } (value) [] 0 EACH, same_f32, Each(|c, v| c.approximate(v, f64::exp2)), "Two to the power of `f32`; `ex2.approx`." -> Value;
    log2 Log2 {} (value) [] 0 EACH, same_f32, Each(|c, v| c.float1(v, f64::log2)), "Logarithm to base two of `f32`; `lg2.approx`." -> Value;
    sin_approx SinApprox {} (value) [] 0 EACH, same_f32, Each(|c, v| c.float1(v, f64::sin)), "Sine of `f32`; `sin.approx`." -> Value;
    cos_approx CosApprox {} (value) [] 0 EACH, same_f32, Each(|c, v| c.float1(v, f64::cos)), "Cosine of `f32`; `cos.approx`." -> Value;
    tanh_approx TanhApprox {} (value) [] 0 EACH, same_f32, Each(|c, v| c.float1(v, f64::tanh)), "Hyperbolic tangent of `f32`; `tanh.approx`." -> Value;
    cmpf CmpF { predicate: Predicate } (lhs, rhs) [] 0 EXACT, compare_float, Each(compare_floats), "Float comparison; ordered but for `ne`." -> Value;

    // Choice and casts.
    select Select {} (condition, lhs, rhs) [] 0 EXACT, select, Each(|_, v| if v[0] & 1 != 0 { v[1] } else { v[2] }), "`lhs` where the condition holds, else `rhs`." -> Value;
    trunci TruncI { to: Elem } (value) [] 0 EXACT, cast_int_int, Each(|c, v| c.int(v[0])), "The low bits of an integer." -> Value;
    extsi ExtSI { to: Elem } (value) [] 0 EXACT, cast_int_int, Each(|c, v| c.int(c.signed(0, v[0]) as u64)), "A wider integer with the same signed value." -> Value;
    extui ExtUI { to: Elem } (value) [] 0 EXACT, cast_int_int, Each(|_, v| v[0]), "A wider integer with the same unsigned value." -> Value;
    castf CastF { to: Elem, rounding: Rounding } (value) [] 0 EXACT, cast_float_float, Each(cast_float), "Float of another format; 8-bit targets saturate." -> Value;
    narrow_rounded NarrowRounded { mode: RoundingMode } (value) [] 0 EXACT, narrow_rounded, Each(rounded), "An `f64` as `f32` in the given rounding." -> Value;
    fptosi FpToSI { to: Elem } (value) [] 0 EXACT, cast_float_int, Each(|c, v| c.float_to_signed(v)), "Float to signed integer, toward zero, saturating at 32 and 64 bits." -> Value;
    fptoui FpToUI { to: Elem } (value) [] 0 EXACT, cast_float_int, Each(|c, v| c.float_to_unsigned(v)), "Float to unsigned integer, toward zero, saturating at 32 and 64 bits." -> Value;
    sitofp SIToFp { to: Elem } (value) [] 0 EXACT, cast_int_float, Each(|c, v| c.signed_to_float(v)), "Signed integer to float." -> Value;
    uitofp UIToFp { to: Elem } (value) [] 0 EXACT, cast_int_float, Each(|c, v| c.unsigned_to_float(v)), "Unsigned integer to float." -> Value;
    bitcast Bitcast { to: Elem } (value) [] 0 EXACT, cast_bits, Each(|_, v| v[0]), "The same bits as another type of the same width." -> Value;
    pack_pair PackPair {} (low, high) [] 0 EXACT, pair_bits, Each(pack_pair), "Two values of 8 or 16 bits as an integer of twice as many; two floats that were just rounded to 16 bits take one instruction." -> Value;
    unpack_pair UnpackPair { to: Elem, high: bool } (pair) [] 0 EXACT, pair_half, Each(unpack_pair), "The low or the high half of an integer as a type of 8 or 16 bits; the reverse of `pack_pair`." -> Value;
    ptrtoint PtrToInt {} (pointer) [] 0 EXACT, pointer_to_int, Each(|_, v| v[0]), "The address as `i64`." -> Value;
    inttoptr IntToPtr { to: Elem } (address) [] 0 EXACT, int_to_pointer, Each(|_, v| v[0]), "An `i64` as address." -> Value;
    addptr AddPtr {} (pointer, offset) [] 0 EXACT, add_pointer, Each(|c, v| c.add_pointer(v)), "A pointer moved by a signed number of elements." -> Value;

    // Shape. The order of elements is row-major.
    expand_dims ExpandDims { axis: u32 } (source) [] 0 SHAPE.and(FORWARDS), expand_dims, Structured, "A dimension of size 1 put before `axis`." -> Value;
    broadcast Broadcast {} (source) [] 0 FREE.and(FORWARDS), broadcast, Structured, "Dimensions of size 1 repeated to the size of the result." -> Value;
    reshape Reshape { reorder: bool } (source) [] 0 FREE.and(FORWARDS), reshape, Structured, "Another shape of the same number of elements; `reorder` allows any permutation." -> Value;
    trans Trans { order: Vec<u32> } (source) [] 0 SHAPE.and(FORWARDS), trans, Structured, "Dimensions permuted: result dimension `i` is source dimension `order[i]`." -> Value;
    join Join {} (lhs, rhs) [] 0 SHAPE, join, Structured, "Two tiles side by side in a new innermost dimension of size 2." -> Value;
    split Split {} (source) [] 0 SHAPE, split, Structured, "The two halves along an innermost dimension of size 2." -> Op;
    cat Cat {} (lhs, rhs) [] 0 SHAPE, cat, Structured, "The elements of both 1-D tiles, in any order." -> Value;
    unsplat Unsplat {} (source) [] 0 PURE.and(FORWARDS), unsplat, Structured, "The element of a tile with one element, as a scalar." -> Value;
    convert_layout ConvertLayout {} (source) [] 0 FREE.and(FORWARDS).and(Traits::CONVERGENT), convert_layout, Structured, "The same tile in another layout." -> Value;

    // Memory.
    load Load { cache: CacheModifier, evict: Eviction, volatile: bool, once: bool, vector: Option<u32> } (pointer) [mask, other] 0 Traits::NONE; [LOADS], load, Structured, "Reads global memory; lanes with a false mask are not accessed and get `other`, or zero; `vector` consecutive registers make one access. With `once`, of the warps that hold copies of one tile only the first reads it." -> Value;
    store Store { cache: CacheModifier, evict: Eviction, descriptor: bool, vector: Option<u32> } (pointer, value) [mask] 0 Traits::NONE; [STORES], store, Structured, "Writes global memory where the mask holds; `vector` consecutive registers make one access. With `descriptor`, the source stores through a tensor descriptor, whose blocks do not begin before the tensor where TMA copies them." -> Op;
    atomic_rmw AtomicRmw { op: RmwOp, sem: MemSemantic, scope: MemScope, vector: Option<u32> } (pointer, value) [mask, scratch] 0 Traits::CONVERGENT; [LOADS, STORES, SCRATCH], atomic_rmw, Structured, "Atomic read-modify-write of each element; gives the old value; `vector` consecutive registers make one access." -> Value;
    atomic_cas AtomicCas { sem: MemSemantic, scope: MemScope } (pointer, compare, value) [scratch] 0 Traits::CONVERGENT; [LOADS, STORES, SCRATCH], atomic_cas, Structured, "Atomic compare and swap, by bits; gives the old value." -> Value;
    atomic_load AtomicLoad { sem: MemSemantic, scope: MemScope } (pointer) [mask, scratch] 0 Traits::CONVERGENT; [LOADS, SCRATCH, OUTSIDE], atomic_load, Structured, "Atomic load of each element, `relaxed` or `acquire`; 0 where the mask is false." -> Value;
    atomic_store AtomicStore { sem: MemSemantic, scope: MemScope } (pointer, value) [mask] 0 Traits::CONVERGENT; [STORES, OUTSIDE], atomic_store, Structured, "Atomic store of each element where the mask holds, `relaxed` or `release`." -> Op;
    atomic_poll AtomicPoll { sem: MemSemantic, scope: MemScope } (pointer, expected) [scratch, timeout] 0 Traits::CONVERGENT; [LOADS, SCRATCH, OUTSIDE], atomic_poll, Structured, "Loads each integer atomically, again and again, until it is the expected one, or for `timeout` nanoseconds; gives 1 as `i32` where it was, else 0." -> Value;

    // Tensor descriptors and block pointers, in phase `Tile`.
    make_desc MakeDesc {} (base) [nan] 0 NEW_VIEW, make_desc, Structured, "A descriptor of the tensor at `base`, for accesses to whole blocks: its sizes follow, then its strides but for that of the last dimension, which is 1. Elements outside are read as 0, or as NaN if `nan` holds." -> Value;
    desc_size DescSize { axis: u32 } (desc) [] 0 BLOCK_VIEW, desc_size, Structured, "The size of the tensor along an axis." -> Value;
    desc_stride DescStride { axis: u32 } (desc) [] 0 BLOCK_VIEW, desc_stride, Structured, "The stride of the tensor along an axis that is not the last, in elements." -> Value;
    desc_load DescLoad {} (desc) [] 0 BLOCK_AT; [LOADS_BLOCK], desc_load, Structured, "Reads the block of a tensor at the coordinates." -> Value;
    desc_store DescStore {} (desc, value) [] 0 BLOCK_AT; [STORES_BLOCK], desc_store, Structured, "Writes the block of a tensor at the coordinates; what lies outside is left out." -> Op;
    desc_reduce DescReduce { op: RmwOp } (desc, value) [] 0 BLOCK_AT; [LOADS_BLOCK, STORES_BLOCK], desc_store, Structured, "Like `desc_store`, but each element is combined with that of the tensor, atomically." -> Op;
    desc_gather DescGather {} (desc, rows, column) [] 0 BLOCK; [LOADS_BLOCK], desc_gather, Structured, "Reads a part of each of some rows of a matrix, from a column on." -> Value;
    desc_scatter DescScatter {} (desc, rows, column, value) [] 0 BLOCK; [STORES_BLOCK], desc_scatter, Structured, "Writes a part of each of some rows of a matrix, from a column on; what lies outside is left out." -> Op;
    make_block_ptr MakeBlockPtr { order: Vec<u32> } (base) [] 0 NEW_VIEW, make_block_ptr, Structured, "A pointer to a block of the tensor at `base`: the sizes of the tensor follow, its strides, and the offsets of the block; `order` names the dimensions, the fastest first." -> Value;
    advance Advance {} (pointer) [] 0 BLOCK_VIEW.and(Traits::VARIADIC), advance, Structured, "A block pointer moved by a number of elements along each dimension." -> Value;
    block_load BlockLoad { check: Vec<u32>, padding: Padding, cache: CacheModifier, evict: Eviction, volatile: bool } (pointer) [] 0 BLOCK; [LOADS], block_load, Structured, "Reads a block; along the dimensions of `check`, elements outside of the tensor are not accessed and are what `padding` says." -> Value;
    block_store BlockStore { check: Vec<u32>, cache: CacheModifier, evict: Eviction } (pointer, value) [] 0 BLOCK; [STORES], block_store, Structured, "Writes a block; along the dimensions of `check`, elements outside of the tensor are left out." -> Op;

    // Over several elements.
    dot Dot { precision: Precision, kind: DotKind, max_imprecise: Option<u32> } (lhs, rhs, acc) [scratch] 0 TOGETHER; [SCRATCH], dot, Structured, "Matrix product of `[.., M, K]` and `[.., K, N]` added to `acc`." -> Value;
    dot_buffers DotBuffers { kind: DotKind } (lhs, rhs, acc) [] 0 Traits::CONVERGENT; [READS_LHS, READS_RHS], dot_buffers, Structured, "Matrix product of the buffers `lhs` and `rhs`, `[M, K]` and `[K, N]` of `f32` or `f64`, added to `acc`: by FMAs of each thread, or by `mma.sync` on `f64`." -> Value;
    reduce Reduce { axis: u32 } () [scratch] 1 COMBINE; [SCRATCH], reduce, Structured, "Combines all elements along an axis with the nested block, in any order." -> Op;
    scan Scan { axis: u32, reverse: bool } () [scratch] 1 COMBINE; [SCRATCH], scan, Structured, "Inclusive scan along an axis with the nested block." -> Op;
    map_elements MapElements {} () [] 1 NESTED.and(Traits::ELEMENTWISE).and(Traits::EXPLICIT_TYPE), map_elements, Structured, "Runs the nested block, which is made of scalars, for each element of tiles of one shape." -> Op;
    gather Gather { axis: u32 } (source, index) [scratch] 0 TOGETHER; [SCRATCH], gather, Structured, "Elements picked along an axis by index." -> Value;
    histogram Histogram { bins: u32 } (source) [mask, scratch] 0 SHAPE.and(Traits::CONVERGENT); [SCRATCH], histogram, Structured, "Counts of the values `0..bins` in a 1-D tile." -> Value;
    sort Sort { descending: bool, signed: bool, bitonic: bool } (source) [scratch] 0 TOGETHER; [SCRATCH], sort, Structured, "The last axis in order; not stable. With `bitonic` each row rises and then falls, or falls and then rises, and is merged only." -> Value;

    // Control flow.
    for_range ForRange { unsigned: bool, hints: LoopHints } (lower, upper, step) [] 1 NESTED, for_range, Structured, "Repeats its block for `lower..upper` by `step`; carried values are block arguments after the index." -> Op;
    while_loop WhileLoop {} () [] 2 NESTED, while_loop, Structured, "Repeats: the first block ends with `condition`, the second with `yields`." -> Op;
    if_else IfElse {} (condition) [] 2 NESTED.and(Traits::EXPLICIT_TYPE), if_else, Structured, "Runs the first block if the condition holds, else the second; both end with `yields`." -> Op;
    warp_specialize WarpSpecialize { warps: Vec<u32>, registers: Option<Vec<u32>> } () [] 1 PARTITIONS, nothing, Structured, "Divides the warps of the block: the nested blocks run at the same time, each on as many warps as `warps` says; `registers` says how many each of their threads has, 0 for no change. Goes on with all warps once all blocks have ended." -> Op;
    yields Yields {} () [] 0 END, nothing, Structured, "Ends a block and hands its values to the operation around it." -> Op;
    condition Condition {} (go_on) [] 0 END, condition, Structured, "Ends the first block of `while_loop`." -> Op;
    ret Ret {} () [] 0 Traits::TERMINATOR, nothing, Structured, "Ends the kernel." -> Op;

    // Promises, order, messages.
    hint Hint { kind: HintKind, values: Vec<u32> } (value) [] 0 EACH.and(FORWARDS), same_any, Each(|_, v| v[0]), "The value itself, with a promise about it per dimension." -> Value;
    opaque Opaque {} (value) [] 0 EACH, same_any, Each(|_, v| v[0]), "The value itself, of which later stages know nothing: what follows from it is computed again, not taken from what follows from the value." -> Value;
    assume Assume {} (condition) [] 0 Traits::NONE; [OUTSIDE], assume, Structured, "Promises that a scalar condition holds." -> Op;
    barrier Barrier {} () [] 0 Traits::CONVERGENT; [OUTSIDE], nothing, Structured, "All threads of the block, or of its partition, wait for each other." -> Op;
    print Print { prefix: Text, hex: bool, signed: Vec<u32> } () [] 0 Traits::VARIADIC; [OUTSIDE], print, Structured, "Prints its operands element by element; `signed` says 1 for each signed one." -> Op;
    assertion Assertion { message: Text, file: Text, line: u32 } (condition) [mask] 0 Traits::NONE; [OUTSIDE], assertion, Structured, "Traps the kernel if the condition is false where the mask holds." -> Op;
    inline_asm InlineAsm { text: Text, constraints: Text, pure: bool, pack: u32 } () [] 0 STATED.and(Traits::VARIADIC); [READS_ALL, WRITES_ALL, OUTSIDE], assembly, Structured, "PTX run on `pack` elements of each operand at a time." -> Op;
    extern_call ExternCall { symbol: Text, to: Elem } () [] 0 EACH.and(Traits::VARIADIC), extern_call, Structured, "A pure function of a library of bitcode, on each element alone." -> Value;
    special SpecialRegister { name: Text } () [] 0 STATED; [OUTSIDE], special, Structured, "A special register of PTX, such as `globaltimer` or `smid`." -> Value;
    grid_dependency GridDependency { wait: bool } () [] 0 Traits::NONE; [READS_ALL, WRITES_ALL, OUTSIDE], nothing, Structured, "Waits for the kernel before (`wait`), or lets the next one start." -> Op;
    record Record { event: Text, blocks: u32 } (buffer) [] 0 Traits::NONE; [OUTSIDE], record, Structured, "The first lane of each warp of the first blocks, `blocks` of them, writes an event and its time to the warp's part of a buffer." -> Op;

    // Shared memory, from phase `Laid` on.
    alloc_shared AllocShared { align: u32, offset: Option<u32> } () [] 0 STATED, alloc_shared, Structured, "A buffer in shared memory, whose content is undefined; `offset` is set by `allocate_shared`." -> Value;
    alloc_barriers AllocBarriers { count: u32, offset: Option<u32> } () [] 0 STATED.and(Traits::CONVERGENT); [Effect::init(Space::Barrier)], alloc_barriers, Structured, "A ring of barriers in shared memory, each of which expects `count` arrivals in every phase." -> Value;
    slot Slot {} (buffer, index) [] 0 VIEW, slot, Structured, "One slot of a ring of buffers or barriers; undefined where the index is out of range." -> Value;
    shared_trans SharedTrans { order: Vec<u32> } (buffer) [] 0 VIEW, shared_trans, Structured, "The same memory as a buffer with permuted dimensions: dimension `i` is dimension `order[i]`." -> Value;
    shared_slice SharedSlice { offsets: Vec<u32>, shape: Vec<u32> } (buffer) [] 0 VIEW, shared_slice, Structured, "A part of a slot that lies in one piece, as a buffer." -> Value;
    shared_view SharedView {} (buffer) [] 0 VIEW, shared_view, Structured, "The start of a slot as a buffer of another shape or layout, of the same elements." -> Value;
    local_store LocalStore {} (value, buffer) [] 0 Traits::CONVERGENT; [Effect::write(Space::Shared, "buffer")], local_store, Structured, "Writes a tile to a slot of a buffer." -> Op;
    local_load LocalLoad {} (buffer) [] 0 STATED.and(Traits::CONVERGENT); [Effect::read(Space::Shared, "buffer")], local_load, Structured, "Reads a slot of a buffer as a tile." -> Value;

    // Asynchronous copies and barriers.
    copy_async CopyAsync { vector: u32 } (pointer, buffer) [mask] 0 Traits::CONVERGENT; [LOADS, FILLS.later()], copy_async, Structured, "Begins to copy what pointers point to into a buffer, `vector` consecutive registers at a time (4, 8 or 16 bytes); zeros where the mask is false." -> Op;
    copy_commit CopyCommit {} () [] 0 Traits::CONVERGENT; [OUTSIDE], nothing, Structured, "Makes a group of the copies by `copy_async` so far." -> Op;
    copy_group CopyGroup {} () [] 0 TOKENS; [OUTSIDE], token, Structured, "Makes a group of the copies by `copy_async` so far, and gives its token; for `insert-waits`, which makes a `copy_commit` of it." -> Value;
    copy_await CopyAwait {} () [buffer] 0 TOKENS.and(Traits::VARIADIC); [OUTSIDE], copy_await, Structured, "Waits until all threads see the copies of these groups, and gives the buffer, if there is one, with them; for `insert-waits`, which makes a `copy_wait`, a fence and a barrier of it." -> Op;
    copy_wait CopyWait { pending: u32 } () [] 0 Traits::CONVERGENT; [OUTSIDE], nothing, Structured, "Waits until all but the latest `pending` groups of copies are complete; for its own copies each thread." -> Op;
    barrier_expect BarrierExpect { bytes: u32 } (barrier) [fewer] 0 Traits::CONVERGENT; [SIGNALS], barrier_expect, Structured, "One arrival at a barrier, whose phase then also waits for so many bytes of copies, less `fewer`." -> Op;
    barrier_arrive BarrierArrive {} (barrier) [] 0 Traits::CONVERGENT; [SIGNALS, OUTSIDE], barrier_of, Structured, "One arrival of each warp at a barrier." -> Op;
    copy_arrive CopyArrive {} (barrier) [] 0 Traits::CONVERGENT; [SIGNALS.later(), OUTSIDE], barrier_of, Structured, "One arrival of each thread at a barrier, once its copies by `copy_async` so far are complete." -> Op;
    barrier_wait BarrierWait {} (barrier, parity) [] 0 Traits::CONVERGENT; [Effect::read(Space::Barrier, "barrier"), OUTSIDE], barrier_wait, Structured, "Waits until the phase of a barrier that has this parity, 0 or 1, is complete; before the first phase lies a complete one of parity 1." -> Op;
    copy_bulk CopyBulk {} (pointer, buffer, barrier) [] 0 Traits::CONVERGENT; [LOADS, FILLS.later(), SIGNALS.later()], copy_bulk, Structured, "Begins to copy elements that lie side by side from a pointer on, a multiple of 16 bytes, into a row-major buffer; then the barrier is told of their bytes." -> Op;
    make_map MakeMap { nan: bool, tf32: bool, later: bool } (base) [scratch, turn] 0 NEW_MAP; [SCRATCH, Effect::init(Space::Global)], make_map, Structured, "A tensor map that the kernel makes: of the tensor at `base`, of which sizes follow, then strides but for that of the last dimension, which is 1. Sizes below 1 count as 1. Copies give zeros beside the tensor, or `nan`, and round floats of 32 bits to `tf32` if that is said. With `turn`, 0 or 1, there are two places for it, of which that one is taken. With `later` it is for copies after `await_map` only. No copy by the map that this operation gave before, in the same place, may be in flight." -> Value;
    await_map AwaitMap {} (desc) [] 0 Traits::CONVERGENT; [OUTSIDE], await_map, Structured, "Waits until a tensor map that the kernel makes is there." -> Op;
    no_map NoMap {} () [] 0 VIEW, no_map, Structured, "No tensor map, by which nothing may be copied: what a loop that hands maps on begins with." -> Value;
    copy_desc CopyDesc {} (desc, buffer, barrier) [] 0 VARIADIC; [READS_ALL, FILLS.later(), SIGNALS.later()], copy_desc, Structured, "Begins to copy the box of a tensor at the coordinates into a buffer, zeros beside the tensor; then the barrier is told of the bytes of the box. Where the box has no more rows than the tensor, the others of the buffer stay as they are." -> Op;
    copy_desc_store CopyDescStore {} (desc, buffer) [] 0 VARIADIC; [DRAINS.later(), WRITES_ALL.later()], copy_desc_store, Structured, "Begins to copy a buffer, of one or more boxes, into a tensor at the coordinates; what lies beside the tensor is left out." -> Op;
    copy_desc_reduce CopyDescReduce { op: RmwOp } (desc, buffer) [] 0 VARIADIC; [DRAINS.later(), READS_ALL.later(), WRITES_ALL.later()], copy_desc_store, Structured, "Like `copy_desc_store`, but each element is combined with that of the tensor, atomically." -> Op;
    copy_desc_wait CopyDescWait { pending: u32, read: bool } () [] 0 Traits::CONVERGENT; [OUTSIDE], nothing, Structured, "Waits until all but the latest `pending` copies to tensors are complete, or only have `read` their buffers." -> Op;
    fence_async FenceAsync {} () [] 0 Traits::CONVERGENT; [OUTSIDE], nothing, Structured, "What the threads have written to shared memory before is seen by products and copies of tiles after." -> Op;

    // Products of warp groups, and what waits for them.
    mma Mma {} (lhs, rhs, acc) [use_acc] 0 Traits::CONVERGENT; [READS_LHS, READS_RHS], mma, Structured, "Matrix product (`wgmma`) of `lhs`, a buffer or a tile, and the buffer `rhs`, added to `acc`, or in place of it where `use_acc` is false." -> Value;
    mma_async MmaAsync {} (lhs, rhs, acc) [use_acc] 0 Traits::CONVERGENT; [READS_LHS.later(), READS_RHS.later(), OUTSIDE], mma, Structured, "Begins a product like that of `mma`; its result is for `mma_wait`, and for further products as accumulator." -> Value;
    mma_await MmaAwait {} () [] 0 TOKENS.and(Traits::VARIADIC); [OUTSIDE], mma_wait, Structured, "The accumulators once their products are complete; for `insert-waits`, which makes an `mma_wait` of it." -> Op;
    mma_wait MmaWait { pending: u32 } () [] 0 VARIADIC; [OUTSIDE], mma_wait, Structured, "Waits until all but the latest `pending` products are complete; gives its operands, which are results of complete ones." -> Op;
}
