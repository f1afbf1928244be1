//! `wgmma`: products of a warp group, warp by warp, that run asynchronously.
//!
//! A product changes its accumulators when its group is waited for, as late as it may. Until then they and the registers
//! of A must not be touched, and its operands in shared memory must stay; both are checked. The four warps of a group
//! multiply together: a wait ends when all four have committed, and then memory is free of the reads of all four.
//! Floats are added as tensor cores add them (`numeric/tensor.rs`).

use std::array::from_fn;
use std::ops::Range;

use rtc_ptx::Modifier::{self, *};
use rtc_ptx::types::bits;

use super::fragment;
use super::hazard::clock::Epoch;
use super::hazard::shadow::How;
use super::hazard::{Agent, Touch};
use super::matrix::{self, format_of};
use super::matrix_descriptor::{self, Descriptor};
use super::register_use::visit;
use super::shared::Shared;
use super::step::Step;
use super::warp::Warp;
use super::{Launch, place};
use crate::code::{CONSTANT, Kind, MatrixA, Product, Reg, Src};
use crate::fault::{Access, FaultKind};
use crate::numeric::format::f16_value;
use crate::numeric::tensor;
use crate::numeric::tile::{self, COLUMNS, Columns, ROWS, Results, Rows, WORDS};

/// A product that was not waited for yet.
struct Running {
    pc: u32,
    base: usize,
    /// Number of its group.
    group: u32,
    /// The warp's rows of A, if they come from shared memory, in two eights: of each word the rows.
    a: Vec<[[u32; 8]; WORDS]>,
    /// Columns of B in eights: of each word the columns.
    b: Vec<[[u32; COLUMNS]; WORDS]>,
    /// False: D is overwritten.
    adds: bool,
}

/// The products of a warp and the registers that they use.
#[derive(Default)]
pub struct Products {
    /// Whether the program has products at all.
    pub checked: bool,
    running: Vec<Running>,
    committed: u32,
    /// Number of the last product.
    last: u32,
    /// For each register 1 more than the fences before its last ordinary write.
    written: Vec<u32>,
    fences: u32,
    /// For each register the product that uses it plus 1, or 0.
    users: Vec<u32>,
}

impl Products {
    /// No products yet; nothing was fenced.
    pub fn new(checked: bool, registers: u32) -> Products {
        let length = if checked { registers as usize } else { 0 };
        Products { checked, written: vec![1; length], users: vec![0; length], ..Products::default() }
    }

    /// `wgmma.fence`
    pub fn fence(&mut self) {
        self.fences += 1;
    }

    fn user(&self, register: usize) -> Option<u32> {
        self.users.get(register).and_then(|user| user.checked_sub(1))
    }

    fn touch(&mut self, launch: &Launch<'_>, base: usize, register: u32, write: bool) -> Result<(), FaultKind> {
        let index = base + register as usize;
        if let Some(pc) = self.user(index) {
            let access = if write { Access::Write } else { Access::Read };
            let register = name(launch, base, register);
            return Err(FaultKind::RegisterInUse { access, register, product: place(launch.code, pc) });
        }
        if write {
            if self.written.len() <= index {
                self.written.resize(index + 1, 1);
            }
            self.written[index] = self.fences + 1;
        }
        Ok(())
    }

    /// Looks at an arithmetic operation.
    #[inline(never)]
    pub fn alu(
        &mut self,
        launch: &Launch<'_>,
        base: usize,
        to: Reg,
        sources: &[Src; 4],
        active: u32,
    ) -> Result<(), (FaultKind, u32)> {
        if active == 0 {
            return Ok(());
        }
        if !self.running.is_empty() {
            for source in sources.iter().filter(|s| **s & CONSTANT == 0) {
                self.touch(launch, base, *source, false).map_err(|kind| (kind, active.trailing_zeros()))?;
            }
        }
        self.touch(launch, base, to, true).map_err(|kind| (kind, active.trailing_zeros()))
    }

