//! Loading kernels on a device.
#![allow(unsafe_code)]

use super::{Fill, Kernel, Loaded};
#[cfg(all(feature = "emulator", feature = "jit"))]
use crate::backend::Code;
use crate::backend::{Image, MachineCode};
use crate::{Device, Result, argument, ptx_check};
use rtc_abi::Metadata;
#[cfg(all(feature = "emulator", feature = "jit"))]
use std::sync::Arc;

impl Device {
    /// Loads a kernel: PTX text and the metadata that was written beside it.
    ///
    /// # Errors
    ///
    /// [`Error::Metadata`](crate::Error::Metadata) for metadata that cannot be used, [`Error::Ptx`](crate::Error::Ptx) if the
    /// PTX is not that of the metadata, [`Error::WrongDevice`](crate::Error::WrongDevice) and
    /// [`Error::OutOfResources`](crate::Error::OutOfResources) if the device cannot run it,
    /// [`Error::Cuda`](crate::Error::Cuda) if the driver refuses it.
    ///
    /// # Safety
    ///
    /// The metadata must be true of the PTX: [`Kernel::launch`] relies on what it says of parameters, of accesses and of
    /// the number of elements behind each pointer. That holds for what one run of `rtc build`, `rtc-build` or the compiler
    /// made. Metadata for PTX of other origin must state no extents; the launches are then
    /// [unchecked](Kernel::launch_unchecked).
    pub unsafe fn load(&self, ptx: &str, metadata: &Metadata) -> Result<Kernel> {
        // SAFETY: the caller guarantees the PTX.
        unsafe { self.load_cubin(ptx, None, metadata) }
    }

    /// Like [`Device::load`]; a GPU of just the target that the kernel was built for takes the machine code `cubin` that was
    /// made of the PTX, which saves the driver's compilation. All others take the PTX, and so does a driver that refuses
    /// the machine code, for example because it is older than the assembler. Where the driver's assembler is known to make wrong
    /// code of such kernels, a `ptxas` without that defect is called instead, if one is found; otherwise the warning
    /// `assembler-defect` is given once ([`on_warning`](crate::on_warning)).
    ///
    /// ```
    /// use rtc_runtime::{Device, Metadata, args};
    /// # let (ptx, json) = (include_str!("../../tests/kernels/scale.ptx"), include_str!("../../tests/kernels/scale.json"));
    /// # let cubin: Option<&[u8]> = None;
    /// let device = Device::auto();
    /// // SAFETY: the files were made together.
    /// let scale = unsafe { device.load_cubin(ptx, cubin, &Metadata::from_json(json)?)? };
    /// assert!(!scale.is_cubin()); // there was no machine code
    /// let (x, mut y) = (device.upload(&[1.0f32, 2.0])?, device.zeros::<f32>(2)?);
    /// scale.launch(device.default_stream(), 1, &args![&x, &mut y, 3.0f32, 2])?;
    /// // The emulator looks for reads of uninitialized memory; there are none.
    /// assert_eq!(scale.take_findings(), []);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Device::load`].
    ///
    /// # Safety
    ///
    /// As for [`Device::load`]; the machine code must be that of the PTX.
    pub unsafe fn load_cubin(&self, ptx: &str, cubin: Option<&[u8]>, metadata: &Metadata) -> Result<Kernel> {
        // SAFETY: the caller guarantees PTX and machine code.
        unsafe { self.load_shaped(ptx, cubin, None, metadata, [metadata.threads_per_block, 1, 1]) }
    }

