//! Loading kernels on a device.
#![allow(unsafe_code)]

#[cfg(feature = "cuda")]
use super::assembled::instead_of_driver;
use super::{Code, Fill, Kernel, Loaded, wrong_device};
use crate::device::Backend;
use crate::{Device, Error, Result, argument, cuda, ptx_check};
use rtc_abi::{Arch, Metadata};
use std::sync::Arc;

impl Device {
    /// Loads a kernel: PTX text and the metadata that was written beside it.
    ///
    /// # Safety
    ///
    /// The metadata must be true of the PTX: [`Kernel::launch`] relies on what it says of parameters, of accesses and of
    /// the number of elements behind each pointer. That holds for what one run of `rtc build`, `rtc-build` or the compiler
    /// made. Metadata for PTX of other origin must state no extents; the launches are then
    /// [unchecked](Kernel::launch_unchecked).
    pub unsafe fn load(&self, ptx: &str, metadata: &Metadata) -> Result<Kernel> {
        // SAFETY: the caller vouches for the PTX.
        unsafe { self.load_assembled(ptx, None, metadata) }
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
    /// let scale = unsafe { device.load_assembled(ptx, cubin, &Metadata::from_json(json)?)? };
    /// assert!(!scale.is_assembled()); // there was no machine code
    /// let (x, mut y) = (device.upload(&[1.0f32, 2.0])?, device.zeros::<f32>(2)?);
    /// scale.launch(&device.default_stream(), 1, &args![&x, &mut y, 3.0f32, 2])?;
    /// // The emulator looks for reads of memory that nobody wrote; there are none.
    /// assert_eq!(scale.take_findings(), []);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// As for [`Device::load`]; the machine code must be that of the PTX.
    pub unsafe fn load_assembled(&self, ptx: &str, cubin: Option<&[u8]>, metadata: &Metadata) -> Result<Kernel> {
        // SAFETY: the caller vouches for PTX and machine code.
        unsafe { self.load_shaped(ptx, cubin, metadata, [metadata.threads_per_block, 1, 1]) }
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
    /// let scale = unsafe { device.load_with_block(ptx, &metadata, [metadata.threads_per_block, 1, 1])? };
    /// let (x, mut y) = (device.upload(&[1.0f32, 2.0])?, device.zeros::<f32>(2)?);
    /// scale.launch(&device.default_stream(), 1, &args![&x, &mut y, 3.0f32, 2])?;
    /// // SAFETY: as above.
    /// assert!(unsafe { device.load_with_block(ptx, &metadata, [3, 3, 3]) }.is_err());
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// As for [`Device::load`].
    pub unsafe fn load_with_block(&self, ptx: &str, metadata: &Metadata, block: [u32; 3]) -> Result<Kernel> {
        let threads = block.into_iter().map(u64::from).try_fold(1, u64::checked_mul);
        if threads != Some(metadata.threads_per_block.into()) {
            let message = format!("a block of {block:?} has not {} threads", metadata.threads_per_block);
            return Err(argument::metadata_error("threads_per_block".into(), message));
        }
        // SAFETY: the caller vouches for the PTX.
        unsafe { self.load_shaped(ptx, None, metadata, block) }
    }

    /// # Safety
    ///
    /// As for [`Device::load_assembled`].
    unsafe fn load_shaped(
        &self,
        ptx: &str,
        cubin: Option<&[u8]>,
        metadata: &Metadata,
        block: [u32; 3],
    ) -> Result<Kernel> {
        metadata.check()?;
        ptx_check::check(ptx, metadata)?;
        let fill = Fill::of(metadata)?;
        let code = match self.backend() {
            Backend::Cuda(context) => Code::Cuda(load_cuda(self, context, ptx, cubin, metadata)?),
            #[cfg(feature = "emulator")]
            Backend::Emulator(_) => {
                Code::Emulator(Box::new(crate::host::Emulated::load(ptx, &metadata.symbol, block)?))
            }
            #[cfg(not(feature = "emulator"))]
            Backend::Emulator(memory) => match **memory {},
            Backend::Interpreter(_) => {
                return Err(wrong_device(self, metadata, "the interpreter executes tile IR, not PTX".into()));
            }
        };
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
    /// scale.launch(&device.default_stream(), 1, &args![&x, &mut y, 2.0f32, 3])?;
    /// assert_eq!(y.to_vec()?, [2.0, 4.0, 6.0]);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// As for [`Device::load`].
    pub unsafe fn load_json(&self, ptx: &str, metadata: &str) -> Result<Kernel> {
        // SAFETY: the caller vouches for the PTX.
        unsafe { self.load(ptx, &Metadata::from_json(metadata)?) }
    }

    #[cfg(feature = "jit")]
    pub(crate) fn interpreted(&self, kernel: crate::jit::InterpretedKernel, metadata: Metadata) -> Result<Kernel> {
        let fill = Fill::of(&metadata)?;
        let code = Code::Interpreter(Box::new(kernel));
        let block = [metadata.threads_per_block, 1, 1];
        Ok(Kernel::of(Loaded { device: self.clone(), metadata, block, fill, code }))
    }
}

/// Without a driver nothing is loaded there.
#[cfg(not(feature = "cuda"))]
fn instead_of_driver(_: &Arc<cuda::Context>, _: &str, _: &Metadata) -> Option<cuda::Module> {
    None
}

fn load_cuda(
    device: &Device,
    context: &Arc<cuda::Context>,
    ptx: &str,
    cubin: Option<&[u8]>,
    metadata: &Metadata,
) -> Result<cuda::Module> {
    check_arch(device, context.capability(), metadata)?;
    let out_of = |resource, needed: u32, available: u32, hint| Error::OutOfResources {
        kernel: metadata.kernel.clone(),
        resource,
        needed: needed.into(),
        available: available.into(),
        hint,
    };
    let smaller = "Smaller blocks or a smaller num_stages need less.";
    if metadata.shared_bytes > context.shared_limit() {
        return Err(out_of("shared memory (bytes)", metadata.shared_bytes, context.shared_limit(), smaller));
    }
    let is_own = metadata.arch.parse::<Arch>().is_ok_and(|arch| arch.capability == context.capability());
    let assembled = cubin.filter(|_| is_own).map(|cubin| cuda::Module::load_cubin(context, cubin, &metadata.symbol));
    let module = match assembled {
        Some(Ok(module)) => module,
        _ => match instead_of_driver(context, ptx, metadata) {
            Some(module) => module,
            None => cuda::Module::load(context, ptx, &metadata.symbol)?,
        },
    };
    let shared = metadata.shared_bytes.saturating_add(module.static_shared);
    if shared > context.shared_limit() {
        return Err(out_of("shared memory (bytes)", shared, context.shared_limit(), smaller));
    }
    if metadata.threads_per_block > module.max_threads {
        let hint = "The registers of a block do not fit; set maxnreg, or use smaller blocks.";
        return Err(out_of("threads per block", metadata.threads_per_block, module.max_threads, hint));
    }
    let module = if module.is_assembled {
        module
    } else {
        cuda::more_blocks(module, context, ptx, &metadata.symbol, metadata.threads_per_block, metadata.shared_bytes)?
    };
    module.prepare(metadata.shared_bytes, metadata.cluster)?;
    Ok(module)
}

/// PTX for a plain target runs on it and on later ones, for an architecture-specific target only there.
fn check_arch(device: &Device, capability: u32, metadata: &Metadata) -> Result<()> {
    if metadata.arch.parse::<Arch>().is_ok_and(|arch| arch.runs_on(capability)) {
        return Ok(());
    }
    Err(wrong_device(device, metadata, format!("it was built for {}, the device is sm_{capability}", metadata.arch)))
}