    /// Looks at another operation.
    pub fn operation(
        &mut self,
        launch: &Launch<'_>,
        base: usize,
        kind: &Kind,
        active: u32,
    ) -> Result<(), (FaultKind, u32)> {
        if active == 0 {
            return Ok(());
        }
        let mut result = Ok(());
        visit(kind, &mut |register, write| {
            if result.is_ok() {
                result = self.touch(launch, base, register, write);
            }
        });
        result.map_err(|kind| (kind, active.trailing_zeros()))
    }

    /// Checks the registers of a product that starts.
    fn check(&self, launch: &Launch<'_>, base: usize, product: &Product) -> Result<(), FaultKind> {
        let operands: &[Reg] = match &product.a {
            MatrixA::Registers(list) => list,
            MatrixA::Shared(..) => &[],
        };
        for (register, accumulator) in product.d.iter().map(|r| (*r, true)).chain(operands.iter().map(|r| (*r, false)))
        {
            let index = base + register as usize;
            if let Some(pc) = self.user(index) {
                let Kind::Product(other) = &launch.code.ops[pc as usize].kind else { continue };
                let in_d = other.d.contains(&register);
                // Products with the same accumulators follow one another; A may be read by several.
                let allowed = if in_d { accumulator && other.d == product.d } else { !accumulator };
                if !allowed {
                    let access = if accumulator { Access::Write } else { Access::Read };
                    let register = name(launch, base, register);
                    return Err(FaultKind::RegisterInUse { access, register, product: place(launch.code, pc) });
                }
            } else if self.written.get(index).copied().unwrap_or(1) > self.fences {
                return Err(FaultKind::MissingProductFence { register: name(launch, base, register), accumulator });
            }
        }
        Ok(())
    }

    /// Notes which registers the products in flight use.
    fn mark(&mut self, launch: &Launch<'_>) {
        self.users.fill(0);
        for running in &self.running {
            let Kind::Product(product) = &launch.code.ops[running.pc as usize].kind else { continue };
            let operands: &[Reg] = match &product.a {
                MatrixA::Registers(list) => list,
                MatrixA::Shared(..) => &[],
            };
            for register in product.d.iter().chain(operands) {
                let index = running.base + *register as usize;
                if self.users.len() <= index {
                    self.users.resize(index + 1, 0);
                }
                self.users[index] = running.pc + 1;
            }
        }
    }

    /// A dot without a wait.
    pub fn unfinished(&self) -> Option<u32> {
        self.running.first().map(|running| running.pc)
    }
}

impl Step<'_, '_> {
    /// The name of a register in the kernel.
    pub(super) fn register_name(&self, register: u32) -> String {
        name(self.launch, self.base(), register)
    }
}

/// The name of a register in the kernel.
fn name(launch: &Launch<'_>, base: usize, register: u32) -> String {
    let names = &launch.code.functions[launch.kernel].names;
    let found = names.iter().filter(|_| base == 0).find_map(|(name, first, count)| match count {
        None => (register == *first).then(|| name.clone()),
        Some(n) => (*first..first + n).contains(&register).then(|| format!("{name}{}", register - first)),
    });
    found.unwrap_or_else(|| format!("number {register}"))
}

