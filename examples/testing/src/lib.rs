//! A kernel of a build script, and how it is tested: by `rtc-testing` (`tests/kernel.rs`), and by a snapshot of its tile IR
//! (`tests/snapshot.rs`), for which the program needs no LLVM.

rtc_runtime::include_kernels!("scale");
