//! The journal of launches that `rtc verify` judges by: what each launch was given and what was there after it.
//!
//! It is written here, where the launches are made, by the process that runs the user's wrapper, and read by another, which trusts
//! nothing else of that process. Each record ends in a code (HMAC) under a key that only the other process and this module have, so
//! that the wrapper cannot write one.
//!
//! A record is: the lengths of its head and of its bytes (8 bytes each, little end first), the head as JSON, the bytes, the code.
#![allow(unsafe_code)]

use crate::compiled::{Ready, compiling};
use crate::error::runtime_error;
use crate::host::{self, HostRange, OfArgument};
use hmac::{Hmac, KeyInit, Mac};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use rtc_abi::{Access, Param};
use rtc_compiler::{Silent, Stage};
use rtc_runtime::{Device, Slice, Stream};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use sha2::Sha256;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of the key.
const KEY: usize = 32;

static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Whether launches are trials of a search: they are no records, but what was there before them counts as what was before the
/// launch that follows.
static TRIALS: AtomicBool = AtomicBool::new(false);
static JOURNAL: Mutex<Option<Journal>> = Mutex::new(None);

struct Journal {
    file: File,
    key: [u8; KEY],
    /// The number of the next record.
    number: u64,
    /// Whether kernels multiply matrices, by the number of the compiled kernel.
    dots: FxHashMap<usize, bool>,
    /// What was in memory, by its start and length, before the first trial that had it.
    before_trials: FxHashMap<(u64, u64), Vec<u8>>,
}

fn lock() -> MutexGuard<'static, Option<Journal>> {
    JOURNAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether launches are recorded.
#[inline]
pub(crate) fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// Records all launches from now on in this file, which holds the key; the file is emptied. Its reader may empty it, too.
#[pyfunction]
pub(crate) fn journal_open(path: &str) -> PyResult<()> {
    let mut file = File::options().read(true).append(true).open(path)?;
    let mut key = [0; KEY];
    file.read_exact(&mut key)?;
    file.set_len(0)?;
    let mut journal = lock();
    if journal.is_some() {
        return Err(PyValueError::new_err("launches are recorded already"));
    }
    *journal = Some(Journal { file, key, number: 0, dots: FxHashMap::default(), before_trials: FxHashMap::default() });
    ACTIVE.store(true, Ordering::Relaxed);
    Ok(())
}

/// Says whether the launches that follow are trials of a search.
#[pyfunction]
pub(crate) fn journal_trials(are_trials: bool) {
    TRIALS.store(are_trials, Ordering::Relaxed);
}

/// The memory of a launch, before it.
pub(crate) struct Watched(Vec<Block>);

/// Memory that belongs together: arguments that are parts of one allocation are in one block.
struct Block {
    range: HostRange,
    arguments: Vec<OfArgument>,
    before: Vec<u8>,
}

/// Reads the memory of the arguments, if launches are recorded.
pub(crate) fn begin(
    py: Python<'_>,
    device: &Device,
    stream: &Stream,
    ranges: &[OfArgument],
    is_host: bool,
) -> PyResult<Option<Watched>> {
    if !is_active() {
        return Ok(None);
    }
    let mut sorted: Vec<&OfArgument> = ranges.iter().filter(|given| given.range.bytes > 0).collect();
    sorted.sort_by_key(|given| (given.range.start, given.param));
    let mut blocks: Vec<Block> = Vec::new();
    for given in sorted {
        match blocks.last_mut() {
            Some(Block { range, arguments, .. }) if given.range.start < range.start + range.bytes => {
                let end = (range.start + range.bytes).max(given.range.start + given.range.bytes);
                range.bytes = end - range.start;
                arguments.push(given.clone());
            }
            _ => blocks.push(Block { range: given.range, arguments: vec![given.clone()], before: Vec::new() }),
        }
    }
    if TRIALS.load(Ordering::Relaxed) {
        for Block { range, .. } in &blocks {
            let key = (range.start, range.bytes);
            let is_known = lock().as_ref().is_some_and(|journal| journal.before_trials.contains_key(&key));
            if !is_known {
                let before = content(py, device, stream, range, is_host)?;
                lock().as_mut().map(|journal| journal.before_trials.insert(key, before));
            }
        }
        return Ok(None);
    }
    let mut known = lock().as_mut().map(|journal| std::mem::take(&mut journal.before_trials)).unwrap_or_default();
    for block in &mut blocks {
        block.before = match known.remove(&(block.range.start, block.range.bytes)) {
            Some(before) => before,
            None => content(py, device, stream, &block.range, is_host)?,
        };
    }
    Ok(Some(Watched(blocks)))
}

