//! Divides the warps of a kernel with a product in a loop: one group copies tiles by TMA, the others multiply and store.
//!
//! ```text
//! {program}             rings, barriers
//!   for_range .. {      warp_specialize {warps = [4, 8], registers = [40, 232]}
//!     load ..       →     for programs of the block: for_range .. { wait for a free slot; copies by TMA }
//!     dot ..              for programs of the block: for_range .. { wait for the slot; mma; free it }; store
//!   }
//!   store ..
//! ```
//!
//! The kernel becomes persistent: as many blocks run as fit, each loops over programs, and the copies for the next program
//! begin while the results of one are stored. That changes when things happen, so it is done only where nothing tells: no
//! atomics whose results count, no messages, no volatile accesses, nothing written that is also copied from. All loads for products of the loop must be of
//! boxes of tensors (`boxes.rs`), and all products must take both operands from them, as `stage_operands` puts them. `roles.rs` has the new form, and is tried
//! on a copy of the kernel, with fewer slots until shared memory holds all; a kernel for which it does not serve stays as it
//! is, and its loop gets rings of `copy_async` (`schedule_loop`). Where one block runs on a multiprocessor, results of 16 bits
//! wait for the next program (`defer_stores.rs`).

use std::collections::{HashMap, HashSet};

use rtc_abi::Feature;
use rtc_ir::analysis::{Affine, Ranges};
use rtc_ir::effects::{Access as Kind, Space};
use rtc_ir::{Block, DotKind, Kernel, LoopHints, MmaForm, Op, OpKind, Phase, Traits, Type, Value, place_bytes};
use rtc_source::{Code, Diagnostic};

use super::addresses::{base, innermost_loops, loads_of_products};
use super::boxes::{self, Access, Known, Reason};
use super::clamps;
use super::defer_stores;
use super::descriptors;
use super::expand_loop::copies;
use super::roles::{self, Form};
use super::stage_operands::{self, Boxes, stages};
use crate::place::{allocate_shared, place_scratch, split_conversions};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "split-roles", needs: Phase::Laid, leaves: Phase::Laid, run };

/// Warps that copy. One would do, but numbers of registers are changed by four warps together.
pub(super) const COPYING_WARPS: u32 = 4;
/// Registers of a thread that copies.
const COPYING_REGISTERS: u32 = 40;
/// What a thread that multiplies needs beside its sums.
const OTHER_REGISTERS: u32 = 56;
/// The same where results are held that wait to be stored.
const HELD_REGISTERS: u32 = 24;
/// What the assembler asks for beside the sums of one instruction.
const INSTRUCTION_REGISTERS: u32 = 26;
/// The most registers that a thread can use, as a multiple of 8.
const MOST_REGISTERS: u32 = 240;
/// Registers of a multiprocessor for one lane of all its warps together.
const LANE_REGISTERS: u32 = 2048;
/// More slots have never paid.
const MOST_SLOTS: u32 = 6;
/// Of fewer slots a ring is not worth its barriers.
const LEAST_SLOTS: u32 = 2;
/// Shared memory of a multiprocessor that is not a block's: each takes so many bytes for the system.
const SYSTEM_BYTES: u32 = 1024;
/// So many bytes of results go through shared memory at a time, for each warp.
const STORED_BYTES: u32 = 4096;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    if !may_divide(cx) {
        return Ok(());
    }
    let (staged, found) = match Found::of(kernel, cx)? {
        Ok(found) => found,
        Err(_) => return Ok(()),
    };
    for blocks in (1..=2).rev() {
        for stores in [Stores::Deferred, Stores::Copies, Stores::Plain] {
            let Some(form) = found.form(&staged, blocks, stores) else { continue };
            if let Some(made) = fitting(&staged, cx, &found, form)? {
                *kernel = made;
                return Ok(());
            }
        }
    }
    Ok(())
}

/// How results get to memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stores {
    /// By TMA, while the next program is computed.
    Deferred,
    /// By TMA.
    Copies,
    /// As in the source.
    Plain,
}

