//! Brings operands of products into shared memory: what a loop loads for them by copies that no register takes part in,
//! what `wgmma` reads besides by stores.
//!
//! ```text
//! for_range .. {                                      %b = alloc_shared .. : shared<64x32xf16, #s0>
//!   %x = load %p : tile<64x32xf16, #l0>               for_range .. {slots = 1} {
//!   %y = convert_layout %x : tile<.., #l1>              barrier
//!   %s = dot %y, .. {kind = mma_v2}               →     copy_async %p, %b
//! }                                                     copy_commit
//!                                                       copy_wait {pending = 0}
//!                                                       barrier
//!                                                       %y = local_load %b : tile<.., #l1>
//!                                                       %s = dot %y, .. {kind = mma_v2}
//!                                                     }
//! ```
//!
//! Here each copy is waited for at once; `slots` marks loops for `schedule_loop`, which says how far ahead they begin. A
//! load becomes a copy if a product in the loop uses it, if it can be copied 4 bytes at a time or more and fills with
//! zeros, and if its addresses can be computed for iterations to come. Loops with one stage keep their loads. Products by
//! multiply-adds and on `f64` whose operands are such loads become `dot_buffers`, those on `f64` also outside of loops. Where all products of a loop are of that
//! kind but some compute an operand, they store their operands themselves; if they have few sums, `ahead = 1` is set
//! instead: what they load is loaded into registers an iteration ahead, if those hold it.

use std::collections::{HashMap, HashSet};

use rtc_abi::Feature;
use rtc_ir::{
    Block, Builder, DotKind, Kernel, LoopHints, Op, OpKind, Phase, Position, SharedType, Traits, Type, Value,
    constant_bits, regions,
};
use rtc_layout::{Layout, MatrixDescriptor, SharedLayout, swizzle_for};

use super::addresses::{addresses, innermost_loops, is_unchanged, loads_of_products, small_step};
use super::buffer_products;
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "stage-operands", needs: Phase::Laid, leaves: Phase::Laid, run };

/// Alignment of a buffer that `wgmma` does not read: ldmatrix and copies take 16 bytes.
const ALIGN: u32 = 128;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    stage(kernel, cx, None)
}

/// Loads of boxes of tensors, and which dimension of the tile is innermost in memory.
pub(super) type Boxes = HashMap<Op, usize>;

/// Does it; with `boxes` these loads become copies, however wide, and no others.
pub(super) fn stage(kernel: &mut Kernel, cx: &PassContext, boxes: Option<&Boxes>) -> Result<(), PassError> {
    let (mut staged, mut outside) = (Staged::default(), false);
    if cx.structure.stages() && cx.target.has(Feature::CpAsync) {
        for of in innermost_loops(kernel) {
            stage_loop(kernel, of, boxes, &mut staged)?;
        }
        let (products, loads) = buffer_products::outside_of_loops(kernel);
        staged.direct.extend(products);
        begin_copies(kernel, &loads, None, None, &mut staged)?;
        outside = !loads.is_empty();
    }
    for op in rtc_ir::walk(kernel) {
        if let OpKind::Dot { kind: DotKind::Wgmma, .. } = kernel.kind(op) {
            stage_product(kernel, op, &mut staged)?;
        }
    }
    for op in rtc_ir::walk(kernel).into_iter().filter(|op| staged.direct.contains(op)) {
        buffer_products::stage(kernel, op, &staged.buffers)?;
    }
    for load in staged.loads.clone() {
        let buffer = staged.buffers[&kernel.result(load, 0)];
        read_back(kernel, kernel.result(load, 0), buffer)?;
        kernel.erase(load);
    }
    for of in staged.loops {
        wait_for_copies(kernel, of)?;
    }
    if outside {
        arrivals(kernel, kernel.body())?;
    }
    Ok(())
}

/// What has been brought into shared memory.
#[derive(Default)]
struct Staged {
    /// The buffers that hold values.
    buffers: HashMap<Value, Value>,
    /// Loads that have become copies.
    loads: Vec<Op>,
    /// The loops that they are in.
    loops: Vec<Op>,
    /// Products by multiply-adds or on `f64` that read buffers.
    direct: HashSet<Op>,
}

