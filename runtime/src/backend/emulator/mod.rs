//! The PTX emulator as a device.

use super::host::{Executor, HostCode, HostDevice, HostKernel, HostMemory, Sanitize};
use super::{Backend, Code, DeviceKind, Image, Scratch};
use crate::interrupt::{Interrupt, step_limit};
use crate::{Error, Finding, Result};
use rtc_abi::Metadata;
use rtc_emulator::counters::Counters;
use rtc_emulator::timeline::Trace;
use rtc_emulator::{Fault, FaultKind, LaunchConfig, LaunchReport, Program};
use std::sync::{Arc, Mutex, PoisonError};

/// An emulated device with empty memory.
pub(crate) fn create() -> Arc<dyn Backend> {
    HostDevice::<Emulator>::create(Sanitize::default())
}

/// Executes PTX.
#[derive(Debug)]
enum Emulator {}

impl Executor for Emulator {
    const KIND: DeviceKind = DeviceKind::Emulator;
    const NAME: &'static str = "emulator";
    const KNOWS_SHAPES: bool = true;

    fn load(image: &Image<'_>) -> Result<Arc<dyn Code>> {
        let symbol = &image.metadata.symbol;
        let program = Program::load(image.ptx)
            .map_err(|error| Error::Ptx { kernel: symbol.clone(), message: error.to_string() })?;
        let (findings, counters, trace) = Default::default();
        Ok(HostKernel::create(Emulated { program, block: image.block, findings, counters, trace }))
    }
}

/// A kernel that the emulator runs.
#[derive(Debug)]
struct Emulated {
    program: Program,
    block: [u32; 3],
    findings: Mutex<Vec<Finding>>,
    counters: Mutex<Option<Counters>>,
    trace: Mutex<Option<Trace>>,
}

impl HostCode for Emulated {
    fn take_findings(&self) -> Vec<Finding> {
        std::mem::take(&mut *self.findings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn take_counters(&self) -> Option<Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn take_trace(&self) -> Option<Trace> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn run(
        &self,
        memory: &HostMemory,
        metadata: &Metadata,
        grid: [u32; 3],
        params: &mut [u8],
        scratch: Option<Scratch>,
    ) -> Result<String> {
        let sanitize = memory.sanitize;
        let interrupt = Interrupt::current();
        // The limit of the sanitizer, if it was given one, else that of all launches.
        let block_budget = match sanitize.budget {
            Some(budget) => budget,
            None => step_limit()?.unwrap_or(u64::MAX),
        };
        let mut memory = memory.lock();
        let address = scratch.map(|Scratch { at, bytes }| (at, memory.alloc(bytes, 256, "global scratch")));
        if let Some((at, address)) = address {
            params[at..at + 8].copy_from_slice(&address.to_le_bytes());
        }
        let config = LaunchConfig {
            grid,
            block: self.block,
            cluster: metadata.cluster,
            shared_bytes: metadata.shared_bytes,
            params,
            sanitize: sanitize.checks,
            block_budget: Some(block_budget),
            interrupt: interrupt.as_ref().map(Interrupt::flag),
            counts: sanitize.counts,
            records: sanitize.records,
            ..LaunchConfig::new(&metadata.symbol)
        };
        let mut result = self.program.launch(&mut memory, &config);
        if let Ok(report) = &mut result {
            *self.counters.lock().unwrap_or_else(PoisonError::into_inner) = report.counters.take();
            *self.trace.lock().unwrap_or_else(PoisonError::into_inner) = report.trace.take();
        }
        if let Some((_, address)) = address {
            memory.free(address);
        }
        if let Err(Fault { kind: FaultKind::Interrupted, .. }) = result {
            return Err(Error::Interrupted);
        }
        if !sanitize.checks.is_empty() {
            return reported(result);
        }
        let findings = match &result {
            Ok(report) => &report.findings,
            Err(fault) => &fault.findings,
        };
        let findings = findings.iter().map(|finding| {
            let report = finding.report();
            let place = report.place.location.map(|at| (at.file, at.line, at.column));
            Finding { code: report.code, message: report.message, place, text: finding.to_string() }
        });
        self.findings.lock().unwrap_or_else(PoisonError::into_inner).extend(findings);
        // They are told by `take_findings`.
        let report = result.map_err(|fault| Error::Fault(Box::new(Fault { findings: Vec::new(), ..fault })))?;
        Ok(report.printed)
    }
}

/// The result of a launch that was checked: everything found is an error.
fn reported(result: std::result::Result<LaunchReport, Fault>) -> Result<String> {
    let (printed, findings, mut reports) = match result {
        Ok(LaunchReport { printed, findings, reports, .. }) => (printed, findings, reports),
        Err(mut fault) => {
            let Some(last) = fault.report() else { return Err(Error::Fault(Box::new(fault))) };
            let (findings, mut reports) = (std::mem::take(&mut fault.findings), std::mem::take(&mut fault.reports));
            reports.push(last);
            (String::new(), findings, reports)
        }
    };
    reports.splice(0..0, findings.iter().map(rtc_emulator::Finding::report));
    if reports.is_empty() { Ok(printed) } else { Err(Error::Sanitizer(reports.into())) }
}
