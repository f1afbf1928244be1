//! Including kernels that were compiled by a build script.

/// Includes the module that `rtc-build` made of a source file: `include_kernels!("softmax")` for `softmax.rt`.
///
/// The macro stands where a module may stand; the module has the name of the source file and one function per kernel,
/// which loads the kernel on a device and gives a value with a typed `launch`.
#[macro_export]
macro_rules! include_kernels {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/rtc/", $name, ".rs"));
    };
}
