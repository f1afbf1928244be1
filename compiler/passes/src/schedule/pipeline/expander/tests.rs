//! A loop with every assignment of stages computes what it did.

use rtc_ir::interp::{ArgValue, HostMemory, LaunchConfig, RunOptions, run};
use rtc_ir::{Kernel, Op, OpKind};

use super::{Ends, StagedLoop, expand};

/// Stores a quotient and a sum of what it loads: the loop has an index that is used late, a division whose divisor is 0
/// behind the last iteration, and two loop-carried values, one of which is the other one before.
const KERNEL: &str = "kernel @k(%x: ptr<i32> {sig = \"*i32\"}, %y: ptr<i32> {sig = \"*i32\"}, %n: i32 {sig = \"i32\"}) warps 1 phase tile {
  %zero = constant {value = 0} : i32
  %one = constant {value = 1} : i32
  %r, %s = for_range %zero, %n, %one, (%zero, %one) : i32, i32 ^(%i: i32, %sum: i32, %last: i32) {
    %p = addptr %x, %i : ptr<i32>
    %a = load %p : i32
    %left = subi %n, %i : i32
    %d = divsi %a, %left : i32
    %b = addi %d, %last : i32
    %q = addptr %y, %i : ptr<i32>
    store %q, %a
    %c = addi %sum, %b : i32
    yields (%c, %sum)
  }
  %q1 = addptr %y, %n : ptr<i32>
  store %q1, %r
  %q2 = addptr %q1, %one : ptr<i32>
  store %q2, %s
  ret
}
";

/// What the kernel leaves in `y` for so many iterations.
fn result(kernel: &Kernel, iterations: i32) -> Vec<u8> {
    let mut memory = HostMemory::new();
    let numbers = |count: i32| (0..count).flat_map(|number| (7 * number + 3).to_le_bytes()).collect::<Vec<u8>>();
    let x = memory.alloc("x", numbers(iterations));
    let y = memory.alloc("y", vec![0; 4 * (iterations as usize + 2)]);
    let args = vec![ArgValue::Pointer(x), ArgValue::Pointer(y), ArgValue::Int(iterations.into())];
    let launch = LaunchConfig { grid: [1, 1, 1], args };
    let verified = rtc_ir::verify(kernel).unwrap_or_else(|e| panic!("{}", rtc_ir::print_errors(kernel, &e)));
    if let Err(fault) = run(verified, &mut memory, &launch, &RunOptions::default()) {
        panic!("{iterations} iterations: {fault}\n{}", rtc_ir::text::print(kernel));
    }
    memory.bytes(y).expect("it is there").to_vec()
}

/// How many assignments of stages up to `last` are valid; each computes what the loop did.
fn valid(ends: Ends, last: u32, late_first: bool) -> usize {
    let kernel = rtc_ir::text::parse(KERNEL).expect("the form is right");
    let of = rtc_ir::walk(&kernel).into_iter().find(|op| matches!(kernel.kind(*op), OpKind::ForRange { .. }));
    let of = of.expect("it has a loop");
    let ops: Vec<Op> = kernel.ops(kernel.op(of).blocks[0]).collect();
    let (_, ops) = ops.split_last().expect("it ends");
    let counts = [0, 1, 2, 3, 6];
    let expected = counts.map(|count| result(&kernel, count));
    let mut valid = 0;
    for assignment in 0..(last + 1).pow(ops.len() as u32) {
        let stage = |number: usize| assignment / (last + 1).pow(number as u32) % (last + 1);
        let mut order: Vec<(Op, u32)> = ops.iter().enumerate().map(|(number, op)| (*op, stage(number))).collect();
        // Stores are not masked.
        let stored =
            order.iter().all(|(op, stage)| !matches!(kernel.kind(*op), OpKind::Store { .. }) || *stage == last);
        if late_first {
            order.sort_by_key(|(_, stage)| std::cmp::Reverse(*stage));
        }
        let staged = StagedLoop::new(&kernel, of, order.clone(), ends).expect("it is a loop");
        if !staged.is_valid(&kernel) || ends == Ends::Masked && !stored {
            continue;
        }
        let mut expanded = kernel.clone();
        expand(&mut expanded, staged).unwrap_or_else(|e| panic!("{e}: {order:?}"));
        assert_eq!(counts.map(|count| result(&expanded, count)), expected, "{order:?}");
        valid += 1;
    }
    valid
}

#[test]
fn masked_loops_compute_what_they_did() {
    assert_eq!([1, 2].map(|last| valid(Ends::Masked, last, false)), [16, 99]);
    assert_eq!(valid(Ends::Masked, 2, true), 99);
}

#[test]
fn peeled_loops_compute_what_they_did() {
    assert_eq!([1, 2].map(|last| valid(Ends::Peeled, last, false)), [20, 28]);
    assert_eq!(valid(Ends::Peeled, 2, true), 28);
}
