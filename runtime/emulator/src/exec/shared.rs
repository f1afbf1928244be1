//! The state that the threads of a cluster share: the shared memory of its blocks, barriers, copies in flight.

use std::collections::BTreeMap;

use super::bulk::Job;
use super::hazard::Hazards;
use super::hazard::clock::Knowledge;
use super::hazard::collected::Policy;
use super::mbarrier::Mbarrier;
use super::sanitize::Maps;
use super::{Launch, random::Random};
use crate::sanitize::Check;

/// The bits of a shared address within the block; the bits above are the block's rank plus 1, or 0 for the own one.
pub const BLOCK_SHIFT: u32 = 24;

/// The state that the threads of a cluster share.
pub struct Shared {
    /// Number of the cluster in the grid.
    pub id: u32,
    /// Its blocks by rank.
    pub blocks: Vec<BlockShared>,
    /// Rank of the block whose warp runs.
    pub rank: usize,
    /// The barrier of the cluster.
    pub cluster: ClusterBarrier,
    /// Copies that complete at an mbarrier, oldest first.
    pub jobs: Vec<Job>,
    /// Tensor maps in global memory: copies by them, and who made them.
    pub maps: Maps,
    /// Phases that mbarriers completed.
    pub completions: u64,
    /// A count of barrier events: while it is unchanged, polling warps see nothing new.
    pub events: u64,
    /// Order of accesses, where the program has asynchronous instructions.
    pub hazards: Option<Box<Hazards>>,
    /// Source of the schedule's choices, unless warps run in order.
    pub random: Option<Random>,
}

/// The number of the cluster of a block.
pub fn cluster_number(launch: &Launch<'_>, block: [u32; 3]) -> u32 {
    let [x, y, z]: [u32; 3] = std::array::from_fn(|i| block[i] / launch.cluster[i]);
    let [width, height]: [u32; 2] = std::array::from_fn(|i| launch.grid[i] / launch.cluster[i]);
    x.wrapping_add(width.wrapping_mul(y.wrapping_add(height.wrapping_mul(z))))
}

/// The reaction to races and to reads of uninitialized memory: asynchronous programs are always checked.
fn policies(launch: &Launch<'_>) -> (Policy, Policy) {
    let race = match launch.code.asynchronous {
        _ if launch.checks.has(Check::Race) => Policy::Collect,
        true => Policy::Fail,
        false => Policy::Ignore,
    };
    (race, if launch.checks.has(Check::Init) { Policy::Collect } else { Policy::Ignore })
}

/// The state that the threads of a block share.
pub struct BlockShared {
    /// Index of the block.
    pub index: [u32; 3],
    /// Shared memory, static and dynamic.
    pub bytes: Vec<u8>,
    /// The 16 barriers.
    pub barriers: [BarrierState; 16],
    /// Threads that have not ended.
    pub live: u32,
    /// For each warp the number of its last `wgmma` at each commit.
    pub products: Vec<Vec<u32>>,
    /// The mbarriers, by address.
    pub mbarriers: BTreeMap<u32, Mbarrier>,
}

/// A barrier that threads arrive at.
#[derive(Clone, Default)]
pub struct BarrierState {
    /// Threads that arrived since the last release.
    pub arrived: u32,
    /// The number of threads, if given by an arrival.
    pub expected: Option<u32>,
    /// Predicates that were true.
    pub held: u32,
    /// Predicates that were false.
    pub failed: u32,
    /// The joined clocks of the arrivals.
    pub knowledge: Knowledge,
    /// The operation and the warp that arrived last, for messages.
    pub last: (u32, u32),
}

/// `barrier.cluster`
#[derive(Default)]
pub struct ClusterBarrier {
    /// Threads that arrived since the last release.
    pub arrived: u32,
    /// Releases so far.
    pub phase: u32,
    /// The joined clocks of the arrivals.
    pub gathering: Knowledge,
    /// Those of the last phase.
    pub done: Knowledge,
}

impl Shared {
    /// The shared state of a cluster at its start.
    pub fn new(launch: &Launch<'_>, indices: &[[u32; 3]], random: Option<Random>) -> Shared {
        let threads: u32 = launch.block.iter().product();
        let bytes = (launch.code.static_shared + launch.dynamic_shared) as usize;
        let each = threads.div_ceil(32) as usize;
        let block = |index: &[u32; 3]| BlockShared {
            index: *index,
            bytes: vec![0; bytes],
            barriers: Default::default(),
            live: threads,
            products: vec![Vec::new(); each],
            mbarriers: BTreeMap::new(),
        };
        let warps = each * indices.len();
        let (race, init) = policies(launch);
        let checked = race != Policy::Ignore || init != Policy::Ignore;
        let hazards =
            checked.then(|| Box::new(Hazards::new((warps, indices.len()), bytes, launch.code.granule, (race, init))));
        Shared {
            id: indices.first().map_or(0, |index| cluster_number(launch, *index)),
            blocks: indices.iter().map(block).collect(),
            rank: 0,
            cluster: ClusterBarrier::default(),
            jobs: Vec::new(),
            maps: Maps::default(),
            completions: 0,
            events: 0,
            hazards,
            random,
        }
    }

    /// The block of the warp that runs.
    pub fn own(&self) -> &BlockShared {
        &self.blocks[self.rank]
    }

    /// The block of the warp that runs.
    pub fn own_mut(&mut self) -> &mut BlockShared {
        &mut self.blocks[self.rank]
    }

    /// The block and the byte that a shared address means; a rank beyond the cluster gives an address beyond the block.
    pub fn locate(&self, address: u64) -> (usize, u64) {
        match address >> BLOCK_SHIFT {
            0 => (self.rank, address),
            n if n as usize <= self.blocks.len() => (n as usize - 1, address & ((1 << BLOCK_SHIFT) - 1)),
            _ => (self.rank, address),
        }
    }

    /// Threads of the cluster that have not ended.
    pub fn live(&self) -> u32 {
        self.blocks.iter().map(|b| b.live).sum()
    }
}