/// How deep the loop is to be pipelined.
pub(super) fn stages(kernel: &Kernel, of: Op) -> u32 {
    match kernel.kind(of) {
        OpKind::ForRange { hints: LoopHints { num_stages: Some(stages), .. }, .. } => *stages,
        _ => kernel.options.num_stages,
    }
}

/// Makes copies of the loads in a loop that products use.
fn stage_loop(kernel: &mut Kernel, of: Op, boxes: Option<&Boxes>, staged: &mut Staged) -> Result<(), PassError> {
    let body = kernel.op(of).blocks[0];
    if stages(kernel, of) < 2 || small_step(kernel, of).is_none() || regions::slots(kernel, of).is_empty() {
        return Ok(());
    }
    let mut loads: Vec<(Op, u32)> = loads_of_products(kernel, of)
        .into_iter()
        .filter_map(|load| match boxes {
            Some(boxes) => boxes.contains_key(&load).then_some((load, 1)),
            None => Some((load, copied_width(kernel, load)?)),
        })
        .filter(|(load, _)| {
            let roots: Vec<Value> = kernel.op(*load).operands.iter().take(2).copied().collect();
            let Some(part) = addresses(kernel, of, &roots) else { return false };
            let read = part.ops.iter().filter(|op| matches!(kernel.kind(**op), OpKind::Load { .. }));
            let pointers = read.map(|op| kernel.operand(*op, 0)).chain([roots[0]]);
            pointers.into_iter().all(|pointer| is_unchanged(kernel, of, pointer))
        })
        .collect();
    // What addresses follow from stays a load.
    let mut indices: HashSet<Op> = HashSet::new();
    for (load, _) in &loads {
        let roots: Vec<Value> = kernel.op(*load).operands.iter().take(2).copied().collect();
        indices.extend(addresses(kernel, of, &roots).into_iter().flat_map(|part| part.ops));
    }
    loads.retain(|(load, _)| !indices.contains(load));
    let direct = buffer_products::find(kernel, body, &loads.iter().map(|(load, _)| *load).collect());
    if let Some(sums) = stored_operands(kernel, body, &direct) {
        let ahead = registers_ahead(kernel, of).filter(|_| sums <= FEW_SUMS);
        if ahead.is_some_and(|ahead| ahead <= MOST_AHEAD)
            && let OpKind::ForRange { hints, .. } = kernel.kind_mut(of)
        {
            hints.ahead = Some(1);
        }
        if sums <= FEW_SUMS || loaded_words(kernel, of) > MOST_AHEAD {
            return Ok(());
        }
    }
    staged.direct.extend(direct);
    begin_copies(kernel, &loads, Some(of), boxes, staged)?;
    if kernel.ops(body).any(|op| matches!(kernel.kind(op), OpKind::CopyAsync { .. })) {
        staged.loops.push(of);
    }
    Ok(())
}

/// Puts copies before loads, so many elements at a time, with buffers before the loop `of` that they are in.
fn begin_copies(
    kernel: &mut Kernel,
    loads: &[(Op, u32)],
    of: Option<Op>,
    boxes: Option<&Boxes>,
    staged: &mut Staged,
) -> Result<(), PassError> {
    for (load, width) in loads {
        let result = kernel.result(*load, 0);
        let inner = boxes.and_then(|boxes| boxes.get(load)).copied();
        let chosen = buffer_layout(kernel, result, *width, inner, &staged.direct);
        let Some((layout, align)) = chosen else { continue };
        let Some(ty) = kernel.value_type(result).elem().and_then(|elem| kernel.shared_type(elem, &layout, 1)) else {
            continue;
        };
        let buffer = Builder::before(kernel, of.unwrap_or(*load)).buffer(ty, align)?;
        let (pointer, mask) = (kernel.operand(*load, 0), kernel.optional(*load, 0));
        let copy = OpKind::CopyAsync { vector: *width };
        Builder::before(kernel, *load).build(copy, &[pointer, buffer], &[mask], &[], &[], &[])?;
        staged.buffers.insert(result, buffer);
        staged.loads.push(*load);
    }
    Ok(())
}

