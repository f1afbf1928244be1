//! Computes wide tiles again from the narrow ones that they come from, instead of keeping them in registers while threads wait for
//! each other: a thread then keeps half as much, and more blocks run on an SM.
//!
//! ```text
//! %x = castf %n {to = f32}                     %x = castf %n {to = f32}
//! %top = reduce (%x) {axis = 0}         →      %top = reduce (%x) {axis = 0}
//!                                              %m = opaque %n
//! %d = subf %x, %top                           %y = castf %m {to = f32}
//!                                              %d = subf %y, %top
//! ```
//!
//! A row of 32,768 numbers in fp16 takes 64 registers of each of 512 threads as fp32, which leaves one block on an SM that loads,
//! computes and stores in turn. Softmax of such rows written by hand like that takes 263 instead of 314 us on an H200.
//!
//! The copies are exact: they are the same operations on the same numbers. `opaque` keeps LLVM from merging them with the originals.
//! It is done where more blocks fit then, in kernels without dots whose blocks leave half of an SM's threads unused. Integers are
//! left alone: the assembler extends all of them before it adds them up, and spilled 720 bytes under the bound.

use std::collections::{HashMap, HashSet};

use rtc_abi::SmLimits;
use rtc_ir::{Block, Builder, Kernel, Op, OpKind, Phase, Position, Traits, Value};

use crate::work::has_dot;
use crate::work::words::{Words, words_of_tile};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "recompute-widened", needs: Phase::Laid, leaves: Phase::Laid, run };

/// The fewest registers of a tile that is worth it. With fewer the assembler itself keeps little: a softmax of 40 registers took 55 under
/// the bound.
const LEAST_WORDS: u32 = 64;
/// Operations of a tile that are computed again at most.
const MOST_OPERATIONS: usize = 8;
/// Registers of a thread beside the tiles that it keeps: addresses, and those of the elements that it computes at a time.
const BESIDE: u32 = 28;
/// Bits of the elements from which wide ones are computed again, at most.
const NARROW: u32 = 16;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let all = rtc_ir::walk(kernel);
    if has_dot(kernel) || kernel.specialization().is_some() || !all.iter().any(|op| widens(kernel, *op)) {
        return Ok(());
    }
    let words = Words::new(kernel);
    let bodies: HashSet<Block> = all.iter().filter_map(|op| kernel.op(*op).parent).collect();
    let all = bodies.into_iter().map(|body| Recomputation::of(kernel, &words, body));
    // Registers are those of the part of the kernel that takes the most.
    let Some(most) = all.max_by_key(|part| (part.held + part.before, std::cmp::Reverse(part.body))) else {
        return Ok(());
    };
    let (sm, threads) = (cx.target.sm, kernel.options.num_warps * 32);
    let blocks = |words: u32| {
        let by_registers = SmLimits::blocks_by_registers(words + BESIDE, threads);
        by_registers.min(sm.blocks_beside_registers(threads, 0))
    };
    // Where narrow elements have 8 bits, those that are computed take what is saved beyond half.
    let held = most.held;
    let (before, after) = (blocks(held + most.before), blocks(held + most.after.max(most.before / 2)));
    let pays = match kernel.options.maxnreg {
        Some(bound) => held + most.before + BESIDE > bound,
        None => after > before && before * threads <= sm.threads / 2,
    };
    if most.values.is_empty() || !pays {
        return Ok(());
    }
    most.rewrite(kernel)?;
    // Without a bound `ptxas` converts early again.
    let bound = SmLimits::registers_for(after, threads).min(SmLimits::most_registers(threads));
    kernel.options.maxnreg.get_or_insert(bound);
    Ok(())
}

/// What can be computed again in a block, and the registers that this saves.
struct Recomputation {
    body: Block,
    /// For each operation how many operations before it make threads wait for each other.
    parts: HashMap<Op, usize>,
    /// The tiles that later parts compute again.
    values: HashSet<Value>,
    /// The registers that a thread keeps at most while it waits, without and with that.
    before: u32,
    after: u32,
    /// The registers of what comes from outside of the block, such as tiles that its loop carries.
    held: u32,
}

