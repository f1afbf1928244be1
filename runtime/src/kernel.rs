//! Loaded kernels and their launch.
//!
//! Loading checks what can be checked once: that PTX and metadata belong together and that the device has what the
//! kernel needs. A launch checks its arguments and the grid, packs them on the stack and calls the driver. It allocates
//! nothing, but for more than 1,024 bytes of parameters and the first time that a stream needs so much scratch memory.
#![allow(unsafe_code)]

mod configuration;
mod load;
#[cfg(feature = "jit")]
mod packed;

#[cfg(feature = "jit")]
pub(crate) use packed::Packed;

pub use configuration::Configuration;

use crate::argument::{self, GridSlot, Slot};
use crate::backend::{Code, KernelUsage, Launch, Scratch, wrong_device};
use crate::extent::{self, Lengths};
use crate::tensor_map::{self, MapSlot};
use crate::{Arg, Device, Error, Finding, Grid, Result, Stream};
use rtc_abi::{Extents, Metadata};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A kernel that is ready to launch on one device. Cloning gives another handle of it.
///
/// `Kernel` alone takes the arguments of a launch as a list of [`Arg`]s, whose number and types are checked at each launch;
/// [`Kernel::typed`] makes a handle of it that knows them, such as `Kernel<(Read<f32>, Write<f32>, i32)>`.
///
/// ```
/// use rtc_runtime::{Device, Kernel, args};
/// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
/// let device = Device::auto();
/// // SAFETY: the files were made together.
/// let scale: Kernel = unsafe { device.load_json(ptx, json)? }; // scale(x, y, a, n): y[i] = x[i] * a
/// let names: Vec<&str> = scale.metadata().params.iter().map(|param| param.name.as_str()).collect();
/// assert_eq!(names, ["x", "y", "a", "n"]);
/// let (x, mut y) = (device.upload(&[1.0f32, 2.0])?, device.zeros::<f32>(2)?);
/// scale.launch(device.default_stream(), 1, &args![&x, &mut y, 3.0f32, 2])?;
/// assert_eq!(y.to_vec()?, [3.0, 6.0]);
/// assert!(scale.device().is_same(&device) && !scale.is_cubin()); // it was loaded as PTX
/// assert_eq!(scale.usage().is_some(), device.is_cuda());
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
pub struct Kernel<Args = DynArgs> {
    loaded: Arc<Loaded>,
    /// What its launches do about the lengths of slices.
    lengths: Lengths,
    args: PhantomData<fn(Args)>,
}

/// Stands for the types of arguments that a handle does not know.
///
/// ```
/// use rtc_runtime::{Device, Kernel, Read, DynArgs, Write};
/// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
/// // SAFETY: the files were made together.
/// let typed: Kernel<(Read<f32>, Write<f32>, f32, i32)> = unsafe { Device::auto().load_json(ptx, json)? }.typed()?;
/// let untyped: Kernel<DynArgs> = typed.untyped();
/// assert_eq!(untyped.metadata().kernel, "scale");
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum DynArgs {}

impl<Args> Clone for Kernel<Args> {
    fn clone(&self) -> Self {
        self.with_types()
    }
}

impl<Args> fmt::Debug for Kernel<Args> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({} on {})", self.loaded.metadata.symbol, self.loaded.device)
    }
}

impl<Args> AsRef<Kernel<Args>> for Kernel<Args> {
    fn as_ref(&self) -> &Kernel<Args> {
        self
    }
}

/// What the handles of a kernel share.
#[derive(Debug)]
pub(crate) struct Loaded {
    device: Device,
    metadata: Metadata,
    /// Threads per block along each axis.
    block: [u32; 3],
    fill: Fill,
    code: Arc<dyn Code>,
}

