//! Loads and stores of lanes, with every check.

use std::ops::Range;

use super::hazard::shadow::How;
use super::hazard::{Conflict, Touch};
use super::sanitize::Touched;
use super::shared::Shared;
use super::step::Step;
use super::warp::{Frame, Warp};
use super::{Launch, place};
use crate::code::{AddressOperand, LOCAL_WINDOW, Load, NONE, PARAM_WINDOW, SHARED_WINDOW, Store, WINDOW_BYTES, Window};
use crate::fault::{Access, AccessError, FaultKind, Near, Space};

type Result<T> = std::result::Result<T, (FaultKind, u32)>;

/// The data of a store: the byte of a lane with a number.
type Written<'a> = Option<&'a dyn Fn(usize, usize) -> u8>;

/// The window of a generic address, and the offset in it.
pub fn resolve(window: Window, address: u64) -> (Window, u64) {
    if window != Window::Generic {
        return (window, address);
    }
    match address / WINDOW_BYTES * WINDOW_BYTES {
        SHARED_WINDOW => (Window::Shared, address - SHARED_WINDOW),
        LOCAL_WINDOW => (Window::Local, address - LOCAL_WINDOW),
        PARAM_WINDOW => (Window::Param, address - PARAM_WINDOW),
        _ => (Window::Global, address),
    }
}

/// Whether a generic address lies in a window, as 0 or 1.
pub fn is_in(window: Window, address: u64) -> u64 {
    u64::from(resolve(Window::Generic, address).0 == window)
}

fn space_of(window: Window) -> Space {
    match window {
        Window::Global | Window::Generic => Space::Global,
        Window::Shared => Space::Shared,
        Window::Local => Space::Local,
        Window::Param => Space::Param,
    }
}

pub fn global_fault(error: AccessError) -> FaultKind {
    let AccessError { access, address, bytes, near } = error;
    FaultKind::OutOfBounds { access, space: Space::Global, address, bytes, near }
}

/// Bytes `at..at + bytes` of a window of `length` bytes.
pub fn within(
    window: Window,
    access: Access,
    at: u64,
    bytes: u32,
    length: usize,
) -> std::result::Result<usize, FaultKind> {
    if at.checked_add(u64::from(bytes)).is_some_and(|end| end <= length as u64) {
        return Ok(at as usize);
    }
    let space = space_of(window);
    let near = Near { name: format!("{space} memory"), base: 0, bytes: length as u64, freed: false, read_only: false };
    Err(FaultKind::OutOfBounds { access, space, address: at, bytes, near: Some(near) })
}

/// An integer from up to 8 little-endian bytes.
pub fn from_bytes(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        _ => {
            let mut all = [0; 8];
            all[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(all)
        }
    }
}

impl Step<'_, '_> {
    /// The bytes that a lane reads.
    #[inline]
    pub(super) fn read(&mut self, place: (Window, u64), bytes: u32, lane: u32) -> Result<&[u8]> {
        // Parameters are the only memory that is never written.
        if let (Window::Param, at) = resolve(place.0, place.1) {
            let length = self.launch.params.len();
            let start = within(Window::Param, Access::Read, at, bytes, length).map_err(|kind| (kind, lane))?;
            return Ok(&self.launch.params[start..start + bytes as usize]);
        }
        if let (Window::Global, at) = resolve(place.0, place.1) {
            let found = self.state.memory.view(&mut self.warp.hint, at, bytes as usize);
            return found.map_err(|error| (global_fault(error), lane));
        }
        self.slot(Access::Read, place, bytes, lane).map(|slot| &*slot)
    }

    /// The bytes that a lane accesses, in memory that can be written.
    #[inline]
    pub(super) fn slot(
        &mut self,
        access: Access,
        (window, address): (Window, u64),
        bytes: u32,
        lane: u32,
    ) -> Result<&mut [u8]> {
        let (window, at) = resolve(window, address);
        let n = bytes as usize;
        let (memory, at) = match window {
            Window::Global | Window::Generic => {
                let found = self.state.memory.bytes(&mut self.warp.hint, at, n, access);
                return found.map_err(|error| (global_fault(error), lane));
            }
            Window::Shared => {
                let (block, at) = self.shared.locate(at);
                (&mut self.shared.blocks[block].bytes[..], at)
            }
            Window::Local => (&mut self.warp.local[lane as usize][..self.frame.top as usize], at),
            Window::Param => {
                return Err((FaultKind::InvalidInstruction("kernel parameters cannot be written".into()), lane));
            }
        };
        let start = within(window, access, at, bytes, memory.len()).map_err(|kind| (kind, lane))?;
        Ok(&mut memory[start..start + n])
    }