/// If all products of a loop store their operands to shared memory themselves, unless all can read buffers: the most sums
/// of a thread.
fn stored_operands(kernel: &Kernel, body: Block, direct: &HashSet<Op>) -> Option<u32> {
    let products = rtc_ir::walk_block(kernel, body).into_iter().filter_map(|op| match kernel.kind(op) {
        OpKind::Dot { kind, .. } => Some((op, *kind, kernel.layout_of(kernel.result(op, 0))?.registers())),
        _ => None,
    });
    let (mut most, mut all_direct) = (None, true);
    for (op, kind, sums) in products {
        rtc_ir::multiplier(kind)?;
        most = most.max(Some(sums));
        all_direct &= direct.contains(&op);
    }
    most.filter(|_| !all_direct)
}

/// Registers of a thread that tiles loaded ahead may take.
const MOST_AHEAD: u32 = 64;

/// With more sums than this in a thread, copies to shared memory were faster on an H200 than loads ahead.
const FEW_SUMS: u32 = 32;

/// The registers of a thread that hold what the products of a loop load, if it can be loaded an iteration ahead.
fn registers_ahead(kernel: &Kernel, of: Op) -> Option<u32> {
    let tiles: Vec<Value> = loads_of_products(kernel, of).into_iter().map(|load| kernel.result(load, 0)).collect();
    let part = addresses(kernel, of, &tiles)?;
    let mut read = part.ops.iter().filter(|op| matches!(kernel.kind(**op), OpKind::Load { .. }));
    let free = !tiles.is_empty() && read.all(|op| is_unchanged(kernel, of, kernel.operand(*op, 0)));
    free.then(|| loaded_words(kernel, of))
}

/// The words of 32 bits in a thread of what the products of a loop load.
fn loaded_words(kernel: &Kernel, of: Op) -> u32 {
    let words = |load: Op| {
        let value = kernel.result(load, 0);
        let bytes = kernel.value_type(value).elem().map_or(0, |elem| elem.bytes());
        kernel.layout_of(value).map_or(0, |layout| (layout.registers() * bytes).div_ceil(4))
    };
    loads_of_products(kernel, of).into_iter().map(words).sum()
}

/// How many elements a load can be copied at a time; `None` if it cannot.
pub(super) fn copied_width(kernel: &Kernel, load: Op) -> Option<u32> {
    let OpKind::Load { volatile: false, vector, .. } = kernel.kind(load) else { return None };
    let (ty, layout) = (kernel.value_type(kernel.result(load, 0)), kernel.layout_of(kernel.result(load, 0))?);
    let width = vector.unwrap_or(1);
    let bytes = width * ty.elem().filter(|elem| !elem.is_ptr())?.bytes();
    let other = kernel.optional(load, 1);
    let zeros = other.is_none_or(|other| is_zero(kernel, other));
    let rank = layout.rank();
    (matches!(bytes, 4 | 8 | 16) && zeros && rank == 2 && layout.copies().none()).then_some(width)
}

/// Whether a value is 0 everywhere; of 8-bit floats there are no constants, but casts of them.
pub(super) fn is_zero(kernel: &Kernel, value: Value) -> bool {
    let made = kernel.def_op(value);
    match made.map(|op| kernel.kind(op)) {
        Some(OpKind::CastF { .. } | OpKind::Splat {} | OpKind::Broadcast {} | OpKind::ConvertLayout {}) => {
            made.is_some_and(|op| is_zero(kernel, kernel.operand(op, 0)))
        }
        _ => constant_bits(kernel, value) == Some(0),
    }
}

/// The axis along which a copy of `width` elements runs, then the other one.
fn order(layout: &Layout, width: u32) -> Option<[u32; 2]> {
    let first = (0..2).rev().find(|axis| layout.contiguity(*axis) >= width.max(2)).unwrap_or(1) as u32;
    (layout.contiguity(first as usize) >= width).then_some([first, 1 - first])
}

