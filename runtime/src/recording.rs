//! What recorded work uses, kept for as long as its graph lives.

use crate::place::Place;
use crate::uses::Uses;
use std::any::Any;
use std::sync::Arc;

/// The memory and the kernels of a stream that is recorded.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    kept: Vec<Arc<dyn Any + Send + Sync>>,
    /// The latest work on the memory, and whether this work writes it.
    pub(crate) uses: Vec<(Arc<Uses>, bool)>,
}

impl Recording {
    /// Keeps a kernel.
    pub(crate) fn keep(&mut self, kernel: Arc<dyn Any + Send + Sync>) {
        self.kept.push(kernel);
    }

    /// Keeps memory that the work reads or writes.
    pub(crate) fn add(&mut self, place: &Place<'_>, writes: bool) {
        self.kept.extend(place.kept());
        self.uses.extend(place.uses().map(|used| (used.clone(), writes)));
    }
}
