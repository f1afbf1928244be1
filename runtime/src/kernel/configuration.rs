//! Grids as functions of what a kernel was compiled with.

use crate::{Error, Grid, Kernel, Metadata, Result};

/// What a kernel was compiled with, for a grid that follows it: see [`Kernel::grid`].
///
/// ```
/// use rtc_runtime::{Configuration, Device, Grid, Result};
/// # let (ptx, json) = (include_str!("../../tests/kernels/scale.ptx"), include_str!("../../tests/kernels/scale.json"));
/// fn programs(of: &Configuration<'_>) -> Result<u32> {
///     assert!(of.num_warps() > 0);
///     Ok(100u32.div_ceil(of.number("BLOCK")?))
/// }
/// // SAFETY: the files were made together.
/// assert_eq!(unsafe { Device::auto().load_json(ptx, json)? }.grid(programs)?, Grid([4, 1, 1]));
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Configuration<'k> {
    metadata: &'k Metadata,
}

impl Configuration<'_> {
    /// The value of a constexpr that is a number, such as a block size.
    ///
    /// # Errors
    ///
    /// [`Error::NoConstexpr`] if the kernel has no constexpr of that name whose value is a number from 0 to 2^32 - 1.
    pub fn number(&self, name: &str) -> Result<u32> {
        let value = self.metadata.constexprs.get(name).and_then(|value| u32::try_from(value.as_u64()?).ok());
        value.ok_or_else(|| {
            let known: Vec<&str> = self.metadata.constexprs.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Error::NoConstexpr { kernel: self.metadata.kernel.clone(), name: name.to_owned(), known }
        })
    }

    /// Warps of a program.
    pub fn num_warps(&self) -> u32 {
        self.metadata.num_warps
    }
}

impl<Args> Kernel<Args> {
    /// The grid as a function of what the kernel was compiled with. Keep it for further launches with the same sizes.
    ///
    /// ```
    /// use rtc_runtime::{Device, Grid, args};
    /// # let (ptx, json) = (include_str!("../../tests/kernels/scale.ptx"), include_str!("../../tests/kernels/scale.json"));
    /// let device = Device::auto();
    /// // SAFETY: the files were made together.
    /// let kernel = unsafe { device.load_json(ptx, json)? }; // compiled with BLOCK = 32
    /// let grid = kernel.grid(|c| Ok(100u32.div_ceil(c.number("BLOCK")?)))?;
    /// assert_eq!(grid, Grid([4, 1, 1]));
    /// let error = kernel.grid(|c| c.number("BLOCKS")).unwrap_err();
    /// assert_eq!(error.to_string(), "kernel `scale` has no constexpr `BLOCKS` that is a number; it has BLOCK");
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `of`.
    pub fn grid<G: Into<Grid>>(&self, of: impl FnOnce(&Configuration<'_>) -> Result<G>) -> Result<Grid> {
        of(&Configuration { metadata: self.metadata() }).map(Into::into)
    }
}
