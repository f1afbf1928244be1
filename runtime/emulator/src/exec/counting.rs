//! Counts the work of a launch, for `counters`.

use std::collections::{BTreeMap, HashSet};

use super::step::Step;
use crate::code::{Code, Kind, Window};
use crate::counters::{Class, Count, Counters, InstructionCount, SECTOR, SharedTraffic, Traffic};
use crate::exec::access::resolve;
use crate::fault::Access;

/// Words of 4 bytes that shared memory gives at once, one from each bank.
const BANKS: u64 = 32;

/// The counters of a launch that runs.
pub struct Counting {
    /// How often each operation was executed.
    executed: Vec<Count>,
    /// The accesses of each operation that has any, and jumps of it that split lanes.
    accesses: BTreeMap<u32, Accesses>,
    /// Bits for sectors of global memory that were read and written.
    read: HashSet<u64>,
    written: HashSet<u64>,
    counters: Counters,
}

/// The accesses of an operation.
#[derive(Clone, Copy, Default)]
struct Accesses {
    global: Traffic,
    /// Whether it writes global memory.
    writes: bool,
    shared: SharedTraffic,
    /// How often it split the lanes of a warp.
    divergent: u64,
}

impl Counting {
    /// Nothing counted yet.
    pub fn new(code: &Code) -> Counting {
        Counting {
            executed: vec![Count::default(); code.ops.len()],
            accesses: BTreeMap::new(),
            read: HashSet::new(),
            written: HashSet::new(),
            counters: Counters::default(),
        }
    }

    /// An operation was executed by some lanes.
    pub fn executed(&mut self, pc: u32, active: u32) {
        let count = &mut self.executed[pc as usize];
        count.warps += 1;
        count.threads += u64::from(active.count_ones());
    }

    /// All counters.
    pub fn finish(self, code: &Code) -> Counters {
        let Counting { executed, accesses, read, written, mut counters } = self;
        let mut instructions: BTreeMap<Class, Count> = BTreeMap::new();
        // Of the operations of an instruction, which lie side by side.
        let mut own = Accesses::default();
        let all = code.ops.iter().zip(&code.origins).zip(&executed).zip(0..);
        for (((op, origin), count), pc) in all.filter(|((_, count), _)| count.warps > 0) {
            if let Some(found) = accesses.get(&pc) {
                own = *found;
            }
            if matches!(op.kind, Kind::Branch(_)) && op.guard != crate::code::NONE {
                counters.branches += count.warps;
            }
            let work = op.kind.matrix_flops();
            counters.matrix_flops += work * count.warps;
            if op.weight == 0 {
                continue;
            }
            let text = code.instruction(*origin);
            let class = class(&op.kind, &text);
            counters.thread_flops += flops(class, &text) * count.threads;
            let sum = instructions.entry(class).or_default();
            sum.warps += count.warps;
            sum.threads += count.threads;
            let Accesses { global, writes, shared, divergent } = std::mem::take(&mut own);
            counters.by_instruction.push(InstructionCount {
                ptx_line: origin.line,
                location: code.location(origin.location),
                class,
                executed: *count,
                global,
                writes,
                shared,
                divergent,
            });
        }
        counters.instructions = instructions;
        counters.distinct_read = read.len() as u64 * SECTOR;
        counters.distinct_written = written.len() as u64 * SECTOR;
        counters
    }

    fn global(&mut self, pc: u32, ranges: impl Iterator<Item = (u64, u64)>, access: Access, copy: bool) {
        let mut sectors: Vec<u64> = Vec::new();
        let mut bytes = 0;
        for (address, length) in ranges.filter(|(_, length)| *length > 0) {
            sectors.extend(address / SECTOR..=(address + length - 1) / SECTOR);
            bytes += length;
        }
        sectors.sort_unstable();
        sectors.dedup();
        if sectors.is_empty() {
            return;
        }
        let traffic: &mut Traffic = match (access, copy) {
            (Access::Read, false) => &mut self.counters.loads,
            (Access::Write, false) => &mut self.counters.stores,
            (Access::Atomic, false) => &mut self.counters.atomics,
            (Access::Read, true) => &mut self.counters.copies_in,
            (_, true) => &mut self.counters.copies_out,
        };
        let own = self.accesses.entry(pc).or_default();
        own.writes |= access != Access::Read;
        for traffic in [traffic, &mut own.global] {
            traffic.requests += 1;
            traffic.sectors += sectors.len() as u64;
            traffic.bytes += bytes;
        }
        if access != Access::Write {
            self.read.extend(&sectors);
        }
        if access != Access::Read {
            self.written.extend(&sectors);
        }
    }

    /// Lanes access shared memory; wide accesses are split into groups of as many lanes as fill the banks once.
    fn shared(&mut self, pc: u32, mut addresses: Vec<u64>, bytes: u64) {
        let lanes = (4 * BANKS / bytes.max(4)).max(1) as usize;
        let mut taken = 0;
        for group in addresses.chunks(lanes) {
            let mut words: Vec<u64> =
                group.iter().flat_map(|address| address / 4..(address + bytes).div_ceil(4)).collect();
            words.sort_unstable();
            words.dedup();
            let mut load = [0u64; BANKS as usize];
            words.iter().for_each(|word| load[(word % BANKS) as usize] += 1);
            taken += load.into_iter().max().unwrap_or(0);
        }
        addresses.sort_unstable();
        addresses.dedup();
        let distinct = addresses.len() as u64 * bytes;
        let own = &mut self.accesses.entry(pc).or_default().shared;
        for traffic in [&mut self.counters.shared, own] {
            traffic.requests += 1;
            traffic.turns += taken;
            traffic.conflicts += taken.saturating_sub(distinct.div_ceil(4 * BANKS).max(1));
            traffic.bytes += distinct;
        }
    }
}

