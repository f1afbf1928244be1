//! The part of a kernel that `specialize_warps` can partition: its loops with dots, their copies, and the stores of
//! results.

use std::collections::{HashMap, HashSet};
use std::mem::{Discriminant, discriminant};

use rtc_abi::Structure;
use rtc_ir::analysis::{Poly, Ranges};
use rtc_ir::effects::{EffectKind as Kind, Space};
use rtc_ir::{Kernel, LoopHints, Op, OpKind, SharedType, Traits, Type, Value, place_bytes, view};

use super::operand_sources::is_operand;
use super::producer_loop::ProducerLoop;
use super::resident_operands::{self, ResidentOperand};
use super::transfers::{OtherLoads, Source, Transfer, gathered_tiles};
use crate::access::addresses::{Memory, innermost_loops, loads_of_dots, memory};
use crate::access::box_access::BoxAccess;
use crate::access::box_analysis::BoxAnalysis;
use crate::access::clamped_rows;
use crate::access::dead_lanes;
use crate::access::refusal::Refusal;
use crate::dependence::DotDependences;
use crate::pass::missing;
use crate::schedule::operands::stage_operands::{self, Brought};
use crate::schedule::pipeline::stages::copies;
use crate::schedule::tma::buffer_boxes;
use crate::schedule::tma::tma_reductions;
use crate::{PassContext, PassError, matrix_unit};

/// A kernel whose warps can be divided.
pub(crate) struct Candidate {
    /// Its loops with dots, in program order.
    pub loops: Vec<ProducerLoop>,
    /// The rings: of each way, the first transfers of all loops share one, the second ones, and so on.
    pub rings: Vec<Ring>,
    /// How many groups the boxes of a loop form.
    pub groups: usize,
    /// Operands that loops read since before them.
    pub before: Vec<ResidentOperand>,
    /// Stores, and atomic operations like them, that can be copies.
    pub stores: Vec<(Op, BoxAccess)>,
    /// The memory that the kernel writes.
    pub written: HashSet<Memory>,
    /// Remainders that replace clamped rows, in the end only where copies are.
    pub clamps: Vec<Op>,
}

/// A ring.
pub(crate) struct Ring {
    /// The type of a slot.
    pub ty: SharedType,
    /// The alignment.
    pub align: u32,
}

impl Candidate {
    /// The candidate in a kernel, and the kernel with copies instead of loads; or the refusal.
    pub fn of(kernel: &Kernel, cx: &PassContext) -> Result<Result<(Kernel, Candidate), Refusal>, PassError> {
        let mut staged = kernel.clone();
        let clamps = clamped_rows::as_remainders(&mut staged)?;
        let Loads { accesses, version, others, before } = match accesses(&staged, cx) {
            Ok(loads) => loads,
            Err(reason) => return Ok(Err(reason)),
        };
        let brought = accesses.iter().filter_map(|(load, source)| Some((*load, source.form()?)));
        let brought: Brought = brought.collect();
        let by_pointer = |(load, source): (&Op, &Source)| (view::Load::at(&staged, *load).pointer(), source.clone());
        let by_pointer = accesses.iter().map(by_pointer).collect();
        stage_operands::stage(&mut staged, cx, Some(&brought))?;
        let all = rtc_ir::walk(&staged);
        let loops: Vec<Op> = all.iter().copied().filter(|op| is_staged(&staged, *op)).collect();
        let written = match written(&staged, &loops, &all) {
            Ok(written) => written,
            Err(reason) => return Ok(Err(reason)),
        };
        if accesses.values().any(|source| !source.is_unchanged(&staged, &written)) {
            return Ok(Err(Refusal::WrittenInLoop));
        }
        let before = resident_operands::stored(&staged, &before, &loops, &written, cx.plan.resident);
        let mut with_others = Vec::new();
        for of in loops {
            with_others.push((of, others.stage(&mut staged, of, &written)?));
        }
        let mut producers = Vec::new();
        for (of, others) in with_others {
            producers.push(producer(&staged, of, others, &by_pointer)?);
        }
        let mut found = match Candidate::in_staged(&staged, producers, written) {
            Ok(found) => found,
            Err(reason) => return Ok(Err(reason)),
        };
        if let Some(reason) = version {
            return Ok(Err(reason));
        }
        found.find_groups(&staged)?;
        Ok(Ok((staged, Candidate { clamps, before, ..found })))
    }

