//! What ends a launch on the CPU before its kernel does: an interrupt from another thread, and the limit of steps.

use crate::{Error, Result};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends launches on the emulator and the interpreter from another thread; launches on GPUs take no notice of it.
///
/// ```
/// use rtc_runtime::{Device, Error, Interrupt, args};
/// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
/// let device = Device::emulator();
/// // SAFETY: the files were made together.
/// let scale = unsafe { device.load_json(ptx, json)? };
/// let (x, mut y) = (device.upload(&[1.0f32, 2.0])?, device.zeros::<f32>(2)?);
/// let interrupt = Interrupt::new();
/// interrupt.raise(); // or at any time during the launch, from another thread
/// let launched = interrupt.during(|| scale.launch(device.default_stream(), 1, &args![&x, &mut y, 3.0f32, 2]));
/// assert_eq!(launched, Err(Error::Interrupted));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

thread_local! {
    static CURRENT: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

impl Interrupt {
    /// One that has not been raised.
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Ends the launches in [`Interrupt::during`], and each that starts there later, with [`Error::Interrupted`]. What their
    /// kernels have written stays written.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Runs `work`, whose launches from this thread can be interrupted.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Restore(Option<Interrupt>);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0.take());
            }
        }
        let _restore = Restore(CURRENT.replace(Some(self.clone())));
        work()
    }

    /// That of the work on this thread.
    pub(crate) fn current() -> Option<Interrupt> {
        CURRENT.with_borrow(Clone::clone)
    }

    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }
}

/// The environment variable that says how many steps are allowed.
const STEPS: &str = "RTC_STEPS";
/// Steps that are allowed where it says nothing.
const MOST_STEPS: u64 = 1_000_000_000;

/// Steps that a block (emulator) or a program (interpreter) may execute; `None` is no limit.
pub(crate) fn step_limit() -> Result<Option<u64>> {
    let Some(text) = std::env::var_os(STEPS).filter(|text| !text.is_empty()) else { return Ok(Some(MOST_STEPS)) };
    match text.to_str().and_then(|text| text.parse().ok()) {
        Some(0) => Ok(None),
        Some(steps) => Ok(Some(steps)),
        None => {
            Err(Error::Environment { name: STEPS, message: format!("`{}` is not a number of steps", text.display()) })
        }
    }
}