/// Where the elements of a value are best put for those who read it, and the alignment that asks for; `inner` is the
/// dimension along which they are copied if that does not follow from the layout.
fn buffer_layout(
    kernel: &Kernel,
    value: Value,
    width: u32,
    inner: Option<usize>,
    direct: &HashSet<Op>,
) -> Option<(SharedLayout, u32)> {
    let own = kernel.layout_of(value)?;
    let bits = kernel.value_type(value).elem()?.bits();
    let order = match inner {
        Some(inner) => [inner as u32, 1 - inner as u32],
        None => order(own, width)?,
    };
    let mut readers = Readers::default();
    readers.find(kernel, value, false, direct);
    if let Some(k_axis) = readers.product {
        let swizzle = SharedLayout::nvmma_swizzle(own.shape()[order[0] as usize], bits);
        let layout = SharedLayout::nvmma(own.shape(), bits, swizzle, &order);
        if let Some(form) = MatrixDescriptor::of(&layout, bits, k_axis) {
            return Some((layout, form.align()));
        }
    }
    let reader = readers.layouts.first().unwrap_or(own);
    let matrices = !readers.by_vectors;
    Some((swizzle_for(reader, kernel.value_type(value).elem()?.bytes() * 8, &order, width, matrices), ALIGN))
}

/// Who reads a value.
#[derive(Default)]
struct Readers {
    /// The axis that a product by `wgmma` sums over.
    product: Option<usize>,
    /// Layouts that are asked for.
    layouts: Vec<Layout>,
    /// Whether the first of them is that of a product which loads vectors.
    by_vectors: bool,
}

impl Readers {
    fn find(&mut self, kernel: &Kernel, value: Value, transposed: bool, direct: &HashSet<Op>) {
        for user in kernel.users(value) {
            match kernel.kind(user) {
                OpKind::ConvertLayout {} => {
                    let result = kernel.result(user, 0);
                    let feeds = |op: &Op| {
                        direct.contains(op) || matches!(kernel.kind(*op), OpKind::Dot { kind: DotKind::Wgmma, .. })
                    };
                    if kernel.users(result).iter().any(feeds) {
                        self.find(kernel, result, transposed, direct);
                    } else if let Some(layout) = kernel.layout_of(result) {
                        self.layouts.push(if transposed { layout.transpose(&[1, 0]) } else { layout.clone() });
                    }
                }
                OpKind::Trans { order } => {
                    self.find(kernel, kernel.result(user, 0), transposed ^ (order[..] == [1, 0]), direct)
                }
                OpKind::Dot { .. } if direct.contains(&user) => {
                    let index = u32::from(kernel.operand(user, 0) != value);
                    if let Some(way) = buffer_products::reader(kernel, user, index) {
                        self.layouts.insert(0, if transposed { way.transpose(&[1, 0]) } else { way });
                        self.by_vectors = true;
                    }
                }
                OpKind::Dot { kind: DotKind::Wgmma, .. } => {
                    let axis = if kernel.operand(user, 1) == value { 0 } else { 1 };
                    let in_memory = axis == 0 || !in_registers(kernel, user);
                    if in_memory {
                        self.product = Some(if transposed { 1 - axis } else { axis });
                    }
                }
                kind if is_cast(kind) => self.find(kernel, kernel.result(user, 0), transposed, direct),
                _ => {}
            }
        }
    }
}

/// Whether an operation makes something else of each element of one tile.
fn is_cast(kind: &OpKind) -> bool {
    let spec = kind.spec();
    spec.traits.has(Traits::ELEMENTWISE.and(Traits::PURE))
        && spec.operands.len() == 1
        && !spec.traits.has(Traits::NESTED)
}

/// Whether the left operand of a product by `wgmma` is to come from registers.
fn in_registers(kernel: &Kernel, dot: Op) -> bool {
    let lhs = kernel.operand(dot, 0);
    let Some(layout) = kernel.layout_of(lhs) else { return false };
    let bits = kernel.value_type(lhs).elem().map_or(0, |elem| elem.bits());
    let warps = layout.warps();
    let grids = (2..=warps.trailing_zeros()).map(|along_m| [1 << along_m, warps >> along_m]);
    bits == 16 && grids.into_iter().any(|grid| *layout == Layout::wgmma_operand(layout.shape(), bits, grid))
}

