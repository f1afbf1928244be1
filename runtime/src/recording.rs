//! What recorded work uses, kept for as long as its graph lives.

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
    /// Keeps memory or a kernel.
    pub(crate) fn keep(&mut self, used: Option<Arc<dyn Any + Send + Sync>>) {
        self.kept.extend(used);
    }
}
