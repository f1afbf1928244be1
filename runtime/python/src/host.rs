//! Arrays in memory of the process, for the devices on the CPU: copied there before a launch, and back after it.
//!
//! Views of one allocation share one copy, so that kernels see them overlap. After the launch only elements whose value has
//! changed on the device are written to the array. Whatever other threads wrote to other elements meanwhile is kept. An element
//! that the kernel stored with the value that was there before needs no write: unless another thread changed it during the
//! launch, the array has that value, and if one did, its write counts as the later of two that nothing orders.
#![allow(unsafe_code)]

use pyo3::prelude::*;
use rtc_runtime::{Buffer, Device, Result};

/// A range of memory that an array is a part of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostRange {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    /// Whether GPUs reach it.
    pub(crate) pinned: bool,
}

/// The elements of an array: sizes, strides in elements, bytes of an element.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) sizes: Vec<u64>,
    pub(crate) strides: Vec<i64>,
    pub(crate) element: u64,
}

impl View {
    /// The strides of an array whose rows lie one after the other.
    pub(crate) fn compact(sizes: &[u64]) -> Vec<i64> {
        let mut strides = vec![1i64; sizes.len()];
        for axis in (1..sizes.len()).rev() {
            strides[axis - 1] = strides[axis].saturating_mul(sizes[axis].max(1) as i64);
        }
        strides
    }

    /// The first byte and the end of the elements, from the address of the element with all indices 0.
    pub(crate) fn span(&self, address: u64) -> Option<(u64, u64)> {
        let (mut low, mut high) = (i128::from(address), i128::from(address) + i128::from(self.element));
        for (size, stride) in self.sizes.iter().zip(&self.strides) {
            let last = i128::from(size.checked_sub(1)?) * i128::from(*stride) * i128::from(self.element);
            (low, high) = (low + last.min(0), high + last.max(0));
        }
        Some((u64::try_from(low).ok()?, u64::try_from(high).ok()?))
    }
}

/// A range that an argument lies in.
#[derive(Clone, Debug)]
pub(crate) struct OfArgument {
    pub(crate) range: HostRange,
    /// The parameter, by its number.
    pub(crate) param: usize,
    /// The address that the kernel is given.
    pub(crate) address: u64,
    /// Bytes of an element as the kernel sees it.
    pub(crate) element: u64,
    /// The elements of the array; `None` where only the range is known.
    pub(crate) view: Option<View>,
    /// Whether the array may be written.
    pub(crate) writable: bool,
}

/// One allocation and its copy.
#[derive(Debug)]
struct Copied {
    range: HostRange,
    /// The names of its arguments.
    name: String,
    buffer: Buffer<u8>,
    /// What was copied to the device.
    before: Vec<u8>,
    /// Bytes that are written back together: the smallest element of the arrays in it.
    element: u64,
    writable: bool,
}

/// The copies of the arrays of one launch.
#[derive(Debug)]
pub(crate) struct Copies(Vec<Copied>);

impl Copies {
    /// Copies the ranges to the device, where they are called by the names of their arguments.
    pub(crate) fn upload(device: &Device, ranges: &[OfArgument], name_of: impl Fn(usize) -> String) -> Result<Copies> {
        let mut sorted: Vec<&OfArgument> = ranges.iter().filter(|given| given.range.bytes > 0).collect();
        sorted.sort_by_key(|given| (given.range.start, given.param));
        let mut merged: Vec<(HostRange, String, Vec<&OfArgument>)> = Vec::new();
        for given in sorted {
            let range = given.range;
            match merged.last_mut() {
                Some((last, name, arguments)) if range.start < last.start + last.bytes => {
                    let end = (range.start + range.bytes).max(last.start + last.bytes);
                    last.bytes = end - last.start;
                    arguments.push(given);
                    let other = name_of(given.param);
                    if !name.split(", ").any(|known| known == other) {
                        *name = format!("{name}, {other}");
                    }
                }
                _ => merged.push((range, name_of(given.param), vec![given])),
            }
        }
        let copy = |(range, name, arguments): (HostRange, String, Vec<&OfArgument>)| {
            let before = read(&range);
            let mut buffer = device.alloc_named(before.len(), &name)?;
            buffer.write(0, &before)?;
            arguments.iter().for_each(|argument| declare(&buffer, &range, argument));
            let element = arguments.iter().map(|argument| argument.element.max(1)).min().unwrap_or(1);
            let writable = arguments.iter().any(|argument| argument.writable);
            Ok(Copied { range, name, buffer, before, element, writable })
        };
        Ok(Copies(merged.into_iter().map(copy).collect::<Result<_>>()?))
    }

