//! Launches by nothing but `cuLaunchKernel`: what no runtime can be cheaper than.
#![allow(unsafe_code)]

use cudarc::driver::{result, sys};
use std::ffi::{CString, c_void};

/// A kernel as the driver has it, with fixed arguments of 8 bytes each.
#[derive(Debug)]
pub struct Bare {
    function: sys::CUfunction,
    values: Vec<u64>,
    pointers: Vec<*mut c_void>,
}

impl Bare {
    /// Loads the entry `empty`. The primary context of the device must be current, which a device of the runtime makes it.
    pub fn load(ptx: &str, arguments: usize) -> Result<Bare, result::DriverError> {
        let image = CString::new(ptx).unwrap_or_default();
        let mut values = vec![0u64; arguments];
        let pointers = values.iter_mut().map(|value| std::ptr::from_mut(value).cast()).collect();
        // SAFETY: the image ends with NUL; the module is never unloaded.
        let function = unsafe {
            let module = result::module::load_data(image.as_ptr().cast())?;
            result::module::get_function(module, c"empty".into())?
        };
        Ok(Bare { function, values, pointers })
    }

    /// Launches one block of one warp on the default stream.
    #[inline]
    pub fn launch(&mut self) -> Result<(), result::DriverError> {
        debug_assert_eq!(self.values.len(), self.pointers.len());
        // SAFETY: the kernel takes as many arguments as there are pointers, and reads none of them.
        unsafe {
            sys::cuLaunchKernel(
                self.function,
                1,
                1,
                1,
                32,
                1,
                1,
                0,
                std::ptr::null_mut(),
                self.pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        }
        .result()
    }
}
