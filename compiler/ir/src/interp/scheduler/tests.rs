//! The scheduling of warp groups.

use super::*;
use crate::interp::shared::Start;
use crate::interp::{ArgValue, GlobalMemory, HostMemory, LaunchConfig, RunOptions, SharedError, run};
use crate::{Kernel, OpKind, text, verify, walk};

/// The first block waits for the flag and copies `x`; the second one writes `x` and sets the flag.
const HANDSHAKE: &str = r#"
kernel @handshake(%flag: ptr<i32> {sig = "*i32"}, %x: ptr<i32> {sig = "*i32"}, %y: ptr<i32> {sig = "*i32"}) warps 4 phase tile {
  %zero = constant {value = 0} : i32
  %one = constant {value = 1} : i32
  %n = constant {value = 100} : i32
  warp_specialize {warps = [4, 4]} ^() {
    %seen = while_loop (%zero) : i32 ^(%a: i32) {
      %v = load %flag : i32
      %go = cmpi %v, %zero {predicate = eq} : i1
      condition %go, (%v)
    } ^(%b: i32) {
      yields (%b)
    }
    %d = load %x : i32
    store %y, %d
    yields
  } ^() {
    %sum = for_range %zero, %n, %one, (%zero) : i32 ^(%i: i32, %acc: i32) {
      %next = addi %acc, %i : i32
      store %x, %next
      yields (%next)
    }
    store %flag, %one
    yields
  }
  ret
}
"#;

/// All orders that the tests try.
fn schedules() -> impl Iterator<Item = Schedule> {
    std::iter::once(Schedule::RoundRobin).chain((0..20).map(Schedule::Random))
}

fn find(kernel: &Kernel, wanted: impl Fn(&OpKind) -> bool) -> crate::Op {
    walk(kernel).into_iter().find(|op| wanted(kernel.kind(*op))).expect("the kernel has one")
}

/// Three allocations of one `i32` that are 0, and a launch of a program on them.
fn cells() -> (HostMemory, [u64; 3], LaunchConfig) {
    let mut memory = HostMemory::new();
    let bases = ["a", "b", "c"].map(|name| memory.alloc(name, vec![0; 4]));
    (memory, bases, LaunchConfig { grid: [1; 3], args: bases.map(ArgValue::Pointer).to_vec() })
}

/// A machine with its parameters set that has run `ops` operations of the body.
fn machine<'a>(
    kernel: &'a Kernel,
    memory: &'a mut dyn GlobalMemory,
    launch: &LaunchConfig,
    schedule: Schedule,
    ops: u64,
) -> Machine<'a> {
    verify(kernel).expect("it is well-formed");
    let mut machine = Machine::new(kernel, memory, launch, &RunOptions { schedule, ..RunOptions::default() });
    for (param, arg) in kernel.params.iter().zip(&launch.args) {
        let ArgValue::Pointer(bits) = arg else { panic!("all are pointers") };
        machine.set(param.value, crate::interp::value::Data::Scalar(*bits));
    }
    machine.group.push(kernel, kernel.body(), Exit::Return);
    if ops > 0 {
        assert_eq!(machine.turn(ops).ok(), Some(RunOutcome::Paused));
    }
    machine
}

/// Runs `warp_specialize`, the fourth operation of the body: it waits for the partitions, which are yet to begin.
fn start_both(machine: &mut Machine<'_>) {
    assert_eq!(machine.turn(1).ok(), Some(RunOutcome::Blocked));
    assert_eq!(machine.group.wait, Some(Wait::Ended(vec![1, 2])));
    machine.park();
}

/// Runs what [`start_both`] has begun.
fn run_both(machine: &mut Machine<'_>) -> Result<(), Stop> {
    machine.resume()?;
    machine.run_groups()
}

#[test]
fn a_pause_after_each_operation_changes_nothing() {
    let source = r#"
kernel @k(%x: ptr<i32> {sig = "*i32"}, %y: ptr<i32> {sig = "*i32"}, %z: ptr<i32> {sig = "*i32"}) warps 1 phase tile {
  %zero = constant {value = 0} : i32
  %n = constant {value = 9} : i32
  %one = constant {value = 1} : i32
  %t = arange {start = 0, end = 8} : tile<8xi32>
  %a, %b = for_range %zero, %n, %one, (%zero, %one) : i32, i32 ^(%i: i32, %p: i32, %q: i32) {
    %odd = andi %i, %one : i32
    %c = cmpi %odd, %zero {predicate = ne} : i1
    %r = if_else %c : i32 ^() {
      %s = addi %p, %q : i32
      yields (%s)
    } ^() {
      %w = while_loop (%q) : i32 ^(%v: i32) {
        %big = cmpi %v, %n {predicate = gt} : i1
        condition %big, (%v)
      } ^(%u: i32) {
        %less = subi %u, %n : i32
        yields (%less)
      }
      yields (%w)
    }
    yields (%q, %r)
  }
  %m = reduce (%t) {axis = 0} : i32 ^(%k: i32, %l: i32) {
    %d = cmpi %k, %l {predicate = lt} : i1
    %e = if_else %d : i32 ^() {
      yields (%l)
    } ^() {
      yields (%k)
    }
    yields (%e)
  }
  store %x, %a
  store %y, %b
  store %z, %m
  ret
}"#;
    let kernel = text::parse(source).expect("it is well-formed");
    let (mut memory, bases, launch) = cells();
    let wanted = run(verify(&kernel).expect("it is well-formed"), &mut memory, &launch, &RunOptions::default());
    let (mut other, _, _) = cells();
    let mut machine = machine(&kernel, &mut other, &launch, Schedule::RoundRobin, 0);
    let mut pauses = 0;
    while machine.turn(1).ok().expect("no fault") == RunOutcome::Paused {
        pauses += 1;
    }
    assert_eq!(wanted.expect("no fault"), machine.report);
    assert!(pauses > 60, "{pauses}");
    for base in bases {
        assert_eq!(memory.bytes(base), other.bytes(base));
    }
    assert_eq!(memory.bytes(bases[2]), Some(&[7, 0, 0, 0][..]));
}

