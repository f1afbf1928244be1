//! Grids: how many programs a launch runs.

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
