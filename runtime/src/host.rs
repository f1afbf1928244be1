//! The device on the CPU: its memory, the kernels that the PTX emulator runs, tensor maps as it has them.
//!
//! Without the feature `emulator`, `host_absent.rs` stands in its place.

use crate::tensor_map::{Form, MAP_BYTES, Place};
use crate::{Error, Result};
use rtc_abi::Metadata;
use rtc_emulator::tensor_map::{ElementType, Fill, TensorMap};
use rtc_emulator::{AccessError, Fault, LaunchConfig, Memory, Program};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Memory of the devices that run on the CPU.
#[derive(Debug)]
pub(crate) struct HostMemory(Mutex<Memory>);

impl HostMemory {
    pub(crate) fn create() -> Arc<HostMemory> {
        Arc::new(HostMemory(Mutex::new(Memory::new())))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Memory> {
        // A panic during a launch leaves bytes in the memory, never a broken structure.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn alloc(&self, bytes: usize, name: &str) -> u64 {
        self.lock().alloc(bytes, 256, name)
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
    findings: Mutex<Vec<String>>,
}

impl Emulated {
    pub(crate) fn load(ptx: &str, symbol: &str) -> Result<Emulated> {
        let failed =
            |error: rtc_emulator::LoadError| Error::Ptx { kernel: symbol.to_owned(), message: error.to_string() };
        Ok(Emulated { program: Program::load(ptx).map_err(failed)?, findings: Mutex::default() })
    }

    /// What looked wrong in the launches since the last call.
    pub(crate) fn take_findings(&self) -> Vec<String> {
        std::mem::take(&mut *self.findings.lock().unwrap_or_else(PoisonError::into_inner))
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
        let mut memory = memory.lock();
        let address = scratch.map(|(at, bytes)| (at, memory.alloc(bytes, 256, "global scratch")));
        if let Some((at, address)) = address {
            params[at..at + 8].copy_from_slice(&address.to_le_bytes());
        }
        let config = LaunchConfig {
            grid,
            block: [metadata.threads_per_block, 1, 1],
            cluster: metadata.cluster,
            shared_bytes: metadata.shared_bytes,
            params,
            ..LaunchConfig::new(&metadata.symbol)
        };
        let result = self.program.launch(&mut memory, &config);
        if let Some((_, address)) = address {
            memory.free(address);
        }
        let findings = match &result {
            Ok(report) => &report.findings,
            Err(fault) => &fault.findings,
        };
        let findings = findings.iter().map(|finding| finding.to_string());
        self.findings.lock().unwrap_or_else(PoisonError::into_inner).extend(findings);
        // They are told by `take_findings`.
        let report = result.map_err(|fault| Error::Fault(Box::new(Fault { findings: Vec::new(), ..fault })))?;
        Ok(report.printed)
    }
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
