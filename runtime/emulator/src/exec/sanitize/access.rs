//! Accesses of global memory: bounds and shapes, alignment, uninitialized bytes, order between blocks.

use super::global::{Manner, Mark};
use super::{Actor, Sanitizer};
use crate::alu::Lanes;
use crate::code::{Order, Window};
use crate::exec::access::{aligned, global_fault, resolve};
use crate::exec::hazard::Hazards;
use crate::exec::hazard::clock::Epoch;
use crate::exec::step::Step;
use crate::fault::Access;
use crate::sanitize::Check;

/// An access as the checks see it.
#[derive(Clone, Copy)]
pub struct Touched {
    /// Read, write or atomic.
    pub access: Access,
    /// Its order.
    pub order: Order,
    /// Bytes of a lane.
    pub bytes: u32,
}

/// The data of a store: its sources, and the bytes of each.
pub type Stored<'a> = (&'a [Lanes], u32);

impl Step<'_, '_> {
    /// Looks at an access of the active lanes before it is made; gives the lanes that must not make it.
    #[cold]
    #[inline(never)]
    pub(in crate::exec) fn inspect(
        &mut self,
        (window, addresses): (Window, &[u64; 32]),
        touched: Touched,
        stored: Option<Stored<'_>>,
    ) -> u32 {
        if !matches!(window, Window::Global | Window::Generic | Window::Shared) {
            return 0;
        }
        let Some(mut sanitizer) = self.state.sanitizer.take() else { return 0 };
        if let Some(stored) = stored.filter(|_| sanitizer.checks.has(Check::Race)) {
            self.inspect_same_place(&mut sanitizer, (window, addresses), stored);
        }
        let mut skipped = 0;
        let mut rest = self.active;
        while rest != 0 {
            let first = rest.trailing_zeros();
            let start = addresses[first as usize];
            let mut next = first;
            while next < 32
                && rest >> next & 1 == 1
                && addresses[next as usize] == start.wrapping_add(u64::from((next - first) * touched.bytes))
            {
                rest &= !(1 << next);
                next += 1;
            }
            if touched.access == Access::Read {
                // Lanes that read the same bytes count once.
                while next < 32 && rest >> next & 1 == 1 && addresses[next as usize] == start {
                    rest &= !(1 << next);
                    next += 1;
                }
            }
            if resolve(window, start).0 == Window::Global {
                let lanes = (
                    first,
                    (addresses[first as usize..next as usize].iter().filter(|a| **a != start).count() + 1) as u32,
                );
                let bad = self.inspect_run(&mut sanitizer, start, lanes, touched, stored);
                if bad != 0 {
                    let failing =
                        |lane: &u32| bad >> ((addresses[*lane as usize] - start) / u64::from(touched.bytes)) & 1 == 1;
                    skipped |= (first..next).filter(failing).fold(0, |all, lane| all | 1 << lane);
                }
            }
        }
        self.state.sanitizer = Some(sanitizer);
        skipped
    }

    /// Looks at lanes with neighbouring addresses; gives which of them fail, from the first on.
    fn inspect_run(
        &mut self,
        sanitizer: &mut Sanitizer,
        start: u64,
        (first, count): (u32, u32),
        touched: Touched,
        stored: Option<Stored<'_>>,
    ) -> u32 {
        let length = u64::from(count * touched.bytes);
        let mut bad = 0;
        if sanitizer.checks.has(Check::Memory) {
            let hint = &mut self.warp.hint;
            let whole = self.state.memory.accessed(hint, start, length as usize, touched.access).is_ok();
            if !whole || !start.is_multiple_of(touched.bytes.into()) || self.state.memory.has_shapes() {
                bad = self.inspect_bounds(sanitizer, start, (first, count), touched);
            }
        }
        if bad != 0 {
            return bad;
        }
        let range = start..start + length;
        if sanitizer.checks.has(Check::Init) {
            if touched.access != Access::Write
                && let Some((address, text)) = self.state.memory.unwritten(start, length)
            {
                let lane = first + ((address - start) / u64::from(touched.bytes)) as u32;
                let what = (Check::Init, "uninitialized-global");
                sanitizer.record(what, self.actor(lane), None, || {
                    format!("read at {address:#x} in global memory, which is uninitialized; {text}")
                });
            }
            if touched.access != Access::Read {
                self.state.memory.mark_written(start, length);
            }
        }
        if sanitizer.checks.has(Check::Race) {
            self.inspect_order(sanitizer, range, first, touched, stored);
        }
        bad
    }

