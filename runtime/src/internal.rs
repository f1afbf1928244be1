//! Parts for the other crates of the project: launches that are made again and again, copies of arguments, and
//! quantiles. They have no
//! place in the documentation and change without notice; semantic versioning does not cover them.

pub use crate::quantile::quantile;
pub use crate::replica::ArgumentCopies;
pub use crate::snapshot::Snapshot;

#[cfg(feature = "jit")]
pub use crate::jit::{
    assembled::assemble_ahead,
    cached::{KERNELS, key},
    passed::Passed,
    prepared::{Again, Prepared},
    remembered::Remembered,
};
