//! Kernels that never end: the budget of a block and interrupts end them.
#![allow(clippy::unwrap_used)]

use rtc_emulator::{FaultKind, LaunchConfig, Memory, Program};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// `count` runs N iterations of a loop; in `spin`, all blocks from the given one on never end.
const PTX: &str = "
.version 8.3
.target sm_80
.address_size 64

.visible .entry count(.param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %i, %n;
    ld.param.u32 %n, [n];
    mov.u32 %i, 0;
LOOP:
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, %n;
    @%p bra LOOP;
    ret;
}

.visible .entry spin(.param .u32 first)
{
    .reg .pred %p;
    .reg .b32 %b, %first;
    ld.param.u32 %first, [first];
    mov.u32 %b, %ctaid.x;
    setp.lt.u32 %p, %b, %first;
    @%p ret;
LOOP:
    bra LOOP;
}
";

fn launch(kernel: &str, param: u32, config: LaunchConfig<'_>) -> Result<(), FaultKind> {
    let params = param.to_le_bytes();
    let config = LaunchConfig { kernel, params: &params, ..config };
    Program::load(PTX).unwrap().launch(&mut Memory::new(), &config).map(|_| ()).map_err(|fault| fault.kind)
}

/// One that never ends, in a grid that alone takes more than the budget.
#[test]
fn the_budget_of_a_block_is_not_shared_by_the_grid() {
    for threads in [1, 2] {
        let config = LaunchConfig { grid: [100, 1, 1], threads, ..LaunchConfig::new("") };
        let within = LaunchConfig { block_budget: Some(10_000), ..config.clone() };
        assert_eq!(launch("count", 1_000, within.clone()), Ok(()));
        let budget = FaultKind::BlockBudgetExceeded { budget: 10_000 };
        assert_eq!(launch("count", 10_000, within.clone()), Err(budget.clone()));
        assert_eq!(launch("spin", 100, within.clone()), Ok(()));
        assert_eq!(launch("spin", 99, within), Err(budget));
    }
}

/// A cluster may execute the budget of each of its blocks.
#[test]
fn clusters_have_the_budget_of_all_their_blocks() {
    let config = LaunchConfig { grid: [2, 1, 1], cluster: [2, 1, 1], ..LaunchConfig::new("") };
    assert_eq!(launch("count", 30_000, LaunchConfig { block_budget: Some(100_000), ..config.clone() }), Ok(()));
    let fault = launch("count", 60_000, LaunchConfig { block_budget: Some(100_000), ..config });
    assert_eq!(fault, Err(FaultKind::BlockBudgetExceeded { budget: 100_000 }));
}

/// Thousands of blocks that never end take little longer than one.
#[test]
fn many_endless_blocks_reach_the_budget_as_one_does() {
    let config = LaunchConfig { grid: [5_000, 1, 1], threads: 1, ..LaunchConfig::new("") };
    let fault = launch("spin", 0, LaunchConfig { block_budget: Some(20_000_000), ..config });
    assert_eq!(fault, Err(FaultKind::BlockBudgetExceeded { budget: 20_000_000 }));
}

#[test]
fn an_interrupt_ends_endless_blocks() {
    for (grid, threads, first) in [(1, 1, 0), (20_000, 2, 19_000), (1_000, 1, 0)] {
        let interrupt = AtomicBool::new(false);
        let fault = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                interrupt.store(true, Ordering::Relaxed);
            });
            let grid = [grid, 1, 1];
            launch("spin", first, LaunchConfig { grid, threads, interrupt: Some(&interrupt), ..LaunchConfig::new("") })
        });
        assert_eq!(fault, Err(FaultKind::Interrupted));
    }
}
