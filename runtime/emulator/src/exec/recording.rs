//! Records the events of the first cluster of a launch, for `timeline`.
//!
//! An event is an access, a copy, an MMA, an arrival or a wait. Waits refer to the events that end them: those of the
//! warp by number, those of other warps by the phase of a barrier.

use std::collections::{BTreeMap, HashMap};

use super::register_use::visit;
use super::shared::Shared;
use super::step::Step;
use super::warp::{self, Warp};
use super::{Launch, State};
use crate::code::{CONSTANT, Code, Kind, MbarrierAction, NONE, Op, Reg, Window};
use crate::exec::access::resolve;
use crate::exec::bulk::Target;
use crate::timeline::{Action, Event, Group, Instruction, Key, Trace};
use rtc_ptx::Modifier;

/// Most events of a trace.
const LIMIT: u32 = 1 << 18;

/// A loop of the program: its first and its last operation.
struct Loop {
    first: u32,
    last: u32,
}

/// What is known of a warp.
#[derive(Default)]
struct Progress {
    events: Vec<Event>,
    /// Instructions since the last event.
    issued: u32,
    /// Registers that a load or an MMA will write, with its event.
    pending: HashMap<Reg, u32>,
    /// Iterations of each loop so far.
    iterations: BTreeMap<usize, u32>,
    copies: Groups,
    outgoing: Groups,
    mmas: Groups,
}

/// Events in groups that a wait names by their number.
#[derive(Default)]
struct Groups {
    committed: u32,
    open: Vec<(u32, u32)>,
}

impl Groups {
    fn add(&mut self, id: u32) {
        self.open.push((id, self.committed));
    }

    /// The events of all groups but the last, which are closed by this.
    fn take_all_but(&mut self, last: u32, keep: bool) -> Vec<u32> {
        let committed = self.committed;
        let due = |(_, group): &(u32, u32)| group + last < committed;
        let found = self.open.iter().filter(|event| due(event)).map(|(id, _)| *id).collect();
        if !keep {
            self.open.retain(|event| !due(event));
        }
        found
    }
}

/// The events of a cluster so far.
pub struct Recorder {
    warps: Vec<Progress>,
    loops: Vec<Loop>,
    /// Uses of each barrier of a block: rank and number.
    uses: HashMap<(usize, u32), u32>,
    /// Instructions by operation.
    instructions: BTreeMap<u32, u32>,
    next: u32,
}

impl Recorder {
    /// Nothing recorded yet.
    pub fn new(code: &Code) -> Recorder {
        let matters = |op: &Op| {
            matches!(
                op.kind,
                Kind::Load(_)
                    | Kind::Store(_)
                    | Kind::CopyAsync(_)
                    | Kind::Tensor(_)
                    | Kind::Bulk(_)
                    | Kind::Mma(_)
                    | Kind::Product(_)
            )
        };
        let back = |(pc, op): (usize, &Op)| match op.kind {
            Kind::Branch(first) if first as usize <= pc => Some(Loop { first, last: pc as u32 }),
            _ => None,
        };
        let mut loops: Vec<Loop> = code.ops.iter().enumerate().filter_map(back).collect();
        // A loop that only waits, as for an mbarrier, has no iterations of interest.
        loops.retain(|l| code.ops[l.first as usize..=l.last as usize].iter().any(matters));
        loops.sort_by_key(|l| l.last - l.first);
        let (warps, uses, instructions) = Default::default();
        Recorder { warps, loops, uses, instructions, next: 0 }
    }

    /// Whether it records this cluster.
    pub fn watches(&self, cluster: u32) -> bool {
        cluster == 0 && self.next < LIMIT
    }

    /// A barrier of a block was used to the end.
    pub fn released(&mut self, cluster: u32, rank: usize, id: u32) {
        if cluster == 0 {
            *self.uses.entry((rank, id)).or_default() += 1;
        }
    }

    /// All events.
    pub fn finish(self, code: &Code, warps: usize, warps_per_block: u32) -> Trace {
        let mut order: Vec<(u32, u32)> = self.instructions.iter().map(|(pc, index)| (*index, *pc)).collect();
        order.sort_unstable();
        let instruction = |(_, pc): (u32, u32)| {
            let origin = code.origins[pc as usize];
            let (text, location) = (code.instruction(origin), code.location(origin.location));
            Instruction { ptx_line: origin.line, text, location }
        };
        let mut events: Vec<Vec<Event>> = self.warps.into_iter().map(|progress| progress.events).collect();
        events.resize_with(warps, Vec::new);
        Trace {
            warps: events,
            instructions: order.into_iter().map(instruction).collect(),
            warps_per_block,
            is_truncated: self.next >= LIMIT,
        }
    }