impl Recomputation {
    fn of(kernel: &Kernel, words: &Words<'_>, body: Block) -> Recomputation {
        let mut parts = HashMap::new();
        let mut part = 0;
        for op in kernel.ops(body) {
            parts.insert(op, part);
            part += usize::from(waits(kernel, op));
        }
        let held = from_outside(kernel, body).into_iter().map(|value| words.of(value)).sum::<f64>() as u32;
        let mut found = Recomputation { body, parts, values: HashSet::new(), before: 0, after: 0, held };
        let (mut kept, mut left) = (vec![0.0; part + 1], vec![0.0; part + 1]);
        let mut narrow: HashMap<Value, usize> = HashMap::new();
        for op in kernel.ops(body) {
            for value in kernel.op(op).results.iter().copied() {
                let Some(last) = found.last_part(kernel, value) else { continue };
                let keep = |values: &mut Vec<f64>, from: usize, to: usize, value: Value| {
                    values[from..to].iter_mut().for_each(|sum| *sum += words.of(value));
                };
                let first = found.parts[&op];
                keep(&mut kept, first, last, value);
                match found.sources(kernel, value, last) {
                    Some(sources) => {
                        found.values.insert(value);
                        for source in sources {
                            let until = narrow.entry(source).or_default();
                            *until = last.max(*until);
                        }
                    }
                    None => keep(&mut left, first, last, value),
                }
            }
        }
        for (source, last) in narrow {
            // It is counted already as long as others use it.
            let first = found.last_part(kernel, source).unwrap_or(0).min(last);
            left[first..last].iter_mut().for_each(|sum| *sum += f64::from(words_of_tile(kernel, source)));
        }
        let most = |sums: Vec<f64>| sums.into_iter().fold(0.0, f64::max) as u32;
        (found.before, found.after) = (most(kept), most(left));
        found
    }

    /// The part of the last use of a tile.
    fn last_part(&self, kernel: &Kernel, value: Value) -> Option<usize> {
        kernel.value_type(value).shape()?;
        let place = |user: Op| {
            let mut at = user;
            while kernel.op(at).parent != Some(self.body) {
                at = kernel.block(kernel.op(at).parent?).parent?;
            }
            self.parts.get(&at).copied()
        };
        kernel.users(value).into_iter().filter_map(place).max()
    }

    /// The narrow tiles that a wide one of this block is computed from, if that can be done again where it is used later.
    fn sources(&self, kernel: &Kernel, value: Value, last: usize) -> Option<HashSet<Value>> {
        let made = kernel.def_op(value)?;
        let is_late = last > *self.parts.get(&made)?;
        let is_wide = kernel.value_type(value).elem().is_some_and(|elem| elem.bits() > NARROW);
        let here = kernel.users(value).iter().all(|user| kernel.op(*user).parent == Some(self.body));
        (is_late && is_wide && here && words_of_tile(kernel, value) >= LEAST_WORDS).then_some(())?;
        let mut sources = HashSet::new();
        let mut operations = 0;
        recipe(kernel, value, &mut sources, &mut operations).then_some(())?;
        let narrow: u32 = sources.iter().map(|source| words_of_tile(kernel, *source)).sum();
        (!sources.is_empty() && 2 * narrow <= words_of_tile(kernel, value)).then_some(sources)
    }

    fn rewrite(&self, kernel: &mut Kernel) -> Result<(), PassError> {
        let mut made: HashMap<(Value, usize), Value> = HashMap::new();
        for op in kernel.ops(self.body).collect::<Vec<_>>() {
            let part = self.parts[&op];
            for index in 0..kernel.op(op).operands.len() {
                let value = kernel.operand(op, index);
                let earlier =
                    kernel.def_op(value).and_then(|made| self.parts.get(&made)).is_some_and(|own| *own < part);
                if earlier && self.values.contains(&value) {
                    let again = again(kernel, &mut made, value, part, op)?;
                    kernel.set_operand(op, index, again);
                }
            }
        }
        Ok(())
    }
}

/// The tiles that a block uses and does not make.
fn from_outside(kernel: &Kernel, body: Block) -> HashSet<Value> {
    let ops = rtc_ir::walk_block(kernel, body);
    let results = ops.iter().flat_map(|op| kernel.op(*op).results.iter().copied());
    let blocks = ops.iter().flat_map(|op| kernel.op(*op).blocks.iter());
    let made: HashSet<Value> =
        results.chain(blocks.flat_map(|block| kernel.block(*block).args.iter().copied())).collect();
    let used = ops.iter().flat_map(|op| kernel.op(*op).operands.iter().copied());
    let is_tile = |value: &Value| kernel.value_type(*value).shape().is_some();
    used.chain(kernel.block(body).args.iter().copied())
        .filter(|value| is_tile(value) && !made.contains(value))
        .collect()
}

