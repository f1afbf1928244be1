//! The device on the CPU: its memory, the kernels that the PTX emulator runs, tensor maps as it has them.
//!
//! Without the feature `emulator`, `host_absent.rs` stands in its place.

use crate::interrupt::{Interrupt, step_limit};
use crate::tensor_map::{Form, MAP_BYTES, Place};
use crate::{Error, Finding, Result};
use rtc_abi::Metadata;
use rtc_emulator::counters::Counters;
use rtc_emulator::sanitize::Checks;
use rtc_emulator::tensor_map::{ElementType, Fill, TensorMap};
use rtc_emulator::{AccessError, Fault, FaultKind, LaunchConfig, LaunchReport, Memory, Program};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Memory of the devices that run on the CPU.
#[derive(Debug)]
pub(crate) struct HostMemory {
    memory: Mutex<Memory>,
    sanitize: Sanitize,
}

/// What the sanitizer is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sanitize {
    pub(crate) checks: Checks,
    pub(crate) budget: Option<u64>,
    pub(crate) counts: bool,
}

impl HostMemory {
    pub(crate) fn create() -> Arc<HostMemory> {
        HostMemory::sanitized(Sanitize::default())
    }

    /// Memory of a device whose launches are checked.
    pub(crate) fn sanitized(sanitize: Sanitize) -> Arc<HostMemory> {
        let mut memory = Memory::new();
        if !sanitize.checks.is_empty() {
            memory.track();
        }
        Arc::new(HostMemory { memory: Mutex::new(memory), sanitize })
    }

    /// What its launches are checked for.
    pub(crate) fn asked(&self) -> Sanitize {
        self.sanitize
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Memory> {
        // A panic during a launch leaves bytes in the memory, never a broken structure.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn alloc(&self, bytes: usize, name: &str) -> u64 {
        self.lock().alloc(bytes, 256, name)
    }

    pub(crate) fn set_shape(&self, start: u64, sizes: &[u64], strides: &[i64], element: u64) -> bool {
        !self.sanitize.checks.is_empty() && self.lock().set_shape(start, sizes, strides, element)
    }

    pub(crate) fn free(&self, address: u64) {
        self.lock().free(address);
    }

    pub(crate) fn read(&self, address: u64, data: &mut [u8]) -> Result<()> {
        data.copy_from_slice(self.lock().read(address, data.len()).map_err(refused)?);
        Ok(())
    }

    pub(crate) fn write(&self, address: u64, data: &[u8]) -> Result<()> {
        self.lock().write(address, data).map_err(refused)
    }
}

fn refused(error: AccessError) -> Error {
    Error::BufferAccess(error.to_string())
}

/// A kernel that the emulator runs.
#[derive(Debug)]
pub(crate) struct Emulated {
    program: Program,
    block: [u32; 3],
    findings: Mutex<Vec<Finding>>,
    counters: Mutex<Option<Counters>>,
}

impl Emulated {
    pub(crate) fn load(ptx: &str, symbol: &str, block: [u32; 3]) -> Result<Emulated> {
        let failed =
            |error: rtc_emulator::LoadError| Error::Ptx { kernel: symbol.to_owned(), message: error.to_string() };
        Ok(Emulated {
            program: Program::load(ptx).map_err(failed)?,
            block,
            findings: Mutex::default(),
            counters: Mutex::default(),
        })
    }

    /// What looked wrong in the launches since the last call.
    pub(crate) fn take_findings(&self) -> Vec<Finding> {
        std::mem::take(&mut *self.findings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the last launch asked of the machine, where that is counted.
    pub(crate) fn take_counters(&self) -> Option<Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Runs all blocks of the grid; `scratch` says where the address of so many bytes of memory goes. Gives what the kernel
    /// printed.
    pub(crate) fn launch(
        &self,
        memory: &HostMemory,
        metadata: &Metadata,
        grid: [u32; 3],
        params: &mut [u8],
        scratch: Option<(usize, usize)>,
    ) -> Result<String> {
        let sanitize = memory.sanitize;
        let interrupt = Interrupt::current();
        // The limit of the sanitizer, if it was given one, else that of all launches.
        let block_budget = match sanitize.budget {
            Some(budget) => budget,
            None => step_limit()?.unwrap_or(u64::MAX),
        };
        let mut memory = memory.lock();
        let address = scratch.map(|(at, bytes)| (at, memory.alloc(bytes, 256, "global scratch")));
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
            ..LaunchConfig::new(&metadata.symbol)
        };
        let mut result = self.program.launch(&mut memory, &config);
        if let Ok(report) = &mut result {
            *self.counters.lock().unwrap_or_else(PoisonError::into_inner) = report.counters.take();
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

fn tensor_map(form: &Form, place: &Place) -> TensorMap {
    TensorMap {
        ty: ElementType::ALL[form.element.number()],
        address: place.address,
        dims: place.dims[..form.rank].to_vec(),
        strides: place.strides[1..form.rank].to_vec(),
        box_dims: form.box_dims[..form.rank].to_vec(),
        element_strides: vec![1; form.rank],
        swizzle: form.swizzle,
        fill: if place.nan { Fill::Nan } else { Fill::Zero },
        l2_promotion: form.l2_promotion,
    }
}

/// What the hardware would refuse of a map.
pub(crate) fn check_tensor_map(form: &Form, place: &Place) -> std::result::Result<(), String> {
    tensor_map(form, place).check().map_err(|e| e.to_string())
}

/// The map as the emulator has it.
pub(crate) fn encode_tensor_map(form: &Form, place: &Place) -> std::result::Result<[u8; MAP_BYTES], String> {
    tensor_map(form, place).encode().map_err(|e| e.to_string())
}
