//! Software pipelines of one partition: how deep, what is copied ahead, and the loop rewritten.

pub(crate) mod copy_groups;
pub mod expand_loop;
pub(crate) mod expander;
pub(crate) mod prefetch;
pub(crate) mod register_prefetch;
pub mod schedule_loop;
pub(crate) mod stages;
