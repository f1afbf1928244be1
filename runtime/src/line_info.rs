//! Whether the driver keeps the lines of the source in kernels that it assembles, for profilers and debuggers.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

fn flag() -> &'static AtomicBool {
    static FLAG: OnceLock<AtomicBool> = OnceLock::new();
    FLAG.get_or_init(|| {
        let set = std::env::var_os("RTC_LINE_INFO").is_some_and(|value| !value.is_empty() && value != "0");
        AtomicBool::new(set)
    })
}

/// Has the driver keep the lines of the source in kernels that are loaded from now on, so that Nsight Compute,
/// compute-sanitizer and cuda-gdb show them. The code is the same. Without a call the environment variable `RTC_LINE_INFO`
/// decides: any value but `0` is on.
///
/// ```
/// rtc_runtime::set_line_info(true);
/// let device = rtc_runtime::Device::auto();
/// // Kernels that are loaded on the device now have line information.
/// # let _ = device;
/// ```
pub fn set_line_info(on: bool) {
    flag().store(on, Ordering::Relaxed);
}

/// Whether kernels are loaded with line information.
#[cfg(feature = "cuda")]
pub(crate) fn is_on() -> bool {
    flag().load(Ordering::Relaxed)
}
