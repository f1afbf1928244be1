//! Addresses: memory that no buffer stands for.
#![allow(unsafe_code)]

/// A device address as an argument of a launch: memory that another library allocated, or the null pointer.
///
/// A [`Buffer`](crate::Buffer) is known to be memory of its device for as long as it lives; of an address nothing is
/// known, so its creator guarantees it.
///
/// ```
/// use rtc_runtime::{Arg, DeviceAddress};
/// let none = Arg::from(DeviceAddress::NULL);
/// // SAFETY: nothing is launched with it.
/// let somewhere = unsafe { DeviceAddress::new(0x7f00_0000_0000) };
/// assert_eq!(somewhere.get() % 256, 0);
/// # drop(none);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceAddress(u64);

impl DeviceAddress {
    /// The null pointer, which kernels may compare and must not read.
    pub const NULL: DeviceAddress = DeviceAddress(0);

    /// An address that the caller guarantees.
    ///
    /// # Safety
    ///
    /// Until every launch that gets it has ended, all that those kernels read and write through it must be memory of
    /// their device, and no other code may write memory that they read or access memory that they write.
    pub unsafe fn new(address: u64) -> DeviceAddress {
        DeviceAddress(address)
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }
}
