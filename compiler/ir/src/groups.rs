//! Which warps run which code; passes and lowering ask here for the number of warps.
//!
//! All warps of a block run the body of a kernel. `warp_specialize` partitions them: each of its nested blocks, a
//! *partition*, is run by its own warps, which are numbered in the order of the partitions. Layouts, numbers of
//! threads, reductions, scratch memory and barriers within a partition are those of its warps.
//!
//! ```text
//! warp_specialize {warps = [1, 4]} ^() { .. } ^() { .. }
//!     warp 0: the first partition        warps 1 to 4: the second partition, whose threads count from 0 again
//! ```
//!
//! Four warps change their number of registers together. So if partitions have registers of their own, each starts at a
//! multiple of four warps, and the remaining warps are idle:
//!
//! ```text
//! warp_specialize {warps = [1, 4], registers = [40, 232]} ^() { .. } ^() { .. }
//!     warp 0: the first partition        warps 4 to 7: the second partition
//! ```

use rtc_abi::SmLimits;

use crate::{Block, Kernel, Op, OpKind, Value, ValueDef};

/// The most partitions: each has a named barrier, of which there are 16, and the first is that of the block.
pub const MAX_PARTITIONS: usize = 15;

/// Registers of an SM for one lane of all its warps together.
const LANE_REGISTERS: u32 = 2048;

/// The most registers that a thread can start with: it can have 255, and their number changes by 8.
const MAX_AT_START: u32 = 248;

/// Warps that change their number of registers together.
pub const ALIGNED_WARPS: u32 = 4;

/// How many warps of the block a partition with `warps` takes, with those that have nothing to do.
pub fn warps_of_partition(warps: u32, registers: Option<&[u32]>) -> u32 {
    let own = registers.is_some_and(|registers| registers.iter().any(|n| *n != 0));
    if own { warps.saturating_add(ALIGNED_WARPS - 1) / ALIGNED_WARPS * ALIGNED_WARPS } else { warps }
}

/// The warps that run an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WarpGroup {
    /// Which partition it is in; `None` outside of partitions, where all warps of the block run.
    pub partition: Option<usize>,
    /// Its first warp, counted from the first one of the block.
    pub first: u32,
    /// How many warps.
    pub warps: u32,
}

impl WarpGroup {
    /// How many threads.
    pub fn threads(&self) -> u32 {
        32 * self.warps
    }
}

impl Kernel {
    /// The operation that divides the warps, if the kernel has one.
    pub fn specialization(&self) -> Option<Op> {
        self.specializations.iter().copied().find(|op| self.op(*op).parent == Some(self.body()))
    }

    /// All warps of a block.
    pub fn block_warps(&self) -> u32 {
        match self.specialization().map(|op| self.kind(op)) {
            Some(OpKind::WarpSpecialize { warps, registers }) => taken(warps, registers.as_deref()),
            _ => self.options.num_warps,
        }
    }

    /// Threads of a block.
    pub fn threads_per_block(&self) -> u32 {
        self.block_warps().saturating_mul(32)
    }

    /// The warps that run a nested block of an operation.
    pub fn group_of_nested(&self, op: Op, block: Block) -> WarpGroup {
        let data = self.op(op);
        if let OpKind::WarpSpecialize { warps, registers } = &data.kind
            && let Some(partition) = data.blocks.iter().position(|b| *b == block)
            && let Some(own) = warps.get(partition)
        {
            let first = taken(&warps[..partition], registers.as_deref());
            return WarpGroup { partition: Some(partition), first, warps: *own };
        }
        data.parent.map_or_else(|| self.whole_block(), |around| self.group_of_block(around))
    }

    /// The warps that run a block.
    pub fn group_of_block(&self, block: Block) -> WarpGroup {
        match self.block(block).parent {
            Some(op) => self.group_of_nested(op, block),
            None => self.whole_block(),
        }
    }

    /// The warps that run an operation.
    pub fn group_of(&self, op: Op) -> WarpGroup {
        self.op(op).parent.map_or_else(|| self.whole_block(), |block| self.group_of_block(block))
    }

    /// The warps that hold a value.
    pub fn group_of_value(&self, value: Value) -> WarpGroup {
        match self.value(value).def {
            ValueDef::Result(op, _) => self.group_of(op),
            ValueDef::Arg(block, _) => self.group_of_block(block),
        }
    }

    /// All warps of the block.
    pub fn whole_block(&self) -> WarpGroup {
        WarpGroup { partition: None, first: 0, warps: self.block_warps() }
    }

    /// The registers of a thread that the assembler takes for the limit of every instruction: those at the start.
    pub fn register_limit(&self) -> u32 {
        let share = SmLimits::most_registers(self.threads_per_block());
        self.registers_at_start().unwrap_or_else(|| self.options.maxnreg.unwrap_or(share).min(share))
    }

    /// How many registers each thread starts with, if partitions change the number later.
    pub fn registers_at_start(&self) -> Option<u32> {
        match self.specialization().map(|op| self.kind(op)) {
            Some(OpKind::WarpSpecialize { registers: Some(registers), .. }) if registers.iter().any(|n| *n != 0) => {
                let share = LANE_REGISTERS / self.block_warps().max(1);
                Some(self.options.maxnreg.unwrap_or(share).min(share).min(MAX_AT_START) / 8 * 8)
            }
            _ => None,
        }
    }
}

/// How many warps partitions take together.
fn taken(warps: &[u32], registers: Option<&[u32]>) -> u32 {
    warps.iter().fold(0, |sum, n| sum.saturating_add(warps_of_partition(*n, registers)))
}

#[cfg(test)]
mod tests {
    use crate::text::parse;

    #[test]
    fn warps_of_a_role_count_from_its_first() {
        let kernel = parse(
            "kernel @k(%n: i32) warps 4 phase tile {
  %one = constant {value = 1} : i32
  warp_specialize {warps = [1, 4], registers = [40, 232]} ^() {
    yields
  } ^() {
    for_range %one, %n, %one ^(%i: i32) {
      %t = arange {start = 0, end = 64} : tile<64xi32>
      yields
    }
    yields
  }
  ret
}",
        )
        .expect("the form is right");
        let group = |mnemonic: &str| {
            let ops = crate::walk(&kernel);
            let op = ops.into_iter().find(|op| kernel.kind(*op).spec().mnemonic == mnemonic).expect("it is there");
            (kernel.group_of(op), kernel.op(op).results.first().map(|value| kernel.group_of_value(*value)))
        };
        let inner = super::WarpGroup { partition: Some(1), first: 4, warps: 4 };
        assert_eq!(group("arange"), (inner, Some(inner)));
        assert_eq!(group("for_range").0, inner);
        let outer = super::WarpGroup { partition: None, first: 0, warps: 8 };
        assert_eq!(group("warp_specialize"), (outer, None));
        assert_eq!(group("constant"), (outer, Some(outer)));
        assert_eq!((kernel.threads_per_block(), inner.threads()), (256, 128));
        assert_eq!(kernel.registers_at_start(), Some(248));
    }
}
