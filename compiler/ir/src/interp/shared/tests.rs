//! The states of elements, one row of the table at the head of the file after the other.

use super::*;

const COPY: Start = Start { op: "copy", span: None };
const OTHER: Start = Start { op: "other", span: None };

fn memory(slots: usize) -> (SharedMemory, BufferId) {
    let mut memory = SharedMemory::default();
    let buffer = memory.alloc(4, slots);
    (memory, buffer)
}

fn loaded(bits: &[u64]) -> Result<Loaded, Refused> {
    Ok(Loaded { bits: bits.to_vec(), unwritten: None })
}

#[test]
fn what_is_stored_is_loaded() {
    let (mut memory, buffer) = memory(1);
    let slot = memory.slot(buffer, 0).expect("there is one");
    memory.store(slot, &[3, 0], &[30, 10]).expect("nothing is in flight");
    assert_eq!(memory.load(slot, &[0, 3, 0]), loaded(&[10, 30, 10]));
    let partly = memory.load(slot, &[0, 1, 2]).expect("nothing is in flight");
    assert_eq!((partly.bits, partly.unwritten), (vec![10, POISON, POISON], Some(1)));
}

#[test]
fn slots_and_buffers_are_apart() {
    let (mut memory, buffer) = memory(2);
    let other = memory.alloc(4, 1);
    let [first, second] = [0, 1].map(|i| memory.slot(buffer, i).expect("there are two"));
    let third = memory.slot(other, 0).expect("there is one");
    for (slot, bits) in [(first, 1), (second, 2), (third, 3)] {
        memory.store(slot, &[0, 3], &[bits, bits]).expect("nothing is in flight");
    }
    for (slot, bits) in [(first, 1), (second, 2), (third, 3)] {
        assert_eq!(memory.load(slot, &[0, 3]), loaded(&[bits, bits]));
    }
    for index in [-1, 2, i64::MAX] {
        assert_eq!(memory.slot(buffer, index), Err(SharedError::Slot { index, slots: 2 }));
    }
}

#[test]
fn a_copy_shows_when_it_is_complete() {
    let (mut memory, buffer) = memory(1);
    let slot = memory.slot(buffer, 0).expect("there is one");
    memory.store(slot, &[0, 1, 2, 3], &[0; 4]).expect("nothing is in flight");
    let copy = memory.start_write((slot, vec![1, 2]), vec![5, 6], None, COPY).expect("nothing is in flight");
    assert_eq!(memory.load(slot, &[0, 3]), loaded(&[0, 0]), "beside it nothing is in flight");
    let early = Refused { error: SharedError::ReadInFlight(COPY), position: 1 };
    assert_eq!(memory.load(slot, &[0, 2]), Err(early));
    let clash = |position| Refused { error: SharedError::WriteInFlight(COPY), position };
    assert_eq!(memory.store(slot, &[1], &[9]), Err(clash(0)));
    assert_eq!(memory.start_write((slot, vec![3, 2]), vec![9, 9], None, OTHER), Err(clash(1)));
    assert_eq!(memory.start_read_async((slot, vec![0, 1]), OTHER), Err(early));
    memory.complete(copy).expect("no barrier is told");
    assert_eq!(memory.load(slot, &[0, 1, 2, 3]), loaded(&[0, 5, 6, 0]));
    memory.store(slot, &[1], &[9]).expect("nothing is in flight");
    memory.complete(copy).expect("it is complete already");
    assert_eq!(memory.load(slot, &[1]), loaded(&[9]));
}

#[test]
fn what_is_being_read_may_be_read_but_not_written() {
    let (mut memory, buffer) = memory(1);
    let slot = memory.slot(buffer, 0).expect("there is one");
    memory.store(slot, &[0, 1], &[4, 5]).expect("nothing is in flight");
    let unfenced = Err(Refused { error: SharedError::Unfenced, position: 0 });
    assert_eq!(memory.start_read_async((slot, vec![0, 1]), COPY).map(|_| ()), unfenced);
    memory.fence();
    let (copy, taken) = memory.start_read_async((slot, vec![0, 1]), COPY).expect("nothing is in flight");
    assert_eq!(taken.bits, [4, 5]);
    assert_eq!(memory.load(slot, &[0]), loaded(&[4]));
    let clash = Refused { error: SharedError::WriteUnderRead(COPY), position: 0 };
    assert_eq!(memory.store(slot, &[1], &[9]), Err(clash));
    assert_eq!(memory.start_write((slot, vec![0]), vec![9], None, OTHER), Err(clash));
    memory.complete(copy).expect("no barrier is told");
    memory.store(slot, &[1], &[9]).expect("nothing is in flight");
}

#[test]
fn two_reads_must_both_be_complete() {
    let (mut memory, buffer) = memory(1);
    let slot = memory.slot(buffer, 0).expect("there is one");
    memory.store(slot, &[0], &[4]).expect("nothing is in flight");
    for late in [0, 1] {
        memory.fence();
        let copies = [COPY, OTHER].map(|start| memory.start_read_async((slot, vec![0]), start).expect("read only").0);
        memory.complete(copies[1 - late]).expect("no barrier is told");
        let left = [COPY, OTHER][late];
        let clash = Refused { error: SharedError::WriteUnderRead(left), position: 0 };
        assert_eq!(memory.store(slot, &[0], &[9]), Err(clash));
        memory.complete(copies[late]).expect("no barrier is told");
        memory.store(slot, &[0], &[9]).expect("nothing is in flight");
    }
}

#[test]
fn a_copy_tells_its_barrier() {
    let (mut memory, buffer) = memory(1);
    let slot = memory.slot(buffer, 0).expect("there is one");
    let ring = memory.alloc_barriers(2);
    let [first, second] = [0, 1].map(|i| memory.barrier(ring, i).expect("there are two"));
    assert_eq!(memory.barrier(ring, 2), Err(SharedError::Slot { index: 2, slots: 2 }));
    let not_ready = SharedError::Barrier(BarrierError::NotInitialized);
    assert_eq!(memory.try_wait(first, 0), Err(not_ready));
    assert_eq!(memory.arrive(first, 1), Err(not_ready));
    for barrier in [first, second] {
        memory.init(barrier, 1).expect("a count");
    }
    memory.expect_tx(second, 8).expect("few bytes");
    memory.arrive(second, 1).expect("one is missing");
    let copy = memory.start_write((slot, vec![0, 1]), vec![1, 2], Some((second, 8)), COPY);
    assert_eq!(memory.try_wait(second, 0), Ok(false));
    memory.complete(copy.expect("nothing is in flight")).expect("the bytes were announced");
    assert_eq!(memory.try_wait(second, 0), Ok(true));
    assert_eq!(memory.try_wait(first, 0), Ok(false), "the other barrier of the ring hears nothing");
}

#[test]
fn refusals_say_what_began() {
    let texts = [
        SharedError::ReadInFlight(COPY),
        SharedError::WriteInFlight(COPY),
        SharedError::WriteUnderRead(COPY),
        SharedError::Slot { index: 3, slots: 2 },
    ]
    .map(|error| error.to_string());
    assert_eq!(
        texts,
        [
            "shared memory is read before the copy of `copy` to it is complete",
            "shared memory is written before the copy of `copy` to it is complete",
            "shared memory is written while `copy` still reads it",
            "slot 3 of a buffer with 2 slots",
        ]
    );
}