    /// Checks that an access of shared memory is ordered with those before it, where the program is checked.
    pub(super) fn check(&mut self, place: (Window, u64), bytes: u32, lane: u32, access: Access) -> Result<()> {
        self.check_written(place, bytes, (lane, access), None)
    }

    /// The same of a store that writes these bytes.
    pub(super) fn check_store(&mut self, place: (Window, u64), lane: u32, written: &[u8]) -> Result<()> {
        self.check_written(place, written.len() as u32, (lane, Access::Write), Some(&|_, byte| written[byte]))
    }

    fn check_written(
        &mut self,
        place: (Window, u64),
        bytes: u32,
        (lane, access): (u32, Access),
        written: Written<'_>,
    ) -> Result<()> {
        if self.shared.hazards.is_none() {
            return Ok(());
        }
        self.check_order(place, bytes, access, (lane, 0), written).map_err(|kind| (kind, lane))
    }

    /// As [`Step::check`] for all lanes, those with neighbouring addresses together; with what a store writes.
    fn check_lanes(
        &mut self,
        (window, addresses): (Window, &[u64; 32]),
        bytes: u32,
        access: Access,
        written: Written<'_>,
    ) -> Result<()> {
        if self.shared.hazards.is_none() || !matches!(window, Window::Shared | Window::Generic) {
            return Ok(());
        }
        let mut rest = self.active;
        while rest != 0 {
            let first = rest.trailing_zeros();
            let start = addresses[first as usize];
            let mut next = first;
            while next < 32
                && rest >> next & 1 == 1
                && addresses[next as usize] == start.wrapping_add(u64::from((next - first) * bytes))
            {
                rest &= !(1 << next);
                next += 1;
            }
            if self.check_order((window, start), (next - first) * bytes, access, (first, bytes), written).is_err() {
                // Which lane it is, and what of the range it accesses.
                for lane in first..next {
                    let place = (window, addresses[lane as usize]);
                    self.check_order(place, bytes, access, (lane, 0), written).map_err(|kind| (kind, lane))?;
                }
            }
        }
        Ok(())
    }

    fn check_order(
        &mut self,
        (window, address): (Window, u64),
        bytes: u32,
        access: Access,
        (lane, stride): (u32, u32),
        written: Written<'_>,
    ) -> std::result::Result<(), FaultKind> {
        let (window, at) = resolve(window, address);
        if window != Window::Shared {
            return Ok(());
        }
        let warp = self.index();
        let (block, at) = self.shared.locate(at);
        let start = within(window, access, at, bytes, self.shared.blocks[block].bytes.len())?;
        if block != self.shared.rank && self.shared.blocks[block].live == 0 {
            let text = format!("block {block} of the cluster has ended, its shared memory with it");
            return Err(FaultKind::InvalidInstruction(text));
        }
        let range = start..start + bytes as usize;
        let Shared { blocks, hazards, .. } = &mut *self.shared;
        let barriers = &blocks[block].mbarriers;
        if access != Access::Read
            && let Some((at, _)) = barriers.range((start as u32).saturating_sub(7)..range.end as u32).next()
        {
            let message = "ordinary write over an mbarrier".to_string();
            return Err(FaultKind::MbarrierMisuse { address: (*at).into(), message });
        }
        let Some(hazards) = hazards else { return Ok(()) };
        let how = if access == Access::Atomic { How::Atomic } else { How::Generic };
        let touch = Touch { warp, epoch: hazards.now(warp), how, pc: self.warp.pc, lane, stride };
        let memory = &blocks[block].bytes;
        let is_there = |piece: Range<usize>| {
            let each = if stride == 0 { bytes } else { stride } as usize;
            let byte = |written: &dyn Fn(usize, usize) -> u8, i: usize| written(lane as usize + i / each, i % each);
            written.is_some_and(|written| piece.clone().all(|at| byte(written, at - start) == memory[at]))
        };
        let result = match access {
            Access::Read => hazards.read(block, range, touch),
            _ => hazards.write(block, range, touch, is_there),
        };
        self.launch.judged(result, access)
    }

