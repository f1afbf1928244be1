//! A launch that is made again and again: recognized by comparing numbers, without looking anything up.

use super::kernel::{Bound, JitKernel, SpecializedKernel};
use super::specialize::Words;
use super::{CompileError, Options};
use crate::Arg;
use std::sync::Arc;

/// A kernel that is ready, and the kinds of arguments that it is ready for.
///
/// ```
/// use rtc_runtime::{Device, args, internal::Remembered, jit::Options};
/// let source = "@triton.jit\ndef fill(x, n):\n    tl.store(x + tl.arange(0, 16), 1.0, mask=tl.arange(0, 16) < n)\n";
/// let device = Device::emulator();
/// let program = device.jit_program(rtc_compiler::Program::parse(&[rtc_compiler::Source::new("fill.rt", source)]))?;
/// let fill = program.with_cache(None).kernel("fill")?;
/// let mut x = device.zeros::<f32>(16)?;
/// let known: Remembered = fill.remember(&args![&mut x, 3], &Options::new())?;
/// assert!(known.fits(&args![&mut x, 5])); // 5 is no more a multiple of 16 than 3 is
/// assert!(!known.fits(&args![&mut x, 16]));
/// known.ready().launch(device.default_stream(), 1, &args![&mut x, 5])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Remembered {
    bound: Arc<Bound>,
    /// How many arguments there were.
    given: usize,
    words: Words,
    ready: SpecializedKernel,
}

impl JitKernel {
    #[doc(hidden)]
    /// Like [`JitKernel::specialize`]; what it gives tells without a look-up whether later arguments are of the same kinds.
    pub fn remember(&self, args: &[Arg<'_>], options: &Options) -> Result<Remembered, CompileError> {
        let ready = self.specialize(args, options)?;
        let bound = self.bound(options)?;
        Ok(Remembered { given: args.len(), words: bound.words(args), bound, ready })
    }
}

impl Remembered {
    /// Whether the kernel is the one for these arguments.
    #[inline]
    pub fn fits(&self, args: &[Arg<'_>]) -> bool {
        let mut words = Words::new();
        self.bound.add_words(args, &mut words);
        args.len() == self.given && words == self.words
    }

    /// The kernel.
    #[inline]
    pub fn ready(&self) -> &SpecializedKernel {
        &self.ready
    }
}