#[test]
fn groups_that_wait_in_a_loop_do_not_keep_others_from_running() {
    let kernel = text::parse(HANDSHAKE).expect("it is well-formed");
    let mut steps = std::collections::HashSet::new();
    for schedule in schedules() {
        let (mut memory, bases, launch) = cells();
        let mut machine = machine(&kernel, &mut memory, &launch, schedule, 3);
        start_both(&mut machine);
        assert!(run_both(&mut machine).is_ok(), "{schedule:?}");
        steps.insert(machine.report.steps);
        assert_eq!(memory.bytes(bases[2]), Some(&4950i32.to_le_bytes()[..]), "{schedule:?}");
    }
    assert!(steps.len() > 5, "the orders differ: {steps:?}");
}

#[test]
fn a_copy_arrives_when_nobody_can_go_on_without_it() {
    let kernel = text::parse(HANDSHAKE).expect("it is well-formed");
    for (schedule, spins) in schedules().flat_map(|schedule| [(schedule, false), (schedule, true)]) {
        let (mut memory, bases, launch) = cells();
        let mut machine = machine(&kernel, &mut memory, &launch, schedule, 3);
        let ring = machine.shared.alloc_barriers(1);
        let barrier = machine.shared.barrier(ring, 0).expect("there is one");
        machine.shared.init(barrier, 1).expect("a count");
        machine.shared.expect_tx(barrier, 16).expect("few bytes");
        machine.shared.arrive(barrier, 1).expect("one is missing");
        let buffer = machine.shared.alloc(4, 1);
        let slot = machine.shared.slot(buffer, 0).expect("there is one");
        let start = Start { op: "copy", span: None };
        for half in [0, 2] {
            let part = (slot, vec![half, half + 1]);
            machine.shared.start_write(part, vec![5, 6], Some((barrier, 8)), start).expect("nothing else is in flight");
        }
        start_both(&mut machine);
        // The group that sets the flag waits for the copies; the other one waits for that group or, which is no waiting
        // to the machine, for its flag.
        machine.turns.parked[0].wait = (!spins).then(|| Wait::Ended(vec![2]));
        machine.turns.parked[1].wait = Some(Wait::Phase { barrier, parity: 0 });
        assert!(run_both(&mut machine).is_ok(), "{schedule:?}");
        assert_eq!(machine.shared.in_flight().count(), 0);
        assert_eq!(machine.shared.load(slot, &[0, 1, 2, 3]).map(|loaded| loaded.bits), Ok(vec![5, 6, 5, 6]));
        assert_eq!(memory.bytes(bases[2]), Some(&4950i32.to_le_bytes()[..]));
    }
}

#[test]
fn groups_that_all_wait_are_a_fault_with_its_place() {
    let mut kernel = text::parse(HANDSHAKE).expect("it is well-formed");
    let branch = find(&kernel, |kind| matches!(kind, OpKind::WarpSpecialize { .. }));
    let span = rtc_source::Span::new(rtc_source::FileId(0), 7, 9);
    let loc = kernel.intern_loc(crate::LocData { span: Some(span), caller: None });
    let inner = find(&kernel, |kind| matches!(kind, OpKind::ForRange { .. }));
    for op in [branch, inner] {
        kernel.set_loc(op, loc);
    }
    for schedule in schedules() {
        let (mut memory, _, launch) = cells();
        let mut machine = machine(&kernel, &mut memory, &launch, schedule, 3);
        let ring = machine.shared.alloc_barriers(1);
        let barrier = machine.shared.barrier(ring, 0).expect("there is one");
        machine.shared.init(barrier, 1).expect("a count");
        start_both(&mut machine);
        for group in machine.turns.parked.iter_mut().filter(|group| group.id != 0) {
            group.wait = Some(Wait::Phase { barrier, parity: group.id - 1 });
            group.current = Some(inner);
        }
        // Group 2 waits for the parity of the phase before the first, and ends; group 1 waits in vain.
        let Err(stop) = run_both(&mut machine) else { panic!("{schedule:?}: it went through") };
        let fault = machine.fault(stop);
        assert_eq!(fault.span, Some(span));
        assert_eq!(
            fault.to_string(),
            "deadlock: no warps can go on; the body waits in `warp_specialize` for partitions 0, 1 to end; \
             partition 0 waits in `for_range` for a phase of parity 0 of barrier 0, which is in phase 0, \
             1 of 1 arrivals and 0 bytes missing (in `warp_specialize`, program (0, 0, 0))"
        );
        let FaultKind::Deadlock(waiting) = fault.kind else { panic!("{schedule:?}: another fault") };
        assert_eq!(waiting.iter().map(|w| (w.group, w.span)).collect::<Vec<_>>(), [(0, Some(span)), (1, Some(span))]);
    }
}

