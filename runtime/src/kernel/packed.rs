//! Parameter buffers that outlive a launch.
#![allow(unsafe_code)]

use super::{Aligned, FEW_PARAMS, Kernel, Loaded};
use crate::{Arg, Grid, Result, Stream, argument};

/// A parameter buffer that is filled but for the numbers of programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed {
    bytes: Aligned<FEW_PARAMS>,
    size: usize,
}

impl Packed {
    /// Puts an address into its place.
    #[inline]
    pub(crate) fn put(&mut self, offset: usize, address: u64) {
        self.bytes.0[offset..offset + 8].copy_from_slice(&address.to_le_bytes());
    }
}

impl Kernel {
    /// The arguments in a parameter buffer, if it is a small one to which a launch adds nothing but numbers of programs.
    pub(crate) fn pack(&self, args: &[Arg<'_>]) -> Option<Packed> {
        let Loaded { device, metadata, fill, .. } = &*self.loaded;
        if fill.size > FEW_PARAMS || fill.scratch.is_some() || !fill.maps.is_empty() {
            return None;
        }
        let mut packed = Packed { bytes: Aligned([0; FEW_PARAMS]), size: fill.size };
        argument::pack(device, metadata, &fill.args, args, None, &mut packed.bytes.0[..fill.size]).ok()?;
        Some(packed)
    }

    /// Where the address of a parameter lies, and bits of it that are 0.
    pub(crate) fn address_slot(&self, param: usize) -> (usize, u64) {
        self.loaded.fill.args[param].address()
    }

    /// Launches with arguments that were packed.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::launch_unchecked`].
    #[inline]
    pub(crate) unsafe fn launch_packed(&self, stream: &Stream, grid: Grid, packed: &mut Packed) -> Result<()> {
        if !stream.device().is_same(&self.loaded.device) {
            return Err(self.loaded.wrong_stream(stream));
        }
        stream.refuse_recording("a launch with packed arguments")?;
        let grid = self.loaded.programs(grid)?;
        let blocks = self.loaded.blocks(grid)?;
        self.loaded.launch_filled(stream, grid, blocks, &[], &mut packed.bytes.0[..packed.size])
    }
}
