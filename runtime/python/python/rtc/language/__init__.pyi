# Made by the tests of rtc-sema; change the docstrings there, not this file.

from typing import Any

from . import core as core, extra as extra, math as math, random as random, standard as standard
from . import target_info as target_info
from .core import (
    PropagateNan as PropagateNan,
    block_type as block_type,
    const as const,
    constexpr as constexpr,
    dtype as dtype,
    pointer_type as pointer_type,
    range as range,
    static_range as static_range,
    str_to_ty as str_to_ty,
    tensor as tensor,
    tensor_descriptor as tensor_descriptor,
)
from .extra import libdevice as libdevice

TRITON_MAX_TENSOR_NUMEL: int
void: dtype
int1: dtype
int8: dtype
int16: dtype
int32: dtype
int64: dtype
uint8: dtype
uint16: dtype
uint32: dtype
uint64: dtype
float8e4b15: dtype
float8e4b8: dtype
float8e4nv: dtype
float8e5: dtype
float8e5b16: dtype
float16: dtype
bfloat16: dtype
float32: dtype
float64: dtype
pi32_t: pointer_type

def program_id(axis: Any) -> Any:
    """Index of this program along an axis of the grid.

    axis: 0, 1 or 2
    returns: int32 scalar

    >>> tl.program_id(0)
    """

def num_programs(axis: Any) -> Any:
    """Number of programs along an axis of the grid.

    axis: 0, 1 or 2
    returns: int32 scalar

    >>> tl.num_programs(0)
    """

def condition(arg1: Any, disable_licm: Any = False) -> Any:
    """The condition of a `while` loop, with a wish about how it is compiled.

    arg1: int1 scalar
    disable_licm: keep computations in the loop
    returns: the condition

    >>> i = 0
    >>> while tl.condition(i < n): i += 2
    >>> i
    """

def arange(start: Any, end: Any) -> Any:
    """The whole numbers from `start` up to, but not including, `end`.

    start: integers with 0 <= start < end; their distance is a power of two
    end: integers with 0 <= start < end; their distance is a power of two
    returns: int32 block of shape [end - start]

    >>> tl.arange(4, 8)

    >>> tl.arange(0, 6)  # refused
    """

def full(shape: Any, value: Any, dtype: Any) -> Any:
    """A block in which every element is `value`.

    shape: tuple or list of powers of two; an empty one makes a scalar
    value: number, scalar or block of one element; a float cannot fill a block of integers
    dtype: element type
    returns: block of `dtype`

    >>> tl.full((2, 4), 7, tl.int8)
    """

def cast(input: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False) -> Any:
    """The elements as another type; the same as `input.to(dtype, ...)`.

    The table of casts in [the language](language.md#casts) says what each pair does.

    input: number, scalar or block
    dtype: element type, or its name as a string
    fp_downcast_rounding: "rtne" (to nearest even, the default) or "rtz" (toward zero, from fp32 to fp16, bf16, fp8e5)
    bitcast: keep the bits; both types must have one width
    returns: as `input`, with elements of `dtype`

    >>> tl.cast(tl.full((2,), -2.75, tl.float32), tl.int32)

    >>> tl.cast(1.0, tl.int32, bitcast=True)
    """

def to_tensor(x: Any) -> Any:
    """A number as the run-time scalar that an assignment makes of it.

    x: number, scalar or block
    returns: `x`, if it is known at run time only, else a scalar

    >>> tl.to_tensor(3000000000)
    """

def constexpr_type(value: Any) -> Any:
    """The type of constants, for comparisons with `.type`.

    value: any constant
    returns: a type

    >>> tl.constexpr_type(3)
    """

def get_int_dtype(bitwidth: Any, signed: Any) -> Any:
    """The integer type of a width.

    bitwidth: 1, 8, 16, 32 or 64
    signed: True or False
    returns: the type

    >>> tl.get_int_dtype(16, True)
    """

def _log2(i: Any) -> Any:
    """The whole part of the logarithm to base 2 of a constexpr.

    i: integer
    returns: constexpr integer; 0 for 0 and negatives

    >>> tl._log2(16)
    """

def _is_power_of_two(i: Any) -> Any:
    """Whether a constexpr is a power of two.

    i: integer
    returns: constexpr bool

    >>> tl._is_power_of_two(16)
    """

def tuple(items: Any = None) -> Any:
    """A tuple of the items of a tuple or list.

    items: tuple or list; left out, the result is empty
    returns: tuple

    >>> tl.tuple([1, 2])
    """

def broadcast(input: Any, other: Any) -> Any:
    """Both values in their common shape.

    input: number, scalar or block
    other: number, scalar or block
    returns: pair of blocks of one shape

    >>> tl.broadcast(tl.arange(0, 2)[:, None], tl.arange(0, 4)[None, :])
    """

def broadcast_to(input: Any, *shape: Any) -> Any:
    """`input` repeated along its dimensions of size 1.

    input: block with as many dimensions as `shape`, or a scalar
    shape: sizes, one by one or as one sequence
    returns: block of `shape`

    >>> tl.broadcast_to(tl.arange(0, 2)[:, None], 2, 4)
    """

def expand_dims(input: Any, axis: Any) -> Any:
    """`input` with new dimensions of size 1; `x[:, None]` does the same.

    input: block or scalar
    axis: position in the result, or several; negative ones count from the end
    returns: block

    >>> tl.expand_dims(tl.arange(0, 4), 0)
    """

def reshape(input: Any, *shape: Any, can_reorder: Any = False) -> Any:
    """The same elements in another shape, row by row.

    input: block or scalar
    shape: sizes, one by one or as one sequence, with as many elements in all
    can_reorder: elements may come in any order, which saves moving them
    returns: block of `shape`

    >>> tl.reshape(tl.arange(0, 8), 2, 4)
    """

def view(input: Any, *shape: Any) -> Any:
    """Deprecated name of `reshape(..., can_reorder=True)`.

    input: block or scalar
    shape: sizes, one by one or as one sequence
    returns: block of `shape`

    >>> tl.max(tl.view(tl.arange(0, 8), 2, 4))
    """