fn may_divide(cx: &PassContext) -> bool {
    let features = [Feature::Wgmma, Feature::Tma, Feature::RegisterBudgets];
    cx.staging && cx.roles && features.iter().all(|feature| cx.target.has(*feature))
}

/// A kernel whose warps can be divided.
pub(super) struct Found {
    /// The loop with the product.
    pub of: Op,
    /// The loops and branches around it and itself, from the outside in.
    pub path: Vec<Op>,
    /// Its copies, in program order.
    pub copies: Vec<(Op, Access)>,
    /// Stores that can be copies.
    pub stores: Vec<(Op, Access)>,
    /// Arguments that the kernel writes through.
    pub written: HashSet<Value>,
    /// Remainders that stand for other choices of rows, and must be gone in the end.
    clamps: Vec<Op>,
}

impl Found {
    /// What there is to divide in a kernel, and the kernel with copies in it instead of loads; why nothing.
    fn of(kernel: &Kernel, cx: &PassContext) -> Result<Result<(Kernel, Found), Reason>, PassError> {
        let mut staged = kernel.clone();
        let clamps = clamps::as_remainders(&mut staged)?;
        let accesses = match accesses(&staged) {
            Ok(accesses) => accesses,
            Err(reason) => return Ok(Err(reason)),
        };
        let inner: Boxes = accesses.iter().map(|(load, access)| (*load, access.inner)).collect();
        let by_pointer = |(load, access): (&Op, &Access)| (staged.operand(*load, 0), access.clone());
        let by_pointer = accesses.iter().map(by_pointer).collect();
        stage_operands::stage(&mut staged, cx, Some(&inner))?;
        let found = Found::in_staged(&staged, &by_pointer);
        Ok(found.map(|found| (staged, Found { clamps, ..found })))
    }

    fn in_staged(kernel: &Kernel, accesses: &HashMap<Value, Access>) -> Result<Found, Reason> {
        let all = rtc_ir::walk(kernel);
        let mut loops = all.iter().copied().filter(|op| is_staged(kernel, *op));
        let of = loops.next().ok_or("no loop copies operands of products")?;
        if loops.next().is_some() {
            return Err("several loops copy operands of products");
        }
        let path = path(kernel, of).ok_or("the loop stands in a loop without a counter")?;
        let written = written(kernel, of, &all)?;
        let ranges = Ranges::new(kernel);
        let mut known = Known { kernel, ranges: &ranges, affine: Affine::new(kernel, &ranges) };
        let mut found = Found { of, path, copies: Vec::new(), stores: Vec::new(), written, clamps: Vec::new() };
        for copy in copies(kernel, of) {
            let access = accesses.get(&kernel.operand(copy, 0)).ok_or("a copy is not known")?;
            if found.written.contains(&access.base) {
                return Err("the kernel writes what the loop reads");
            }
            if boxes::boxes_of(kernel, kernel.operand(copy, 1), access).is_none() {
                return Err("an operand lies in shared memory as copies of boxes do not put it");
            }
            check_wraps(&mut known, kernel.operand(copy, 1), access)?;
            found.copies.push((copy, access.clone()));
        }
        found.check_body(kernel)?;
        let stores = all.into_iter().filter(|op| matches!(kernel.kind(*op), OpKind::Store { .. }));
        for store in stores.filter(|op| is_exchanged(kernel, *op)) {
            if let Ok(access) = known.access(kernel.operand(store, 0), kernel.optional(store, 0))
                && access.inner == 1
                && access.axes.iter().all(|axis| axis.modulus.is_none())
            {
                found.stores.push((store, access));
            }
        }
        Ok(found)
    }

    /// That the loop does nothing but copy and multiply what it copied, beside arithmetic.
    fn check_body(&self, kernel: &Kernel) -> Result<(), Reason> {
        let body = kernel.op(self.of).blocks[0];
        let copied: HashSet<Value> = self.copies.iter().map(|(op, _)| kernel.operand(*op, 1)).collect();
        let mut products = 0;
        for op in rtc_ir::walk_block(kernel, body) {
            match kernel.kind(op) {
                OpKind::Mma {} => {
                    products += 1;
                    let operands = [0, 1].map(|place| roles::buffer_of(kernel, kernel.operand(op, place)));
                    if operands.iter().any(|buffer| buffer.is_none_or(|buffer| !copied.contains(&buffer))) {
                        return Err("an operand of a product is computed");
                    }
                }
                OpKind::LocalStore {} | OpKind::MmaAsync {} | OpKind::Dot { .. } | OpKind::DotBuffers { .. } => {
                    return Err("an operand of a product is computed");
                }
                _ => {}
            }
        }
        if products == 0 { Err("the loop has no product by `wgmma`") } else { Ok(()) }
    }

