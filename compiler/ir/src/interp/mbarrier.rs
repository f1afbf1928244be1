//! A barrier in shared memory (`mbarrier`): a phase completes when all arrivals that it expects have come, and all bytes
//! that were announced; then the next phase begins.

use std::fmt;

/// The most arrivals of a phase, and the most bytes that may be missing.
const MOST: u32 = (1 << 20) - 1;

/// A barrier that has been given its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Barrier {
    /// The phases that are complete.
    phase: u64,
    /// How many arrivals a phase expects.
    count: u32,
    /// How many of them are missing in this phase.
    pending: u32,
    /// Bytes that were announced and have not come; negative if they came first.
    bytes: i64,
}

/// A use of a barrier that the hardware does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierError {
    /// Before its count was set.
    NotInitialized,
    /// A count that no barrier has.
    Count(u32),
    /// More arrivals than the phase expects.
    Arrivals {
        /// How many came.
        came: u32,
        /// How many were missing.
        pending: u32,
    },
    /// More bytes missing, or come without being announced, than a barrier counts.
    Bytes(i64),
}

impl fmt::Display for BarrierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BarrierError::NotInitialized => f.write_str("the barrier is used before it is initialized"),
            BarrierError::Count(count) => write!(f, "a barrier cannot expect {count} arrivals, only 1 to {MOST}"),
            BarrierError::Arrivals { came, pending } => {
                write!(f, "{came} arrivals at a barrier whose phase lacks only {pending}")
            }
            BarrierError::Bytes(bytes) => write!(f, "a barrier cannot count {bytes} bytes, only up to {MOST}"),
        }
    }
}

impl Barrier {
    /// One in phase 0 that expects `count` arrivals in each phase.
    pub(crate) fn init(count: u32) -> Result<Barrier, BarrierError> {
        if count == 0 || count > MOST {
            return Err(BarrierError::Count(count));
        }
        Ok(Barrier { phase: 0, count, pending: count, bytes: 0 })
    }

    /// Announces bytes that the phase waits for.
    pub(crate) fn expect_tx(&mut self, bytes: u32) -> Result<(), BarrierError> {
        self.add(i64::from(bytes))
    }

    /// Announced bytes have come.
    pub(crate) fn complete(&mut self, bytes: u32) -> Result<(), BarrierError> {
        self.add(-i64::from(bytes))
    }

    /// `count` of the arrivals that the phase expects.
    pub(crate) fn arrive(&mut self, count: u32) -> Result<(), BarrierError> {
        let left = self.pending.checked_sub(count);
        self.pending = left.ok_or(BarrierError::Arrivals { came: count, pending: self.pending })?;
        self.turn_over();
        Ok(())
    }

    /// Whether the latest phase of this parity (0 or 1) is complete. Before the first phase lies one of parity 1, which
    /// counts as complete.
    pub(crate) fn try_wait(&self, parity: u32) -> bool {
        self.phase & 1 != u64::from(parity & 1)
    }

    fn add(&mut self, bytes: i64) -> Result<(), BarrierError> {
        let sum = self.bytes + bytes;
        if sum.unsigned_abs() > u64::from(MOST) {
            return Err(BarrierError::Bytes(sum));
        }
        self.bytes = sum;
        self.turn_over();
        Ok(())
    }

    fn turn_over(&mut self) {
        if self.pending == 0 && self.bytes == 0 {
            self.phase += 1;
            self.pending = self.count;
        }
    }
}

impl fmt::Display for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Barrier { phase, count, pending, bytes } = self;
        write!(f, "in phase {phase}, {pending} of {count} arrivals and {bytes} bytes missing")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_each_other() {
        let mut barrier = Barrier::init(2).expect("a count");
        assert!(barrier.try_wait(1), "what lies before the first phase is complete");
        assert!(!barrier.try_wait(0));
        barrier.arrive(1).expect("one is missing");
        assert!(!barrier.try_wait(0));
        barrier.arrive(1).expect("one is missing");
        assert!(barrier.try_wait(0));
        assert!(!barrier.try_wait(1), "the second phase has begun");
        barrier.arrive(2).expect("two are missing");
        assert!(barrier.try_wait(1));
        // A waiter that is two phases late waits for the wrong one.
        assert!(!barrier.try_wait(0));
    }

    #[test]
    fn a_phase_needs_its_bytes() {
        let mut barrier = Barrier::init(1).expect("a count");
        barrier.expect_tx(512).expect("few bytes");
        barrier.arrive(1).expect("one is missing");
        barrier.complete(256).expect("announced");
        assert!(!barrier.try_wait(0));
        assert_eq!(barrier.to_string(), "in phase 0, 0 of 1 arrivals and 256 bytes missing");
        barrier.complete(256).expect("announced");
        assert!(barrier.try_wait(0));
    }

    #[test]
    fn bytes_may_come_before_they_are_announced() {
        let mut barrier = Barrier::init(1).expect("a count");
        barrier.complete(128).expect("few bytes");
        barrier.expect_tx(128).expect("few bytes");
        assert!(!barrier.try_wait(0), "the arrival is missing");
        barrier.arrive(1).expect("one is missing");
        assert!(barrier.try_wait(0));
    }

    #[test]
    fn misuse_is_refused() {
        assert_eq!(Barrier::init(0), Err(BarrierError::Count(0)));
        assert_eq!(Barrier::init(1 << 20), Err(BarrierError::Count(1 << 20)));
        let mut barrier = Barrier::init(1).expect("a count");
        assert_eq!(barrier.arrive(2), Err(BarrierError::Arrivals { came: 2, pending: 1 }));
        assert_eq!(barrier.expect_tx(1 << 20), Err(BarrierError::Bytes(1 << 20)));
        assert_eq!(barrier.complete(1 << 20), Err(BarrierError::Bytes(-(1 << 20))));
        assert_eq!(barrier, Barrier::init(1).expect("a count"), "what is refused changes nothing");
    }
}
