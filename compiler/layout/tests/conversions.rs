//! Conversions lose nothing: plans are executed on index numbers, over random layouts and over those that kernels use.

mod support;

use rtc_layout::*;
use support::*;

const BOTH: MatrixInstructions = MatrixInstructions { load: true, store: true };
const NONE: MatrixInstructions = MatrixInstructions { load: false, store: false };

#[test]
fn random_conversions_deliver_every_element() {
    let shapes: [&[u32]; 6] = [&[], &[64], &[8, 32], &[32, 16], &[4, 8, 8], &[2, 4, 2, 8, 4]];
    let mut shuffles = 0;
    for seed in 0..500 {
        let mut random = Random(seed);
        let shape = shapes[random.below(6) as usize];
        let num_warps = 1 << random.below(3);
        let mixed = random.below(2) == 0;
        let src = random.layout(shape, num_warps, mixed);
        let mut dst = random.layout(shape, num_warps, mixed);
        if random.below(2) == 0 {
            // The same warps, so that shuffles have a chance.
            let warp = src.bases().warp;
            let candidate = Layout::from_bases(shape, &Bases { warp, ..dst.bases() });
            dst = if candidate.covers_tile() { candidate } else { dst };
        }
        let context = format!("seed {seed}\nsrc {src}\ndst {dst}");
        let want = fill(&dst);
        match conversion(&src, &dst) {
            Conversion::Identity => assert_eq!(src, dst),
            Conversion::Registers(map) => {
                let moved: Registers = fill(&src)
                    .iter()
                    .map(|lanes| lanes.iter().map(|t| map.iter().map(|&r| t[r as usize]).collect()).collect())
                    .collect();
                assert_eq!(moved, want, "{context}");
            }
            Conversion::Shuffles(_) | Conversion::Shared => {}
        }
        if let Some(plan) = shuffle_plan(&src, &dst) {
            shuffles += 1;
            assert_eq!(run_shuffles(&plan, &fill(&src)), want, "{context}\n{plan:?}");
        }
        for bits in [8, 16, 32, 64] {
            for matrix in [NONE, BOTH] {
                let plan = shared_plan(&src, &dst, bits, matrix);
                assert_eq!(run_shared(&plan, &src, &dst), want, "{context}\n{plan:?}");
            }
        }
        assert_eq!(src.to_string().parse(), Ok(src.clone()), "{context}");
        assert_eq!(src.describe().parse(), Ok(src), "{context}");
    }
    assert!(shuffles > 50, "only {shuffles} of the random pairs were within warps");
}

/// Plans between layouts of kernels: right, without conflicts, with the expected widths.
fn check(src: &Layout, dst: &Layout, bits: u32, matrix: MatrixInstructions) -> SharedPlan {
    let plan = shared_plan(src, dst, bits, matrix);
    let context = format!("bits {bits}\nsrc {}\ndst {}\n{plan:?}", src.describe(), dst.describe());
    assert_eq!(run_shared(&plan, src, dst), fill(dst), "{context}");
    for (side, store) in [(&plan.store, true), (&plan.load, false)] {
        assert_eq!(side.wavefronts(store), side.minimum_wavefronts(store), "{context}");
    }
    assert!(plan.is_conflict_free());
    plan
}

#[test]
fn operands_of_mma_come_by_ldmatrix() {
    for (m, k) in [(64, 32), (128, 64), (128, 32)] {
        let warps = [2, 2];
        let a = Layout::mma_operand(&[m, k], 0, 16, &warps);
        let b = Layout::mma_operand(&[k, m], 1, 16, &warps);
        let row_major = |shape: [u32; 2]| Layout::default_blocked(&shape, 4, &[1, 0], 8);
        let column_major = |shape: [u32; 2]| Layout::default_blocked(&shape, 4, &[0, 1], 8);
        // A with k contiguous and B with k contiguous are read straight, the others transposed.
        for (src, dst, transposed) in [
            (row_major([m, k]), &a, false),
            (column_major([m, k]), &a, true),
            (column_major([k, m]), &b, false),
            (row_major([k, m]), &b, true),
        ] {
            let plan = check(&src, dst, 16, BOTH);
            assert_eq!(plan.load.kind, AccessKind::Matrix { transposed }, "{}", src.describe());
            assert_eq!((plan.store.kind, plan.store.width), (AccessKind::Vector, 8));
            assert_eq!(plan.load.matrices, 4);
            check(&src, dst, 16, NONE);
        }
    }
    // Bytes and tf32: straight only.
    let a8 = Layout::mma_operand(&[64, 64], 0, 8, &[2, 2]);
    let plan = check(&Layout::default_blocked(&[64, 64], 4, &[1, 0], 16), &a8, 8, BOTH);
    assert_eq!((plan.load.kind, plan.store.width), (AccessKind::Matrix { transposed: false }, 16));
    let a32 = Layout::mma_operand(&[64, 32], 0, 32, &[2, 2]);
    let plan = check(&Layout::default_blocked(&[64, 32], 4, &[1, 0], 4), &a32, 32, BOTH);
    assert_eq!((plan.load.kind, plan.store.width), (AccessKind::Matrix { transposed: false }, 4));
}

