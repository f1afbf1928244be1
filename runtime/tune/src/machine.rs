//! What a GPU has, as far as the cost model asks.

/// What a GPU has.
///
/// ```
/// use rtc_tune::Machine;
/// let machine = Machine::of_arch("sm_90a");
/// assert_eq!((machine.capability, machine.multiprocessors), (90, 132));
/// assert_eq!(machine.shared_of_block(), 227 << 10);
/// // A part of it: the memory is shared by fewer.
/// assert_eq!(machine.with_multiprocessors(66).bandwidth, machine.bandwidth / 2.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// 90 for `sm_90`.
    pub capability: u32,
    /// The number of SMs.
    pub multiprocessors: u32,
    /// Cycles in a second, under load.
    pub clock: f64,
    /// Bytes of device memory in a second, as kernels reach them.
    pub bandwidth: f64,
    /// Bytes in a cycle that one SM gets from the L2 cache.
    pub cache_bytes: f64,
    /// Shared memory of an SM.
    pub shared: u32,
    /// Threads of an SM.
    pub threads: u32,
    /// Blocks of an SM.
    pub blocks: u32,
}

/// 32-bit registers of an SM.
pub(crate) const REGISTERS: u32 = 65_536;
/// Registers that a thread can have at most.
pub(crate) const MAX_REGISTERS: u32 = 255;
/// Shared memory that the system takes of each block.
pub(crate) const RESERVED_SHARED: u32 = 1024;

impl Machine {
    /// The GPU that a target such as `sm_90a` stands for where none is at hand: the usual one of its generation.
    pub fn of_arch(arch: &str) -> Machine {
        let digits: String = arch.chars().filter(char::is_ascii_digit).collect();
        let capability = digits.parse().unwrap_or(90);
        let machine = |multiprocessors, clock, bandwidth, shared_kib: u32, threads, blocks| Machine {
            capability,
            multiprocessors,
            clock,
            bandwidth,
            cache_bytes: 32.0,
            shared: shared_kib << 10,
            threads,
            blocks,
        };
        match capability {
            80 => machine(108, 1.35e9, 1.6e12, 164, 2048, 32),
            86 => machine(84, 1.6e9, 0.75e12, 100, 1536, 16),
            89 => machine(128, 2.2e9, 0.9e12, 100, 1536, 24),
            100 => machine(148, 1.7e9, 7.0e12, 228, 2048, 32),
            120 => machine(170, 2.2e9, 1.6e12, 100, 1536, 24),
            _ => machine(132, 1.5e9, 4.2e12, 228, 2048, 32),
        }
    }

    /// The same with the SMs that a device says it has.
    pub fn with_multiprocessors(mut self, count: u32) -> Machine {
        self.bandwidth *= f64::from(count) / f64::from(self.multiprocessors);
        self.multiprocessors = count;
        self
    }

    /// Shared memory that one block can have.
    pub fn shared_of_block(&self) -> u32 {
        self.shared - RESERVED_SHARED
    }
}