    /// How it is to be divided if `blocks` are to run on a multiprocessor at a time.
    fn form(&self, kernel: &Kernel, blocks: u32, stores: Stores) -> Option<Form> {
        let warps = kernel.options.num_warps;
        let all = warps + COPYING_WARPS;
        let start = (LANE_REGISTERS / (all * blocks)).min(248) / 8 * 8;
        let own = (start * all).checked_sub(COPYING_REGISTERS * COPYING_WARPS)? / warps / 8 * 8;
        let products = rtc_ir::walk_block(kernel, kernel.op(self.of).blocks[0]).into_iter();
        let products: Vec<Op> = products.filter(|op| matches!(kernel.kind(*op), OpKind::Mma {})).collect();
        // The assembler takes the registers at the start for the limit of every instruction.
        let at_once = products.iter().filter_map(|op| instruction_registers(kernel, *op)).max().unwrap_or(0);
        (start >= at_once + INSTRUCTION_REGISTERS).then_some(())?;
        let sums = products
            .iter()
            .filter_map(|op| kernel.layout_of(kernel.result(*op, 0)))
            .map(|l| l.registers())
            .sum::<u32>();
        let own = own.min(MOST_REGISTERS);
        (own >= sums + OTHER_REGISTERS || blocks == 1 && sums <= 160 && own >= sums).then_some(())?;
        let deferred = stores == Stores::Deferred;
        if deferred {
            // Two blocks on a multiprocessor hide the stores of each other, and then waiting costs more than it gives. The
            // results of a program wait in half as many registers as the sums of the next one.
            let fits = blocks == 1 && own >= sums + sums / 2 + HELD_REGISTERS;
            (fits && defer_stores::can_wait(kernel, self)).then_some(())?;
        }
        let stored = if stores == Stores::Plain { None } else { Some(STORED_BYTES * warps) };
        stored.is_none_or(|_| !self.stores.is_empty()).then_some(())?;
        let wished = stages(kernel, self.of).max(MOST_SLOTS);
        Some(Form { registers: [COPYING_REGISTERS, own], at_start: start, blocks, slots: wished, stored, deferred })
    }
}

/// The sums of a thread that one instruction of a product takes, in registers.
fn instruction_registers(kernel: &Kernel, product: Op) -> Option<u32> {
    let form = MmaForm::of(kernel, product).ok()?;
    let bits = kernel.value_type(kernel.result(product, 0)).elem()?.bits();
    Some(form.n * bits / 64)
}

/// The loads for products by `wgmma` in a loop, if all are of boxes.
fn accesses(kernel: &Kernel) -> Result<HashMap<Op, Access>, Reason> {
    let products = |of: &Op| {
        let all = rtc_ir::walk_block(kernel, kernel.op(*of).blocks[0]);
        all.into_iter().any(|op| matches!(kernel.kind(op), OpKind::Dot { kind: DotKind::Wgmma, .. }))
    };
    let loops: Vec<Op> = innermost_loops(kernel).into_iter().filter(products).collect();
    let [of] = loops[..] else { return Err("there is not one loop with a product by `wgmma`") };
    if kernel.options.num_ctas != 1 || kernel.persistent.is_some() || kernel.specialization().is_some() {
        return Err("the kernel is divided already");
    }
    if kernel.options.maxnreg.is_some() || !kernel.options.num_warps.is_multiple_of(4) {
        return Err("the number of registers is given, or there are fewer than four warps");
    }
    let ranges = Ranges::new(kernel);
    let mut known = Known { kernel, ranges: &ranges, affine: Affine::new(kernel, &ranges) };
    let mut out = HashMap::new();
    let mut pointers = HashSet::new();
    for load in loads_of_products(kernel, of) {
        out.insert(load, known.load(load)?);
        if !pointers.insert(kernel.operand(load, 0)) {
            return Err("two loads have the same pointers");
        }
    }
    Ok(out)
}

