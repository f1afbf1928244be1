//! Compiling for tunings on other machines, and how many configurations there are to hand out.

use super::{Tuner, WIDE};
use crate::candidate::order;
use crate::load::Load;
use crate::{Error, Machine, parallel};

impl Tuner<'_> {
    /// How many configurations there are; of those beyond the source, at most.
    ///
    /// # Errors
    ///
    /// As for [`Tuner::decorators`].
    pub fn count(&self, arch: &str) -> Result<usize, Error> {
        Ok(self.decorators(arch)?.choices.len() + if self.is_wide { WIDE } else { 0 })
    }

    /// Compiles the configurations into the cache, for tunings of this process or of other machines that share its store. It needs
    /// no GPU. Gives how many compile; no cache, no effect.
    ///
    /// ```
    /// # use rtc_cache::{Cache, CacheConfig};
    /// # use rtc_compiler::{Program, Signature, Source, Spec};
    /// # use rtc_tune::Tuner;
    /// # let directory = std::env::temp_dir().join(format!("rtc-tune-ahead-{}", std::process::id()));
    /// # let text = "@triton.autotune([triton.Config({'B': b}) for b in (32, 64, 100)], key=['n'])\n\
    /// #             @triton.jit\ndef fill(x, n, B: tl.constexpr):\n    i = tl.arange(0, B)\n    \
    /// #             tl.store(x + i, 1.0, mask=i < n)\n";
    /// # let program = Program::parse(&[Source::new("fill.rt", text)]);
    /// # let spec = Spec { args: Signature::parse("*fp32:16, i32:16")?.bind(&["x", "n"])?, ..Spec::default() };
    /// let cache = Cache::open(CacheConfig::new(&directory))?;
    /// let tuner = Tuner::new(&program, spec).integer("n", 256).cache(&cache);
    /// assert_eq!((tuner.count("sm_90a")?, tuner.compile_ahead("sm_90a")?), (3, 2)); // one has a block of 100
    /// assert_eq!(cache.list()?.len(), 2);
    /// # std::fs::remove_dir_all(directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Tuner::predict`].
    pub fn compile_ahead(&self, arch: &str) -> Result<usize, Error> {
        let report = self.prepared(arch, &Machine::of_arch(arch))?;
        let (program, spec, shows_progress) = (self.program, &report.spec, self.shows_progress);
        let (in_bounds, cache) = (self.in_bounds, self.cache);
        let load = Load { params: &[], program, spec, arch, assembler: None, shows_progress, in_bounds, cache };
        let wanted = order(&report.candidates);
        let done = parallel::each(wanted.len(), "compiling", shows_progress, |i| {
            let spec = report.spec.with_choice(&report.candidates[wanted[i]].choice);
            spec.specialize(program).and_then(|specialization| load.compiled(&specialization)).ok()
        });
        Ok(done.iter().flatten().count())
    }
}