/// Whether an operation makes a large tile of one with narrow elements.
fn widens(kernel: &Kernel, op: Op) -> bool {
    let [result] = kernel.op(op).results[..] else { return false };
    let is_narrow = |value: &Value| {
        let ty = kernel.value_type(*value);
        ty.shape().is_some() && ty.elem().is_some_and(|elem| elem.is_float() && elem.bits() <= NARROW)
    };
    let is_wide = kernel.value_type(result).elem().is_some_and(|elem| elem.bits() > NARROW);
    is_wide && kernel.op(op).operands.iter().any(is_narrow) && words_of_tile(kernel, result) >= LEAST_WORDS
}

/// Whether threads wait for each other in an operation, or longer than for a few others.
fn waits(kernel: &Kernel, op: Op) -> bool {
    let kind = kernel.kind(op);
    matches!(kind, OpKind::Reduce { .. } | OpKind::Scan { .. } | OpKind::Barrier {})
        || !kernel.op(op).blocks.is_empty()
        || kind.spec().traits.has(Traits::CONVERGENT)
}

/// Whether a tile is made of cheap operations on narrow tiles, scalars and what takes no registers. Finds the former.
fn recipe(kernel: &Kernel, value: Value, sources: &mut HashSet<Value>, operations: &mut usize) -> bool {
    let ty = kernel.value_type(value);
    let (Some(_), Some(elem)) = (ty.shape(), ty.elem()) else { return true };
    if elem.bits() <= NARROW {
        if elem.bits() > 1 {
            sources.insert(value);
        }
        return elem.is_float() || elem.bits() == 1;
    }
    let Some(op) = kernel.def_op(value) else { return false };
    *operations += 1;
    let kind = kernel.kind(op);
    if stays(kind) {
        return true;
    }
    let traits = kind.spec().traits;
    traits.has(Traits::ELEMENTWISE.and(Traits::PURE))
        && !is_long(kind)
        && elem.num().is_some()
        && kernel.op(op).blocks.is_empty()
        && *operations <= MOST_OPERATIONS
        && kernel.op(op).operands.iter().all(|operand| recipe(kernel, *operand, sources, operations))
}

/// Whether a result takes no registers of its own.
fn stays(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Splat {} | OpKind::Constant { .. } | OpKind::Broadcast {} | OpKind::ExpandDims { .. })
}

/// Whether an operation is a function of a library or a sequence like one.
fn is_long(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::ExternCall { .. }
            | OpKind::DivF {}
            | OpKind::DivFRn {}
            | OpKind::SqrtRn {}
            | OpKind::DivSI {}
            | OpKind::DivUI {}
            | OpKind::RemSI {}
            | OpKind::RemUI {}
            | OpKind::DivFRounded { .. }
            | OpKind::SqrtRounded { .. }
    )
}

/// A value once more, before a user in another part.
fn again(
    kernel: &mut Kernel,
    made: &mut HashMap<(Value, usize), Value>,
    value: Value,
    part: usize,
    user: Op,
) -> Result<Value, PassError> {
    let ty = kernel.value_type(value);
    let (Some(_), Some(elem)) = (ty.shape(), ty.elem()) else { return Ok(value) };
    let Some(op) = kernel.def_op(value).filter(|op| elem.bits() > 1 && !stays(kernel.kind(*op))) else {
        return Ok(value);
    };
    if let Some(known) = made.get(&(value, part)) {
        return Ok(*known);
    }
    let copy = if elem.bits() <= NARROW {
        Builder::before(kernel, user).build(OpKind::Opaque {}, &[value], &[], &[], &[], &[])?
    } else {
        let mut operands = kernel.op(op).operands.to_vec();
        for operand in &mut operands {
            *operand = again(kernel, made, *operand, part, user)?;
        }
        let copy = kernel.clone_op(op, &operands, &[ty]);
        kernel.insert_op(copy, Position::Before(user));
        copy
    };
    let copy = kernel.result(copy, 0);
    made.insert((value, part), copy);
    Ok(copy)
}
