//! The compiler's decisions about the loops of a kernel, and the changes that would affect them.
//!
//! They are not computed during a compilation, but on request, for example by `rtc build -v`. The passes then run once
//! more, and again for each promise or option that may change a decision, without the back end.
//!
//! ```
//! use rtc_compiler::{Program, Signature, Source, Spec, decisions};
//! let source = "@triton.jit\ndef k(p, n):\n    for i in range(n):\n        tl.store(p + i, 1.0)\n";
//! let program = Program::parse(&[Source::new("k.rt", source)]);
//! let args = Signature::parse("*fp32, i32").unwrap().bind(&["p", "n"]).unwrap();
//! let spec = Spec { args, ..Spec::default() }.specialize(&program).unwrap();
//! let decided = decisions(&program, &spec, "sm_80").unwrap();
//! assert_eq!(decided.loops[0].message, "the loop is not pipelined: it has no load");
//! ```

use std::collections::HashMap;

use rtc_abi::Target;
use rtc_abi::spec::LaunchOptions;
use rtc_ir::{Kernel, Phase};
use rtc_passes::{Decision, EXPAND_LOOP, PassContext, PassError, SPECIALIZE_WARPS, Suggestion};
use rtc_source::Diagnostic;

use crate::plan_remarks;
use crate::stages::{Silent, analyse_kernel, run_watched, target};
use crate::{Failure, Program, Specialization, TileKernel};

/// The decisions.
#[derive(Clone, Debug, PartialEq)]
pub struct Decisions {
    /// For each loop of the source that the semantic analysis leaves a remark, in program order; its help says which
    /// promise or option would change the decision.
    pub loops: Vec<Diagnostic>,
    /// Numbers of the plan that were lowered, and decisions of it that are not applicable.
    pub plan: Vec<Diagnostic>,
    /// Registers of a thread, by estimate, or those that the kernel says.
    pub registers: u32,
}

/// The decisions for one kernel.
///
/// # Errors
///
/// [`Failure::Diagnostics`] for mistakes in the source, [`Failure::Request`] for an unknown target, [`Failure::Internal`] for
/// a bug of the compiler.
pub fn decisions(program: &Program, specialization: &Specialization, arch: &str) -> Result<Decisions, Failure> {
    let target = target(arch)?;
    let external = program.libdevice().is_some();
    let (kernel, _) = analyse_kernel(program, specialization, target, external, &mut Silent)?;
    of_kernel(&kernel, &specialization.options, target)
}

impl TileKernel {
    /// The decisions for a kernel that is given as tile IR.
    ///
    /// # Errors
    ///
    /// [`Failure::Request`] for an unknown target, [`Failure::Internal`] for a bug of the compiler.
    pub fn decisions(&self, options: &LaunchOptions, arch: &str) -> Result<Decisions, Failure> {
        of_kernel(self.kernel(), options, target(arch)?)
    }
}

fn of_kernel(kernel: &Kernel, options: &LaunchOptions, target: &'static Target) -> Result<Decisions, Failure> {
    let failed = |error: PassError| Failure::internal("the decisions about loops".to_owned(), error.to_string());
    let (found, registers) = decide(kernel, options, target)?;
    // The same levers are tried for several loops.
    let mut tried: HashMap<Vec<Suggestion>, Vec<Decision>> = HashMap::new();
    let mut loops = Vec::new();
    for decision in &found {
        let mut attempt = |levers: &[Suggestion]| {
            if !tried.contains_key(levers) {
                let (mut kernel, mut options) = (kernel.clone(), options.clone());
                levers.iter().try_for_each(|lever| lever.apply(&mut kernel, &mut options))?;
                // A change that does not compile has no effect.
                let decided = decide(&kernel, &options, target).map(|(found, _)| found).unwrap_or_default();
                tried.insert(levers.to_vec(), decided);
            }
            Ok(tried[levers].iter().find(|other| other.span == decision.span).cloned())
        };
        let help = rtc_passes::helps(decision, &mut attempt).map_err(failed)?;
        loops.push(decision.remark(help));
    }
    let plan = plan_remarks::remarks(kernel, options, target)?;
    Ok(Decisions { loops, plan, registers })
}

/// The decisions about all loops, and the registers of a thread.
fn decide(source: &Kernel, options: &LaunchOptions, target: &'static Target) -> Result<(Vec<Decision>, u32), Failure> {
    let mut kernel = source.clone();
    let (mut laid, mut scheduled): (Option<Kernel>, Option<(Kernel, PassContext)>) = (None, None);
    let mut watch = |pass: &'static str, kernel: &Kernel, cx: &PassContext| {
        if pass == SPECIALIZE_WARPS.name {
            laid = Some(kernel.clone());
        }
        if pass == EXPAND_LOOP.name {
            scheduled = Some((kernel.clone(), *cx));
        }
    };
    run_watched(&mut kernel, target, options, Phase::Scheduled, &mut Silent, &mut watch)?;
    let context = PassContext {
        target,
        max_instructions: options.max_instructions,
        structure: options.structure,
        overlap_launches: options.overlap_launches,
        plan: options.plan,
        instrument: 0,
    };
    let cx = scheduled.as_ref().map_or(context, |(_, cx)| *cx);
    let passed = laid.as_ref().zip(scheduled.as_ref().map(|(kernel, _)| kernel));
    let found = rtc_passes::decisions(source, passed, &cx, options.structure);
    let found = found.map_err(|error| Failure::internal("the decisions about loops".to_owned(), error.to_string()))?;
    Ok((found, rtc_passes::work::registers_or_set(&kernel)))
}