    fn progress(&mut self, warp: u32) -> &mut Progress {
        let warp = warp as usize;
        if self.warps.len() <= warp {
            self.warps.resize_with(warp + 1, Progress::default);
        }
        &mut self.warps[warp]
    }

    /// The iteration of the innermost loop around an operation.
    fn iteration(&mut self, warp: u32, pc: u32) -> Option<u32> {
        let index = self.loops.iter().position(|l| (l.first..=l.last).contains(&pc))?;
        Some(self.progress(warp).iterations.get(&index).copied().unwrap_or(0))
    }

    /// Adds an event of a warp; gives its number.
    fn add(&mut self, warp: u32, pc: u32, action: Action) -> u32 {
        let iteration = self.iteration(warp, pc);
        let count = self.instructions.len() as u32;
        let instruction = *self.instructions.entry(pc).or_insert(count);
        let id = self.next;
        self.next += 1;
        let progress = self.progress(warp);
        let issued = std::mem::take(&mut progress.issued);
        progress.events.push(Event { id, instruction, issued, iteration, action });
        id
    }

    /// An operation is issued: `used` are its registers.
    fn issue(&mut self, warp: u32, (pc, op): (u32, &Op), used: &[Reg]) {
        let progress = self.progress(warp);
        progress.issued += op.weight;
        if progress.pending.is_empty() {
            return;
        }
        let mut events: Vec<u32> = used.iter().filter_map(|register| progress.pending.get(register).copied()).collect();
        if events.is_empty() {
            return;
        }
        events.sort_unstable();
        events.dedup();
        progress.pending.retain(|_, event| !events.contains(event));
        self.add(warp, pc, Action::After { events, reads: false });
    }

    /// A jump is taken or not.
    fn jump(&mut self, warp: u32, pc: u32, taken: bool) {
        for index in 0..self.loops.len() {
            if self.loops[index].last == pc {
                let iterations = self.progress(warp).iterations.entry(index).or_default();
                *iterations = if taken { *iterations + 1 } else { 0 };
            }
        }
    }
}

impl Warp {
    /// Records that an operation is issued.
    #[cold]
    #[inline(never)]
    pub(super) fn record_issue(
        &self,
        launch: &Launch<'_>,
        state: &mut State<'_>,
        shared: &Shared,
        group: &warp::Group,
        taken: bool,
    ) {
        let warp = self.index(launch, shared);
        let (pc, base) = (group.pc, group.frame().registers);
        let Some(recorder) = &mut state.recorder else { return };
        let op = &launch.code.ops[pc as usize];
        let mut used: Vec<Reg> = Vec::new();
        match &op.kind {
            Kind::Alu(_, to, sources) => {
                used.extend(
                    sources.iter().chain([to]).filter(|r| **r & CONSTANT == 0 && **r != NONE).map(|r| base + r),
                );
            }
            kind => visit(kind, &mut |register, _| used.push(base + register)),
        }
        recorder.issue(warp, (pc, op), &used);
        if let Kind::Branch(first) = op.kind
            && first <= pc
        {
            recorder.jump(warp, pc, taken);
        }
    }
}

impl Step<'_, '_> {
    /// The recorder, if it records this cluster.
    fn recorder(&mut self) -> Option<&mut Recorder> {
        let cluster = self.shared.id;
        self.state.recorder.as_deref_mut().filter(|recorder| recorder.watches(cluster))
    }

