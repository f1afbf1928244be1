//! What a GPU has, as far as the cost model asks.

use rtc_abi::{SmLimits, Target};

/// What a GPU has.
///
/// ```
/// use rtc_tune::Machine;
/// let machine = Machine::of_arch("sm_90a");
/// assert_eq!((machine.capability, machine.sm_count), (90, 132));
/// assert_eq!(machine.sm.shared_for(1), 227 << 10);
/// // A part of it: the memory is shared by fewer.
/// assert_eq!(machine.with_sm_count(66).memory_bytes_per_second, machine.memory_bytes_per_second / 2.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// 90 for `sm_90`.
    pub capability: u32,
    /// The number of SMs.
    pub sm_count: u32,
    /// The clock of the SMs under load.
    pub clock_hz: f64,
    /// What kernels reach of device memory.
    pub memory_bytes_per_second: f64,
    /// What one SM gets from the L2 cache.
    pub l2_bytes_per_cycle: f64,
    /// The resources of an SM.
    pub sm: SmLimits,
}

impl Machine {
    /// The GPU that a target such as `sm_90a` stands for where none is at hand: the usual one of its generation.
    pub fn of_arch(arch: &str) -> Machine {
        let digits: String = arch.chars().filter(char::is_ascii_digit).collect();
        let capability = digits.parse().unwrap_or(90);
        let (sm_count, clock_hz, memory_bytes_per_second) = match capability {
            80 => (108, 1.35e9, 1.6e12),
            86 => (84, 1.6e9, 0.75e12),
            89 => (128, 2.2e9, 0.9e12),
            100 => (148, 1.7e9, 7.0e12),
            120 => (170, 2.2e9, 1.6e12),
            _ => (132, 1.5e9, 4.2e12),
        };
        let sm = Target::of_capability(capability).map_or(SmLimits::HOPPER, |target| target.sm);
        Machine { capability, sm_count, clock_hz, memory_bytes_per_second, l2_bytes_per_cycle: 32.0, sm }
    }

    /// The same with the SMs that a device says it has.
    pub fn with_sm_count(mut self, count: u32) -> Machine {
        self.memory_bytes_per_second *= f64::from(count) / f64::from(self.sm_count);
        self.sm_count = count;
        self
    }
}