    /// Like [`Device::load`], for PTX of another compiler whose blocks have several dimensions: threads along x, y and z, as
    /// many in all as the metadata says.
    ///
    /// ```
    /// use rtc_runtime::{Device, Metadata, args};
    /// # let (ptx, json) = (include_str!("../../tests/kernels/scale.ptx"), include_str!("../../tests/kernels/scale.json"));
    /// let device = Device::auto();
    /// let metadata = Metadata::from_json(json)?;
    /// // SAFETY: the files were made together.
    /// let scale = unsafe { device.load_with_block_dim(ptx, &metadata, [metadata.threads_per_block, 1, 1])? };
    /// let (x, mut y) = (device.upload(&[1.0f32, 2.0])?, device.zeros::<f32>(2)?);
    /// scale.launch(device.default_stream(), 1, &args![&x, &mut y, 3.0f32, 2])?;
    /// // SAFETY: as above.
    /// assert!(unsafe { device.load_with_block_dim(ptx, &metadata, [3, 3, 3]) }.is_err());
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Metadata`](crate::Error::Metadata) if the metadata has another number of threads; else as for
    /// [`Device::load`].
    ///
    /// # Safety
    ///
    /// As for [`Device::load`].
    pub unsafe fn load_with_block_dim(&self, ptx: &str, metadata: &Metadata, block: [u32; 3]) -> Result<Kernel> {
        let threads = block.into_iter().map(u64::from).try_fold(1, u64::checked_mul);
        if threads != Some(metadata.threads_per_block.into()) {
            let message = format!("a block of {block:?} has not {} threads", metadata.threads_per_block);
            return Err(argument::metadata_error("threads_per_block".into(), message));
        }
        // SAFETY: the caller guarantees the PTX.
        unsafe { self.load_shaped(ptx, None, None, metadata, block) }
    }

    /// Like [`Device::load`], with machine code that was made ahead.
    ///
    /// # Safety
    ///
    /// As for [`Device::load_cubin`].
    #[cfg(feature = "jit")]
    pub(crate) unsafe fn load_ahead(
        &self,
        ptx: &str,
        ahead: Option<&MachineCode>,
        metadata: &Metadata,
    ) -> Result<Kernel> {
        // SAFETY: the caller guarantees PTX and machine code.
        unsafe { self.load_shaped(ptx, None, ahead, metadata, [metadata.threads_per_block, 1, 1]) }
    }

    /// # Safety
    ///
    /// As for [`Device::load_cubin`].
    unsafe fn load_shaped(
        &self,
        ptx: &str,
        cubin: Option<&[u8]>,
        ahead: Option<&MachineCode>,
        metadata: &Metadata,
        block: [u32; 3],
    ) -> Result<Kernel> {
        let _span = crate::spans::load(self, metadata);
        metadata.check()?;
        ptx_check::check(ptx, metadata)?;
        let fill = Fill::of(metadata)?;
        let code = self.backend().clone().load(&Image { ptx, cubin, ahead, metadata, block })?;
        Ok(Kernel::of(Loaded { device: self.clone(), metadata: metadata.clone(), block, fill, code }))
    }

    /// Loads a kernel from PTX text and the JSON text of its metadata, as `rtc build` writes them.
    ///
    /// ```
    /// use rtc_runtime::{Device, args};
    /// # let ptx = include_str!("../../tests/kernels/scale.ptx");
    /// # let json = include_str!("../../tests/kernels/scale.json");
    /// let device = Device::auto();
    /// // SAFETY: the files were made together.
    /// let scale = unsafe { device.load_json(ptx, json)? }; // scale(x, y, a, n): y[i] = x[i] * a
    /// let x = device.upload(&[1.0f32, 2.0, 3.0])?;
    /// let mut y = device.zeros::<f32>(3)?;
    /// scale.launch(device.default_stream(), 1, &args![&x, &mut y, 2.0f32, 3])?;
    /// assert_eq!(y.to_vec()?, [2.0, 4.0, 6.0]);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Metadata`](crate::Error::Metadata) for text that is no metadata; else as for [`Device::load`].
    ///
    /// # Safety
    ///
    /// As for [`Device::load`].
    pub unsafe fn load_json(&self, ptx: &str, metadata: &str) -> Result<Kernel> {
        // SAFETY: the caller guarantees the PTX.
        unsafe { self.load(ptx, &Metadata::from_json(metadata)?) }
    }

    #[cfg(all(feature = "emulator", feature = "jit"))]
    pub(crate) fn interpreted(&self, code: Arc<dyn Code>, metadata: Metadata) -> Result<Kernel> {
        let fill = Fill::of(&metadata)?;
        let block = [metadata.threads_per_block, 1, 1];
        Ok(Kernel::of(Loaded { device: self.clone(), metadata, block, fill, code }))
    }
}