    /// Records an operation that is about to be executed.
    #[cold]
    #[inline(never)]
    pub(super) fn record_operation(&mut self, kind: &Kind) {
        let (warp, pc, lanes) = (self.index(), self.group.pc, u64::from(self.active.count_ones()));
        let base = self.frame.registers;
        match kind {
            Kind::Load(load) => {
                let bytes = u64::from(load.bytes) * load.registers.len() as u64;
                if let Some((bytes, is_global)) = self.extent(load.address.window, load.address, bytes) {
                    let Some(recorder) = self.recorder() else { return };
                    let id = recorder.add(warp, pc, Action::Load { bytes, is_global });
                    let written = load.registers.iter().filter(|r| **r != NONE).map(|r| (base + r, id));
                    recorder.progress(warp).pending.extend(written);
                }
            }
            Kind::Store(store) => {
                let bytes = u64::from(store.bytes) * store.sources.len() as u64;
                self.record_store(store.address.window, store.address, bytes);
            }
            Kind::Atomic(atomic) => {
                let bytes = u64::from(atomic.bytes) * atomic.sources.len() as u64;
                self.record_store(atomic.address.window, atomic.address, bytes);
            }
            Kind::CopyAsync(copy) => {
                let to = self.addresses(copy.to)[self.active.trailing_zeros() as usize & 31] as u32;
                let bytes = u64::from(copy.bytes) * lanes;
                let Some(recorder) = self.recorder() else { return };
                let group = Group::Committed(recorder.progress(warp).copies.committed);
                let id = recorder.add(warp, pc, Action::Copy { bytes, to, group });
                recorder.progress(warp).copies.add(id);
            }
            Kind::CopyCommit => self.record_commit(|progress| &mut progress.copies),
            Kind::BulkCommit => self.record_commit(|progress| &mut progress.outgoing),
            Kind::CopyWait(groups) => {
                let Some(recorder) = self.recorder() else { return };
                let copies = &mut recorder.progress(warp).copies;
                if groups.is_none() {
                    copies.committed += 1;
                }
                let events = copies.take_all_but(groups.unwrap_or(0), false);
                recorder.add(warp, pc, Action::After { events, reads: false });
            }
            Kind::BulkWait(groups, reads) => {
                let Some(recorder) = self.recorder() else { return };
                let events = recorder.progress(warp).outgoing.take_all_but(*groups, *reads);
                recorder.add(warp, pc, Action::After { events, reads: *reads });
            }
            Kind::CopyArrive(address, _) => {
                let keys = self.phases(address.window, self.addresses(*address));
                let Some(recorder) = self.recorder() else { return };
                let events: Vec<u32> = recorder.progress(warp).copies.open.iter().map(|(id, _)| *id).collect();
                for key in keys {
                    recorder.add(warp, pc, Action::Arrive { key, events: events.clone() });
                }
            }
            Kind::Mbarrier(op) if matches!(op.action, MbarrierAction::Arrive | MbarrierAction::ArriveDrop) => {
                for key in self.phases(op.address.window, self.addresses(op.address)) {
                    let Some(recorder) = self.recorder() else { return };
                    recorder.add(warp, pc, Action::Arrive { key, events: Vec::new() });
                }
            }
            Kind::ClusterArrive(_) => {
                let key = Key::Cluster(self.shared.cluster.phase);
                let Some(recorder) = self.recorder() else { return };
                recorder.add(warp, pc, Action::Arrive { key, events: Vec::new() });
            }
            Kind::ClusterWait => {
                let lane = self.active.trailing_zeros() as usize & 31;
                let key = Key::Cluster(self.warp.cluster_phase[lane]);
                let Some(recorder) = self.recorder() else { return };
                recorder.add(warp, pc, Action::Await { key });
            }
            Kind::Exit | Kind::Return if self.active == self.warp.live && self.group.frames.len() == 1 => {
                let Some(recorder) = self.recorder() else { return };
                recorder.add(warp, pc, Action::End);
            }
            _ => {}
        }
    }

    /// Records an instruction that the whole warp has come to.
    pub(super) fn record_whole(&mut self, kind: &Kind) {
        let (warp, pc, base) = (self.index(), self.group.pc, self.frame.registers);
        let Some(recorder) = self.recorder() else { return };
        match kind {
            Kind::Mma(mma) => {
                let flops = scaled(kind.matrix_flops(), mma.a_type);
                let id = recorder.add(warp, pc, Action::Mma { flops, is_async: false });
                recorder.progress(warp).pending.extend(mma.d.iter().map(|r| (base + r, id)));
            }
            Kind::Product(product) => {
                let flops = scaled(kind.matrix_flops(), product.a_type);
                let id = recorder.add(warp, pc, Action::Mma { flops, is_async: true });
                recorder.progress(warp).mmas.add(id);
            }
            Kind::ProductCommit => recorder.progress(warp).mmas.committed += 1,
            Kind::ProductWait(groups) => {
                let events = recorder.progress(warp).mmas.take_all_but(*groups, false);
                recorder.add(warp, pc, Action::After { events, reads: false });
            }
            Kind::LoadMatrix(to, ..) => {
                let bytes = 128 * to.len() as u64;
                let id = recorder.add(warp, pc, Action::Load { bytes, is_global: false });
                recorder.progress(warp).pending.extend(to.iter().map(|r| (base + r, id)));
            }
            Kind::StoreMatrix(from, ..) => {
                recorder.add(warp, pc, Action::Store { bytes: 128 * from.len() as u64, is_global: false });
            }
            _ => {}
        }
    }