impl Step<'_, '_> {
    /// `wgmma.mma_async`
    pub(super) fn product(&mut self, product: &Product) -> Result<(), (FaultKind, u32)> {
        let fail = |kind| (kind, 0);
        if self.warp.id as usize / 4 * 4 + 4 > self.shared.own().products.len() {
            let text = "the block has no four warps for a group".to_string();
            return Err(fail(FaultKind::InvalidInstruction(text)));
        }
        self.warp.products.check(self.launch, self.base(), product).map_err(fail)?;
        let uniform = |source: Src, what: &str| {
            let lanes = self.source(source);
            match lanes.iter().position(|value| *value != lanes[0]) {
                None => Ok(lanes[0]),
                Some(lane) => {
                    let text = format!("{what} differs between the lanes of a warp");
                    Err((FaultKind::InvalidInstruction(text), lane as u32))
                }
            }
        };
        let adds = uniform(product.scale_d, "scale-d")? & 1 == 1;
        let b = uniform(product.b, "the descriptor of B")?;
        let a = match &product.a {
            MatrixA::Shared(source, _) => uniform(*source, "the descriptor of A")?,
            MatrixA::Registers(_) => 0,
        };
        let warp = self.index();
        let mut epoch = Epoch::default();
        let place = |descriptor: Descriptor, rows| (descriptor, descriptor.pieces(rows));
        let b = place(self.warp.describe(b, product.b_type, product.b_transposed).map_err(fail)?, product.n);
        let a = match product.a {
            MatrixA::Shared(_, transposed) => {
                Some(place(self.warp.describe(a, product.a_type, transposed).map_err(fail)?, 64))
            }
            MatrixA::Registers(_) => None,
        };
        let rank = self.shared.rank;
        let length = self.shared.own().bytes.len();
        if let Some(hazards) = &mut self.shared.hazards {
            epoch = hazards.issue(warp, Agent::Products(warp));
        }
        for (_, pieces) in [Some(&b), a.as_ref()].into_iter().flatten() {
            for range in matrix_descriptor::ranges(pieces) {
                let bytes = range.len() as u32;
                super::access::within(crate::code::Window::Shared, Access::Read, range.start as u64, bytes, length)
                    .map_err(fail)?;
                if let Some(hazards) = &mut self.shared.hazards {
                    let touch = Touch { warp, epoch, how: How::Bulk, pc: self.warp.pc, lane: 0, stride: 0 };
                    let result = hazards.read(rank, range, touch);
                    self.launch.judged(result, Access::Read).map_err(fail)?;
                }
            }
        }
        self.warp.products.last = epoch.time;
        let memory = &self.shared.own().bytes;
        let words = |(descriptor, pieces): &(Descriptor, Vec<u32>), rows: Range<usize>| {
            let eights = pieces[2 * rows.start..2 * rows.end].as_chunks::<16>().0;
            eights.iter().map(|pieces| descriptor.words(memory, pieces)).collect()
        };
        let b = words(&b, 0..product.n as usize);
        let first = self.warp.id as usize % 4 * ROWS;
        let a = a.map(|a| words(&a, first..first + ROWS)).unwrap_or_default();
        let group = self.warp.products.committed;
        self.warp.products.running.push(Running { pc: self.warp.pc, base: self.base(), group, a, b, adds });
        self.warp.products.mark(self.launch);
        Ok(())
    }

    /// `wgmma.commit_group`
    pub(super) fn product_commit(&mut self) {
        self.warp.products.committed += 1;
        let (id, last) = (self.warp.id as usize, self.warp.products.last);
        self.shared.own_mut().products[id].push(last);
        // Other warps of the group may wait for this.
        self.shared.completions += 1;
        self.shared.events += 1;
    }

    /// `wgmma.wait_group`: ends all but the last `groups` groups; false if other warps have not committed them yet.
    pub(super) fn product_wait(&mut self, groups: u32) -> bool {
        let due = self.warp.products.committed.saturating_sub(groups);
        let first = self.warp.id as usize / 4 * 4;
        let (rank, index) = (self.shared.rank, self.index());
        let Shared { blocks, hazards, .. } = self.shared;
        let Some(peers) = blocks[rank].products.get(first..first + 4).filter(|_| due > 0) else { return true };
        if peers.iter().any(|commits| commits.len() < due as usize) {
            return false;
        }
        if let (Some(hazards), Some(last)) = (hazards, (due as usize).checked_sub(1)) {
            for (i, commits) in peers.iter().enumerate() {
                let peer = index - self.warp.id + (first + i) as u32;
                let agent = hazards.agents.number(Agent::Products(peer));
                hazards.learn(index, Epoch { agent, time: commits[last] });
            }
        }
        let (now, later): (Vec<Running>, Vec<Running>) =
            std::mem::take(&mut self.warp.products.running).into_iter().partition(|running| running.group < due);
        self.warp.products.running = later;
        for running in &now {
            let Kind::Product(product) = &self.launch.code.ops[running.pc as usize].kind else { continue };
            self.warp.multiply(running, product);
        }
        if !now.is_empty() {
            self.warp.products.mark(self.launch);
        }
        true
    }
}