#[test]
fn accumulators_leave_for_coalesced_stores() {
    for shape in [[64, 64], [128, 128], [128, 64]] {
        let accumulators = [Layout::mma_v2(&shape, &[2, 2]), Layout::wgmma(&shape, 64, [4, 1])];
        for accumulator in accumulators {
            for (bits, vector) in [(16, 8), (32, 4), (8, 16)] {
                let row_major = Layout::default_blocked(&shape, 4, &[1, 0], vector);
                for matrix in [NONE, BOTH] {
                    let plan = check(&accumulator, &row_major, bits, matrix);
                    // Every wavefront moves 128 bytes.
                    for (side, store, layout) in [(&plan.store, true, &accumulator), (&plan.load, false, &row_major)] {
                        let wavefronts = side.wavefronts(store) * side.steps.len() as u32;
                        assert_eq!(wavefronts, layout.registers() * bits / 32, "{bits} bits {matrix:?}\n{plan:?}");
                    }
                }
                check(&row_major, &accumulator, bits, BOTH);
            }
            let row_major = Layout::default_blocked(&shape, 4, &[1, 0], 8);
            let plan = check(&accumulator, &row_major, 16, BOTH);
            for side in [&plan.store, &plan.load] {
                assert_eq!(side.steps.len() as u32, accumulator.registers() / 8, "128 bits per instruction");
            }
            // Into the layout that TMA stores from, stmatrix writes without conflicts.
            let shared = SharedLayout::nvmma(&shape, 16, 128, &[1, 0]);
            let store = SharedAccess::best(&shared, &accumulator, 16, true, true);
            assert_eq!((store.kind, store.matrices), (AccessKind::Matrix { transposed: false }, 4));
            assert_eq!(store.wavefronts(true), 4);
        }
    }
}

#[test]
fn transposes_have_no_conflicts() {
    for shape in [[64, 64], [32, 128], [128, 32]] {
        for bits in [8, 16, 32, 64] {
            for vector in [1, 2, 4, 8, 16] {
                if vector * bits > 128 {
                    continue;
                }
                let src = Layout::default_blocked(&shape, 4, &[1, 0], vector);
                let dst = Layout::default_blocked(&shape, 4, &[0, 1], vector);
                check(&src, &dst, bits, NONE);
                check(&src, &dst, bits, BOTH);
            }
        }
    }
}

#[test]
fn results_of_reductions_spread_without_conflicts() {
    let layout = Layout::default_blocked(&[64, 64], 4, &[1, 0], 4);
    for bits in [16, 32] {
        check(&layout.remove_dim(1), &layout.remove_dim(0), bits, BOTH);
        check(&layout.remove_dim(0), &Layout::default_blocked(&[64], 4, &[0], 1), bits, BOTH);
        check(&Layout::default_blocked(&[64], 4, &[0], 1), &layout.remove_dim(0), bits, BOTH);
    }
}

#[test]
fn warp_local_conversions_use_shuffles() {
    let src = Layout::blocked(&[32, 4], &[1, 4], &[32, 1], &[1, 1], &[1, 0]);
    let dst = Layout::blocked(&[32, 4], &[4, 1], &[8, 4], &[1, 1], &[1, 0]);
    let plan = shuffle_plan(&src, &dst).expect("one warp holds all");
    assert_eq!(plan.rounds.len(), 4);
    assert_eq!(run_shuffles(&plan, &fill(&src)), fill(&dst));
    assert!(matches!(conversion(&src, &dst), Conversion::Shuffles(_)));
    // A tile of which lanes hold copies needs no shuffle to be spread over registers of the same lane.
    let spread = Layout::default_blocked(&[32, 32], 4, &[1, 0], 4).remove_dim(1);
    assert_eq!(conversion(&spread, &spread), Conversion::Identity);
}

#[test]
fn reads_of_a_swizzle_that_cp_async_can_write() {
    for k in [32, 64, 128] {
        let a = Layout::mma_operand(&[128, k], 0, 16, &[2, 2]);
        let b = Layout::mma_operand(&[k, 128], 1, 16, &[2, 2]);
        for (layout, order, transposed) in
            [(&a, [1, 0], false), (&a, [0, 1], true), (&b, [0, 1], false), (&b, [1, 0], true)]
        {
            let shared = swizzle_for(layout, 16, &order, 8, true);
            let access = SharedAccess::best(&shared, layout, 16, true, false);
            assert_eq!(access.kind, AccessKind::Matrix { transposed });
            assert_eq!(access.wavefronts(false), 4);
            assert_eq!(access.matrices, 4);
            let writer = Layout::default_blocked(layout.shape(), 4, &order, 8);
            let write = SharedAccess::vector(&shared, &writer, 16);
            assert_eq!((write.width, write.wavefronts(true)), (8, 4), "{shared}");
        }
    }
    // The layout that TMA writes suits ldmatrix as well.
    let a = Layout::mma_operand(&[64, 64], 0, 16, &[4, 1]);
    let shared = SharedLayout::nvmma(&[64, 64], 16, 128, &[1, 0]);
    let access = SharedAccess::best(&shared, &a, 16, true, false);
    assert_eq!((access.kind, access.wavefronts(false)), (AccessKind::Matrix { transposed: false }, 4));
}