    /// Looks at each lane's bounds.
    fn inspect_bounds(
        &mut self,
        sanitizer: &mut Sanitizer,
        start: u64,
        (first, count): (u32, u32),
        Touched { access, bytes, .. }: Touched,
    ) -> u32 {
        let mut bad = 0;
        for i in 0..count {
            let address = start + u64::from(i * bytes);
            let mut actor = self.actor(first + i);
            actor.lane = Some((first + i).min(31));
            let fault = match self.state.memory.accessed(&mut self.warp.hint, address, bytes as usize, access) {
                Err(error) => Some((global_fault(error), "out-of-bounds")),
                Ok(_) => aligned(Window::Global, access, address, bytes).err().map(|kind| (kind, "misaligned")),
            };
            if let Some((kind, code)) = fault {
                bad |= 1 << i;
                sanitizer.record((Check::Memory, code), actor, None, || kind.to_string());
            } else if let Some(text) = self.state.memory.outside_shape(address, bytes) {
                let what = (Check::Memory, "row-overrun");
                sanitizer.record(what, actor, None, || format!("{access} of {bytes} bytes at {address:#x} {text}"));
            }
        }
        bad
    }

    fn inspect_order(
        &mut self,
        sanitizer: &mut Sanitizer,
        range: std::ops::Range<u64>,
        first: u32,
        Touched { access, order, bytes }: Touched,
        stored: Option<Stored<'_>>,
    ) {
        let warp = self.index();
        let cluster = self.shared.id;
        let Some(hazards) = &mut self.shared.hazards else { return };
        let writes = access != Access::Read;
        if order.strong {
            let mut address = range.start;
            while address < range.end {
                sanitizer.released.access(address, (cluster, warp), hazards, order, writes);
                address += u64::from(bytes);
            }
        }
        let mark = Mark { cluster, agent: warp, time: hazards.now(warp).time, pc: self.warp.pc };
        let mut conflicts = Vec::new();
        let known = |other: Mark| is_known(hazards, other, (cluster, warp));
        let manner = Manner { writes, strong: order.strong };
        sanitizer.accesses.touch(range.clone(), mark, manner, known, |at, other, write| {
            if conflicts.last().is_none_or(|(_, last, _)| *last != other) {
                conflicts.push((at, other, write));
            }
        });
        for (address, other, write) in conflicts {
            let lane = ((address - range.start) / u64::from(bytes)) as u32;
            if write && writes && stored.is_some_and(|stored| self.is_there(address, range.start, first, bytes, stored))
            {
                continue;
            }
            let actor = Actor { lane: Some((first + lane).min(31)), ..self.actor(first) };
            let at = self.other(other);
            let (verb, what) = if write { ("write", "written here before") } else { ("read", "read here before") };
            let name = self.state.memory.describe(address);
            let by = if at.block == actor.block { "another warp of the block" } else { "another block" };
            let message =
                || format!("{access} at {address:#x} in global memory{name} is not ordered with the {verb} by {by}");
            sanitizer.record((Check::Race, "global-race"), actor, Some((what, at)), message);
        }
    }

    /// Whether a store writes the value that is there already.
    fn is_there(&self, address: u64, start: u64, first: u32, bytes: u32, (sources, size): Stored<'_>) -> bool {
        let i = (address - start) / u64::from(bytes);
        let at = start + i * u64::from(bytes);
        let Ok(now) = self.state.memory.read(at, bytes as usize) else { return false };
        let lane = (u64::from(first) + i) as usize & 31;
        let equal =
            |(n, old): (usize, &[u8])| sources.get(n).is_some_and(|s| s[lane].to_le_bytes()[..old.len()] == *old);
        now.chunks_exact(size as usize).enumerate().all(equal)
    }

