//! Compiling and loading configurations on all processors.

use crate::candidate::{Candidate, reason};
use crate::parallel;
use rtc_compiler::{Metadata, Program, Silent, Spec};
use rtc_runtime::{Device, Kernel};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// What tells launches apart: PTX, shared memory, threads of a block, grid.
type Code = (String, u32, u32, [u32; 3]);

/// A configuration that is ready on one device, and what it takes to load it on another.
pub(crate) struct Ready {
    pub(crate) kernel: Kernel,
    ptx: String,
    metadata: Metadata,
}

impl Ready {
    /// The same on another device.
    pub(crate) fn on(&self, device: &Device) -> rtc_runtime::Result<Ready> {
        let kernel = device.load(&self.ptx, &self.metadata)?;
        Ok(Ready { kernel, ptx: self.ptx.clone(), metadata: self.metadata.clone() })
    }
}

/// What became of a configuration.
pub(crate) enum Loaded {
    /// It is ready.
    Ready(Box<Ready>),
    /// Another one is the same code for the same grid.
    Same(usize),
    /// It does not compile or does not fit, for that reason.
    Dropped(String),
}

/// What all configurations have in common.
pub(crate) struct Load<'l> {
    pub program: &'l Program,
    pub spec: &'l Spec,
    pub arch: &'l str,
    pub shows_progress: bool,
}

impl Load<'_> {
    /// Compiles the configurations `wanted`, the first ones first, and loads them on the devices in turn. Gives nothing for
    /// those that were not begun before `is_late`; the first is always begun.
    pub(crate) fn all(
        &self,
        devices: &[Device],
        candidates: &[Candidate],
        wanted: &[usize],
        is_late: impl Fn() -> bool + Sync,
    ) -> Vec<Option<Loaded>> {
        let seen: Mutex<HashMap<Code, usize>> = Mutex::default();
        parallel::each(wanted.len(), "compiling", self.shows_progress, |i| {
            if i > 0 && is_late() {
                return None;
            }
            let number = wanted[i];
            let candidate = &candidates[number];
            let spec = self.spec.with_choice(&candidate.choice);
            let compiled = spec.specialize(self.program).and_then(|specialization| {
                rtc_compiler::compile(self.program, &specialization, self.arch, String::new(), &mut Silent)
            });
            let artifact = match compiled {
                Ok(compiled) => compiled.artifact,
                Err(failure) => return Some(Loaded::Dropped(reason(&failure))),
            };
            let (ptx, metadata) = (artifact.ptx, artifact.metadata);
            let code: Code = (ptx.clone(), metadata.shared_bytes, metadata.threads_per_block, candidate.grid);
            // The first of several that are the same is loaded.
            let first = *seen.lock().unwrap_or_else(PoisonError::into_inner).entry(code).or_insert(number);
            if first != number {
                return Some(Loaded::Same(first));
            }
            Some(match devices[i % devices.len()].load(&ptx, &metadata) {
                Ok(kernel) => Loaded::Ready(Box::new(Ready { kernel, ptx, metadata })),
                Err(error) => Loaded::Dropped(error.to_string()),
            })
        })
    }
}