    /// The candidate with these loops, whose groups are still to be found.
    fn in_staged(kernel: &Kernel, loops: Vec<ProducerLoop>, written: HashSet<Memory>) -> Result<Candidate, Refusal> {
        let all = rtc_ir::walk(kernel);
        let ranges = Ranges::new(kernel);
        let mut known = BoxAnalysis::new(kernel, &ranges);
        let (rings, before, stores, clamps) = Default::default();
        let mut found = Candidate { loops, rings, groups: 0, before, stores, written, clamps };
        for producer in &mut found.loops {
            producer.check_body(kernel)?;
            if producer.boxes().any(|(buffer, access)| buffer_boxes::boxes_of(kernel, buffer, access).is_none()) {
                return Err(Refusal::BufferLayout);
            }
            for transfer in &mut producer.transfers {
                check_beside(&mut known, transfer)?;
            }
        }
        found.find_rings(kernel)?;
        for op in all {
            let access = match kernel.kind(op) {
                OpKind::Store { .. } if is_exchanged(kernel, op) => known.stored(op),
                OpKind::AtomicRmw { .. } => tma_reductions::access(&mut known, op),
                _ => continue,
            };
            found.stores.extend(access.ok().map(|access| (op, access)));
        }
        Ok(found)
    }

    /// Whether a loop has chained dots, those before the last of which may overlap the last one of the previous iteration.
    pub fn may_overlap(&self, kernel: &Kernel) -> bool {
        self.loops.iter().any(|of| of.dependences(kernel).are_chained())
    }

    /// Whether dots alternate with other work, as in attention.
    pub fn has_work_between(&self, kernel: &Kernel) -> bool {
        self.loops.iter().any(|of| of.dependences(kernel).alternate())
    }

    /// The types of the slots of its rings.
    pub fn slot_types(&self) -> Vec<SharedType> {
        self.rings.iter().map(|ring| ring.ty).collect()
    }

