//! What a tuner is told before it begins.

#![allow(unsafe_code)]

use super::Tuner;
use crate::GridFn;
use crate::shard::Shard;
use rtc_abi::spec::ConstValue;
use rtc_build::Assembler;
use rtc_cache::Cache;
use rtc_compiler::HostValue;
use std::time::Duration;

impl<'p> Tuner<'p> {
    /// An argument of the launch, as heuristics and keys see it.
    pub fn argument(mut self, name: impl Into<String>, value: HostValue) -> Self {
        let name = name.into();
        self.arguments.retain(|(known, _)| *known != name);
        self.arguments.push((name, value));
        self
    }

    /// An integer argument of the launch.
    pub fn integer(self, name: impl Into<String>, value: i64) -> Self {
        self.argument(name, HostValue::Value(ConstValue::Int(value.into())))
    }

    /// How many programs a configuration launches.
    pub fn grid(mut self, grid: GridFn) -> Self {
        self.grid = grid;
        self
    }

    /// The longest time that the tuning may take; the cost model's favourites are timed first.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.plan.budget = Some(budget);
        self
    }

    /// Looks beyond the written configurations: other block sizes, warps, stages. What such a configuration computes must
    /// be what a written one does.
    pub fn widen_search(mut self) -> Self {
        self.is_wide = true;
        self
    }

    /// Shows a progress bar, where standard error is a terminal.
    pub fn show_progress(mut self) -> Self {
        self.shows_progress = true;
        self
    }

    /// Keeps results here, and takes them from here.
    pub fn cache(mut self, cache: &'p Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Times all configurations, also those of which the cache has times.
    pub fn ignore_cached_times(mut self) -> Self {
        self.is_fresh = true;
        self
    }

    /// Assembles by NVIDIA's `ptxas`, on all processors, where the driver compiles one kernel at a time. The fastest are timed
    /// once more as the driver compiles them for launches.
    ///
    /// ```
    /// # let program = rtc_compiler::Program::parse(&[rtc_compiler::Source::new("k.rt", "")]);
    /// let tuner = rtc_tune::Tuner::new(&program, Default::default()).assembler(rtc_build::Assembler::find());
    /// ```
    pub fn assembler(mut self, assembler: Option<Assembler>) -> Self {
        self.assembler = assembler;
        self
    }

    /// Times on devices without a clock of a GPU, too: what it finds there says nothing of a GPU, but tests see each step.
    pub fn allow_untimed_devices(mut self) -> Self {
        self.is_anywhere = true;
        self
    }

    /// Takes the counters of the emulator for a clock: the device must be one of
    /// [`Device::with_counters`](rtc_runtime::Device::with_counters). Each configuration runs once, and its time is what the cost model says of
    /// what the launch did. It is the same on every machine; a GPU may put the configurations in another order.
    ///
    /// ```
    /// # use rtc_compiler::{Program, Signature, Source, Spec};
    /// # use rtc_runtime::{Device, args};
    /// # use rtc_tune::{Decision, Tuner};
    /// # let text = "@triton.autotune([triton.Config({'B': b}) for b in (32, 128)], key=['n'])\n\
    /// #             @triton.jit\ndef fill(x, n, B: tl.constexpr):\n    i = tl.arange(0, B)\n    \
    /// #             tl.store(x + i, 1.0, mask=i < n)\n";
    /// # let program = Program::parse(&[Source::new("fill.rt", text)]);
    /// # let spec = Spec { args: Signature::parse("*fp32:16, i32:16")?.bind(&["x", "n"])?, ..Spec::default() };
    /// let device = Device::emulator().with_counters()?;
    /// let mut x = device.zeros::<f32>(256)?;
    /// // SAFETY: the kernel writes no more than `n` elements of `x`.
    /// let tuner = unsafe { Tuner::new(&program, spec).integer("n", 256).assume_in_bounds() }.time_by_counters();
    /// assert_eq!(tuner.tune(&device, &args![&mut x, 256])?.decision, Decision::Timed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn time_by_counters(mut self) -> Self {
        self.by_counters = true;
        self
    }

    /// Times one part of the configurations. [`ShardFile::of`](crate::ShardFile::of) makes a file of its report, and
    /// [`Merged`](crate::Merged) joins the files of all parts. Times of single configurations are kept in the cache and taken from
    /// there, the winner of a part is not.
    ///
    /// ```
    /// # use rtc_compiler::{Program, Signature, Source, Spec};
    /// # use rtc_tune::{ShardFile, Tuner};
    /// # let text = "@triton.autotune([triton.Config({'B': b}) for b in (32, 64, 128)], key=['n'])\n\
    /// #             @triton.jit\ndef fill(x, n, B: tl.constexpr):\n    i = tl.arange(0, B)\n    \
    /// #             tl.store(x + i, 1.0, mask=i < n)\n";
    /// # let program = Program::parse(&[Source::new("fill.rt", text)]);
    /// # let spec = Spec { args: Signature::parse("*fp32:16, i32:16")?.bind(&["x", "n"])?, ..Spec::default() };
    /// let report = Tuner::new(&program, spec).integer("n", 256).shard("1/2".parse()?).predict("sm_90a")?;
    /// assert_eq!(report.candidates.len(), 2);
    /// assert_eq!(ShardFile::of(&report).map(|file| file.configurations), Some(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shard(mut self, shard: Shard) -> Self {
        self.shard = Some(shard);
        self
    }

    /// Launches without the check of lengths that [`Kernel::launch`](rtc_runtime::Kernel::launch) makes, for kernels whose
    /// accesses are not proved to stay within their slices.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::launch_unchecked`](rtc_runtime::Kernel::launch_unchecked), for every configuration and the arguments
    /// that are timed.
    pub unsafe fn assume_in_bounds(mut self) -> Self {
        self.in_bounds = true;
        self
    }
}
