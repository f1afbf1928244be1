//! `cp.async.bulk` and `cp.reduce.async.bulk`: linear bulk copies.

use super::access::{aligned, global_fault, resolve};
use super::bulk::{Destination, Source};
use super::step::Step;
use crate::code::{BulkCopy, Window};
use crate::fault::{Access, FaultKind};

impl Step<'_, '_> {
    pub(super) fn bulk_copy(&mut self, copy: &BulkCopy) -> Result<(), (FaultKind, u32)> {
        let (to, from) = (self.addresses(copy.to), self.addresses(copy.from));
        let sizes = *self.source(copy.bytes);
        for lane in self.lanes() {
            let i = lane as usize;
            let fail = |kind| (kind, lane);
            let bytes = sizes[i] as u32;
            if !bytes.is_multiple_of(16) {
                let text = format!("{bytes} bytes are not a multiple of 16");
                return Err(fail(FaultKind::InvalidInstruction(text)));
            }
            if bytes == 0 {
                continue;
            }
            let Some(barrier) = copy.barrier else {
                let (_, at) = resolve(Window::Generic, from[i]);
                aligned(Window::Global, Access::Write, to[i], 16).map_err(fail)?;
                let found = self.state.memory.accessed(&mut self.warp.hint, to[i], bytes as usize, Access::Write);
                found.map_err(|e| fail(global_fault(e)))?;
                let access = if copy.reduce.is_some() { Access::Atomic } else { Access::Write };
                self.inspect_copy(lane, to[i], bytes.into(), access);
                self.count_copy(&[(to[i], bytes.into())], access);
                if self.state.recorder.is_some() {
                    self.record_copy_out(bytes);
                }
                let to = Destination::Global(to[i]);
                self.start_outgoing(lane, (at as u32, bytes), to, copy.reduce, 16).map_err(fail)?;
                continue;
            };
            let at = self.addresses(barrier)[i];
            let mask = copy.mask.map(|s| self.source(s)[i] as u32);
            let targets = self.targets(to[i], (barrier.window, at), mask, bytes).map_err(fail)?;
            let source = if copy.from.window == Window::Shared {
                let (_, at) = resolve(Window::Generic, from[i]);
                aligned(Window::Shared, Access::Read, at, 16).map_err(fail)?;
                super::bulk::inside(self.shared, (self.shared.rank, at as u32), bytes, Access::Read).map_err(fail)?;
                Source::Shared(self.shared.rank, at as u32)
            } else {
                aligned(Window::Global, Access::Read, from[i], 16).map_err(fail)?;
                let found = self.state.memory.accessed(&mut self.warp.hint, from[i], bytes as usize, Access::Read);
                found.map_err(|e| fail(global_fault(e)))?;
                self.inspect_copy(lane, from[i], bytes.into(), Access::Read);
                self.count_copy(&[(from[i], bytes.into())], Access::Read);
                Source::Global(from[i])
            };
            if self.state.recorder.is_some() {
                self.record_copy(&targets);
            }
            self.start_incoming(lane, source, targets, 16).map_err(fail)?;
        }
        Ok(())
    }
}