impl Warp {
    fn describe(&self, bits_of: u64, ty: Modifier, transposed: bool) -> Result<Descriptor, FaultKind> {
        let size = bits(ty).unwrap_or(16) / 8;
        Descriptor::new(bits_of, size, transposed).map_err(FaultKind::Unsupported)
    }

    fn multiply(&mut self, running: &Running, product: &Product) {
        let mut a: [[u32; WORDS]; ROWS] = match &product.a {
            MatrixA::Shared(..) => from_fn(|row| running.a[row / 8].map(|word| word[row % 8])),
            MatrixA::Registers(list) => {
                let registers = list.iter().map(|register| &self.registers[running.base + *register as usize]);
                fragment::rows(registers, |bits| bits as u32)
            }
        };
        match product.a_type {
            _ if product.d_type == S32 => self.results(running, product, |b, c| {
                matrix::whole(&a, b, c, (product.a_type, product.b_type), product.saturate)
            }),
            Tf32 => self.floats::<1>(running, product, &mut a),
            E4m3 | E5m2 => self.floats::<4>(running, product, &mut a),
            _ => self.floats::<2>(running, product, &mut a),
        }
    }

    /// Dots of floats, with so many per word.
    fn floats<const PER: usize>(&mut self, running: &Running, product: &Product, a: &mut [[u32; WORDS]; ROWS]) {
        let (of_a, of_b) = (format_of(product.a_type), format_of(product.b_type));
        if product.sign < 0.0 {
            let signs = (0..PER).fold(0, |signs, j| signs | 1 << (32 / PER * (j + 1) - 1));
            a.as_flattened_mut().iter_mut().for_each(|word| *word ^= signs);
        }
        let rows = Rows::<PER>::new(a, of_a, of_a.smallest());
        let rule = if product.d_type == F16 { tensor::TO_F16 } else { tensor::TO_F32 };
        let rule = if PER == 4 { rule.of_fp8() } else { rule };
        self.results(running, product, |b, c| {
            let starts = match product.d_type {
                F16 => c.map(|row| row.map(|bits| f16_value(bits as u16))),
                _ => c.map(|row| row.map(f32::from_bits)),
            };
            tile::add(&rows, &Columns::new(b, of_b, of_b.smallest()), &starts, 0..PER, rule)
        });
    }

    /// D in blocks of eight columns, each from those of B and what D was.
    #[inline(always)]
    fn results(
        &mut self,
        running: &Running,
        product: &Product,
        sums: impl Fn(&[[u32; COLUMNS]; WORDS], &Results) -> Results,
    ) {
        let halves = product.d_type == F16;
        for (list, b) in product.d.chunks(if halves { 2 } else { 4 }).zip(&running.b) {
            let registers = list.iter().map(|register| &self.registers[running.base + *register as usize]);
            let c = match (running.adds, halves) {
                (false, _) => [[0; COLUMNS]; ROWS],
                (_, true) => fragment::half_starts(registers, u32::from),
                (_, false) => fragment::starts(registers, |bits| bits as u32),
            };
            let d = sums(b, &c);
            for (r, register) in list.iter().enumerate() {
                let lanes = &mut self.registers[running.base + *register as usize];
                if halves { fragment::half_result(&d, r, lanes) } else { fragment::result(&d, r, lanes) }
            }
        }
    }
}
