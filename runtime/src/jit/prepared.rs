//! A launch with its arguments packed: it is made again with other addresses, and nothing else is looked at.
#![allow(unsafe_code)]

use super::Remembered;
use crate::kernel::{Kernel, Packed};
use crate::pointer::Kind;
use crate::{Arg, Error, Grid, Result, Stream};
use rtc_abi::DType;
use smallvec::SmallVec;

/// The arguments of a launch in the kernel's parameter buffer. What is made of numbers and constants is there; memory is given
/// again for each launch.
///
/// Kernels that make tensor maps of their arguments, that need scratch memory or more than 192 bytes of parameters have none,
/// nor have launches with tuples or descriptors: [`Remembered::prepare`] then gives nothing.
#[derive(Clone, Debug)]
pub struct Prepared {
    kernel: Kernel,
    packed: Packed,
    memory: SmallVec<[Option<Memory>; 16]>,
    /// A bit for each argument that is memory.
    wanted: u64,
}

/// An argument that is memory.
#[derive(Clone, Copy, Debug)]
struct Memory {
    dtype: DType,
    /// Whether the address was a multiple of 16: that may be part of the kernel.
    is_aligned: bool,
    /// Where the address goes, unless nothing does; and bits of it that must be 0.
    slot: Option<(usize, u64)>,
}

impl Remembered {
    /// Packs these arguments, if they are of the remembered kinds and the kernel takes nothing but numbers and addresses.
    ///
    /// ```
    /// use rtc_runtime::{Device, abi::DType, args, internal::{Again, Prepared}, jit::Options};
    /// let source = "@triton.jit\ndef fill(x, n):\n    tl.store(x + tl.arange(0, 16), 1.0, mask=tl.arange(0, 16) < n)\n";
    /// let device = Device::emulator();
    /// let program = device.jit_program(rtc_compiler::Program::parse(&[rtc_compiler::Source::new("fill.rt", source)]))?;
    /// let fill = program.with_cache(None).kernel("fill")?;
    /// let (mut x, y) = (device.zeros::<f32>(16)?, device.zeros::<f32>(16)?);
    /// let known = fill.remember(&args![&mut x, 3], &Options::new())?;
    /// let prepared: Prepared = known.prepare(&args![&mut x, 3]).expect("numbers and addresses");
    /// let mut launch: Again<'_> = prepared.again();
    /// // SAFETY: `y` lives, and no other code uses it.
    /// assert!(unsafe { launch.address(0, y.address(), DType::Fp32) });
    /// // SAFETY: it accesses three elements of `y`.
    /// unsafe { launch.launch_unchecked(device.default_stream(), 1)? };
    /// assert_eq!(y.to_vec()?[..5], [1.0, 1.0, 1.0, 0.0, 0.0]);
    /// // What is missing is an error.
    /// // SAFETY: nothing is launched.
    /// assert!(unsafe { prepared.again().launch_unchecked(device.default_stream(), 1) }.is_err());
    /// # Ok::<(), rtc_runtime::jit::CompileError>(())
    /// ```
    pub fn prepare(&self, args: &[Arg<'_>]) -> Option<Prepared> {
        if !self.fits(args) {
            return None;
        }
        let (kernel, passed) = self.ready().parts();
        let packed = kernel.pack(&passed.pick(args))?;
        let mut memory: SmallVec<[Option<Memory>; 16]> = SmallVec::new();
        let mut wanted = 0;
        for (number, arg) in args.iter().enumerate() {
            memory.push(match arg {
                Arg::Pointer(pointer) => {
                    let (Kind::Read(place) | Kind::Write(place)) = pointer.0 else { return None };
                    wanted |= 1u64.checked_shl(number as u32).filter(|_| place.device.is_some())?;
                    let slot = passed.param_of(number).map(|param| kernel.address_slot(param));
                    Some(Memory { dtype: place.dtype, is_aligned: place.address.is_multiple_of(16), slot })
                }
                Arg::Int(_) | Arg::Float(_) | Arg::Bool(_) | Arg::Constant(_) => None,
                _ => return None,
            });
        }
        Some(Prepared { kernel: kernel.clone(), packed, memory, wanted })
    }
}

impl Prepared {
    /// Begins another launch.
    #[inline]
    pub fn again(&self) -> Again<'_> {
        Again { prepared: self, packed: self.packed, given: 0 }
    }
}

/// A launch that is being given its memory.
#[derive(Debug)]
pub struct Again<'a> {
    prepared: &'a Prepared,
    packed: Packed,
    given: u64,
}

impl Again<'_> {
    /// Gives the memory of an argument, counted from 0. False if another kernel may be meant by such memory, or none.
    ///
    /// # Safety
    ///
    /// As for [`Pointer::from_raw`](crate::Pointer::from_raw) with the kernel's device.
    #[inline]
    pub unsafe fn address(&mut self, arg: usize, address: u64, dtype: DType) -> bool {
        let Some(Some(memory)) = self.prepared.memory.get(arg) else { return false };
        if memory.dtype != dtype || memory.is_aligned != address.is_multiple_of(16) {
            return false;
        }
        if let Some((offset, mask)) = memory.slot {
            if address & mask != 0 {
                return false;
            }
            self.packed.put(offset, address);
        }
        self.given |= 1 << arg;
        true
    }

    /// Launches `grid` programs. The stream must not be one that is recorded, which keeps the memory of its launches alive.
    /// An address has no length that could be checked, so there is no other launch.
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`] if memory is missing; else as for [`Kernel::launch_unchecked`].
    ///
    /// # Safety
    ///
    /// As for [`Kernel::launch_unchecked`].
    #[inline]
    pub unsafe fn launch_unchecked(mut self, stream: &Stream, grid: impl Into<Grid>) -> Result<()> {
        if self.given != self.prepared.wanted {
            return Err(self.incomplete());
        }
        // SAFETY: the caller guarantees the accesses.
        unsafe { self.prepared.kernel.launch_packed(stream, grid.into(), &mut self.packed) }
    }

    #[cold]
    fn incomplete(&self) -> Error {
        let (given, expected) = (self.given.count_ones() as usize, self.prepared.wanted.count_ones() as usize);
        let metadata = self.prepared.kernel.metadata();
        let names = metadata.visible_params().iter().filter(|param| param.ty.pointee().is_some());
        let names = names.map(|param| param.name.as_str()).collect::<Vec<_>>().join(", ");
        Error::ArgumentCount { kernel: metadata.kernel.clone(), expected, given, names }
    }
}