def trans(input: Any, *dims: Any) -> Any:
    """`input` with its last two dimensions exchanged, or all in another order.

    input: block with at least two dimensions
    dims: for each dimension of the result, the one of `input`; left out, the last two are exchanged
    returns: block

    >>> tl.trans(tl.reshape(tl.arange(0, 8), 2, 4))
    """

def permute(input: Any, *dims: Any) -> Any:
    """`input` with its dimensions in another order.

    input: block
    dims: for each dimension of the result, the one of `input`
    returns: block

    >>> tl.permute(tl.zeros((2, 4, 8), tl.int8), 2, 0, 1).shape
    """

def join(a: Any, b: Any) -> Any:
    """Two blocks side by side along a new last dimension of size 2.

    a: blocks or scalars of one element type; broadcast
    b: blocks or scalars of one element type; broadcast
    returns: block

    >>> tl.join(tl.arange(0, 2), tl.arange(2, 4))
    """

def split(a: Any) -> Any:
    """The two halves along a last dimension of size 2: what `join` put together.

    a: block whose last size is 2
    returns: pair of blocks, or of scalars if `a` has shape [2]

    >>> tl.split(tl.reshape(tl.arange(0, 8), 4, 2))
    """

def cat(input: Any, other: Any, can_reorder: Any = False, dim: Any = 0) -> Any:
    """The elements of two blocks in one, one block behind the other.

    input: blocks of one shape and one element type
    other: blocks of one shape and one element type
    can_reorder: the elements may come in any order; for blocks with one dimension
    dim: along which dimension, unless `can_reorder`; negative ones count from the end
    returns: block of twice the size

    >>> tl.cat(tl.arange(0, 4), tl.arange(4, 8))

    >>> tl.sum(tl.cat(tl.arange(0, 4), tl.arange(4, 8), can_reorder=True))
    """

def item(input: Any) -> Any:
    """The element of a block with one element.

    input: block of one element, or a scalar
    returns: scalar

    >>> tl.item(tl.full((1, 1), 3, tl.int32))
    """

def load(pointer: Any, mask: Any = None, other: Any = None, boundary_check: Any = (), padding_option: Any = "", cache_modifier: Any = "", eviction_policy: Any = "", volatile: Any = False) -> Any:
    """Reads memory.

    Without `other`, masked-off elements are zero. A pointer to int1 reads a byte and compares it with zero.

    pointer: pointer, block of pointers, or block pointer
    mask: int1, broadcast with the pointers; elements where it is false are not touched
    other: number or block, broadcast and cast to the element type: the value where the mask is false
    boundary_check: dimensions that a block pointer guards; for block pointers only
    padding_option: "zero" or "nan", the value outside of a guarded block pointer
    cache_modifier: "", ".ca", ".cg" or ".cv"
    eviction_policy: "", "evict_first" or "evict_last"
    volatile: always read from memory
    returns: scalar or block of the element type, of the common shape of pointer, mask and other

    >>> tl.load(x + tl.arange(0, 4))

    >>> offsets = tl.arange(0, 8)
    >>> tl.load(x + offsets, mask=offsets < n, other=-1.0)
    """

def store(pointer: Any, value: Any, mask: Any = None, boundary_check: Any = (), cache_modifier: Any = "", eviction_policy: Any = "") -> Any:
    """Writes memory; the value is cast to the element type.

    Of several values for one address one wins, and it is not said which. A block pointer casts nothing: the value must have its type and shape. A pointer to int1 stores the low byte of the value as an integer.

    pointer: pointer, block of pointers, or block pointer
    value: number, scalar or block, broadcast to the shape of the pointer
    mask: int1, broadcast to the shape of the pointer; elements where it is false are not touched
    boundary_check: dimensions that a block pointer guards; for block pointers only
    cache_modifier: "", ".wb", ".cg", ".cs" or ".wt"
    eviction_policy: "", "evict_first" or "evict_last"
    returns: None

    >>> tl.store(y + tl.arange(0, 4), tl.arange(0, 4) * 10)
    >>> tl.load(y + tl.arange(0, 4))
    """

def make_block_ptr(base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any) -> Any:
    """A pointer to a block of a tensor in memory.

    base: pointer to the first element of the tensor
    shape: sizes of the tensor; integers
    strides: distances between neighbours, in elements; integers
    offsets: where the block begins; integers of 32 bits
    block_shape: sizes of the block; constants, powers of two
    order: the dimensions, fastest first; constants; a hint about the layout
    returns: block pointer for `tl.load`, `tl.store` and `tl.advance`

    >>> p = tl.make_block_ptr(x, (4, 4), (4, 1), (0, 2), (4, 4), (1, 0))
    >>> tl.load(p, boundary_check=(1,), padding_option="zero")
    """

def advance(base: Any, offsets: Any) -> Any:
    """A block pointer moved by some elements along each dimension.

    base: block pointer
    offsets: integers of 32 bits, one per dimension
    returns: block pointer; `base` stays where it is

    >>> p = tl.make_block_ptr(x, (16,), (1,), (0,), (4,), (0,))
    >>> tl.load(tl.advance(p, (8,)))
    """

def make_tensor_descriptor(base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: Any = "zero") -> Any:
    """A window of a fixed block shape into a tensor in memory; it guards all dimensions.

    base: pointer to the first element; 16-byte aligned
    shape: sizes of the tensor; integers
    strides: distances between neighbours, in elements; the last one is the constant 1
    block_shape: sizes of the blocks that it moves; constants; the last takes at least 16 bytes
    padding_option: "zero" or "nan": what a load gives outside of the tensor
    returns: tensor descriptor

    >>> d = tl.make_tensor_descriptor(x, [4, 8], [8, 1], [2, 4])
    >>> d.load([1, 6])
    """

def load_tensor_descriptor(desc: Any, offsets: Any) -> Any:
    """`desc.load(offsets)` as a function.

    desc: tensor descriptor
    offsets: int32 scalars or constants, one per dimension
    returns: block

    >>> d = tl.make_tensor_descriptor(x, [16], [1], [4])
    >>> tl.load_tensor_descriptor(d, [2])
    """

