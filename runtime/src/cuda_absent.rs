//! What stands for the CUDA driver where the feature `cuda` is off: types without values.

use crate::tensor_map::{Form, MAP_BYTES, Place};
use crate::{AnyBits, Error, Result};
use std::marker::PhantomData;
use std::sync::Arc;

fn absent() -> Error {
    Error::NoDevice("this program was built without the feature `cuda` of rtc-runtime".into())
}

pub(crate) fn visible_count() -> Result<usize> {
    Ok(0)
}

pub(crate) fn supported_version() -> Result<(u32, u32)> {
    Err(absent())
}

#[derive(Debug)]
pub(crate) enum Context {}

impl Context {
    pub(crate) fn open(_: usize) -> Result<Arc<Context>> {
        Err(absent())
    }

    pub(crate) fn ordinal(&self) -> usize {
        match *self {}
    }

    pub(crate) fn name(&self) -> &str {
        match *self {}
    }

    pub(crate) fn capability(&self) -> u32 {
        match *self {}
    }

    pub(crate) fn shared_limit(&self) -> u32 {
        match *self {}
    }

    pub(crate) fn multiprocessors(&self) -> u32 {
        match *self {}
    }

    pub(crate) fn alloc(&self, _: usize) -> Result<u64> {
        match *self {}
    }

    pub(crate) fn free(&self, _: u64) {
        match *self {}
    }

    pub(crate) fn write(&self, _: u64, _: &[u8]) -> Result<()> {
        match *self {}
    }

    pub(crate) fn zero(&self, _: u64, _: usize) -> Result<()> {
        match *self {}
    }

    pub(crate) fn copy(&self, _: u64, _: u64, _: usize) -> Result<()> {
        match *self {}
    }

    pub(crate) fn copy_from(&self, _: u64, _: &Context, _: u64, _: usize) -> Result<()> {
        match *self {}
    }

    pub(crate) fn read(&self, _: u64, _: &mut [u8]) -> Result<()> {
        match *self {}
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        match *self {}
    }
}

pub(crate) fn ordinal_of(_: u64) -> Result<usize> {
    Err(absent())
}

/// No kernel is loaded for a driver that is not there; the fields are those that its users read.
#[derive(Debug)]
pub(crate) struct Module {
    never: Context,
    pub(crate) registers: u32,
    pub(crate) local_bytes: u32,
    pub(crate) max_threads: u32,
    pub(crate) static_shared: u32,
    pub(crate) is_assembled: bool,
}

pub(crate) fn more_blocks(module: Module, _: &Arc<Context>, _: &str, _: &str, _: u32, _: u32) -> Result<Module> {
    match module.never {}
}

impl Module {
    pub(crate) fn load_cubin(context: &Arc<Context>, _: &[u8], _: &str) -> Result<Module> {
        match **context {}
    }

    pub(crate) fn load(context: &Arc<Context>, _: &str, _: &str) -> Result<Module> {
        match **context {}
    }

    pub(crate) fn prepare(&self, _: u32, _: [u32; 3]) -> Result<()> {
        match self.never {}
    }

    pub(crate) fn launch(&self, stream: &Stream, _: &Launch<'_>) -> Result<()> {
        match *stream {}
    }
}

/// What one launch needs, in the driver's terms.
#[derive(Debug)]
#[allow(dead_code)]
pub(crate) struct Launch<'a> {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) overlap: bool,
    pub(crate) cooperative: bool,
    pub(crate) params: &'a [u8],
    pub(crate) places: &'a [u32],
}

#[derive(Debug)]
pub(crate) enum Stream {}

impl Stream {
    pub(crate) fn default_of(context: &Arc<Context>) -> Stream {
        match **context {}
    }

    pub(crate) fn adopt(context: &Arc<Context>, _: u64) -> Stream {
        match **context {}
    }

    pub(crate) fn raw(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn create(context: &Arc<Context>, _: i32) -> Result<Stream> {
        match **context {}
    }

    pub(crate) fn wait(&self, _: &Event) -> Result<()> {
        match *self {}
    }

    pub(crate) fn copy(&self, _: u64, _: u64, _: usize) -> Result<()> {
        match *self {}
    }

    pub(crate) fn zero(&self, _: u64, _: usize) -> Result<()> {
        match *self {}
    }

    pub(crate) fn capturing(context: &Arc<Context>) -> Result<Stream> {
        match **context {}
    }

    pub(crate) fn end_capture(&self) -> Result<Graph> {
        match *self {}
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn alloc_async(&self, _: usize) -> Result<u64> {
        match *self {}
    }

    pub(crate) fn free_async(&self, _: u64) -> Result<()> {
        match *self {}
    }

    pub(crate) fn with_scratch<R>(&self, _: usize, _: impl FnOnce(u64) -> Result<R>) -> Result<R> {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum Event {}

impl Event {
    pub(crate) fn record(stream: &Stream) -> Result<Event> {
        match *stream {}
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn is_reached(&self) -> Result<bool> {
        match *self {}
    }

    pub(crate) fn milliseconds_since(&self, _: &Event) -> Result<f32> {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum Graph {}

impl Graph {
    pub(crate) fn launch(&self, _: &Stream) -> Result<()> {
        match *self {}
    }
}

/// No page-locked memory without a driver.
#[derive(Debug)]
pub(crate) struct Pinned<T: AnyBits> {
    never: Context,
    elements: PhantomData<T>,
}

impl<T: AnyBits> Pinned<T> {
    pub(crate) fn alloc(context: &Arc<Context>, _: usize) -> Result<Pinned<T>> {
        match **context {}
    }

    pub(crate) fn as_slice(&self) -> Result<&[T]> {
        match self.never {}
    }

    pub(crate) fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        match self.never {}
    }

    pub(crate) fn upload(&self, _: &Stream, _: u64) -> Result<()> {
        match self.never {}
    }

    pub(crate) fn download(&mut self, _: &Stream, _: u64) -> Result<()> {
        match self.never {}
    }
}

pub(crate) fn encode_tensor_map(_: &Context, _: &Form, _: &Place) -> Result<[u8; MAP_BYTES]> {
    Err(absent())
}