    /// Where an address lies on the device, and how many bytes follow it there; the address itself if it is in no range.
    pub(crate) fn translate(&self, address: u64) -> (u64, u64) {
        let holds = |range: &HostRange| address >= range.start && address < range.start + range.bytes;
        match self.0.iter().find(|copied| holds(&copied.range)) {
            Some(Copied { range, buffer, .. }) => {
                let offset = address - range.start;
                (buffer.address() + offset, range.bytes - offset)
            }
            None => (address, 0),
        }
    }

    /// Writes the elements back that the kernel changed. Gives the name of a read-only array that it changed, which is left as
    /// it was.
    pub(crate) fn download(&self) -> Result<Option<&str>> {
        let mut refused = None;
        for copied in &self.0 {
            let after = copied.buffer.to_vec()?;
            if !copied.writable {
                if after != copied.before {
                    refused = Some(&*copied.name);
                }
                continue;
            }
            copied.write_back(&after);
        }
        Ok(refused)
    }
}

impl Copied {
    fn write_back(&self, after: &[u8]) {
        let element = self.element as usize;
        let mut at = 0;
        while at < after.len() {
            let end = (at + element).min(after.len());
            if after[at..end] != self.before[at..end] {
                // SAFETY: the array of the launch is kept by its arguments, holds `after.len()` bytes and may be written.
                // Other threads may access other elements; a thread that writes this one at the same time races with the
                // launch, as it would on a GPU.
                unsafe {
                    let to = pointer(&self.range).add(at);
                    std::ptr::copy_nonoverlapping(after[at..end].as_ptr(), to, end - at);
                }
            }
            at = end;
        }
    }
}

/// Tells the sanitizer which bytes of the allocation are elements of the array.
fn declare(buffer: &Buffer<u8>, range: &HostRange, argument: &OfArgument) {
    let start = argument.address.wrapping_sub(range.start);
    if let Some(View { sizes, strides, element }) = &argument.view {
        if buffer.set_sanitizer_shape(start, sizes, strides, *element) {
            return;
        }
        // Negative or overlapping strides: all from the first byte to the last.
        if let Some((low, high)) = argument.view.as_ref().and_then(|view| view.span(argument.address))
            && low >= range.start
            && buffer.set_sanitizer_shape(low - range.start, &[high - low], &[1], 1)
        {
            return;
        }
    }
    // Which elements are meant is not known, so that none of the allocation is outside.
    buffer.set_sanitizer_shape(0, &[range.bytes], &[1], 1);
}

fn pointer(range: &HostRange) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(range.start as usize)
}

/// A copy of the memory. No reference to it is made, as other threads may write to it meanwhile.
pub(crate) fn read(range: &HostRange) -> Vec<u8> {
    let bytes = range.bytes as usize;
    let mut out = Vec::with_capacity(bytes);
    // SAFETY: the array of the launch is kept by its arguments and holds so many bytes, any of which is a valid `u8`; the
    // vector has room for them.
    unsafe {
        std::ptr::copy_nonoverlapping(pointer(range).cast_const(), out.as_mut_ptr(), bytes);
        out.set_len(bytes);
    }
    out
}

/// Runs without Python's lock.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(work)
}
