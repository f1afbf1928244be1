//! The configurations that a kernel's decorators name, and the spec for one of them.

use crate::{Failure, Program, Spec};
use rtc_abi::Target;
use rtc_abi::tuning::{Choice, HostValue, Tuning};
use rtc_sema::{ModuleAst, TargetInfo};
use rtc_source::Code;

impl Program {
    /// The configurations in `@triton.autotune` and `@triton.heuristics` above a kernel. With `args`, the arguments of
    /// a launch by name, configurations are pruned and heuristics computed for them; without, they are returned as
    /// written.
    ///
    /// ```
    /// use rtc_program::{Program, Source};
    /// let text = "@triton.autotune([triton.Config({'B': b}) for b in (64, 128)], key=['n'])\n\
    ///             @triton.jit\ndef fill(x, n, B: tl.constexpr):\n    tl.store(x, B)\n";
    /// let tuning = Program::parse(&[Source::new("fill.rt", text)]).tuning("fill", None, "sm_90a").unwrap();
    /// assert_eq!(tuning.choices[1].to_string(), "B=128 num_warps=4 num_stages=3 num_ctas=1");
    /// ```
    ///
    /// # Errors
    ///
    /// [`Failure::Diagnostics`] for decorators that cannot be read or computed, [`Failure::Request`] for an unknown target.
    pub fn tuning(&self, kernel: &str, args: Option<&[(String, HostValue)]>, arch: &str) -> Result<Tuning, Failure> {
        let modules: Vec<ModuleAst<'_>> =
            self.modules().iter().map(|m| ModuleAst { name: &m.name, ast: &m.module }).collect();
        let target =
            Target::named(arch).map_err(|error| Failure::request(Code::UNSUPPORTED_TARGET, error.to_string()))?;
        let info = TargetInfo { target, external_libdevice: false };
        rtc_sema::tuning(self.sources(), &modules, kernel, args, info).map_err(Failure::Diagnostics)
    }
}

impl Spec {
    /// The spec with the values and options of a configuration.
    pub fn with_choice(&self, choice: &Choice) -> Spec {
        let mut spec = self.clone();
        choice.apply(&mut spec.args, &mut spec.options);
        spec
    }
}
