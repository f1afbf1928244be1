//! Faults as reports of the sanitizer.

use super::{Check, Place, Related, Report};
use crate::fault::Site;
use crate::{Access, Fault, FaultKind};

impl FaultKind {
    /// The check that finds it, and its name; `None` for faults that are not about the kernel.
    fn class(&self) -> Option<(Check, &'static str)> {
        Some(match self {
            FaultKind::OutOfBounds { .. } => (Check::Memory, "out-of-bounds"),
            FaultKind::Misaligned { .. } => (Check::Memory, "misaligned"),
            FaultKind::DivergentBarrier { .. } => (Check::Sync, "divergent-barrier"),
            FaultKind::Deadlock { .. } => (Check::Sync, "deadlock"),
            FaultKind::BudgetExceeded { .. } | FaultKind::BlockBudgetExceeded { .. } => (Check::Sync, "endless-loop"),
            FaultKind::NotArrived { .. } => (Check::Race, "copy-not-awaited"),
            FaultKind::StillRead { .. } => (Check::Race, "write-under-read"),
            FaultKind::Unordered { .. } => (Check::Race, "shared-race"),
            FaultKind::MissingProxyFence { .. } => (Check::Race, "missing-proxy-fence"),
            FaultKind::RegisterInUse { .. } => (Check::Race, "register-in-use"),
            FaultKind::MissingProductFence { .. } => (Check::Race, "missing-wgmma-fence"),
            FaultKind::NotInitialized { .. } => (Check::Sync, "mbarrier-uninitialized"),
            FaultKind::InitNotVisible { .. } => (Check::Sync, "mbarrier-init-not-visible"),
            FaultKind::MbarrierMisuse { .. } => (Check::Sync, "mbarrier-misuse"),
            FaultKind::PendingAtEnd { .. } => (Check::Sync, "not-awaited-at-end"),
            FaultKind::Assertion { .. } => (Check::Promise, "assertion"),
            FaultKind::Trap => (Check::Promise, "trap"),
            FaultKind::InvalidInstruction(_) => (Check::Sync, "invalid-instruction"),
            FaultKind::Unsupported(_) | FaultKind::Launch(_) | FaultKind::Interrupted => return None,
        })
    }

    /// The other instruction that it names, and what that one did.
    fn related(&self) -> Option<(&'static str, &Site)> {
        match self {
            FaultKind::NotArrived { copy, .. } => Some(("the copy begins here", copy)),
            FaultKind::StillRead { reader, .. } => Some(("read here", reader)),
            FaultKind::Unordered { other, other_access: Access::Read, .. } => Some(("read here before", other)),
            FaultKind::Unordered { other, .. } => Some(("written here before", other)),
            FaultKind::MissingProxyFence { write, .. } => Some(("written here", write)),
            FaultKind::RegisterInUse { product, .. } => Some(("the product begins here", product)),
            FaultKind::InitNotVisible { init, .. } => Some(("initialised here", init)),
            _ => None,
        }
    }
}

impl Fault {
    /// The fault as the sanitizer reports it; `None` where the launch or the emulator is at fault, not the kernel.
    pub fn report(&self) -> Option<Report> {
        let (check, code) = self.kind.class()?;
        let place = Place {
            block: self.block,
            warp: self.warp,
            lane: Some(self.lane),
            thread: Some(self.thread),
            ptx_line: self.ptx_line,
            instruction: self.instruction.clone(),
            location: self.location.clone(),
        };
        let related = self.kind.related().map(|(what, site)| Related {
            what: what.to_string(),
            place: Place {
                ptx_line: site.ptx_line,
                instruction: site.instruction.clone(),
                location: site.location.clone(),
                ..Place { lane: None, thread: None, ..place.clone() }
            },
        });
        let (message, kernel) = (self.kind.to_string(), self.kernel.clone());
        Some(Report { check, code, message, kernel, place, related, count: 1, is_fatal: true })
    }
}
