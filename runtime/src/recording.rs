//! What recorded work uses, kept for as long as its graph lives.

use std::any::Any;
use std::sync::Arc;

/// The memory and the kernels of a stream that is recorded.
#[derive(Debug, Default)]
pub(crate) struct Recording(Vec<Arc<dyn Any + Send + Sync>>);

impl Recording {
    /// Keeps memory or a kernel.
    pub(crate) fn keep(&mut self, used: Option<Arc<dyn Any + Send + Sync>>) {
        self.0.extend(used);
    }
}
