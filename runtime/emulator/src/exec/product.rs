//! `wgmma`: products of a warp group, warp by warp, that run asynchronously.
//!
//! A product changes its accumulators when its group is waited for, as late as it may. Until then they and the registers
//! of A must not be touched, and its operands in shared memory must stay; both are checked. The four warps of a group
//! multiply together: a wait ends when all four have committed, and then memory is free of the reads of all four.
//! Floats are added as tensor cores add them (`numeric/tensor.rs`).

use std::array::from_fn;

use rtc_ptx::Modifier::{self, *};
use rtc_ptx::types::bits;

use super::access::from_bytes;
use super::hazard::clock::Epoch;
use super::hazard::shadow::How;
use super::hazard::{Agent, Touch};
use super::matrix::{byte, each_result, format_of, per_register, raw, whole, whole_products};
use super::matrix_descriptor::Descriptor;
use super::register_use::visit;
use super::shared::Shared;
use super::step::Step;
use super::warp::Warp;
use super::{Launch, place};
use crate::alu::Lanes;
use crate::code::{CONSTANT, Kind, MatrixA, Product, Reg, Src};
use crate::fault::{Access, FaultKind};
use crate::numeric::format::f16_value;
use crate::numeric::tensor::{self, Sum};
use crate::numeric::tile::{self, COLUMNS, Left, ROWS, Right};

/// A product that was not waited for yet.
struct Running {
    pc: u32,
    base: usize,
    /// Number of its group.
    group: u32,
    /// The warp's rows of A, if they come from shared memory.
    a: Vec<u32>,
    /// Columns of B; of both the bits.
    b: Vec<u32>,
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

    /// Notes which registers the products under way use.
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

    /// A product that nobody waited for.
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
        let mut operands =
            vec![(self.warp.describe(b, product.b_type, product.b_transposed).map_err(fail)?, product.n)];
        if let MatrixA::Shared(_, transposed) = product.a {
            operands.push((self.warp.describe(a, product.a_type, transposed).map_err(fail)?, 64));
        }
        let rank = self.shared.rank;
        let length = self.shared.own().bytes.len();
        if let Some(hazards) = &mut self.shared.hazards {
            epoch = hazards.issue(warp, Agent::Products(warp));
        }
        for (descriptor, rows) in &operands {
            for range in descriptor.pieces(*rows, product.k) {
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
        let rows = |descriptor: &Descriptor, first: u32, count: u32, ty: Modifier| -> Vec<u32> {
            let bytes = bits(ty).unwrap_or(16) as usize / 8;
            let places = (first..first + count).flat_map(|row| (0..product.k).map(move |k| (row, k)));
            let value = |at: usize| raw(from_bytes(&memory[at..at + bytes]), 0, ty);
            places.map(|(row, k)| value(descriptor.address(row, k) as usize)).collect()
        };
        let b = rows(&operands[0].0, 0, product.n, product.b_type);
        let a = operands.get(1).map(|(a, _)| rows(a, self.warp.id % 4 * ROWS as u32, ROWS as u32, product.a_type));
        let group = self.warp.products.committed;
        let a = a.unwrap_or_default();
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
            match product.k {
                8 => self.warp.multiply::<8>(running, product),
                16 => self.warp.multiply::<16>(running, product),
                _ => self.warp.multiply::<32>(running, product),
            }
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

    fn multiply<const K: usize>(&mut self, running: &Running, product: &Product) {
        let mut a = [[0; K]; ROWS];
        match &product.a {
            MatrixA::Shared(..) => a.as_flattened_mut().copy_from_slice(&running.a),
            MatrixA::Registers(list) => {
                let per = per_register(product.a_type);
                for (r, register) in list.iter().enumerate() {
                    for (lane, value) in self.registers[running.base + *register as usize].iter().enumerate() {
                        let first = lane % 4 * per + r / 2 * 4 * per;
                        for (j, bits) in a[lane / 4 + 8 * (r % 2)][first..first + per].iter_mut().enumerate() {
                            *bits = raw(*value, j, product.a_type);
                        }
                    }
                }
            }
        }
        let of_a = format_of(product.a_type);
        if product.sign < 0.0 && product.d_type != S32 {
            a.iter_mut().flatten().for_each(|x| *x ^= 1 << (of_a.mantissa + of_a.exponent));
        }
        let left = Left::new(&a, of_a);
        match product.d_type {
            F16 => self.results::<K, 2>(running, product, (&a, &left)),
            _ => self.results::<K, 1>(running, product, (&a, &left)),
        }
    }

    /// D in blocks of eight columns, of which each register holds so many elements.
    fn results<const K: usize, const PER: usize>(
        &mut self,
        running: &Running,
        product: &Product,
        a: (&[[u32; K]; ROWS], &Left<'_, K>),
    ) {
        let columns = running.b.chunks_exact(COLUMNS * K);
        for (registers, columns) in product.d.chunks(4 / PER).zip(columns) {
            let mut b = [[0; COLUMNS]; K];
            for (column, bits) in columns.chunks_exact(K).enumerate() {
                bits.iter().zip(&mut b).for_each(|(bits, places)| places[column] = *bits);
            }
            let mut c = [[0; COLUMNS]; ROWS];
            if running.adds {
                for (r, register) in registers.iter().enumerate() {
                    let lanes = &self.registers[running.base + *register as usize];
                    each_result::<PER>(r, |lane, shift, (row, column)| c[row][column] = (lanes[lane] >> shift) as u32);
                }
            }
            let d = sums(product, a, &b, &c);
            for (r, register) in registers.iter().enumerate() {
                let mut values: Lanes = [0; 32];
                each_result::<PER>(r, |lane, shift, (row, column)| values[lane] |= u64::from(d[row][column]) << shift);
                self.registers[running.base + *register as usize] = values;
            }
        }
    }
}

/// The sums of a block of eight columns.
fn sums<const K: usize>(
    product: &Product,
    (a, left): (&[[u32; K]; ROWS], &Left<'_, K>),
    b: &[[u32; COLUMNS]; K],
    c: &[[u32; COLUMNS]; ROWS],
) -> [[u32; COLUMNS]; ROWS] {
    if product.d_type == S32 {
        let (a, b) =
            (a.map(|row| row.map(|x| byte(x, product.a_type))), b.map(|row| row.map(|y| byte(y, product.b_type))));
        let products = whole_products(&a, &b);
        let sum = |row: usize, column: usize| i64::from(c[row][column] as i32) + i64::from(products[row][column]);
        return from_fn(|row| from_fn(|column| whole(sum(row, column), product.saturate)));
    }
    let bytes = matches!(product.a_type, E4m3 | E5m2);
    let rule = if product.d_type == F16 { tensor::TO_F16 } else { tensor::TO_F32 };
    let rule = if bytes { rule.of_fp8() } else { rule };
    let starts = match product.d_type {
        F16 => c.map(|row| row.map(|bits| f16_value(bits as u16))),
        _ => c.map(|row| row.map(f32::from_bits)),
    };
    let sums = tile::add(left, &Right::new(b, format_of(product.b_type)), &starts, 0..K, rule);
    match (product.d_type, bytes) {
        (F16, _) => sums.map(|row| row.map(Sum::to_f16)),
        (_, true) => sums.map(|row| row.map(Sum::to_short_f32)),
        _ => tile::to_f32(&sums),
    }
}