    pub(super) fn load(&mut self, load: &Load) -> Result<()> {
        let window = load.address.window;
        let addresses = self.addresses(load.address);
        let total = load.bytes * load.registers.len() as u32;
        self.check_lanes((window, &addresses), total, Access::Read, None)?;
        let mut values = [[0; 32]; 8];
        let mut rest = self.active;
        if self.state.sanitizer.is_some() {
            let touched = Touched { access: Access::Read, order: load.order, bytes: total };
            rest &= !self.inspect((window, &addresses), touched, None);
        }
        if self.state.counting.is_some() {
            self.count_access((window, &addresses), total, Access::Read);
        }
        while rest != 0 {
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            let address = addresses[lane as usize];
            aligned(window, Access::Read, address, total).map_err(|kind| (kind, lane))?;
            let bytes = self.read((window, address), total, lane)?;
            for (i, element) in bytes.chunks_exact(load.bytes as usize).enumerate() {
                values[i][lane as usize] = from_bytes(element);
            }
        }
        for (register, values) in load.registers.iter().zip(&mut values) {
            if *register == NONE {
                continue;
            }
            if load.sign_bits > 0 {
                let shift = 64 - load.sign_bits;
                let mask = crate::numeric::convert::mask(load.width);
                values.iter_mut().for_each(|v| *v = (((*v << shift) as i64) >> shift) as u64 & mask);
            }
            self.write(*register, values);
        }
        Ok(())
    }

    pub(super) fn store(&mut self, store: &Store) -> Result<()> {
        let window = store.address.window;
        let addresses = self.addresses(store.address);
        let total = store.bytes * store.sources.len() as u32;
        let mut values = [[0; 32]; 8];
        for (values, source) in values.iter_mut().zip(&store.sources) {
            *values = *self.source(*source);
        }
        let size = store.bytes as usize;
        let byte = |lane: usize, byte: usize| values[byte / size][lane].to_le_bytes()[byte % size];
        self.check_lanes((window, &addresses), total, Access::Write, Some(&byte))?;
        let mut rest = self.active;
        if self.state.sanitizer.is_some() {
            let touched = Touched { access: Access::Write, order: store.order, bytes: total };
            let stored = (&values[..store.sources.len()], store.bytes);
            rest &= !self.inspect((window, &addresses), touched, Some(stored));
        }
        if self.state.counting.is_some() {
            self.count_access((window, &addresses), total, Access::Write);
        }
        while rest != 0 {
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            let address = addresses[lane as usize];
            aligned(window, Access::Write, address, total).map_err(|kind| (kind, lane))?;
            let slot = self.slot(Access::Write, (window, address), total, lane)?;
            for (i, element) in slot.chunks_exact_mut(size).enumerate() {
                element.copy_from_slice(&values[i][lane as usize].to_le_bytes()[..size]);
            }
        }
        Ok(())
    }
}

impl Warp {
    /// The address of each lane.
    pub(super) fn addresses(&self, launch: &Launch<'_>, frame: Frame, operand: AddressOperand) -> [u64; 32] {
        let base = self.source(launch.constants, frame.registers as usize, operand.base);
        base.map(|a| a.wrapping_add(operand.offset as u64) & operand.mask)
    }
}

impl Launch<'_> {
    /// The fault or finding of a conflict.
    pub(super) fn judged(
        &self,
        result: std::result::Result<(), (Conflict, usize)>,
        access: Access,
    ) -> std::result::Result<(), FaultKind> {
        let Err((conflict, at)) = result else { return Ok(()) };
        let address = at as u64;
        let place = |pc| place(self.code, pc);
        Err(match conflict {
            Conflict::NotArrived(pc, arrived) => FaultKind::NotArrived { access, address, copy: place(pc), arrived },
            Conflict::StillRead(pc) => FaultKind::StillRead { address, reader: place(pc) },
            Conflict::Unordered(pc, write) => {
                let other_access = if write { Access::Write } else { Access::Read };
                FaultKind::Unordered { access, address, other: place(pc), other_access }
            }
            Conflict::Unfenced(pc) => FaultKind::MissingProxyFence { address, write: place(pc) },
            // Is never a fault.
            Conflict::Unwritten => return Ok(()),
        })
    }
}

/// Checks that an address is a multiple of what the access needs.
pub fn aligned(window: Window, access: Access, address: u64, required: u32) -> std::result::Result<(), FaultKind> {
    if address.is_multiple_of(u64::from(required)) {
        return Ok(());
    }
    let (window, address) = resolve(window, address);
    Err(FaultKind::Misaligned { access, space: space_of(window), address, required })
}
