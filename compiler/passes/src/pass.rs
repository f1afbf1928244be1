//! The interface of a pass.

use rtc_abi::{Feature, Plan, Structure, Target};
use rtc_ir::{Kernel, Phase, TypeError};
use rtc_source::Diagnostic;

use crate::matrix_unit;

/// The context of a pass: all it gets in addition to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassContext {
    /// The target.
    pub target: &'static Target,
    /// The most instructions of a thread, as estimated before lowering.
    pub max_instructions: u64,
    /// How dots in loops get their operands. A plain kernel needs less shared memory.
    pub structure: Structure,
    /// Whether launches may begin while those before them end.
    pub overlap_launches: bool,
    /// Decisions about the schedule that are given.
    pub plan: Plan,
    /// Of how many blocks the warps record their events; 0: none.
    pub instrument: u32,
}

impl PassContext {
    /// Whether warps may be specialized: the target can, and the options allow it.
    pub(crate) fn specializes_warps(&self) -> bool {
        let features = [Feature::Tma, Feature::RegisterBudgets];
        self.structure.warp_specialization().is_some()
            && matrix_unit::has_async(self.target)
            && features.iter().all(|feature| self.target.has(*feature))
    }
}

/// Why a pass could not go on.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// The kernel does not fit the target: the user's to mend.
    #[error("{}", .0.message)]
    Diagnostic(Box<Diagnostic>),
    /// An operation was built with wrong types: a bug of ours.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// A bug of ours, in words.
    #[error("{0}")]
    Internal(String),
}

/// One pass.
pub struct Pass {
    /// Its name, as `--print-after` takes it.
    pub name: &'static str,
    /// The phase it needs.
    pub needs: Phase,
    /// The phase it leaves.
    pub leaves: Phase,
    /// Does it.
    pub run: fn(&mut Kernel, &PassContext) -> Result<(), PassError>,
}

/// The error of a pass that no longer finds what its analysis found.
pub(crate) fn missing(what: &str) -> PassError {
    PassError::Internal(format!("a pass does not find {what}"))
}