/// What the parameter buffer is filled with.
#[derive(Debug)]
struct Fill {
    args: Box<[Slot]>,
    grid: Box<[GridSlot]>,
    maps: Box<[MapSlot]>,
    extents: Extents,
    /// Where each parameter lies in the buffer, the scratch pointer's place last; empty if there is no tensor map.
    ///
    /// Devices align parameters by their addresses in constant memory, where the first has none of 64 bytes. So a buffer
    /// laid out from 0 on is theirs only if nothing in it needs as much.
    places: Box<[u32]>,
    /// Bytes of the buffer, with the scratch pointer.
    size: usize,
    /// Where the scratch pointer goes.
    scratch: Option<usize>,
}

impl Fill {
    fn of(metadata: &Metadata) -> Result<Fill> {
        let extents = Extents::new(metadata)?;
        let (args, maps) = (argument::slots(metadata, &extents)?, tensor_map::slots(metadata)?);
        let places = match maps.is_empty() {
            true => Box::default(),
            false => metadata.params.iter().map(|param| param.offset).chain(metadata.scratch_offset()).collect(),
        };
        let scratch = metadata.scratch_offset().map(|at| at as usize);
        let size = scratch.map_or(metadata.params_size() as usize, |at| at + 8);
        Ok(Fill { args, grid: argument::grid_slots(metadata), maps, extents, places, size, scratch })
    }
}

/// Parameters up to these sizes are packed on the stack: most kernels have fewer than the first, hardly any more than the
/// second. Clearing less costs less.
const FEW_PARAMS: usize = 192;
const STACK_PARAMS: usize = 1024;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Aligned<const BYTES: usize>([u8; BYTES]);

impl<Args> Kernel<Args> {
    /// The same kernel; the caller guarantees the types.
    pub(crate) fn with_types<Other>(&self) -> Kernel<Other> {
        Kernel { loaded: self.loaded.clone(), lengths: self.lengths, args: PhantomData }
    }

    /// Launches with what this handle does about the lengths of slices.
    #[inline]
    pub(crate) fn launch_args(&self, stream: &Stream, grid: Grid, args: &[Arg<'_>]) -> Result<()> {
        self.loaded.launch(stream, grid, args, self.lengths)
    }

    /// Launches without a check of lengths.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::launch_unchecked`].
    #[inline]
    pub(crate) unsafe fn launch_args_unchecked(&self, stream: &Stream, grid: Grid, args: &[Arg<'_>]) -> Result<()> {
        self.loaded.launch(stream, grid, args, Lengths::Trusted)
    }

    /// The same kernel with launches that do not check how far it gets from its pointers, for functions that take a
    /// kernel and launch it.
    ///
    /// ```
    /// use rtc_runtime::{Device, Kernel, args};
    /// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
    /// let device = Device::auto();
    /// // SAFETY: the files were made together.
    /// let scale = unsafe { device.load_json(ptx, json)? }; // scale(x, y, a, n): y[i] = x[i] * a
    /// // SAFETY: its launches below touch two elements.
    /// let scale: Kernel = unsafe { scale.assume_in_bounds() };
    /// let (x, mut y) = (device.upload(&[1.0f32, 2.0])?, device.zeros::<f32>(2)?);
    /// scale.launch(device.default_stream(), 1, &args![&x, &mut y, 3.0f32, 2])?;
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// As for [`Kernel::launch_unchecked`], for every launch of the handle and of what is made of it.
    pub unsafe fn assume_in_bounds(&self) -> Kernel<Args> {
        Kernel { lengths: Lengths::Trusted, ..self.with_types() }
    }

    /// Its metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.loaded.metadata
    }

    /// The device that it was loaded on.
    pub fn device(&self) -> &Device {
        &self.loaded.device
    }

    /// What the driver's compiler made of it; `None` where there is no such compiler.
    pub fn usage(&self) -> Option<KernelUsage> {
        self.loaded.code.usage()
    }

    /// Whether the driver was given machine code that was assembled before, not PTX.
    pub fn is_cubin(&self) -> bool {
        self.loaded.code.is_cubin()
    }

    /// What the last launch asked of the machine, on a device that counts: [`Device::with_counters`].
    #[cfg(feature = "emulator")]
    pub fn take_counters(&self) -> Option<rtc_emulator::counters::Counters> {
        self.loaded.code.take_counters()
    }

    /// The events of the first cluster of the last launch, on a device that records: [`Device::with_trace`].
    #[cfg(feature = "emulator")]
    pub fn take_trace(&self) -> Option<rtc_emulator::timeline::Trace> {
        self.loaded.code.take_trace()
    }

    /// What looked wrong in the launches since the last call without ending them: reads of uninitialized memory,
    /// overflow on the way to an address. The interpreter and the emulator look for such things.
    pub fn take_findings(&self) -> Vec<Finding> {
        self.loaded.code.take_findings()
    }
}

impl Kernel {
    fn of(loaded: Loaded) -> Kernel {
        Kernel { loaded: Arc::new(loaded), lengths: Lengths::Proved, args: PhantomData }
    }

