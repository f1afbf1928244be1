//! What looks wrong in a launch and does not end it.

use std::fmt;

/// Something that looked wrong in a launch on the emulator or the interpreter and did not end it.
///
/// ```
/// use rtc_runtime::{Device, Finding, Kernel, args};
/// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
/// let device = Device::emulator();
/// // SAFETY: the files were made together.
/// let scale: Kernel = unsafe { device.load_json(ptx, json)? };
/// let (x, mut y) = (device.upload(&[1.0f32, 2.0])?, device.zeros::<f32>(2)?);
/// scale.launch(device.default_stream(), 1, &args![&x, &mut y, 3.0f32, 2])?;
/// let overflows = |finding: &Finding| finding.code == "address-overflow";
/// assert!(!scale.take_findings().iter().any(overflows));
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What `rtc explain` takes, such as `address-overflow`.
    pub code: &'static str,
    /// What is wrong, in which block.
    pub message: String,
    /// The place in the source: file, line and column from 1, where it is known.
    pub place: Option<(String, u32, u32)>,
    /// The whole in one line, with the calls that were inlined.
    pub(crate) text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