    /// The rings that all loops share.
    fn find_rings(&mut self, kernel: &Kernel) -> Result<(), Refusal> {
        if self.loops.is_empty() {
            return Err(Refusal::NoCopies);
        }
        let makes = |of: &ProducerLoop| of.boxes().any(|(_, access)| access.is_made);
        if self.loops.len() > 1 && self.loops.iter().any(makes) {
            return Err(Refusal::LoopsWithMaps);
        }
        let all = self.loops.iter().flat_map(|of| &of.transfers);
        let mut ways: Vec<Discriminant<Source>> = Vec::new();
        for way in all.map(|transfer| discriminant(&transfer.source)) {
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
        for way in ways {
            let first = self.rings.len();
            for of in &mut self.loops {
                let mut taken = Vec::new();
                for transfer in of.transfers.iter_mut().filter(|transfer| discriminant(&transfer.source) == way) {
                    // Rows of other elements have other rings; a ring of tiles would take too much memory for that.
                    let elem = kernel.value_type(transfer.buffer).elem();
                    let fits = |ring: &Ring| transfer.access().is_some() || Some(ring.ty.elem) == elem;
                    let mut free = (first..self.rings.len()).filter(|number| !taken.contains(number));
                    transfer.ring = free.find(|number| fits(&self.rings[*number])).unwrap_or(self.rings.len());
                    taken.push(transfer.ring);
                    serve(kernel, &mut self.rings, transfer)?;
                }
            }
        }
        Ok(())
    }

    /// The groups of all loops. Slots and phases are counted through all loops, so each loop has to go on with the barriers
    /// of all groups: those of boxes, and one of all others.
    fn find_groups(&mut self, kernel: &Kernel) -> Result<(), PassError> {
        let groups = self.loops.iter().map(|of| of.groups(kernel)).collect::<Result<Vec<_>, _>>()?;
        let alike = groups.iter().all(|other| *other == groups[0]);
        self.groups = if alike { groups[0].iter().max().map_or(0, |last| last + 1) } else { 1 };
        for (of, groups) in self.loops.iter_mut().zip(groups) {
            for (number, transfer) in of.transfers.iter_mut().enumerate() {
                transfer.group = groups.get(number).map_or(self.groups, |group| if alike { *group } else { 0 });
            }
        }
        Ok(())
    }
}

/// Makes the ring of a transfer fit its buffer.
fn serve(kernel: &Kernel, rings: &mut Vec<Ring>, transfer: &Transfer) -> Result<(), Refusal> {
    let ty = kernel.value_type(transfer.buffer).as_shared().ok_or(Refusal::BufferLayout)?;
    let made = kernel.def_op(transfer.buffer).map(|made| kernel.kind(made));
    let Some(&OpKind::AllocShared { align, .. }) = made else { return Err(Refusal::BufferLayout) };
    let Some(ring) = rings.get_mut(transfer.ring) else {
        rings.push(Ring { ty, align });
        return Ok(());
    };
    if ring.ty.elem != ty.elem {
        return Err(Refusal::RingTypes);
    }
    ring.align = ring.align.max(align);
    if place_bytes(Type::Shared(ring.ty)) < place_bytes(Type::Shared(ty)) {
        ring.ty = ty;
    }
    Ok(())
}

/// Loads that others can do.
struct Loads {
    /// Loads of operands, in loops.
    accesses: HashMap<Op, Source>,
    /// Why other versions of these loads are of no boxes. In a version of a loop for multiples (alignment versioning)
    /// sizes are quotients, which the host does not compute; why there are versions is for the other one to find.
    version: Option<Refusal>,
    /// Loads that a producer brings, but not for dots.
    others: OtherLoads,
    /// Loads of boxes, before the loops.
    before: HashMap<Op, BoxAccess>,
}

/// The loads for `wgmma` dots in a loop, if producers can bring all, and those of rows.
fn accesses(kernel: &Kernel, cx: &PassContext) -> Result<Loads, Refusal> {
    let plan = cx.plan;
    let body = |of: &Op| kernel.op(*of).blocks[0];
    let is_async_dot = |op: &Op| matrix_unit::is_async_dot(kernel.kind(*op));
    let mut loops = innermost_loops(kernel);
    loops.retain(|of| rtc_ir::walk_block(kernel, body(of)).iter().any(is_async_dot));
    if loops.is_empty() {
        return Err(Refusal::NoWgmma);
    }
    // Blocks of a cluster without work are left out; only inline assembly could use them.
    let asks = |op: Op| matches!(kernel.kind(op), OpKind::InlineAsm { .. });
    if kernel.options.num_ctas != 1 && rtc_ir::walk(kernel).into_iter().any(asks) {
        return Err(Refusal::AssemblyInCluster);
    }
    if kernel.options.maxnreg.is_some() {
        return Err(Refusal::Maxnreg);
    }
    let ranges = Ranges::new(kernel);
    let mut known = BoxAnalysis::new(kernel, &ranges);
    let mut out = HashMap::new();
    let mut pointers = HashSet::new();
    let loads = loops.iter().flat_map(|of| loads_of_dots(kernel, *of));
    let loads: Vec<Op> = loads.filter(|load| is_operand(kernel, kernel.result(*load, 0))).collect();
    let mut refused = Vec::new();
    for load in &loads {
        match known.load(*load) {
            Ok(access) => {
                out.insert(*load, Source::Box(access));
            }
            Err(reason) => refused.push((*load, reason)),
        }
        if !pointers.insert(view::Load::at(kernel, *load).pointer()) {
            return Err(Refusal::SamePointers);
        }
    }
    let has_work_between = loops.iter().any(|of| DotDependences::of(kernel, body(of)).alternate());
    // Where other work alternates with dots, producers have no registers for addresses. A loop with no box at all is as well
    // off with the copies of all its warps.
    if let (false, false, [_]) = (has_work_between, out.is_empty(), &loops[..]) {
        refused.retain(|(load, _)| match gathered_tiles::tile(kernel, *load) {
            Some(tile) if gathered_tiles::pays(kernel, *load, plan.rows) => {
                out.insert(*load, Source::GatheredTile(tile)).is_some()
            }
            _ => true,
        });
        let is_gathered = |source: &Source| matches!(source, Source::GatheredTile(_));
        let is_free = plan.rows.is_none() && cx.structure == Structure::Auto;
        if is_free && out.values().any(is_gathered) && gathered_tiles::suits_all_warps(kernel, loops[0], cx.target.sm) {
            return Err(Refusal::RowsForAllWarps);
        }
    }
    let span = |load: &Op| kernel.loc(kernel.op(*load).loc).span;
    let has_version = |load: &Op| span(load).is_some() && out.keys().any(|other| span(other) == span(load));
    let reasons = refused.iter().filter(|(load, _)| !has_version(load)).map(|(_, reason)| *reason);
    let reasons: Vec<Refusal> = reasons.collect();
    let of_version = |reason: &&Refusal| matches!(reason, Refusal::StrideUnpromised | Refusal::SizeUnknown);
    if let Some(reason) = reasons.iter().find(|reason| !of_version(reason)).or(reasons.first()) {
        return Err(*reason);
    }
    let version = refused.first().map(|(_, reason)| *reason);
    let others = OtherLoads::find(&mut known, &loops, plan, has_work_between);
    let before = resident_operands::find(&mut known, &loops, plan.resident);
    Ok(Loads { accesses: out, version, others, before })
}

fn is_staged(kernel: &Kernel, op: Op) -> bool {
    matches!(kernel.kind(op), OpKind::ForRange { hints: LoopHints { slots: Some(_), .. }, .. })
}

/// A loop with its copies.
fn producer(
    kernel: &Kernel,
    of: Op,
    others: Vec<Transfer>,
    sources: &HashMap<Value, Source>,
) -> Result<ProducerLoop, PassError> {
    let path = path(kernel, of).ok_or_else(|| missing("the loops and branches around a loop"))?;
    let transfer = |op: Op| {
        let copy = view::CopyAsync::at(kernel, op);
        Some(Transfer::of_operand(copy.buffer(), sources.get(&copy.pointer())?.clone(), kernel.op(op).loc))
    };
    let transfers: Option<Vec<_>> = copies(kernel, of).into_iter().map(transfer).collect();
    let mut transfers = transfers.ok_or_else(|| missing("the source of a copy"))?;
    transfers.extend(others);
    Ok(ProducerLoop { of, path, transfers })
}

/// The operations around a loop and itself, from the outside in.
fn path(kernel: &Kernel, of: Op) -> Option<Vec<Op>> {
    let mut path = vec![of];
    while let Some(around) = kernel.op(path[0]).parent.and_then(|block| kernel.block(block).parent) {
        matches!(kernel.kind(around), OpKind::ForRange { .. } | OpKind::WhileLoop {} | OpKind::IfElse {})
            .then_some(())?;
        path.insert(0, around);
    }
    Some(path)
}

/// The memory that a kernel writes, if it has no side effects whose time or order is observable.
fn written(kernel: &Kernel, loops: &[Op], all: &[Op]) -> Result<HashSet<Memory>, Refusal> {
    let in_loop = |op: Op| loops.iter().any(|of| kernel.op(op).parent == Some(kernel.op(*of).blocks[0]));
    let mut written = HashSet::new();
    for op in all {
        match kernel.kind(*op) {
            OpKind::Store { .. } => {
                written.insert(memory(kernel, kernel.operand(*op, 0)).ok_or(Refusal::UnknownStore)?);
            }
            // Programs run in any order anyway, and the old value is not used.
            OpKind::AtomicRmw { .. } if !kernel.is_used(kernel.result(*op, 0)) => {
                written.insert(memory(kernel, kernel.operand(*op, 0)).ok_or(Refusal::UnknownStore)?);
            }
            OpKind::Load { volatile: true, .. } => return Err(Refusal::Volatile),
            OpKind::Load { .. } | OpKind::Assume {} | OpKind::InlineAsm { pure: true, .. } => {}
            OpKind::CopyAsync { .. } | OpKind::CopyGroup {} | OpKind::CopyAwait {} => {}
            OpKind::Barrier {} if in_loop(*op) => {}
            kind if kind.spec().traits.has(Traits::TERMINATOR) => {}
            _ => {
                let tells = |space: Space, access: Kind| match space {
                    Space::Outside | Space::Barrier => true,
                    Space::Global => access != Kind::Read,
                    Space::Shared => false,
                };
                if kernel.effects(*op).any(|(effect, _)| tells(effect.space, effect.access)) {
                    return Err(Refusal::SideEffects);
                }
            }
        }
    }
    Ok(written)
}

/// Whether a store writes a tile that was converted to another layout for it.
fn is_exchanged(kernel: &Kernel, store: Op) -> bool {
    let value = kernel.operand(store, 1);
    kernel.def_op(value).is_some_and(|op| matches!(kernel.kind(op), OpKind::ConvertLayout {}))
}

/// Finds out whether results depend on the rows of a tile that lie beside the tensor; refuses those that the source takes from
/// elsewhere, and a copy fills with zeros.
fn check_beside(known: &mut BoxAnalysis<'_>, transfer: &mut Transfer) -> Result<(), Refusal> {
    let Some(access) = transfer.access() else { return Ok(()) };
    let mut are_dead = |number: usize, size: &Poly| {
        dead_lanes::are_dead_in(known, transfer.buffer, number, (&access.axes[number].index, size))
    };
    for (number, axis) in access.axes.iter().enumerate() {
        if axis.modulus.as_ref().is_some_and(|modulus| !are_dead(number, modulus)) {
            return Err(Refusal::WrapsStored);
        }
    }
    let rows = 1 - access.inner;
    transfer.dead_beside = matches!(&access.axes[rows].sizes[..], [size] if are_dead(rows, size));
    Ok(())
}