impl Step<'_, '_> {
    /// Counts an access of the active lanes.
    #[cold]
    #[inline(never)]
    pub(super) fn count_access(&mut self, (window, addresses): (Window, &[u64; 32]), bytes: u32, access: Access) {
        let pc = self.group.pc;
        let active: Vec<u64> = self.lanes().map(|lane| addresses[lane as usize]).collect();
        let Some(counting) = self.state.counting.as_mut().filter(|_| !active.is_empty()) else { return };
        let bytes = u64::from(bytes);
        match resolve(window, active[0]) {
            (Window::Global, _) => {
                // Lanes at one address move it once.
                let mut places = active;
                if access != Access::Atomic {
                    places.sort_unstable();
                    places.dedup();
                }
                counting.global(pc, places.iter().map(|address| (*address, bytes)), access, false);
            }
            (Window::Shared, _) => {
                let within = |address: &u64| resolve(window, *address).1;
                counting.shared(pc, active.iter().map(within).collect(), bytes);
            }
            _ => {}
        }
    }

    /// Counts the rows of 16 bytes that so many matrices of `ldmatrix` and `stmatrix` have.
    pub(super) fn count_rows(&mut self, (window, addresses): (Window, &[u64; 32]), matrices: usize, access: Access) {
        if self.state.counting.is_some() {
            let all = self.active;
            self.active = if matrices >= 4 { u32::MAX } else { (1 << (8 * matrices)) - 1 };
            self.count_access((window, addresses), 16, access);
            self.active = all;
        }
    }

    /// Counts ranges of global memory that one asynchronous copy moves.
    pub(super) fn count_copy(&mut self, ranges: &[(u64, u64)], access: Access) {
        if let Some(counting) = &mut self.state.counting {
            counting.global(self.group.pc, ranges.iter().copied(), access, true);
        }
    }

    /// Counts a jump that parts the lanes.
    pub(super) fn count_divergence(&mut self) {
        if let Some(counting) = &mut self.state.counting {
            counting.counters.divergent_branches += 1;
            counting.accesses.entry(self.group.pc).or_default().divergent += 1;
        }
    }
}

impl Kind {
    /// Multiplications and additions of a warp's part of a product.
    pub(super) fn matrix_flops(&self) -> u64 {
        match self {
            Kind::Mma(mma) => 2 * u64::from(mma.m) * u64::from(mma.n) * u64::from(mma.k),
            // A warp has 16 of 64 rows.
            Kind::Product(product) => 2 * 16 * u64::from(product.n) * u64::from(product.k),
            _ => 0,
        }
    }
}

/// The class of an operation; `text` is its instruction.
fn class(kind: &Kind, text: &str) -> Class {
    let window = match kind {
        Kind::Load(load) => Some(load.address.window),
        Kind::Store(store) => Some(store.address.window),
        _ => None,
    };
    match (kind, window) {
        (_, Some(Window::Global | Window::Generic)) => return Class::Global,
        (_, Some(Window::Shared)) | (Kind::LoadMatrix(..) | Kind::StoreMatrix(..), _) => return Class::Shared,
        (_, Some(_)) => return Class::Local,
        (Kind::Atomic(_), _) => return Class::Atomic,
        (Kind::CopyAsync(_) | Kind::Tensor(_) | Kind::Bulk(_), _) => return Class::Copy,
        (Kind::Mma(_) | Kind::Product(_), _) => return Class::Matrix,
        (Kind::Warp(..) | Kind::ActiveMask(_), _) => return Class::Warp,
        (Kind::Branch(_) | Kind::BranchTable(..) | Kind::Call(_) | Kind::Return | Kind::Exit | Kind::Trap, _) => {
            return Class::Control;
        }
        (Kind::Alu(..), _) => {}
        (Kind::Special(..) | Kind::FrameAddress(..), _) => return Class::Move,
        (Kind::IsSpace(..) | Kind::MapShared(..) | Kind::RankOf(..) | Kind::MaxRegisters | Kind::Nothing, _) => {
            return Class::Other;
        }
        _ => return Class::Sync,
    }
    let (opcode, types) = words(text);
    match opcode {
        "mov" => Class::Move,
        "cvt" | "cvt_pack" => Class::Convert,
        "setp" | "set" | "selp" | "slct" | "testp" => Class::Compare,
        "sqrt" | "rsqrt" | "rcp" | "ex2" | "lg2" | "sin" | "cos" | "tanh" => Class::Special,
        _ if types.contains(&"f64") => Class::Fp64,
        _ if types.contains(&"f32") || types.contains(&"f32x2") => Class::Fp32,
        _ if types.iter().any(|ty| ["f16", "f16x2", "bf16", "bf16x2"].contains(ty)) => Class::Half,
        _ => Class::Integer,
    }
}

/// Operations on floats of a thread.
fn flops(class: Class, text: &str) -> u64 {
    let (opcode, types) = words(text);
    if !matches!(class, Class::Fp32 | Class::Half | Class::Fp64 | Class::Special) {
        return 0;
    }
    let each = match opcode {
        "fma" | "mad" => 2,
        "neg" | "abs" | "copysign" => 0,
        _ => 1,
    };
    if types.iter().any(|ty| ty.ends_with("x2")) { 2 * each } else { each }
}

/// The opcode of an instruction, and the rest.
fn words(text: &str) -> (&str, Vec<&str>) {
    let text = if text.starts_with('@') { text.split_once(' ').map_or("", |(_, rest)| rest) } else { text };
    let mut words = text.split_whitespace().next().unwrap_or("").split('.');
    (words.next().unwrap_or(""), words.collect())
}
