//! The configurations that a kernel's decorators name, and what a spec becomes with one of them.

use crate::stages::target;
use crate::{Failure, Program, Spec};
use rtc_abi::tuning::{Choice, HostValue, Tuning};
use rtc_sema::{ModuleAst, TargetInfo};

impl Program {
    /// What `@triton.autotune` and `@triton.heuristics` above a kernel say. With `args`, the arguments of a launch by name,
    /// configurations are pruned and heuristics computed for them; without, the configurations stand as they are written.
    ///
    /// ```
    /// use rtc_compiler::{Program, Source};
    /// let text = "@triton.autotune([triton.Config({'B': b}) for b in (64, 128)], key=['n'])\n\
    ///             @triton.jit\ndef fill(x, n, B: tl.constexpr):\n    tl.store(x, B)\n";
    /// let tuning = Program::parse(&[Source::new("fill.rt", text)]).tuning("fill", None, "sm_90a").unwrap();
    /// assert_eq!(tuning.choices[1].to_string(), "B=128 num_warps=4 num_stages=3 num_ctas=1");
    /// ```
    pub fn tuning(&self, kernel: &str, args: Option<&[(String, HostValue)]>, arch: &str) -> Result<Tuning, Failure> {
        let modules: Vec<ModuleAst<'_>> =
            self.modules().iter().map(|m| ModuleAst { name: &m.name, ast: &m.module }).collect();
        let info = TargetInfo { target: target(arch)?, external_libdevice: false };
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
