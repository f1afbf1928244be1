//! The softmax of the tutorial as PTX in a crate.

rtc_runtime::include_kernels!("softmax");
