//! What stands for the device on the CPU where the feature `emulator` is off: types without values.

use crate::tensor_map::{Form, MAP_BYTES, Place};
use crate::{Finding, Result};
use rtc_abi::Metadata;

#[derive(Debug)]
pub(crate) enum HostMemory {}

impl HostMemory {
    pub(crate) fn alloc(&self, _: usize, _: &str) -> u64 {
        match *self {}
    }

    pub(crate) fn set_shape(&self, _: u64, _: &[u64], _: &[i64], _: u64) -> bool {
        match *self {}
    }

    pub(crate) fn free(&self, _: u64) {
        match *self {}
    }

    pub(crate) fn read(&self, _: u64, _: &mut [u8]) -> Result<()> {
        match *self {}
    }

    pub(crate) fn write(&self, _: u64, _: &[u8]) -> Result<()> {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum Emulated {}

impl Emulated {
    pub(crate) fn take_findings(&self) -> Vec<Finding> {
        match *self {}
    }

    pub(crate) fn launch(
        &self,
        _: &HostMemory,
        _: &Metadata,
        _: [u32; 3],
        _: &mut [u8],
        _: Option<(usize, usize)>,
    ) -> Result<String> {
        match *self {}
    }
}

/// The driver checks a map when it encodes it.
pub(crate) fn check_tensor_map(_: &Form, _: &Place) -> std::result::Result<(), String> {
    Ok(())
}

pub(crate) fn encode_tensor_map(_: &Form, _: &Place) -> std::result::Result<[u8; MAP_BYTES], String> {
    Err("this program was built without the feature `emulator` of rtc-runtime".into())
}