/// Makes an `mma` of a product by `wgmma`.
fn stage_product(kernel: &mut Kernel, op: Op, staged: &mut Staged) -> Result<(), PassError> {
    let [lhs, rhs, acc] = [0, 1, 2].map(|index| kernel.operand(op, index));
    let lhs = if in_registers(kernel, op) { lhs } else { in_memory(kernel, op, lhs, 1, staged)? };
    let rhs = in_memory(kernel, op, rhs, 0, staged)?;
    let result = kernel.result(op, 0);
    let ty = kernel.value_type(result);
    let made = Builder::before(kernel, op).build(OpKind::Mma {}, &[lhs, rhs, acc], &[], &[], &[], &[ty])?;
    let sum = kernel.result(made, 0);
    if let Some(name) = kernel.value(result).name.clone() {
        kernel.name_value(sum, &name);
    }
    kernel.replace_uses(result, sum);
    kernel.erase(op);
    Ok(())
}

/// The buffer with an operand of a product, whose axis `k_axis` is summed over, as a view if it lies there transposed.
fn in_memory(
    kernel: &mut Kernel,
    op: Op,
    operand: Value,
    k_axis: usize,
    staged: &mut Staged,
) -> Result<Value, PassError> {
    let (value, transposed) = buffer_products::source(kernel, operand);
    let bits = kernel.value_type(value).elem().map_or(0, |elem| elem.bits());
    let at = if transposed { 1 - k_axis } else { k_axis };
    let readable = |kernel: &Kernel, buffer: Value| {
        let ty = kernel.value_type(buffer).as_shared();
        ty.is_some_and(|ty| MatrixDescriptor::of(&kernel.slot_layout(ty), bits, at).is_some())
    };
    let known = staged.buffers.get(&value).copied().filter(|buffer| readable(kernel, *buffer));
    let buffer = match known {
        Some(buffer) => buffer,
        None => {
            let buffer = store(kernel, value, bits, at)?;
            staged.buffers.entry(value).or_insert(buffer);
            buffer
        }
    };
    if transposed { Ok(Builder::before(kernel, op).shared_trans_of(buffer, &[1, 0])?) } else { Ok(buffer) }
}

/// Stores a value where it is made, so that `wgmma` can sum over its axis `k_axis`.
fn store(kernel: &mut Kernel, value: Value, bits: u32, k_axis: usize) -> Result<Value, PassError> {
    let none = || PassError::Internal("an operand that `wgmma` cannot read".into());
    let layout = kernel.layout_of(value).ok_or_else(none)?.clone();
    let forms = [order(&layout, 2).unwrap_or([1, 0])[0], k_axis as u32].into_iter().filter_map(|inner| {
        let swizzle = SharedLayout::nvmma_swizzle(layout.shape()[inner as usize], bits);
        let shared = SharedLayout::nvmma(layout.shape(), bits, swizzle, &[inner, 1 - inner]);
        MatrixDescriptor::of(&shared, bits, k_axis).map(|form| (shared, form.align()))
    });
    let (shared, align) = forms.into_iter().next().ok_or_else(none)?;
    let elem = kernel.value_type(value).elem().ok_or_else(none)?;
    let ty: SharedType = kernel.shared_type(elem, &shared, 1).ok_or_else(none)?;
    let mut builder = match kernel.value(value).def {
        rtc_ir::ValueDef::Result(op, _) => Builder::after(kernel, op),
        rtc_ir::ValueDef::Arg(block, _) => Builder::at_start(kernel, block),
    };
    let buffer = builder.buffer(ty, align)?;
    builder.local_store(value, buffer)?;
    builder.fence_async()?;
    Ok(buffer)
}

/// Replaces what is left of the uses of a value by reads of the buffer that holds it.
fn read_back(kernel: &mut Kernel, value: Value, buffer: Value) -> Result<(), PassError> {
    let mut others: Vec<Op> = Vec::new();
    for user in kernel.users(value) {
        match kernel.kind(user).clone() {
            OpKind::ConvertLayout {} => {
                let result = kernel.result(user, 0);
                if kernel.is_used(result) {
                    let ty = kernel.value_type(result);
                    let loaded = Builder::before(kernel, user).local_load_to(buffer, ty)?;
                    replace(kernel, result, loaded);
                }
                kernel.erase(user);
            }
            OpKind::Trans { order } => {
                let result = kernel.result(user, 0);
                if kernel.is_used(result) {
                    let view = Builder::before(kernel, user).shared_trans_of(buffer, &order)?;
                    read_back(kernel, result, view)?;
                }
                kernel.erase(user);
            }
            kind if is_cast(&kind) && converted_to(kernel, kernel.result(user, 0)).is_some() => {
                // The conversion moves before the cast.
                let result = kernel.result(user, 0);
                let Some(to) = converted_to(kernel, result) else { continue };
                let ty = kernel.value_type(value).with_layout(to.layout());
                let loaded = Builder::before(kernel, user).local_load_to(buffer, ty)?;
                let cast = kernel.clone_op(user, &[loaded], &[to]);
                kernel.insert_op(cast, Position::Before(user));
                for conversion in kernel.users(result) {
                    replace(kernel, kernel.result(conversion, 0), kernel.result(cast, 0));
                    kernel.erase(conversion);
                }
                kernel.erase(user);
            }
            _ => others.push(user),
        }
    }
    let Some(first) = others.into_iter().reduce(|first, other| earlier(kernel, first, other)) else { return Ok(()) };
    let ty = kernel.value_type(value);
    let loaded = Builder::before(kernel, first).local_load_to(buffer, ty)?;
    replace(kernel, value, loaded);
    Ok(())
}

