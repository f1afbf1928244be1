//! Tensor maps written by kernels: `tensormap.replace`, `tensormap.cp_fenceproxy`, and the fence behind them.

use super::access::aligned;
use super::step::Step;
use crate::code::{AddressOperand, TensormapReplace};
use crate::fault::{Access, FaultKind};
use crate::tensor_map::MAP_BYTES;

impl Step<'_, '_> {
    pub(super) fn tensormap_replace(&mut self, replace: &TensormapReplace) -> Result<(), (FaultKind, u32)> {
        let addresses = self.addresses(replace.address);
        let values = *self.source(replace.value);
        let (first, size) = replace.field;
        for lane in self.lanes() {
            let i = lane as usize;
            let place = (replace.address.window, addresses[i]);
            aligned(place.0, Access::Write, place.1, 128).map_err(|kind| (kind, lane))?;
            self.check(place, MAP_BYTES as u32, lane, Access::Write)?;
            self.inspect_map_write(lane, place);
            let bytes = self.slot(Access::Write, place, MAP_BYTES as u32, lane)?;
            let value = if replace.less_one { values[i].wrapping_sub(1) } else { values[i] };
            bytes[first..first + size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
        Ok(())
    }

    /// Copies a map as a whole warp; all lanes name the same addresses.
    pub(super) fn tensormap_copy(&mut self, to: AddressOperand, from: AddressOperand) -> Result<(), (FaultKind, u32)> {
        let (targets, sources) = (self.addresses(to), self.addresses(from));
        aligned(to.window, Access::Write, targets[0], 128).map_err(|kind| (kind, 0))?;
        aligned(from.window, Access::Read, sources[0], 128).map_err(|kind| (kind, 0))?;
        let bytes = MAP_BYTES as u32;
        self.check((from.window, sources[0]), bytes, 0, Access::Read)?;
        let data = self.read((from.window, sources[0]), bytes, 0)?.to_vec();
        self.inspect_map_write(0, (to.window, targets[0]));
        self.slot(Access::Write, (to.window, targets[0]), bytes, 0)?.copy_from_slice(&data);
        Ok(())
    }

    /// Writes to these maps are visible to copies after this fence.
    pub(super) fn acquire_maps(&mut self, maps: AddressOperand) {
        let addresses = self.addresses(maps);
        for lane in self.lanes() {
            self.note_map_acquired((maps.window, addresses[lane as usize]));
        }
    }
}