    /// The warp of a remembered access.
    fn other(&self, mark: Mark) -> Actor {
        let each = self.launch.block.iter().product::<u32>().div_ceil(32);
        let (rank, warp) = (mark.agent / each, mark.agent % each);
        let clusters: [u32; 3] = std::array::from_fn(|i| self.launch.grid[i] / self.launch.cluster[i]);
        let index = [
            mark.cluster % clusters[0],
            mark.cluster / clusters[0] % clusters[1],
            mark.cluster / (clusters[0] * clusters[1]),
        ];
        let [x, y, _] = self.launch.cluster;
        let within = [rank % x, rank / x % y, rank / (x * y)];
        let block = std::array::from_fn(|i| index[i] * self.launch.cluster[i] + within[i]);
        Actor { pc: mark.pc, block, warp, lane: None }
    }

    /// Lanes of one store that write different values to the same place.
    fn inspect_same_place(
        &mut self,
        sanitizer: &mut Sanitizer,
        (window, addresses): (Window, &[u64; 32]),
        (sources, size): Stored<'_>,
    ) {
        let mut lanes: Vec<u32> = self.lanes().collect();
        if lanes.is_sorted_by(|a, b| addresses[*a as usize] < addresses[*b as usize]) {
            return;
        }
        lanes.sort_by_key(|lane| addresses[*lane as usize]);
        for pair in lanes.windows(2) {
            let [a, b] = [pair[0] as usize, pair[1] as usize];
            let mask = crate::numeric::convert::mask(size * 8);
            if addresses[a] != addresses[b] || sources.iter().all(|s| (s[a] ^ s[b]) & mask == 0) {
                continue;
            }
            let (space, at) = resolve(window, addresses[b]);
            let space = if space == Window::Shared { "shared" } else { "global" };
            let other = Some(("by this lane too", self.actor(pair[0])));
            sanitizer.record((Check::Race, "same-place"), self.actor(pair[1]), other, || {
                format!("two lanes write different values at {at:#x} in {space} memory with one instruction")
            });
        }
    }

    /// Looks at a range of global memory that an asynchronous copy of a lane reads or writes.
    pub(in crate::exec) fn inspect_copy(&mut self, lane: u32, address: u64, bytes: u64, access: Access) {
        let Some(mut sanitizer) = self.state.sanitizer.take() else { return };
        if sanitizer.checks.has(Check::Init) {
            if access == Access::Read
                && let Some((address, text)) = self.state.memory.unwritten(address, bytes)
            {
                let what = (Check::Init, "uninitialized-global");
                sanitizer.record(what, self.actor(lane), None, || {
                    format!("copy from {address:#x} in global memory, which is uninitialized; {text}")
                });
            }
            if access != Access::Read {
                self.state.memory.mark_written(address, bytes);
            }
        }
        if sanitizer.checks.has(Check::Race) {
            let order = Order { strong: access == Access::Atomic, ..Order::default() };
            let touched = Touched { access, order, bytes: u32::try_from(bytes).unwrap_or(u32::MAX).max(1) };
            // A reduction neither acquires nor releases.
            let plain = Touched { order: Order::default(), ..touched };
            let touched = if access == Access::Atomic { touched } else { plain };
            self.inspect_order(&mut sanitizer, address..address + bytes, lane, touched, None);
        }
        self.state.sanitizer = Some(sanitizer);
    }
}

/// Whether an access is complete according to a warp's clock.
fn is_known(hazards: &Hazards, other: Mark, (cluster, warp): (u32, u32)) -> bool {
    if other.cluster == cluster {
        return hazards.known(warp).covers(Epoch { agent: other.agent, time: other.time });
    }
    hazards.knowledge(warp).world.get(other.cluster, other.agent) >= other.time
}
