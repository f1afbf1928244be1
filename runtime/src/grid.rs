//! Grids: how many programs a launch runs.

/// How many programs run, in up to three dimensions. It is made of one integer, or of a tuple or an array of integers.
///
/// Sizes that no launch takes, negative ones and those above [`Grid::MAX`], are errors of the launch.
///
/// ```
/// use rtc_runtime::Grid;
/// let rows = vec![0.0f32; 500];
/// assert_eq!(Grid::from(rows.len().div_ceil(64)), Grid([8, 1, 1]));
/// assert_eq!(Grid::from((4, 2)), Grid([4, 2, 1]));
/// assert_eq!(Grid::MAX, [i32::MAX as u32, 65535, 65535]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid(pub [i64; 3]);

impl Grid {
    /// The most blocks that a launch has along each axis. On the CPU it is the same, so that a program that runs there runs on a GPU.
    pub const MAX: [u32; 3] = [0x7fff_ffff, 65535, 65535];
}

macro_rules! grids {
    ($($ty:ty),*) => {
        $(
            impl From<$ty> for Grid {
                fn from(x: $ty) -> Grid {
                    Grid([size(x), 1, 1])
                }
            }

            impl From<($ty, $ty)> for Grid {
                fn from((x, y): ($ty, $ty)) -> Grid {
                    Grid([size(x), size(y), 1])
                }
            }

            impl From<($ty, $ty, $ty)> for Grid {
                fn from((x, y, z): ($ty, $ty, $ty)) -> Grid {
                    Grid([x, y, z].map(size))
                }
            }

            impl From<[$ty; 3]> for Grid {
                fn from(sizes: [$ty; 3]) -> Grid {
                    Grid(sizes.map(size))
                }
            }
        )*
    };
}

grids!(i32, u32, i64, u64, usize);

/// The size; the largest number stands for a larger one, which a launch refuses as well.
fn size(size: impl TryInto<i64>) -> i64 {
    size.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_never_wrap() {
        assert_eq!(Grid::from(u64::MAX), Grid([i64::MAX, 1, 1]));
        assert_eq!(Grid::from((1usize << 32, 7)), Grid([1 << 32, 7, 1]));
        assert_eq!(Grid::from([-1, 0, 3]), Grid([-1, 0, 3]));
    }
}
