//! Tensor maps written by kernels: `tensormap.replace` and `tensormap.cp_fenceproxy`.

use super::access::aligned;
use super::shared::Shared;
use super::warp::{Frame, Warp};
use super::{Launch, State};
use crate::code::{AddressOperand, TensormapReplace};
use crate::fault::{Access, FaultKind};
use crate::tensor_map::MAP_BYTES;

impl Warp {
    pub(super) fn tensormap_replace(
        &mut self,
        launch: &Launch<'_>,
        state: &mut State<'_>,
        shared: &mut Shared,
        frame: Frame,
        active: u32,
        replace: &TensormapReplace,
    ) -> Result<(), (FaultKind, u32)> {
        let base = frame.registers as usize;
        let addresses = self.addresses(launch, frame, replace.address);
        let values = *self.source(launch.constants, base, replace.value);
        let (first, size) = replace.field;
        for lane in (0..32u32).filter(|lane| active >> lane & 1 == 1) {
            let i = lane as usize;
            let place = (replace.address.window, addresses[i]);
            aligned(place.0, Access::Write, place.1, 128).map_err(|kind| (kind, lane))?;
            self.check(launch, shared, place, MAP_BYTES as u32, lane, Access::Write)?;
            let bytes = self.slot(state, shared, frame, Access::Write, place, MAP_BYTES as u32, lane)?;
            let value = if replace.less_one { values[i].wrapping_sub(1) } else { values[i] };
            bytes[first..first + size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
        Ok(())
    }

    /// Copies a map as a whole warp; all lanes name the same addresses.
    pub(super) fn tensormap_copy(
        &mut self,
        launch: &Launch<'_>,
        state: &mut State<'_>,
        shared: &mut Shared,
        frame: Frame,
        to: AddressOperand,
        from: AddressOperand,
    ) -> Result<(), (FaultKind, u32)> {
        let (targets, sources) = (self.addresses(launch, frame, to), self.addresses(launch, frame, from));
        aligned(to.window, Access::Write, targets[0], 128).map_err(|kind| (kind, 0))?;
        aligned(from.window, Access::Read, sources[0], 128).map_err(|kind| (kind, 0))?;
        let bytes = MAP_BYTES as u32;
        self.check(launch, shared, (from.window, sources[0]), bytes, 0, Access::Read)?;
        let data = self.read(launch, state, shared, frame, (from.window, sources[0]), bytes, 0)?.to_vec();
        self.slot(state, shared, frame, Access::Write, (to.window, targets[0]), bytes, 0)?.copy_from_slice(&data);
        Ok(())
    }
}