/// The kernel in that form with as many slots as fit; `None` if it has no such form.
fn fitting(kernel: &Kernel, cx: &PassContext, found: &Found, mut form: Form) -> Result<Option<Kernel>, PassError> {
    let most = match form.blocks {
        1 => cx.target.shared_bytes_max,
        blocks => (cx.target.shared_bytes_max + SYSTEM_BYTES) / blocks - SYSTEM_BYTES,
    };
    let slot: u64 = found.copies.iter().map(|(op, _)| place_bytes(kernel.value_type(kernel.operand(*op, 1)))).sum();
    form.slots = form.slots.min((u64::from(most) / slot.max(1)) as u32);
    let least = if form.blocks > 1 { LEAST_SLOTS + 1 } else { LEAST_SLOTS };
    while form.slots >= least {
        let mut made = kernel.clone();
        roles::divide(&mut made, found, &form)?;
        crate::tile::dce::run(&mut made, cx)?;
        if !roles::is_plain(&made, found) || !clamps::are_gone(&made, &found.clamps) {
            return Ok(None);
        }
        descriptors::drop_addresses(&mut made);
        match shared_bytes(&made, cx)? {
            Some(bytes) if bytes <= most => return Ok(Some(made)),
            _ => form.slots -= 1,
        }
    }
    Ok(None)
}

