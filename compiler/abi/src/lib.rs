//! The interface between the compiler and launchers of its kernels: plain data, without LLVM and without IO.
//!
//! | file | holds |
//! | --- | --- |
//! | `dtype.rs` | [`DType`], the element types |
//! | `types.rs` | [`ValueType`] of run-time arguments, [`ParamType`] of kernel parameters |
//! | `target.rs` | [`Target`], the features of each architecture, and [`Arch`], the compatibility of PTX |
//! | `spec.rs` | [`spec::Specialization`], the arguments and options that a kernel is compiled for |
//! | `structure.rs` | [`Structure`], how dots in loops get their operands |
//! | `plan.rs` | [`Plan`], decisions about the schedule that are given |
//! | `tuning.rs` | [`tuning::Tuning`], the configurations that a kernel is tuned over |
//! | `metadata.rs` | [`Metadata`], the `<symbol>.json` next to `<symbol>.ptx`, and the offset of each parameter |
//! | `records.rs` | [`records`], what an instrumented kernel records |
//! | `expr.rs` | [`Expr`], expressions that the launcher computes from integer arguments |
//!
//! Types are written as signatures spell them wherever they are text: `i32`, `*fp16`, `tensordesc<fp16[128,64]>`.
#![warn(clippy::missing_errors_doc)]

mod dtype;
pub mod expr;
mod extent;
mod extent_program;
pub mod metadata;
mod occupancy;
mod plan;
pub mod records;
pub mod spec;
mod structure;
mod target;
pub mod tuning;
mod types;

pub use dtype::DType;
pub use expr::Expr;
pub use extent::{Access, Elements, Evaluated, Extents};
pub use metadata::{Hidden, HostTensorMap, Metadata, MetadataError, Padding, Param, Persistent, TensorMap};
pub use occupancy::{REGISTER_STEP, REGISTERS, REGISTERS_PER_THREAD, SmLimits};
pub use plan::{InvalidPlan, Plan, PlanValue};
pub use structure::{ResultStores, Structure, UnknownStructure, WarpSpecialization};
pub use target::{Arch, Feature, MAX_THREADS, TARGETS, Target, UnknownTarget};
pub use types::{ParamType, UnknownType, ValueType};
