//! PTX text as data, and the metadata of compiled kernels.

pub mod metadata;

pub use metadata::{Metadata, MetadataError, Param, TensorMap};
