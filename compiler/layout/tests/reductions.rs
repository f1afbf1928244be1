//! Reduction plans combine each element exactly once, in every thread that holds the result.

mod support;

use rtc_layout::*;
use support::*;

/// The sorted list of the elements that each place has combined.
type Sets = Vec<Vec<Vec<Vec<u32>>>>;

fn combine(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut all = [a, b].concat();
    all.sort_unstable();
    all
}

fn between_lanes(sets: &mut Sets, steps: &[ReduceLaneStep]) {
    for step in steps {
        for warp in sets.iter_mut() {
            let old = warp.clone();
            for (lane, thread) in warp.iter_mut().enumerate() {
                for (r, set) in thread.iter_mut().enumerate() {
                    let partner = &old[lane ^ step.mask as usize][r ^ step.register_xor as usize];
                    *set = combine(&old[lane][r], partner);
                }
            }
        }
    }
}

fn run(layout: &Layout, plan: &ReducePlan) -> Sets {
    let fold = |thread: &Vec<u32>| -> Vec<Vec<u32>> {
        plan.groups
            .iter()
            .map(|group| group.iter().fold(Vec::new(), |all, &r| combine(&all, &[thread[r as usize]])))
            .collect()
    };
    let mut sets: Sets = fill(layout).iter().map(|lanes| lanes.iter().map(fold).collect()).collect();
    between_lanes(&mut sets, &plan.lane_steps);
    let Some(step) = &plan.warp_step else { return sets };
    // Exchange through a table indexed by the element of the partial tile.
    let mut table = vec![None; step.partial.elements() as usize];
    for (warp, lanes) in sets.iter().enumerate() {
        for (lane, thread) in lanes.iter().enumerate() {
            for (r, set) in thread.iter().enumerate() {
                let cell = &mut table[step.partial.index(r as u32, lane as u32, warp as u32) as usize];
                assert!(cell.as_ref().is_none_or(|old| old == set), "two partial results in one place");
                *cell = Some(set.clone());
            }
        }
    }
    let gather = |r: u32, lane, warp| {
        (0..step.in_thread).fold(Vec::new(), |all, i| {
            let index = step.gathered.index(r * step.in_thread + i, lane, warp);
            combine(&all, table[index as usize].as_ref().expect("a partial result that no one wrote"))
        })
    };
    let registers = plan.result.registers();
    let thread = |lane, warp| (0..registers).map(|r| gather(r, lane, warp)).collect::<Vec<Vec<u32>>>();
    let mut sets: Sets = (0..layout.warps()).map(|warp| (0..32).map(|lane| thread(lane, warp)).collect()).collect();
    between_lanes(&mut sets, &step.lane_steps);
    sets
}

fn check(layout: &Layout, axis: usize) {
    let plan = reduce_plan(layout, axis);
    assert_eq!(plan.result, layout.remove_dim(axis));
    let stride: u32 = layout.shape()[axis + 1..].iter().product();
    for (warp, lanes) in run(layout, &plan).iter().enumerate() {
        for (lane, thread) in lanes.iter().enumerate() {
            for (r, set) in thread.iter().enumerate() {
                let index = plan.result.index(r as u32, lane as u32, warp as u32);
                let first = index / stride * stride * layout.shape()[axis] + index % stride;
                let want: Vec<u32> = (0..layout.shape()[axis]).map(|i| first + i * stride).collect();
                assert_eq!(set, &want, "axis {axis} of {layout}\n{plan:?}");
            }
        }
    }
    for group in &plan.groups {
        assert!(group.windows(2).all(|p| layout.coords(p[0], 0, 0)[axis] < layout.coords(p[1], 0, 0)[axis]));
    }
}

#[test]
fn random_layouts() {
    let shapes: [&[u32]; 4] = [&[64], &[8, 32], &[4, 8, 8], &[2, 4, 2, 8, 4]];
    for seed in 0..400 {
        let mut random = Random(seed);
        let shape = shapes[random.below(4) as usize];
        let mixed = random.below(2) == 0;
        let num_warps = 1 << random.below(6);
        let layout = random.layout(shape, num_warps, mixed);
        for axis in 0..shape.len() {
            println!("seed {seed}");
            check(&layout, axis);
        }
    }
}

#[test]
fn layouts_of_kernels() {
    let blocked = Layout::blocked(&[4, 128], &[1, 2], &[1, 32], &[2, 2], &[1, 0]);
    let plan = reduce_plan(&blocked, 1);
    assert_eq!(plan.lane_steps.iter().map(|s| s.mask).collect::<Vec<u32>>(), [16, 8, 4, 2, 1]);
    assert_eq!(plan.warp_step.as_ref().map(|s| s.count), Some(2));
    check(&blocked, 0);
    check(&blocked, 1);
    // Few partial results are loaded by each thread, many by one lane each.
    let cases = [(4, 4, &[][..]), (8, 1, &[4, 2, 1]), (16, 1, &[8, 4, 2, 1]), (32, 1, &[16, 8, 4, 2, 1])];
    for (num_warps, in_thread, masks) in cases {
        let row = Layout::blocked(&[4096], &[4], &[32], &[num_warps], &[0]);
        let step = reduce_plan(&row, 0).warp_step.expect("the row crosses warps");
        assert_eq!((step.count, step.in_thread), (num_warps, in_thread));
        assert_eq!(step.lane_steps.iter().map(|s| s.mask).collect::<Vec<u32>>(), masks);
        check(&row, 0);
    }
    // No lane holds a copy of another's result.
    let columns = Layout::blocked(&[64, 32], &[1, 1], &[1, 32], &[16, 1], &[1, 0]);
    let step = reduce_plan(&columns, 0).warp_step.expect("columns cross warps");
    assert_eq!((step.count, step.in_thread, step.lane_steps.len()), (16, 16, 0));
    check(&columns, 0);
    let accumulator = Layout::mma_v2(&[64, 64], &[4, 1]);
    let plan = reduce_plan(&accumulator, 1);
    assert_eq!(plan.lane_steps.iter().map(|s| s.mask).collect::<Vec<u32>>(), [2, 1]);
    assert_eq!(plan.warp_step, None);
    check(&accumulator, 0);
    check(&accumulator, 1);
}