    /// Launches `grid` programs; `args` in the order of the metadata's parameters. An empty grid launches nothing.
    ///
    /// Every slice must be at least as long as what the kernel may access, by the bounds that the compiler proved and the
    /// metadata states. Where it proved none, the launch is refused with the pointer and the reason; see
    /// [`Kernel::launch_unchecked`]. The rule is the same on every device. On a GPU the call returns before the kernel has
    /// run; wait with [`Stream::synchronize`].
    ///
    /// ```
    /// use rtc_runtime::{Device, args};
    /// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
    /// let device = Device::auto();
    /// // SAFETY: the files were made together.
    /// let scale = unsafe { device.load_json(ptx, json)? }; // scale(x, y, a, n): y[i] = x[i] * a for i < n
    /// let (x, mut y) = (device.upload(&[1.0f32, 2.0])?, device.zeros::<f32>(2)?);
    /// let refused = scale.launch(device.default_stream(), 1, &args![&x, &mut y, 3.0f32, 3]).unwrap_err();
    /// assert!(refused.to_string().contains("the kernel touches 3 elements (`n`), the slice has 2"));
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`]; [`Error::Argument`] for an argument of another type or alignment and for slices that are too
    /// short; [`Error::OutOfRange`] for numbers; [`Error::Unproved`] and [`Error::Argument`] where accesses are not proved;
    /// [`Error::NegativeGrid`] and [`Error::OutOfResources`] for the grid; [`Error::WrongDevice`] for a stream of another
    /// device; [`Error::Cuda`] if the driver fails. Faults of the kernel are errors of the launch on the CPU
    /// ([`Error::Fault`], [`Error::Sanitizer`], [`Error::Interpreter`]), and of a later call on a GPU.
    pub fn launch(&self, stream: &Stream, grid: impl Into<Grid>, args: &[Arg<'_>]) -> Result<()> {
        self.launch_args(stream, grid.into(), args)
    }

    /// Like [`Kernel::launch`] without the check of lengths: for kernels whose accesses are not proved, and for launches
    /// that access less than the proved bounds. Number, types, alignment and devices of the arguments are checked as ever.
    ///
    /// ```
    /// use rtc_runtime::{Device, args};
    /// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
    /// let device = Device::auto();
    /// // SAFETY: the files were made together.
    /// let scale = unsafe { device.load_json(ptx, json)? }; // scale(x, y, a, n): y[i] = x[i] * a for i < n
    /// let (x, mut y) = (device.upload(&[1.0f32, 2.0])?, device.zeros::<f32>(2)?);
    /// // SAFETY: it accesses `n` elements of `x` and `y`, and both have as many.
    /// unsafe { scale.launch_unchecked(device.default_stream(), 1, &args![&x, &mut y, 3.0f32, 2])? };
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// It takes an `unsafe` block, as do [`Kernel::assume_in_bounds`] and loading code of other origin:
    ///
    /// ```compile_fail,E0133
    /// # fn f(kernel: &rtc_runtime::Kernel, stream: &rtc_runtime::Stream) {
    /// let _ = kernel.launch_unchecked(stream, 1, &[]);
    /// # }
    /// ```
    ///
    /// ```compile_fail,E0133
    /// # fn f(kernel: &rtc_runtime::Kernel) {
    /// let _ = kernel.assume_in_bounds();
    /// # }
    /// ```
    ///
    /// ```compile_fail,E0133
    /// # fn f(device: &rtc_runtime::Device) {
    /// let _ = device.load_json("", "");
    /// # }
    /// ```
    ///
    /// ```compile_fail,E0133
    /// let _ = rtc_runtime::Variant::new("sm_80", "", "", None);
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Kernel::launch`] but for lengths.
    ///
    /// # Safety
    ///
    /// All that the kernel reads and writes in this launch must lie within the memory of its arguments, or be memory of
    /// its device that it may access until the launch has ended. It must write to no memory that was given to be read.
    pub unsafe fn launch_unchecked(&self, stream: &Stream, grid: impl Into<Grid>, args: &[Arg<'_>]) -> Result<()> {
        // SAFETY: the caller guarantees the accesses.
        unsafe { self.launch_args_unchecked(stream, grid.into(), args) }
    }
}

impl Loaded {
    pub(crate) fn launch(&self, stream: &Stream, grid: Grid, args: &[Arg<'_>], lengths: Lengths) -> Result<()> {
        if stream.id() != self.device.id() {
            return Err(self.wrong_stream(stream));
        }
        let grid = self.programs(grid)?;
        let size = self.fill.size;
        if size <= FEW_PARAMS {
            let mut buffer = Aligned([0; FEW_PARAMS]);
            self.launch_packed(stream, grid, args, lengths, &mut buffer.0[..size])
        } else if size <= STACK_PARAMS {
            let mut buffer = Aligned([0; STACK_PARAMS]);
            self.launch_packed(stream, grid, args, lengths, &mut buffer.0[..size])
        } else {
            self.launch_packed(stream, grid, args, lengths, &mut vec![0; size])
        }
    }

    #[cold]
    fn wrong_stream(&self, stream: &Stream) -> Error {
        let message = format!("the stream belongs to {}; take one of `kernel.device()`", stream.backend().name());
        wrong_device(self.device.to_string(), &self.metadata, message)
    }

    fn launch_packed(
        &self,
        stream: &Stream,
        grid: [u32; 3],
        args: &[Arg<'_>],
        lengths: Lengths,
        params: &mut [u8],
    ) -> Result<()> {
        let Fill { args: slots, extents, .. } = &self.fill;
        // Before lengths, which may be too short only because the grid is wrong.
        let blocks = self.blocks(grid)?;
        if lengths == Lengths::Trusted || grid.contains(&0) {
            argument::pack(&self.device, &self.metadata, slots, args, None, params)?;
        } else {
            if let Some(why) = &self.metadata.elsewhere {
                extent::check(&self.metadata, extents, slots, args, grid)?;
                return Err(Error::Unproved { kernel: self.metadata.kernel.clone(), why: why.clone() });
            }
            let evaluated = extent::evaluate(extents, args, grid);
            if !argument::pack(&self.device, &self.metadata, slots, args, Some(&evaluated), params)? {
                extent::check(&self.metadata, extents, slots, args, grid)?;
            }
        }
        self.launch_filled(stream, grid, blocks, args, params)
    }

    /// Launches with a parameter buffer that has the arguments; `blocks` are those of the grid.
    #[inline]
    fn launch_filled(
        &self,
        stream: &Stream,
        grid: [u32; 3],
        blocks: [u32; 3],
        args: &[Arg<'_>],
        params: &mut [u8],
    ) -> Result<()> {
        if blocks.contains(&0) {
            return Ok(());
        }
        argument::pack_grid(&self.fill.grid, grid, params);
        tensor_map::pack(&self.device, &self.metadata, &self.fill.maps, args, params)?;
        let is_recorded = stream.note(|recording| {
            let places = args.iter().filter_map(|arg| arg.pointer()?.access());
            places.for_each(|(place, writes)| recording.add(&place, writes));
            recording.keep(self.code.clone());
        });
        let _span = crate::spans::launch(&self.metadata, blocks);
        #[cfg(feature = "nvtx")]
        let _range = crate::nvtx::range(&self.metadata.symbol);
        let launch = Launch {
            metadata: &self.metadata,
            grid: blocks,
            block: self.block,
            params,
            places: &self.fill.places,
            scratch: self.fill.scratch.map(|at| Scratch { at, bytes: self.scratch_bytes(blocks) }),
            is_recorded,
        };
        match stream.needs_events() {
            false => self.code.launch(stream.raw_stream(), launch),
            true => self.launch_in_order(stream, args, launch),
        }
    }

    #[cold]
    fn launch_in_order(&self, stream: &Stream, args: &[Arg<'_>], launch: Launch<'_>) -> Result<()> {
        let places = args.iter().filter_map(|arg| arg.pointer()?.access());
        let uses = places.filter_map(|(place, writes)| Some((place.uses()?, writes)));
        stream.in_order(uses, || self.code.launch(stream.raw_stream(), launch))
    }

    fn scratch_bytes(&self, grid: [u32; 3]) -> usize {
        let blocks = grid.iter().map(|v| u64::from(*v)).fold(1, u64::saturating_mul);
        blocks.saturating_mul(self.metadata.global_scratch_bytes) as usize
    }

    /// The grid in programs.
    #[inline]
    fn programs(&self, Grid(sizes): Grid) -> Result<[u32; 3]> {
        let [x, y, z] = sizes;
        // One comparison: a negative number has high bits, too.
        if (x | y | z) as u64 >> 32 == 0 { Ok(sizes.map(|size| size as u32)) } else { Err(self.wrong_grid(sizes)) }
    }

    #[cold]
    fn wrong_grid(&self, sizes: [i64; 3]) -> Error {
        match (0..3).find(|axis| sizes[*axis] < 0) {
            Some(axis) => Error::NegativeGrid {
                kernel: self.metadata.kernel.clone(),
                axis: ["x", "y", "z"][axis],
                size: sizes[axis],
            },
            None => self.too_many_blocks(sizes.map(|size| size as u64)),
        }
    }

    /// The grid in blocks: programs times the cluster's x; of persistent kernels as many as are worth starting.
    #[inline]
    fn blocks(&self, grid: [u32; 3]) -> Result<[u32; 3]> {
        let most = Grid::MAX.map(u64::from);
        let [x, y, z] = match self.metadata.persistent {
            Some(persistent) => {
                let programs = grid.iter().map(|size| u128::from(*size)).product::<u128>();
                // More than 2^64 programs do not fit the launch either; the limit below says so.
                let programs = u64::try_from(programs).unwrap_or(u64::MAX);
                [persistent.blocks(programs, self.device.sm_count()), 1, 1]
            }
            None => grid.map(u64::from),
        };
        if [x, y, z].contains(&0) {
            return Ok([0; 3]);
        }
        let x = x.saturating_mul(u64::from(self.metadata.cluster[0]));
        if x > most[0] || y > most[1] || z > most[2] {
            return Err(self.too_many_blocks([x, y, z]));
        }
        Ok([x as u32, y as u32, z as u32])
    }

    #[cold]
    fn too_many_blocks(&self, blocks: [u64; 3]) -> Error {
        let most = Grid::MAX.map(u64::from);
        let axis = (0..2).find(|axis| blocks[*axis] > most[*axis]).unwrap_or(2);
        Error::OutOfResources {
            kernel: self.metadata.kernel.clone(),
            resource: ["grid size x (blocks)", "grid size y (blocks)", "grid size z (blocks)"][axis],
            needed: blocks[axis],
            available: most[axis],
            hint: match axis {
                0 => "Let each program do more.",
                _ => "Let each program do more, or move blocks to the x dimension.",
            },
        }
    }
}