/// The shared memory that a kernel takes; `None` if it is too much.
fn shared_bytes(kernel: &Kernel, cx: &PassContext) -> Result<Option<u32>, PassError> {
    let mut trial = kernel.clone();
    for pass in [split_conversions::PASS, place_scratch::PASS, allocate_shared::PASS] {
        match (pass.run)(&mut trial, cx) {
            Ok(()) => {}
            Err(PassError::Diagnostic(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(trial.shared_bytes))
}

fn is_staged(kernel: &Kernel, op: Op) -> bool {
    matches!(kernel.kind(op), OpKind::ForRange { hints: LoopHints { slots: Some(_), .. }, .. })
}

/// The operations around a loop and itself, from the outside in.
fn path(kernel: &Kernel, of: Op) -> Option<Vec<Op>> {
    let mut path = vec![of];
    while let Some(around) = kernel.op(path[0]).parent.and_then(|block| kernel.block(block).parent) {
        matches!(kernel.kind(around), OpKind::ForRange { .. } | OpKind::IfElse {}).then_some(())?;
        path.insert(0, around);
    }
    Some(path)
}

/// The arguments that a kernel writes through, if it does nothing whose time or order can be told from outside.
fn written(kernel: &Kernel, of: Op, all: &[Op]) -> Result<HashSet<Value>, Reason> {
    let body: Block = kernel.op(of).blocks[0];
    let mut written = HashSet::new();
    for op in all {
        match kernel.kind(*op) {
            OpKind::Store { .. } => {
                written.insert(base(kernel, kernel.operand(*op, 0)).ok_or("what is written is not known")?);
            }
            // Programs come in any order anyway, and nobody sees what was there before.
            OpKind::AtomicRmw { .. } if !kernel.is_used(kernel.result(*op, 0)) => {
                written.insert(base(kernel, kernel.operand(*op, 0)).ok_or("what is written is not known")?);
            }
            OpKind::Load { volatile: true, .. } => return Err("an access is volatile"),
            OpKind::Load { .. } | OpKind::Assume {} | OpKind::InlineAsm { pure: true, .. } => {}
            OpKind::CopyAsync { .. } | OpKind::CopyCommit {} | OpKind::CopyWait { .. } => {}
            OpKind::Barrier {} | OpKind::FenceAsync {} if kernel.op(*op).parent == Some(body) => {}
            OpKind::WhileLoop {} => return Err("a loop may not end"),
            kind if kind.spec().traits.has(Traits::TERMINATOR) => {}
            _ => {
                let tells = |space: Space, access: Kind| match space {
                    Space::Outside | Space::Barrier => true,
                    Space::Global => access != Kind::Read,
                    Space::Shared => false,
                };
                if kernel.effects(*op).any(|(effect, _)| tells(effect.space, effect.access)) {
                    return Err("the order of what the kernel does can be told from outside");
                }
            }
        }
    }
    Ok(written)
}

/// Whether a store writes what was brought into another layout for it.
fn is_exchanged(kernel: &Kernel, store: Op) -> bool {
    let value = kernel.operand(store, 1);
    kernel.def_op(value).is_some_and(|op| matches!(kernel.kind(op), OpKind::ConvertLayout {}))
}

/// That rows of an operand which a copy gives as zeros, where the source has others again, are not seen.
fn check_wraps(known: &mut Known<'_>, buffer: Value, access: &Access) -> Result<(), Reason> {
    let kernel = known.kernel;
    for (number, axis) in access.axes.iter().enumerate() {
        let Some(modulus) = &axis.modulus else { continue };
        let mut work = vec![(buffer, number)];
        while let Some((place, number)) = work.pop() {
            for user in kernel.users(place) {
                let side = kernel.op(user).operands.iter().position(|operand| *operand == place);
                let seen = match (kernel.kind(user), side) {
                    (OpKind::CopyAsync { .. }, _) => false,
                    (OpKind::SharedTrans { order }, _) => {
                        let to = order.iter().position(|from| *from as usize == number);
                        work.extend(to.map(|to| (kernel.result(user, 0), to)));
                        to.is_none()
                    }
                    // Rows of the left operand are rows of the sum, columns of the right one its columns.
                    (OpKind::Mma {}, Some(side)) if side < 2 && side == number => {
                        let twice = kernel.operand(user, 0) == kernel.operand(user, 1);
                        twice || !boxes::is_unseen(known, kernel.result(user, 0), number, &axis.index, modulus)
                    }
                    _ => true,
                };
                if seen {
                    return Err("rows counted modulo a size are not left out where results are stored");
                }
            }
        }
    }
    Ok(())
}

/// Says how the warps of a kernel were divided, or why they were not though it has a product in a loop.
pub fn roles_remark(kernel: &Kernel, cx: &PassContext) -> Option<Diagnostic> {
    let remark = |op: Op, message: String| {
        let span = kernel.loc(kernel.op(op).loc).span.unwrap_or_default();
        Some(Diagnostic::remark(Code::COST, span, message))
    };
    let Some(division) = kernel.specialization() else {
        let by_wgmma = |op: &Op| matches!(kernel.kind(*op), OpKind::Dot { kind: DotKind::Wgmma, .. });
        let product = rtc_ir::walk(kernel).into_iter().find(by_wgmma)?;
        let reason = if !may_divide(cx) {
            "it is not allowed"
        } else {
            match Found::of(kernel, cx) {
                Ok(Err(reason)) => reason,
                _ => "registers or shared memory do not suffice",
            }
        };
        return remark(product, format!("the warps are not divided into roles: {reason}"));
    };
    let OpKind::WarpSpecialize { warps, registers } = kernel.kind(division) else { return None };
    let mut bytes = 0;
    let mut slots = 0;
    for op in rtc_ir::walk(kernel).into_iter().filter(|op| roles::is_ring(kernel, *op)) {
        let Type::Shared(ty) = kernel.value_type(kernel.result(op, 0)) else { continue };
        slots = ty.slots;
        bytes += place_bytes(Type::Shared(ty)) / u64::from(ty.slots);
    }
    let [copying, computing] = warps[..] else { return None };
    let [few, many] = registers.as_deref().unwrap_or_default()[..] else { return None };
    let blocks = kernel.persistent.map_or(1, |persistent| persistent.blocks_per_multiprocessor);
    remark(
        division,
        format!(
            "the warps are divided into roles: {copying} copy tiles with {few} registers a thread, {computing} compute with \
             {many}; {slots} slots of {bytes} bytes, {blocks} block{} on a multiprocessor loop over the programs",
            if blocks == 1 { "" } else { "s" }
        ),
    )
}