    /// Records an arrival at a barrier of the block, and perhaps the wait.
    pub(super) fn record_barrier(&mut self, id: u32, arrive_only: bool) {
        let (warp, pc, rank) = (self.index(), self.group.pc, self.shared.rank);
        let Some(recorder) = self.recorder() else { return };
        let number = recorder.uses.get(&(rank, id)).copied().unwrap_or(0);
        let key = Key::Barrier(rank as u32, id, number);
        let action = if arrive_only { Action::Arrive { key, events: Vec::new() } } else { Action::Meet { key } };
        recorder.add(warp, pc, action);
    }

    /// Records that a wait on mbarriers is over.
    pub(super) fn record_wait(&mut self, window: Window, addresses: [u64; 32]) {
        let (warp, pc) = (self.index(), self.group.pc);
        for key in self.phases(window, addresses) {
            let Key::Phase(block, address, phase) = key else { continue };
            let Some(recorder) = self.recorder() else { return };
            recorder.add(warp, pc, Action::Await { key: Key::Phase(block, address, phase.wrapping_sub(1)) });
        }
    }

    /// Records a bulk copy into shared memory.
    pub(super) fn record_copy(&mut self, targets: &[Target]) {
        let (warp, pc) = (self.index(), self.group.pc);
        let phase = |target: &Target| {
            let (block, address) = target.barrier;
            let barrier = self.shared.blocks[block].mbarriers.get(&address)?;
            Some(Key::Phase(block as u32, address, barrier.phase))
        };
        let group = Group::Arriving(targets.iter().filter_map(phase).collect());
        let (bytes, to) = targets.first().map_or((0, 0), |target| (u64::from(target.bytes), target.to.1));
        let Some(recorder) = self.recorder() else { return };
        recorder.add(warp, pc, Action::Copy { bytes, to, group });
    }

    /// Records a bulk copy out of shared memory.
    pub(super) fn record_copy_out(&mut self, bytes: u32) {
        let (warp, pc) = (self.index(), self.group.pc);
        let Some(recorder) = self.recorder() else { return };
        let id = recorder.add(warp, pc, Action::CopyOut { bytes: bytes.into() });
        recorder.progress(warp).outgoing.add(id);
    }

    fn record_store(&mut self, window: Window, address: crate::code::AddressOperand, bytes: u64) {
        let (warp, pc) = (self.index(), self.group.pc);
        if let Some((bytes, is_global)) = self.extent(window, address, bytes)
            && let Some(recorder) = self.recorder()
        {
            recorder.add(warp, pc, Action::Store { bytes, is_global });
        }
    }

    fn record_commit(&mut self, groups: impl Fn(&mut Progress) -> &mut Groups) {
        let warp = self.index();
        if let Some(recorder) = self.recorder() {
            groups(recorder.progress(warp)).committed += 1;
        }
    }

    /// Bytes that an access of the active lanes moves, of global memory in whole sectors; and whether it is global. Nothing
    /// for other memory.
    fn extent(&self, window: Window, address: crate::code::AddressOperand, bytes: u64) -> Option<(u64, bool)> {
        let addresses = self.addresses(address);
        let mut places: Vec<(Window, u64)> =
            self.lanes().map(|lane| resolve(window, addresses[lane as usize])).collect();
        let (window, _) = *places.first()?;
        places.sort_unstable_by_key(|(_, at)| *at);
        places.dedup_by_key(|(_, at)| *at);
        match window {
            Window::Global => {
                let sectors = places.iter().flat_map(|(_, at)| at / 32..=(at + bytes.max(1) - 1) / 32);
                let mut sectors: Vec<u64> = sectors.collect();
                sectors.dedup();
                Some((32 * sectors.len() as u64, true))
            }
            Window::Shared => Some((bytes * places.len() as u64, false)),
            _ => None,
        }
    }

    /// The present phases of the mbarriers that the active lanes name, each once.
    fn phases(&self, window: Window, addresses: [u64; 32]) -> Vec<Key> {
        let mut keys = Vec::new();
        for lane in self.lanes() {
            let Ok((block, at)) = self.shared.mbarrier_at(window, addresses[lane as usize]) else { continue };
            let Some(barrier) = self.shared.blocks[block].mbarriers.get(&at) else { continue };
            let key = Key::Phase(block as u32, at, barrier.phase);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }
}

/// Operations in units of those on 16-bit floats: half as many of 8 bits count, and so on.
fn scaled(flops: u64, ty: Modifier) -> u64 {
    match ty {
        Modifier::E4m3 | Modifier::E5m2 | Modifier::S8 | Modifier::U8 => flops / 2,
        Modifier::Tf32 => flops * 2,
        Modifier::F64 => flops * 16,
        _ => flops,
    }
}