def store_tensor_descriptor(desc: Any, offsets: Any, value: Any) -> Any:
    """`desc.store(offsets, value)` as a function.

    desc: tensor descriptor
    offsets: int32 scalars or constants, one per dimension
    value: block of the descriptor's block shape; cast to its element type
    returns: None

    >>> d = tl.make_tensor_descriptor(y, [16], [1], [4])
    >>> tl.store_tensor_descriptor(d, [2], tl.arange(0, 4))
    >>> tl.load(y + tl.arange(0, 8))
    """

def atomic_add(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Adds to memory.

    pointer: pointer or block of pointers to 32- or 64-bit integers, fp16, bf16, fp32, fp64
    val: number, scalar or block, broadcast to the pointer and cast
    mask: int1 at run time, broadcast to the pointer
    sem: "relaxed", "acquire", "release" or "acq_rel" (the default)
    scope: "cta", "gpu" (the default) or "sys"
    returns: what memory held before

    >>> tl.atomic_add(k + tl.arange(0, 8) % 2, tl.arange(0, 8))
    >>> tl.load(k + tl.arange(0, 2))
    """

def atomic_max(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Maximum of memory and a value.

    Floats are compared by their bits, so the order of NaN and of the two zeros is that of integers.

    pointer: pointer or block of pointers to 32- or 64-bit integers, fp32, fp64
    val: number, scalar or block, broadcast to the pointer and cast
    mask: int1 at run time, broadcast to the pointer
    sem: "relaxed", "acquire", "release" or "acq_rel" (the default)
    scope: "cta", "gpu" (the default) or "sys"
    returns: what memory held before

    >>> tl.atomic_max(k, 7)
    >>> tl.load(k)
    """

def atomic_min(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Minimum of memory and a value.

    Floats are compared by their bits, so the order of NaN and of the two zeros is that of integers.

    pointer: pointer or block of pointers to 32- or 64-bit integers, fp32, fp64
    val: number, scalar or block, broadcast to the pointer and cast
    mask: int1 at run time, broadcast to the pointer
    sem: "relaxed", "acquire", "release" or "acq_rel" (the default)
    scope: "cta", "gpu" (the default) or "sys"
    returns: what memory held before

    >>> tl.atomic_min(k, -7)
    >>> tl.load(k)
    """

def atomic_and(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Bitwise and of memory and a value.

    pointer: pointer or block of pointers to 32- or 64-bit integers; of fp32 and fp64 the bits count
    val: number, scalar or block, broadcast to the pointer and cast
    mask: int1 at run time, broadcast to the pointer
    sem: "relaxed", "acquire", "release" or "acq_rel" (the default)
    scope: "cta", "gpu" (the default) or "sys"
    returns: what memory held before

    >>> tl.store(k, 13)
    >>> tl.atomic_and(k, 6)
    >>> tl.load(k)
    """

def atomic_or(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Bitwise or of memory and a value.

    pointer: pointer or block of pointers to 32- or 64-bit integers; of fp32 and fp64 the bits count
    val: number, scalar or block, broadcast to the pointer and cast
    mask: int1 at run time, broadcast to the pointer
    sem: "relaxed", "acquire", "release" or "acq_rel" (the default)
    scope: "cta", "gpu" (the default) or "sys"
    returns: what memory held before

    >>> tl.atomic_or(k, 6)
    >>> tl.load(k)
    """

def atomic_xor(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Bitwise exclusive or of memory and a value.

    pointer: pointer or block of pointers to 32- or 64-bit integers; of fp32 and fp64 the bits count
    val: number, scalar or block, broadcast to the pointer and cast
    mask: int1 at run time, broadcast to the pointer
    sem: "relaxed", "acquire", "release" or "acq_rel" (the default)
    scope: "cta", "gpu" (the default) or "sys"
    returns: what memory held before

    >>> tl.atomic_xor(k, 6)
    >>> tl.load(k)
    """

def atomic_xchg(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Puts a value into memory and gives the old one.

    pointer: pointer or block of pointers to 32- or 64-bit integers, fp32, fp64
    val: number, scalar or block, broadcast to the pointer and cast
    mask: int1 at run time, broadcast to the pointer
    sem: "relaxed", "acquire", "release" or "acq_rel" (the default)
    scope: "cta", "gpu" (the default) or "sys"
    returns: what memory held before

    >>> tl.atomic_xchg(x + 3, 9.0)
    """

def atomic_cas(pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None) -> Any:
    """Puts `val` into memory where it holds `cmp`, bit by bit.

    pointer: pointer or block of pointers to elements of 16, 32 or 64 bits
    cmp: scalar or block of exactly the type and shape of the memory
    val: scalar or block of exactly the type and shape of the memory
    sem: "relaxed", "acquire", "release" or "acq_rel" (the default)
    scope: "cta", "gpu" (the default) or "sys"
    returns: what memory held before

    >>> tl.atomic_cas(k, 0, 5)
    >>> tl.load(k)
    """

def atomic_load(pointer: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Reads memory that other threads may write at the same time.

    With "acquire", all accesses of the block behind it see what was written before the release that wrote the value. Elements where the mask is false give zero.

    pointer: pointer or block of pointers to numbers
    mask: int1 at run time; elements where it is false are not accessed
    sem: "acquire" (the default) or "relaxed"
    scope: "cta", "gpu" (the default) or "sys"
    returns: what memory held

    >>> tl.atomic_load(k)
    """

def atomic_store(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Writes memory that other threads may read at the same time.

    With "release", who acquires the value sees everything that the block wrote before.

    pointer: pointer or block of pointers to numbers
    val: number, scalar or block, broadcast to the pointer and cast
    mask: int1 at run time, broadcast to the pointer
    sem: "release" (the default) or "relaxed"
    scope: "cta", "gpu" (the default) or "sys"
    returns: None

    >>> tl.atomic_store(k, 5)
    >>> tl.load(k)
    """

def atomic_poll(pointer: Any, expected_value: Any, sem: Any = None, scope: Any = None, timeout_ns: Any = None) -> Any:
    """Waits until memory holds a value.

    The block goes on once all elements are there, or the time is over. If the block that writes the value can only start when this one has ended, the wait never ends. The interpreter runs one block after the other, so it sees only what earlier blocks wrote, and reports an endless loop where a value can no longer come.

    pointer: pointer or block of pointers to integers of 16, 32 or 64 bits
    expected_value: number, scalar or block, broadcast to the pointer and cast
    sem: "acquire" (the default) or "relaxed"
    scope: "cta", "gpu" (the default) or "sys"
    timeout_ns: integer scalar: how many nanoseconds to wait at most; None waits without end
    returns: int1, false for elements that did not hold the value in time

    >>> tl.atomic_poll(k, 0)

    >>> tl.atomic_poll(k, 1, timeout_ns=100)
    """

def where(condition: Any, x: Any, y: Any) -> Any:
    """`x` where the condition holds, else `y`; both are computed.

    condition: int1; another type is compared with zero, with a warning
    x: numbers, scalars, blocks or pointers; they take their common type
    y: numbers, scalars, blocks or pointers; they take their common type
    returns: block of the common shape and type

    >>> i = tl.arange(0, 4)
    >>> tl.where(i % 2 == 0, i, -i)
    """

def gather(src: Any, index: Any, axis: Any) -> Any:
    """Elements of a block, picked along an axis by position.

    An index outside of `src` gives an unspecified element.

    src: block
    index: block of integers with as many dimensions; the sizes but the one along `axis` are those of `src`
    axis: which dimension; negative ones count from the end
    returns: block of the shape of `index` and the type of `src`

    >>> tl.gather(tl.arange(0, 8) * 10, 7 - tl.arange(0, 4), 0)
    """

def exp(x: Any) -> Any:
    """e^x, element-wise; fp32: one `ex2.approx` of x * log2(e), whose error grows with |x| (2^-24 |x| beside 2 ulp; `libdevice.exp` stays within 2 ulp), denormal results kept; fp64: <= 1 ulp.

    >>> tl.exp(tl.load(x + tl.arange(0, 4)))
    """

def exp2(x: Any) -> Any:
    """2^x, element-wise; fp32: one `ex2.approx.ftz` (2 ulp, denormals flushed); fp64: <= 1 ulp.

    >>> tl.exp2(tl.load(x + tl.arange(0, 4)))
    """

def log(x: Any) -> Any:
    """Natural logarithm, element-wise; fp32 (<= 1 ulp) or fp64 (<= 1 ulp); log(0) = -inf, log(x < 0) = NaN.

    >>> tl.log(10.0)
    """

def log2(x: Any) -> Any:
    """Base-2 logarithm, element-wise; fp32 (<= 1.4 ulp) or fp64 (<= 1 ulp); exact at powers of two.

    >>> tl.log2(10.0)
    """

def sin(x: Any) -> Any:
    """Sine of radians, element-wise, any finite argument; fp32 (<= 2 ulp) or fp64 (<= 1 ulp).

    >>> tl.sin(1.0)
    """

def cos(x: Any) -> Any:
    """Cosine of radians, element-wise, any finite argument; fp32 (<= 2 ulp) or fp64 (<= 1 ulp).

    >>> tl.cos(1.0)
    """

def sqrt(x: Any) -> Any:
    """Square root, element-wise; fp32: `sqrt.approx.ftz` (<= 1 ulp, denormals flushed); fp64: correctly rounded.

    >>> tl.sqrt(2.0)
    """

def rsqrt(x: Any) -> Any:
    """1 / sqrt(x), element-wise; fp32: `rsqrt.approx.ftz` (<= 2 ulp, denormals flushed); fp64: <= 1 ulp.

    >>> tl.rsqrt(4.0)
    """

def erf(x: Any) -> Any:
    """Error function, element-wise; fp32 (<= 2 ulp) or fp64 (<= 2 ulp).

    >>> tl.erf(0.5)
    """

def floor(x: Any) -> Any:
    """Largest whole number not above `x`, as a float.

    >>> tl.floor(-1.5)
    """

def ceil(x: Any) -> Any:
    """Least whole number not below `x`, as a float.

    >>> tl.ceil(-1.5)
    """

def sqrt_rn(x: Any) -> Any:
    """Square root, correctly rounded.

    >>> tl.sqrt_rn(2.0)
    """

def div_rn(x: Any, y: Any) -> Any:
    """Quotient, correctly rounded.

    >>> tl.div_rn(1.0, 3.0)
    """

def fdiv(x: Any, y: Any, ieee_rounding: Any = False, approx: Any = False) -> Any:
    """Quotient of floats: `x / y`.

    x: fp16, bf16, fp32 or fp64
    y: fp16, bf16, fp32 or fp64
    ieee_rounding: no effect; `div_rn` rounds correctly
    approx: one approximate division (`div.approx`), fp32 only
    returns: block of the common type; fp32 for halves

    >>> tl.fdiv(1.0, tl.full((2,), 4.0, tl.float32))
    """

def abs(x: Any) -> Any:
    """Magnitude; the most negative integer stays as it is. `abs(x)` is the same.

    >>> tl.abs(tl.arange(0, 4) - 2)
    """

def fma(x: Any, y: Any, z: Any) -> Any:
    """`x * y + z`, rounded once for floats.

    >>> tl.fma(2.0, 3.0, 4.0)
    """

def umulhi(x: Any, y: Any) -> Any:
    """High half of the product of two integers taken as unsigned.

    >>> tl.umulhi(tl.full((2,), 1 << 20, tl.int32), 1 << 20)
    """

def maximum(x: Any, y: Any, propagate_nan: Any = ...) -> Any:
    """The larger one of two values.

    x: integers, fp16, bf16, fp32 or fp64; constants take their own type first
    y: integers, fp16, bf16, fp32 or fp64; constants take their own type first
    propagate_nan: `tl.PropagateNan.NONE`, where a NaN loses to a number, or `tl.PropagateNan.ALL`, where it wins
    returns: block of the common type; fp32 for bf16

    >>> tl.maximum(tl.arange(0, 4), 2)
    """

def minimum(x: Any, y: Any, propagate_nan: Any = ...) -> Any:
    """The smaller one of two values.

    x: integers, fp16, bf16, fp32 or fp64; constants take their own type first
    y: integers, fp16, bf16, fp32 or fp64; constants take their own type first
    propagate_nan: `tl.PropagateNan.NONE`, where a NaN loses to a number, or `tl.PropagateNan.ALL`, where it wins
    returns: block of the common type; fp32 for bf16

    >>> tl.minimum(tl.arange(0, 4), 2)
    """

def clamp(x: Any, min: Any, max: Any, propagate_nan: Any = ...) -> Any:
    """`x` kept between two bounds: the maximum with `min`, then the minimum with `max`.

    x: fp16, bf16, fp32 or fp64
    min: numbers, scalars or blocks
    max: numbers, scalars or blocks
    propagate_nan: as for `maximum`
    returns: block of the common type; fp32 for bf16

    >>> tl.clamp(tl.load(x + tl.arange(0, 8)), 1.0, 2.5)
    """

def add(x: Any, y: Any, sanitize_overflow: Any = True) -> Any:
    """`x + y` as a function.

    x: as for the operator
    y: as for the operator
    sanitize_overflow: nothing uses it; in debug builds every sum, difference and product of integers is checked
    returns: as the operator

    >>> tl.add(tl.arange(0, 4), 1)
    """

def sub(x: Any, y: Any, sanitize_overflow: Any = True) -> Any:
    """`x - y` as a function.

    x: as for the operator
    y: as for the operator
    sanitize_overflow: nothing uses it; in debug builds every sum, difference and product of integers is checked
    returns: as the operator

    >>> tl.sub(tl.arange(0, 4), 1)
    """

def mul(x: Any, y: Any, sanitize_overflow: Any = True) -> Any:
    """`x * y` as a function.

    x: as for the operator
    y: as for the operator
    sanitize_overflow: nothing uses it; in debug builds every sum, difference and product of integers is checked
    returns: as the operator

    >>> tl.mul(tl.arange(0, 4), 3)
    """

def logical_and(input: Any, other: Any) -> Any:
    """Whether both are true, element by element; `input & other` of truth values.

    input: int1
    other: int1
    returns: int1 of the common shape

    >>> (tl.arange(0, 4) > 0).logical_and(tl.arange(0, 4) < 3)
    """

def logical_or(input: Any, other: Any) -> Any:
    """Whether one of both is true, element by element; `input | other` of truth values.

    input: int1
    other: int1
    returns: int1 of the common shape

    >>> (tl.arange(0, 4) < 1).logical_or(tl.arange(0, 4) > 2)
    """

def dot(input: Any, other: Any, acc: Any = None, input_precision: Any = None, allow_tf32: Any = None, max_num_imprecise_acc: Any = None, out_dtype: Any = ...) -> Any:
    """Product of two matrices, or of two batches of them.

    input: block [.., M, K] of int8, fp8, fp16, bf16, fp32 or fp64; K at least 16, or 32 for elements of 8 bits
    other: block [.., K, N] of the same type; two types of fp8 may differ
    acc: block [.., M, N] of `out_dtype`, to which the product is added; left out, it starts from zero
    input_precision: for fp32: "tf32" (the default), "tf32x3", "ieee", "bf16x3", "bf16x6"
    allow_tf32: older name for the choice between "tf32" and "ieee"
    max_num_imprecise_acc: a wish for fp8, at most K
    out_dtype: type of the accumulator; for fp16 and fp8 also of the result: fp32 or fp16
    returns: block [.., M, N]: int32 for int8, fp64 for fp64, `out_dtype` for fp16 and fp8, else fp32

    >>> a = tl.full((16, 16), 0.5, tl.float16)
    >>> tl.max(tl.dot(a, a))

    >>> tl.dot(tl.zeros((16, 16), tl.int8), tl.zeros((16, 16), tl.int8))  # refused
    """

def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False) -> Any:
    """All elements along an axis combined into one.

    input: block, or tuple of blocks of one shape
    axis: which dimension; None combines all elements
    combine_fn: jit function of all left values, then all right values; it must be associative and commutative
    keep_dims: leave a size of 1 where the axis was
    returns: block without the axis, or scalar; a tuple if `input` is one

    >>> tl.reduce(tl.arange(1, 5), 0, multiply)
    """

def associative_scan(input: Any, axis: Any, combine_fn: Any, reverse: Any = False) -> Any:
    """All elements along an axis combined with those before them.

    input: block, or tuple of blocks of one shape
    axis: which dimension
    combine_fn: jit function of all accumulated values, then all next values; it must be associative
    reverse: begin at the end
    returns: block of the shape of `input`; a tuple if `input` is one

    >>> tl.associative_scan(tl.arange(1, 5), 0, multiply)
    """

def histogram(input: Any, num_bins: Any, mask: Any = None) -> Any:
    """How often each of the numbers below `num_bins` occurs.

    A number outside of the bins is counted in an unspecified bin.

    input: block of integers with one dimension, from 0 up to `num_bins`
    num_bins: power of two
    mask: elements where it is false do not count
    returns: int32 block [num_bins]

    >>> tl.histogram(tl.arange(0, 8) // 3, 4)
    """

def sort(x: Any, dim: Any = None, descending: Any = False) -> Any:
    """The elements along the last dimension in order; not stable.

    x: block of numbers
    dim: the last dimension
    descending: the largest first
    returns: block like `x`

    >>> tl.sort(tl.arange(0, 4) ^ 2, descending=True)
    """

def topk(x: Any, k: Any, dim: Any = None, descending: Any = True) -> Any:
    """The largest elements along the last dimension, the largest first; or the least ones, the least first.

    x: block of numbers
    k: how many; rounded down to a power of two
    dim: the last dimension
    descending: the largest elements; False takes the least
    returns: block with `k` elements along the last dimension; small integers as int32, halves as fp32

    >>> tl.topk(tl.arange(0, 8), 2)
    """

def bitonic_merge(x: Any, dim: Any = None, descending: Any = False) -> Any:
    """The elements of a bitonic sequence along the last dimension in order; any other sequence is sorted, too.

    x: block of numbers
    dim: the last dimension
    descending: the largest first
    returns: block like `x`

    >>> tl.bitonic_merge(tl.arange(0, 4) ^ 3)
    """

def map_elementwise(scalar_fn: Any, *args: Any, pack: Any = 1) -> Any:
    """A jit function of scalars applied to each element; it may branch, loop and return early by what it gets.

    scalar_fn: jit function of `pack` scalars per argument; it may load, but not store, print or make blocks
    args: scalars or blocks; broadcast
    pack: how many neighbouring elements one call works on, a power of two; the function then gives so many values per result
    returns: what the function returns, as blocks

    >>> tl.map_elementwise(add, tl.arange(0, 4), 10)
    """

def static_print(*values: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = False) -> Any:
    """Prints while compiling; run-time values show as their type.

    values: anything
    sep: constant strings
    end: constant strings
    file: nothing uses them
    flush: nothing uses them
    returns: None

    >>> tl.static_print("block of", tl.arange(0, 4))
    """

def static_assert(cond: Any, msg: Any = "") -> Any:
    """Ends the compilation if a condition is false.

    cond: constant bool
    msg: string for the message
    returns: None

    >>> tl.static_assert(2 * 2 == 5, "arithmetic")  # refused
    """

def device_print(prefix: Any, *args: Any, hex: Any = False) -> Any:
    """Prints from the device, one line per element; `print` is the same.

    prefix: string of printable ASCII
    args: scalars or blocks
    hex: print bits
    returns: None

    >>> tl.device_print("value", tl.arange(0, 2))
    """

def device_assert(cond: Any, msg: Any = "", mask: Any = None) -> Any:
    """Stops the kernel if a condition is false for some element; only in kernels compiled with `debug`.

    cond: int1 scalar or block
    msg: string for the message
    mask: elements where it is false are not checked
    returns: None

    >>> tl.device_assert(n < 100, "n is small")
    """

def debug_barrier() -> Any:
    """All threads of the block wait for each other.

    returns: None

    >>> tl.debug_barrier()
    """

def assume(cond: Any) -> Any:
    """Promises that a condition holds.

    The interpreter checks the promise.

    cond: int1 scalar or constant bool
    returns: None

    >>> tl.assume(n > 0)
    """

def multiple_of(input: Any, values: Any) -> Any:
    """Promises that numbers are divisible.

    input: scalar or block of integers or pointers
    values: one constant per dimension
    returns: `input`

    >>> tl.multiple_of(tl.arange(0, 4) * 16, 16)
    """

def max_contiguous(input: Any, values: Any) -> Any:
    """Promises that neighbours follow each other in groups.

    input: block of integers or pointers
    values: one constant per dimension: the size of the groups
    returns: `input`

    >>> tl.max_contiguous(tl.arange(0, 4), 4)
    """

def max_constancy(input: Any, values: Any) -> Any:
    """Promises that neighbours are equal in groups.

    input: block of integers or pointers
    values: one constant per dimension: the size of the groups
    returns: `input`

    >>> tl.max_constancy(tl.arange(0, 4) // 4, 4)
    """

def inline_asm_elementwise(asm: Any, constraints: Any, args: Any, dtype: Any, is_pure: Any, pack: Any) -> Any:
    """PTX instructions run on each element, or on packs of them.

    Types of less than 32 bits are packed into registers of 32 bits. The interpreter cannot run it.

    asm: PTX with operands `$0`, `$1`, .., results first
    constraints: one register class per operand, results first: "=r,r"
    args: list of scalars or blocks; broadcast
    dtype: element type of the result, or a tuple of them
    is_pure: no effect beside the results
    pack: how many elements one execution takes
    returns: block of `dtype`, or a tuple of blocks

    >>> tl.inline_asm_elementwise("brev.b32 $0, $1;", "=r,r", [tl.arange(0, 4)], tl.int32, True, 1)  # not run
    """

def extern_elementwise(lib_name: Any, lib_path: Any, args: Any, arg_type_symbol_dict: Any, is_pure: Any, _semantic: Any = None) -> Any:
    """A function of a library, chosen by the types of its arguments, applied to each element.

    The functions of libdevice (`__nv_*`) are the standard library's own, or those of the file that `--libdevice` names. Of other functions that file must have the code. Wrappers of it are decorated with `tl.core.extern`.

    lib_name: not needed: the name of the function says which library it is of
    lib_path: the same
    args: list of scalars or blocks; broadcast
    arg_type_symbol_dict: for each tuple of argument types, the function's name and the type of its result
    is_pure: no effect beside the result; must be true of functions that are not libdevice's
    _semantic: what wrappers pass on; without meaning here
    returns: block of the type that is named beside the function

    >>> tl.core.extern_elementwise("", "", [tl.full([2], 2.5, tl.float32)], {(tl.float32,): ("__nv_floorf", tl.float32)}, True)
    """

def sum(input: Any, axis: Any = None, keep_dims: Any = False, dtype: Any = None) -> Any:
    """Sum along `axis`, or of all elements; small ints widen to 32 bits, floats do not; `dtype` casts first.

    input: block of numbers
    axis: which dimension; None adds up all elements
    keep_dims: leave a size of 1 where the axis was
    dtype: what the elements are cast to first
    returns: block without the axis, or scalar

    >>> tl.sum(tl.arange(0, 8))

    >>> tl.sum(tl.reshape(tl.arange(0, 8), 2, 4), axis=1)
    """

def xor_sum(input: Any, axis: Any = None, keep_dims: Any = False) -> Any:
    """Exclusive or along `axis`, or of all elements; integers only, dtype kept.

    input: block of integers
    axis: which dimension; None takes all elements
    keep_dims: leave a size of 1 where the axis was
    returns: block without the axis, or scalar

    >>> tl.xor_sum(tl.arange(0, 8) | 8)
    """

def reduce_or(input: Any, axis: Any, keep_dims: Any = False) -> Any:
    """Bitwise or along `axis`; integers only, dtype kept.

    input: block of integers
    axis: which dimension; None takes all elements
    keep_dims: leave a size of 1 where the axis was
    returns: block without the axis, or scalar

    >>> tl.reduce_or(tl.arange(0, 4), 0)
    """

def max(input: Any, axis: Any = None, return_indices: Any = False, return_indices_tie_break_left: Any = True, keep_dims: Any = False) -> Any:
    """Maximum along `axis`, or of all elements; NaN loses. With `return_indices` the pair (value, int32 index).

    input: block of numbers
    axis: which dimension; None takes all elements
    return_indices: give the position of the maximum, too; needs an axis
    return_indices_tie_break_left: of equal elements take the first
    keep_dims: leave a size of 1 where the axis was
    returns: block without the axis, or scalar; fp32 for halves, int32 for integers of less than 32 bits. With indices a pair, where only bf16 is widened

    >>> tl.max(tl.arange(0, 8) ^ 3)

    >>> tl.max(tl.arange(0, 8) ^ 3, axis=0, return_indices=True)
    """

def min(input: Any, axis: Any = None, return_indices: Any = False, return_indices_tie_break_left: Any = True, keep_dims: Any = False) -> Any:
    """Minimum along `axis`, or of all elements; NaN loses. With `return_indices` the pair (value, int32 index).

    input: block of numbers
    axis: which dimension; None takes all elements
    return_indices: give the position of the minimum, too; needs an axis
    return_indices_tie_break_left: of equal elements take the first
    keep_dims: leave a size of 1 where the axis was
    returns: block without the axis, or scalar; fp32 for halves, int32 for integers of less than 32 bits. With indices a pair, where only bf16 is widened

    >>> tl.min(tl.arange(0, 8) ^ 3)

    >>> tl.min(tl.arange(0, 8) ^ 3, axis=0, return_indices=True)
    """

def argmax(input: Any, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> Any:
    """int32 index of the maximum along `axis`; the smallest such index if `tie_break_left`.

    input: block of numbers
    axis: which dimension
    tie_break_left: of equal elements take the first
    keep_dims: leave a size of 1 where the axis was
    returns: int32 block without the axis, or scalar

    >>> tl.argmax(tl.arange(0, 8) ^ 3, axis=0)
    """

def argmin(input: Any, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> Any:
    """int32 index of the minimum along `axis`; the smallest such index if `tie_break_left`.

    input: block of numbers
    axis: which dimension
    tie_break_left: of equal elements take the first
    keep_dims: leave a size of 1 where the axis was
    returns: int32 block without the axis, or scalar

    >>> tl.argmin(tl.arange(0, 8) ^ 3, axis=0)
    """

def cumsum(input: Any, axis: Any = 0, reverse: Any = False, dtype: Any = None) -> Any:
    """Inclusive sums along `axis`, from the high end if `reverse`; bf16 -> fp32, small ints -> 32 bits; `dtype` casts first.

    input: block of numbers
    axis: which dimension
    reverse: begin at the end
    dtype: what the elements are cast to first
    returns: block of the shape of `input`

    >>> tl.cumsum(tl.arange(0, 8))
    """

def cumprod(input: Any, axis: Any = 0, reverse: Any = False, dtype: Any = None) -> Any:
    """Inclusive products along `axis`, from the high end if `reverse`; bf16 -> fp32, other dtypes kept; `dtype` casts first.

    input: block of numbers
    axis: which dimension
    reverse: begin at the end
    dtype: what the elements are cast to first
    returns: block of the shape of `input`

    >>> tl.cumprod(tl.arange(1, 5))
    """

def softmax(x: Any, dim: Any = None, keep_dims: Any = False, ieee_rounding: Any = False) -> Any:
    """e^(x - max) / sum along `dim` (None means 0). The result has the shape of `x` with and without `keep_dims`.

    x: block of fp16, bf16, fp32 or fp64
    dim: which dimension
    keep_dims: nothing uses it
    ieee_rounding: nothing uses it
    returns: block of the shape of `x`

    >>> tl.softmax(tl.load(x + tl.arange(0, 4)))
    """

def cdiv(x: Any, div: Any) -> Any:
    """ceil(x / div) of integers, as a tensor.

    x: integers
    div: integers
    returns: scalar or block of the common type

    >>> tl.cdiv(n, 2)
    """

def zeros(shape: Any, dtype: Any) -> Any:
    """Zeros of a shape (a sequence of powers of two) and dtype.

    shape: tuple or list of powers of two; an empty one makes a scalar
    dtype: element type
    returns: block of `dtype`

    >>> tl.zeros((4,), tl.float16)
    """

def zeros_like(input: Any) -> Any:
    """Zeros of the shape and dtype of `input`.

    input: block or scalar
    returns: block or scalar of the same type

    >>> tl.zeros_like(tl.arange(0, 4))
    """

def ravel(x: Any, can_reorder: Any = False) -> Any:
    """All elements of `x` in one dimension, row-major.

    x: block
    can_reorder: elements may come in any order
    returns: block with one dimension

    >>> tl.ravel(tl.reshape(tl.arange(0, 8), 2, 4))
    """

def flip(x: Any, dim: Any = None) -> Any:
    """`x` with the order along `dim` reversed.

    x: block
    dim: which dimension; it must be given
    returns: block of the same type

    >>> tl.flip(tl.arange(0, 4), 0)
    """

def interleave(a: Any, b: Any) -> Any:
    """Elements of `a` and `b` in turn along the last axis, whose size doubles; two 0-d values give shape [2].

    a: blocks or scalars of one element type; broadcast
    b: blocks or scalars of one element type; broadcast
    returns: block

    >>> tl.interleave(tl.arange(0, 4), tl.arange(10, 14))
    """

def swizzle2d(i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> Any:
    """Renumbers the row-major (i, j) so that each group of `size_g` rows is walked column by column.

    i: row and column; integers
    j: row and column; integers
    size_i: rows and columns in all
    size_j: rows and columns in all
    size_g: rows of a group
    returns: pair: the new row and column

    >>> i = tl.arange(0, 8)
    >>> tl.swizzle2d(i // 2, i % 2, 4, 2, 2)
    """

def squeeze(x: Any, dim: Any) -> Any:
    """`x` without a dimension of size 1.

    x: block
    dim: which dimension; negative ones count from the end
    returns: block with one dimension less

    >>> tl.squeeze(tl.arange(0, 4)[None, :], 0)
    """

def unsqueeze(x: Any, dim: Any) -> Any:
    """`x` with a new dimension of size 1, as `tl.expand_dims` makes it.

    x: block or scalar
    dim: position in the result; negative ones count from the end
    returns: block

    >>> tl.unsqueeze(tl.arange(0, 4), 0)
    """

def expect_zero(x: Any, mask: Any) -> Any:
    """`x` itself; kernels compiled with `debug` stop where the mask holds and `x` is not zero.

    x: scalar or block
    mask: int1
    returns: `x`

    >>> i = tl.arange(0, 4)
    >>> tl.expect_zero(tl.where(i < 2, 0, i), i < 2)
    """

def dot_scaled(lhs: Any, lhs_scale: Any, lhs_format: Any, rhs: Any, rhs_scale: Any, rhs_format: Any, acc: Any = None, fast_math: Any = False, lhs_k_pack: Any = True, rhs_k_pack: Any = True, out_dtype: Any = ...) -> Any:
    """Product of `lhs` [M, K] and `rhs` [K, N] in small formats, with scales [M, K/32] and [N, K/32] (e8m0 in uint8; groups of 16 for float8e4nv scales), fp32 [M, N]: decoded and scaled in bf16 (fp16 if an operand is), summed in fp32.

    lhs: blocks of uint8, or of the float type that the format names; e2m1 holds two elements in each byte
    rhs: blocks of uint8, or of the float type that the format names; e2m1 holds two elements in each byte
    lhs_scale: uint8 exponents, or float8e4nv; None scales nothing
    rhs_scale: uint8 exponents, or float8e4nv; None scales nothing
    lhs_format: "e2m1", "e4m3", "e5m2", "bf16" or "fp16"
    rhs_format: "e2m1", "e4m3", "e5m2", "bf16" or "fp16"
    acc: fp32 block [M, N], to which the product is added
    fast_math: do not care for the scale that stands for NaN
    lhs_k_pack: whether e2m1 is packed along K; False packs it along M or N
    rhs_k_pack: whether e2m1 is packed along K; False packs it along M or N
    out_dtype: tl.float32
    returns: fp32 block [M, N]

    >>> a = tl.full((16, 32), 0x38, tl.uint8)
    >>> tl.max(tl.dot_scaled(a, tl.full((16, 1), 128, tl.uint8), "e4m3", tl.trans(a), None, "e4m3"))
    """

def philox_impl(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any, n_rounds: Any = 10) -> Any:
    """`n_rounds` Philox rounds on four counters (all uint32 or all uint64) with key (k0, k1).

    c0: counters, all uint32 or all uint64
    c1: counters, all uint32 or all uint64
    c2: counters, all uint32 or all uint64
    c3: counters, all uint32 or all uint64
    k0: key of the same type
    k1: key of the same type
    n_rounds: how many rounds
    returns: tuple of four blocks of that type

    >>> z = tl.zeros((1,), tl.uint32)
    >>> tl.philox_impl(z, z, z, z, z, z)[0]
    """

def philox(seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: Any = 10) -> Any:
    """Philox with a 64-bit seed as key: 32-bit counters take both halves, 64-bit counters take (seed, 0).

    seed: integer
    c0: counters of one integer type of 32 or 64 bits
    c1: counters of one integer type of 32 or 64 bits
    c2: counters of one integer type of 32 or 64 bits
    c3: counters of one integer type of 32 or 64 bits
    n_rounds: how many rounds
    returns: tuple of four blocks of unsigned integers

    >>> z = tl.zeros((1,), tl.uint32)
    >>> tl.philox(0, z, z, z, z)[0]
    """

def randint4x(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """Four uint32 blocks of the shape of `offset`, uniform over all 32-bit values.

    seed: integer, or a block of integers
    offset: integer constant, scalar or block
    n_rounds: how many rounds
    returns: tuple of four uint32 blocks

    >>> tl.randint4x(0, tl.arange(0, 2))
    """

def randint(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """One uint32 block of the shape of `offset`, uniform over all 32-bit values.

    seed: integer, or a block of integers
    offset: integer constant, scalar or block
    n_rounds: how many rounds
    returns: uint32 block

    >>> tl.randint(0, tl.arange(0, 2))
    """

def uint_to_uniform_float(x: Any) -> Any:
    """32- or 64-bit integers to fp32 in [0, 1): the magnitude of the signed value times just under 2^-31 (2^-63).

    x: block or scalar of int32, uint32, int64 or uint64
    returns: fp32

    >>> tl.uint_to_uniform_float(tl.randint(0, tl.arange(0, 2)))
    """

def rand(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """fp32 block of the shape of `offset`, uniform in [0, 1).

    seed: integer, or a block of integers
    offset: integer constant, scalar or block
    n_rounds: how many rounds
    returns: fp32 block

    >>> tl.rand(0, tl.arange(0, 4))
    """

def rand4x(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """Four fp32 blocks of the shape of `offset`, uniform in [0, 1).

    seed: integer, or a block of integers
    offset: integer constant, scalar or block
    n_rounds: how many rounds
    returns: tuple of four fp32 blocks

    >>> tl.rand4x(0, tl.arange(0, 1))
    """

def pair_uniform_to_normal(u1: Any, u2: Any) -> Any:
    """Two independent standard normal fp32 blocks from two uniform ones (Box and Muller's transform).

    u1: fp32 in [0, 1)
    u2: fp32 in [0, 1)
    returns: pair of fp32 blocks

    >>> tl.pair_uniform_to_normal(0.5, 0.25)
    """

def randn(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """Standard normal fp32 block of the shape of `offset`.

    seed: integer, or a block of integers
    offset: integer constant, scalar or block
    n_rounds: how many rounds
    returns: fp32 block

    >>> tl.randn(0, tl.arange(0, 4))
    """

def randn4x(seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    """Four standard normal fp32 blocks of the shape of `offset`.

    seed: integer, or a block of integers
    offset: integer constant, scalar or block
    n_rounds: how many rounds
    returns: tuple of four fp32 blocks

    >>> tl.randn4x(0, tl.arange(0, 1))
    """

def sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x), element-wise; fp32: a quotient with `tl.exp`, within 5 ulp, and below 0 another 2^-24 |x|, relatively (4 ulp if it is written out with `libdevice.exp`); fp64: <= 3 ulp, without overflow.

    >>> tl.sigmoid(tl.load(x + tl.arange(0, 4)))
    """