/// A copy of memory, once the work of the stream is done.
fn content(py: Python<'_>, device: &Device, stream: &Stream, range: &HostRange, is_host: bool) -> PyResult<Vec<u8>> {
    if is_host {
        return Ok(host::read(range));
    }
    let mut bytes = vec![0u8; range.bytes as usize];
    // SAFETY: the arguments of the launch keep the memory; what is read is that of the tensor, whose bytes have no other form.
    let memory = unsafe { Slice::<u8>::from_raw(device, range.start, bytes.len()) };
    stream.read(memory, &mut bytes).map_err(|error| runtime_error(py, &error))?;
    Ok(bytes)
}

impl Watched {
    /// Records the launch, which was made.
    pub(crate) fn end(
        self,
        py: Python<'_>,
        stream: &Stream,
        ready: &Ready,
        grid: [u32; 3],
        is_host: bool,
        name_of: impl Fn(usize) -> String,
    ) -> PyResult<()> {
        let device = ready.device_of_kernel();
        let params = &ready.ready.kernel().metadata().params;
        let (mut bytes, mut blocks) = (Vec::new(), Vec::new());
        for block in &self.0 {
            let after = content(py, device, stream, &block.range, is_host)?;
            let arguments: Vec<Value> =
                block.arguments.iter().map(|of| argument(params, of, name_of(of.param))).collect();
            let is_changed = after != block.before;
            bytes.extend_from_slice(&block.before);
            if is_changed {
                bytes.extend_from_slice(&after);
            }
            let (start, length) = (block.range.start, block.range.bytes);
            blocks.push(json!({"start": start, "bytes": length, "changed": is_changed, "arguments": arguments}));
        }
        let metadata = ready.ready.kernel().metadata();
        let config = json!({
            "num_warps": metadata.num_warps,
            "num_stages": ready.specialization().options.num_stages,
            "num_ctas": metadata.num_ctas,
            "constexprs": metadata.constexprs,
        });
        let has_dots = has_dots(py, ready)?;
        let mut journal = lock();
        let Some(journal) = journal.as_mut() else { return Ok(()) };
        let head = json!({
            "number": journal.number,
            "kernel": metadata.kernel,
            "grid": grid,
            "config": config,
            "device": device.to_string(),
            "has_dots": has_dots,
            "blocks": blocks,
        });
        journal.number += 1;
        journal.write(head.to_string().as_bytes(), &bytes).map_err(|error| PyOSError::new_err(error.to_string()))
    }
}

/// An argument that is memory: its parameter, where it lies in the block, and whether the kernel may write it.
fn argument(params: &[Param], of: &OfArgument, name: String) -> Value {
    let is_own =
        |param: &&Param| param.name.strip_prefix(&name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    // What is not known to be read alone is taken as written.
    let written = params.iter().filter(is_own).any(|param| param.access != Some(Access::Read));
    let ty = params.iter().find(|param| param.name == name).map(|param| json!(param.ty));
    let (sizes, strides) = match &of.view {
        Some(view) => (json!(view.sizes), json!(view.strides)),
        None => (Value::Null, Value::Null),
    };
    json!({"name": name, "address": of.address, "type": ty, "item": of.element, "shape": sizes, "strides": strides, "written": written})
}

/// Whether a kernel multiplies matrices, as its tile IR shows it.
fn has_dots(py: Python<'_>, ready: &Ready) -> PyResult<bool> {
    let number = ready.ready.id();
    if let Some(known) = lock().as_ref().and_then(|journal| journal.dots.get(&number).copied()) {
        return Ok(known);
    }
    let arch = ready.program.device().arch().to_string();
    let of = ready.specialization();
    let text = compiling(py, || {
        rtc_compiler::emit(ready.program.source(), of, &arch, Stage::Tile, &mut Silent).unwrap_or_default()
    })?;
    let found = text.contains("dot");
    if let Some(journal) = lock().as_mut() {
        journal.dots.insert(number, found);
    }
    Ok(found)
}

impl Journal {
    fn write(&mut self, head: &[u8], bytes: &[u8]) -> std::io::Result<()> {
        let lengths = [head.len() as u64, bytes.len() as u64].map(u64::to_le_bytes).concat();
        let mut code = Hmac::<Sha256>::new_from_slice(&self.key).map_err(std::io::Error::other)?;
        for part in [&lengths, head, bytes] {
            code.update(part);
            self.file.write_all(part)?;
        }
        self.file.write_all(&code.finalize().into_bytes())?;
        self.file.flush()
    }
}
