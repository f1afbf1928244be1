//! Grids: how many programs a launch runs, by value or by what the kernel was compiled with.

use crate::{Error, Kernel, Metadata, Result};

/// How many programs run, in up to three dimensions.
///
/// ```
/// use rtc_runtime::Grid;
/// assert_eq!(Grid::from((4, 2)), Grid([4, 2, 1]));
/// assert_eq!(Grid::MOST, [i32::MAX as u32, 65535, 65535]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid(pub [u32; 3]);

impl Grid {
    /// The most blocks that a launch has along each axis. On the CPU it is the same, so that a program that runs there runs on a GPU.
    pub const MOST: [u32; 3] = [0x7fff_ffff, 65535, 65535];
}

impl From<u32> for Grid {
    fn from(x: u32) -> Grid {
        Grid([x, 1, 1])
    }
}

impl From<(u32, u32)> for Grid {
    fn from((x, y): (u32, u32)) -> Grid {
        Grid([x, y, 1])
    }
}

impl From<(u32, u32, u32)> for Grid {
    fn from((x, y, z): (u32, u32, u32)) -> Grid {
        Grid([x, y, z])
    }
}

impl From<[u32; 3]> for Grid {
    fn from(sizes: [u32; 3]) -> Grid {
        Grid(sizes)
    }
}

/// What a kernel was compiled with, for a grid that follows it: see [`Kernel::grid`].
///
/// ```
/// use rtc_runtime::{Configuration, Device, Grid, Result};
/// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
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
    /// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
    /// let device = Device::auto();
    /// // SAFETY: the files were made together.
    /// let kernel = unsafe { device.load_json(ptx, json)? }; // compiled with BLOCK = 32
    /// let grid = kernel.grid(|c| Ok(100u32.div_ceil(c.number("BLOCK")?)))?;
    /// assert_eq!(grid, Grid([4, 1, 1]));
    /// let error = kernel.grid(|c| c.number("BLOCKS")).unwrap_err();
    /// assert_eq!(error.to_string(), "kernel `scale` has no constexpr `BLOCKS` that is a number; it has BLOCK");
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    pub fn grid<G: Into<Grid>>(&self, of: impl FnOnce(&Configuration<'_>) -> Result<G>) -> Result<Grid> {
        of(&Configuration { metadata: self.metadata() }).map(Into::into)
    }
}
