//! Asynchronous copies, barriers and products as PTX.

use super::*;

/// Compiles for `sm_90a`; the text must also be such that our own reader takes it.
fn hopper(maps: usize, build: impl for<'c> FnOnce(&Emitter<'c>, &[Value<'c>])) -> String {
    let ptx = compile_with("sm_90a", 128, maps, build);
    rtc_ptx::parse(&ptx).unwrap_or_else(|e| panic!("our own reader refuses it: {e:?}\n{ptx}"));
    ptx
}

fn expect(ptx: &str, needles: &[&str]) {
    for needle in needles {
        assert!(ptx.contains(needle), "{needle} is missing from\n{ptx}");
    }
}

#[test]
fn copies_by_threads() {
    for target in ["sm_80", "sm_90a"] {
        let ptx = compile(target, |e, from| {
            let shared = e.address_of("shared", Space::Shared);
            let lane = e.special_register("laneid");
            let to = e.byte_offset(shared, e.muli(lane, e.i32(16)));
            let size = e.select(e.cmpi(Cmpi::Slt, lane, e.i32(7)), e.i32(16), e.i32(0));
            e.copy_async(None, to, from, 16, Some(size));
            e.copy_async(None, to, from, 8, None);
            e.copy_async(None, to, from, 4, Some(e.i32(4)));
            e.copy_commit();
            e.copy_wait(1);
            e.copy_wait(0);
        });
        rtc_ptx::parse(&ptx).expect("our own reader takes it");
        let needles = ["cp.async.cg.shared.global [", "cp.async.ca.shared.global [", "cp.async.commit_group;"];
        expect(&ptx, &needles);
        expect(&ptx, &["cp.async.wait_group 1;", "cp.async.wait_group 0;"]);
    }
}

#[test]
fn a_ring_of_bulk_copies() {
    let ptx = hopper(2, |e, arguments| {
        let shared = e.address_of("shared", Space::Shared);
        let bar = e.constant_offset(shared, 16384);
        let leader = e.cmpi(Cmpi::Eq, e.thread, e.i32(0));
        e.if_then(leader, || {
            e.fence_barrier_init();
            e.barrier_expect(leader, bar, e.i32(16384));
        });
        e.barrier();
        let range = Loop { lower: e.i32(0), upper: e.special_register("nctaid.x"), step: e.i32(1), unsigned: false };
        let looped: Result<_, ()> = e.for_loop(range, &[], |i, _| {
            e.bulk_load(leader, shared, arguments[1], &[i, e.i32(64)], bar);
            e.barrier_wait(bar, e.andi(i, e.i32(1)));
            e.warp_barrier();
            e.barrier_arrive(e.elected(), bar);
            e.fence_async();
            e.bulk_store(arguments[2], &[i, i, i], shared, None);
            e.bulk_store(arguments[2], &[i, i, i], shared, Some(BulkReduction::Add));
            e.bulk_commit();
            e.bulk_wait(1, true);
            Ok(vec![])
        });
        looped.expect("nothing fails");
        e.bulk_wait(0, false);
    });
    expect(
        &ptx,
        &[
            ".param .align 64 .b8",
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
            "mbarrier.try_wait.parity.shared::cta.b64",
            "mbarrier.arrive.expect_tx.shared::cta.b64 _,",
            "fence.proxy.async.shared::cta;",
            "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group",
            "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group",
            "cp.async.bulk.wait_group.read 1;",
        ],
    );
    assert_eq!(ptx.matches("try_wait").count(), 1, "the loop is not unrolled:\n{ptx}");
    assert!(!ptx.contains(".local"), "the tensor map is not copied:\n{ptx}");
}

#[test]
fn groups_of_warps() {
    let ptx = hopper(0, |e, arguments| {
        e.set_registers(40, false);
        e.set_registers(232, true);
        e.named_barrier(e.i32(3), e.i32(128));
        e.named_barrier_arrive(e.i32(4), e.i32(256));
        e.if_then(e.elected(), || {
            e.store(e.thread, arguments[0], AccessAttrs { align: 4, ..AccessAttrs::default() });
        });
    });
    expect(&ptx, &["setmaxnreg.dec.sync.aligned.u32 40;", "setmaxnreg.inc.sync.aligned.u32 232;"]);
    for reduction in [BulkReduction::Min, BulkReduction::Max, BulkReduction::And, BulkReduction::Or, BulkReduction::Xor]
    {
        let ptx = hopper(1, |e, arguments| {
            let shared = e.address_of("shared", Space::Shared);
            let at = [e.i32(0), e.i32(8)];
            e.bulk_store(arguments[1], &at, shared, Some(reduction));
        });
        expect(&ptx, &["cp.reduce.async.bulk.tensor.2d"]);
    }
    expect(&ptx, &["bar.sync", "bar.arrive", "elect.sync"]);
}

/// A loop of products, all operands by descriptors that advance; then the sums are stored.
fn dot_loop(shape: WgmmaShape, registers: bool, pending: Option<u32>) -> String {
    hopper(0, |e, arguments| {
        let descriptor = e.extui(e.thread, e.ty.i64);
        let integer = shape.types[0] != "f32";
        let zero = if integer { e.i32(0) } else { e.float(e.ty.f32, 0.0) };
        let accs = vec![zero; 2 * shape.registers()];
        let range = Loop { lower: e.i32(0), upper: e.special_register("nctaid.x"), step: e.i32(1), unsigned: false };
        let looped: Result<_, ()> = e.for_loop(range, &accs, |i, accs| {
            let start = e.addi(descriptor, e.extui(i, e.ty.i64));
            let at = |behind: u32| WgmmaDescriptor { start, behind };
            let a = |by: u32| match registers {
                true => WgmmaOperand::Registers([0, 1, 2, 3].map(|j| e.addi(i, e.i32(j + by as i32)))),
                false => WgmmaOperand::Shared(at(by)),
            };
            let mma = |accumulator: usize, by: u32| WgmmaProduct { accumulator, a: a(by), b: at(by + 64) };
            let mmas = [mma(0, 0), mma(1, 128), mma(0, 2), mma(1, 130)];
            let keep = e.cmpi(Cmpi::Ne, i, e.i32(0));
            let accs = e.wgmma(&shape, &mmas, accs, FirstDot::AddsIf(keep), pending);
            Ok(if pending == Some(0) { accs } else { e.wgmma_wait(0, &accs) })
        });
        let base = e.offset(arguments[0], e.thread, e.ty.i64);
        for (i, acc) in looped.expect("nothing fails").into_iter().enumerate() {
            let place = e.constant_offset(base, 1024 * i as i32);
            e.store(acc, place, AccessAttrs { align: 4, ..AccessAttrs::default() });
        }
    })
}

#[test]
fn products_of_every_type() {
    let forms: [(u32, u32, [&'static str; 3], [bool; 2]); 8] = [
        (64, 16, ["f32", "f16", "f16"], [false, true]),
        (128, 16, ["f32", "bf16", "bf16"], [true, false]),
        (32, 16, ["f16", "f16", "f16"], [false, false]),
        (16, 8, ["f32", "tf32", "tf32"], [false, false]),
        (8, 32, ["f32", "e4m3", "e5m2"], [false, false]),
        (64, 32, ["f16", "e5m2", "e5m2"], [false, false]),
        (128, 32, ["s32", "s8", "s8"], [false, false]),
        (32, 32, ["f32", "e4m3", "e4m3"], [false, false]),
    ];
    for (n, k, types, transposed) in forms {
        for registers in [false, true] {
            let transposed = [transposed[0] && !registers, transposed[1]];
            let shape = WgmmaShape { n, k, types, transposed };
            let ptx = dot_loop(shape, registers, Some(0));
            let [d, a, b] = types;
            let name = format!("wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{a}.{b} ");
            assert_eq!(ptx.matches(&name).count(), 4, "once for each product, so the loop is not unrolled:\n{ptx}");
            expect(
                &ptx,
                &["wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;", "wait_group.sync.aligned 0;"],
            );
        }
    }
}

#[test]
fn products_are_waited_for_later() {
    let shape = WgmmaShape { n: 128, k: 16, types: ["f32", "f16", "f16"], transposed: [false, true] };
    let ptx = dot_loop(shape, false, None);
    assert_eq!(ptx.matches("wgmma.wait_group.sync.aligned").count(), 1, "{ptx}");
    assert!(!ptx.contains(".local"), "nothing is spilled:\n{ptx}");
}

/// An accumulator that is overwritten needs no zeros in its registers.
#[test]
fn products_that_overwrite_their_accumulators() {
    let shape = WgmmaShape { n: 64, k: 16, types: ["f32", "f16", "f16"], transposed: [false, true] };
    let ptx = hopper(0, |e, arguments| {
        let descriptor = WgmmaDescriptor { start: e.extui(e.thread, e.ty.i64), behind: 0 };
        let accs = vec![e.float(e.ty.f32, 0.0); shape.registers()];
        let mmas =
            [0; 2].map(|accumulator| WgmmaProduct { accumulator, a: WgmmaOperand::Shared(descriptor), b: descriptor });
        let accs = e.wgmma(&shape, &mmas, &accs, FirstDot::Overwrites, Some(0));
        for (i, acc) in accs.into_iter().enumerate() {
            let place = e.constant_offset(arguments[0], i as i32);
            e.store(acc, place, AccessAttrs { align: 4, ..AccessAttrs::default() });
        }
    });
    assert_eq!(ptx.matches(", overwrite, 1, 1").count(), 1, "the first product only:\n{ptx}");
    assert_eq!(ptx.matches(", add, 1, 1").count(), 1, "{ptx}");
    assert!(!ptx.contains("0f00000000"), "no register is cleared:\n{ptx}");
}
