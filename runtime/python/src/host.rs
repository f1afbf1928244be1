//! Arrays in memory of the process, for the devices on the CPU: copied there before a launch, and back after it.
//!
//! Views of one allocation share one copy, so that kernels see them overlap.
#![allow(unsafe_code)]

use pyo3::prelude::*;
use rtc_runtime::{Buffer, Device, Result};

/// A range of memory that an array is a part of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostRange {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    /// Whether it may be written.
    pub(crate) writable: bool,
    /// Whether GPUs reach it.
    pub(crate) pinned: bool,
}

/// A range that an argument lies in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfArgument {
    pub(crate) range: HostRange,
    /// The parameter, by its number.
    pub(crate) param: usize,
}

/// The copies of the arrays of one launch.
#[derive(Debug)]
pub(crate) struct Copies(Vec<(HostRange, Buffer<u8>)>);

impl Copies {
    /// Copies the ranges to the device, where they are called by the names of their arguments.
    pub(crate) fn upload(device: &Device, ranges: &[OfArgument], name_of: impl Fn(usize) -> String) -> Result<Copies> {
        let mut sorted: Vec<OfArgument> = ranges.iter().filter(|given| given.range.bytes > 0).copied().collect();
        sorted.sort_by_key(|given| (given.range.start, given.param));
        let mut merged: Vec<(HostRange, String)> = Vec::new();
        for OfArgument { range, param } in sorted {
            match merged.last_mut() {
                Some((last, name)) if range.start < last.start + last.bytes => {
                    let end = (range.start + range.bytes).max(last.start + last.bytes);
                    last.bytes = end - last.start;
                    last.writable |= range.writable;
                    let other = name_of(param);
                    if !name.split(", ").any(|known| known == other) {
                        *name = format!("{name}, {other}");
                    }
                }
                _ => merged.push((range, name_of(param))),
            }
        }
        let copy = |(range, name): (HostRange, String)| {
            let data = bytes_of(&range);
            let mut buffer = device.alloc_named(data.len(), &name)?;
            buffer.write(0, data)?;
            Ok((range, buffer))
        };
        Ok(Copies(merged.into_iter().map(copy).collect::<Result<_>>()?))
    }

    /// Where an address lies on the device, and how many bytes follow it there; the address itself if it is in no range.
    pub(crate) fn translate(&self, address: u64) -> (u64, u64) {
        let holds = |range: &HostRange| address >= range.start && address < range.start + range.bytes;
        match self.0.iter().find(|(range, _)| holds(range)) {
            Some((range, buffer)) => {
                let offset = address - range.start;
                (buffer.address() + offset, range.bytes - offset)
            }
            None => (address, 0),
        }
    }

    /// Copies what may have been written back.
    pub(crate) fn download(&self) -> Result<()> {
        for (range, buffer) in self.0.iter().filter(|(range, _)| range.writable) {
            let data = buffer.to_vec()?;
            // SAFETY: the array of the launch is alive, holds so many bytes and may be written; Python waits meanwhile.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), pointer(range), data.len()) };
        }
        Ok(())
    }
}

fn pointer(range: &HostRange) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(range.start as usize)
}

fn bytes_of(range: &HostRange) -> &[u8] {
    // SAFETY: the array of the launch is alive and holds so many bytes; Python waits while they are read.
    unsafe { std::slice::from_raw_parts(pointer(range), range.bytes as usize) }
}

/// Runs without Python's lock.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(work)
}