fn replace(kernel: &mut Kernel, old: Value, new: Value) {
    if let Some(name) = kernel.value(old).name.clone() {
        kernel.name_value(new, &name);
    }
    kernel.replace_uses(old, new);
}

/// The one type that all users of a value convert it to.
fn converted_to(kernel: &Kernel, value: Value) -> Option<Type> {
    let users = kernel.users(value);
    let to = |op: &Op| match kernel.kind(*op) {
        OpKind::ConvertLayout {} => Some(kernel.value_type(kernel.result(*op, 0))),
        _ => None,
    };
    let first = to(users.first()?)?;
    users.iter().all(|op| to(op) == Some(first)).then_some(first)
}

/// Where both stand under one loop body: the one that comes first there, or the operation around it.
fn earlier(kernel: &Kernel, a: Op, b: Op) -> Op {
    let chain = |op: Op| {
        let mut all = vec![op];
        while let Some(around) = kernel.op(all[all.len() - 1]).parent.and_then(|block| kernel.block(block).parent) {
            all.push(around);
        }
        all
    };
    let (from_a, from_b) = (chain(a), chain(b));
    for a in &from_a {
        if let Some(b) = from_b.iter().find(|b| kernel.op(**b).parent == kernel.op(*a).parent) {
            return if a == b || kernel.is_before(*a, *b) { *a } else { *b };
        }
    }
    a
}

/// Puts in what a loop waits for: a barrier at its start, so that the slots are free, and the arrival of its copies.
fn wait_for_copies(kernel: &mut Kernel, of: Op) -> Result<(), PassError> {
    let body = kernel.op(of).blocks[0];
    arrivals(kernel, body)?;
    if let Some(first) = kernel.first_op(body) {
        Builder::before(kernel, first).barrier()?;
    }
    if let OpKind::ForRange { hints, .. } = kernel.kind_mut(of) {
        hints.slots = Some(1);
    }
    Ok(())
}

/// Waits for the copies that a block begins, before their first use.
fn arrivals(kernel: &mut Kernel, body: Block) -> Result<(), PassError> {
    let mut filled: HashSet<Op> = HashSet::new();
    for op in kernel.ops(body).collect::<Vec<_>>() {
        if let OpKind::CopyAsync { .. } = kernel.kind(op) {
            filled.extend(kernel.allocation(kernel.operand(op, 1)));
            continue;
        }
        let nested = kernel.op(op).blocks.iter().flat_map(|block| rtc_ir::walk_block(kernel, *block));
        let within: Vec<Op> = [op].into_iter().chain(nested).collect();
        let reads = |op: &Op| {
            let places = kernel.effects(*op).filter_map(|(_, value)| value);
            places.filter_map(|value| kernel.allocation(value)).any(|made| filled.contains(&made))
        };
        if !within.iter().any(reads) {
            continue;
        }
        filled.clear();
        let by_wgmma = rtc_ir::walk_block(kernel, body).iter().any(|op| matches!(kernel.kind(*op), OpKind::Mma {}));
        let mut builder = Builder::before(kernel, op);
        builder.copy_commit()?;
        builder.copy_wait(0)?;
        if by_wgmma {
            builder.fence_async()?;
        }
        builder.barrier()?;
    }
    Ok(())
}