#[test]
fn an_evaluated_block_cannot_wait() {
    let kernel = text::parse(HANDSHAKE).expect("it is well-formed");
    let (mut memory, _, launch) = cells();
    let mut machine = machine(&kernel, &mut memory, &launch, Schedule::RoundRobin, 3);
    let branch = find(&kernel, |kind| matches!(kind, OpKind::WarpSpecialize { .. }));
    machine.wait_for(Wait::Ended(vec![1]));
    let Err(stop) = machine.evaluate(kernel.op(branch).blocks[1]) else { panic!("it went through") };
    assert!(matches!(stop.kind, FaultKind::Unsupported(_)));
}

#[test]
fn a_copy_that_misuses_its_barrier_is_a_fault() {
    let kernel = text::parse(HANDSHAKE).expect("it is well-formed");
    let (mut memory, _, launch) = cells();
    let mut machine = machine(&kernel, &mut memory, &launch, Schedule::RoundRobin, 2);
    let ring = machine.shared.alloc_barriers(1);
    let barrier = machine.shared.barrier(ring, 0).expect("there is one");
    let buffer = machine.shared.alloc(1, 1);
    let slot = machine.shared.slot(buffer, 0).expect("there is one");
    let start = Start { op: "copy", span: None };
    machine.shared.start_write((slot, vec![0]), vec![1], Some((barrier, 4)), start).expect("nothing else is in flight");
    machine.wait_for(Wait::Phase { barrier, parity: 0 });
    let Err(stop) = machine.run_groups() else { panic!("it went through") };
    assert_eq!(stop.kind, FaultKind::Shared(SharedError::Arrival(start, crate::interp::BarrierError::NotInitialized)));
    assert_eq!(
        machine.fault(stop).to_string(),
        "when the copy of `copy` is complete: the barrier is used before it is initialized \
         (in `constant`, program (0, 0, 0))"
    );
}

#[test]
fn accesses_to_shared_memory_name_operation_and_element() {
    let source = r#"
kernel @tile(%x: ptr<i32> {sig = "*i32"}) warps 4 phase tile {
  %t = arange {start = 0, end = 4} : tile<4xi32>
  %u = addi %t, %t : tile<4xi32>
  ret
}"#;
    let kernel = text::parse(source).expect("it is well-formed");
    let op = find(&kernel, |kind| matches!(kind, OpKind::AddI {}));
    let ty = kernel.value_type(kernel.result(op, 0));
    let (mut memory, _, launch) = cells();
    let mut machine = machine(&kernel, &mut memory, &launch, Schedule::RoundRobin, 2);
    let buffer = machine.shared.alloc(4, 1);
    let slot = machine.shared.slot(buffer, 0).expect("there is one");
    assert!(machine.store_shared(ty, slot, &[3, 2], &[7, 8]).is_ok());
    let loaded = machine.load_shared(op, ty, slot, &[3, 2, 1, 0]).ok().expect("nothing is in flight");
    assert_eq!(loaded[..2], [7, 8]);
    let findings: Vec<String> = machine.report.findings.iter().map(ToString::to_string).collect();
    assert_eq!(findings, ["shared memory is read but never written (in `addi`, program (0, 0, 0), element [2])"],);
    let start = Start { op: "copy", span: None };
    let copy = machine.shared.start_write((slot, vec![1]), vec![9], None, start).expect("nothing is in flight");
    let fault = |machine: &mut Machine<'_>, stop: Result<(), Stop>| {
        let Err(stop) = stop else { panic!("it went through") };
        machine.fault(stop).to_string()
    };
    let read = machine.load_shared(op, ty, slot, &[3, 1]).map(|_| ());
    assert_eq!(
        fault(&mut machine, read),
        "shared memory is read before the copy of `copy` to it is complete (in `addi`, program (0, 0, 0), element [1])"
    );
    let write = machine.store_shared(ty, slot, &[3, 2, 1], &[1, 2, 3]);
    assert_eq!(
        fault(&mut machine, write),
        "shared memory is written before the copy of `copy` to it is complete \
         (in `addi`, program (0, 0, 0), element [2])"
    );
    machine.shared.complete(copy).expect("no barrier is told");
    assert_eq!(machine.load_shared(op, ty, slot, &[1]).ok(), Some(vec![9]));
}
