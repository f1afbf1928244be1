//! Special registers.

use super::step::Step;
use crate::alu::Lanes;
use crate::code::Special;

impl Step<'_, '_> {
    pub(super) fn special(&self, special: Special) -> Lanes {
        let block = self.launch.block;
        let lanes = |f: &dyn Fn(u32) -> u32| -> Lanes { std::array::from_fn(|lane| u64::from(f(lane as u32))) };
        let same = |value: u32| [u64::from(value); 32];
        let in_cluster = |n: usize| self.shared.own().index[n] % self.launch.cluster[n];
        match special {
            Special::Tid(n) => lanes(&|lane| {
                let thread = self.warp.id * 32 + lane;
                match n {
                    0 => thread % block[0],
                    1 => thread / block[0] % block[1],
                    _ => thread / (block[0] * block[1]),
                }
            }),
            Special::Ntid(n) => same(block[n as usize]),
            Special::Ctaid(n) => same(self.shared.own().index[n as usize]),
            Special::Nctaid(n) => same(self.launch.grid[n as usize]),
            Special::ClusterId(n) => same(self.shared.own().index[n as usize] / self.launch.cluster[n as usize]),
            Special::NclusterId(n) => same(self.launch.grid[n as usize] / self.launch.cluster[n as usize]),
            Special::ClusterCtaid(n) => same(in_cluster(n as usize)),
            Special::ClusterNctaid(n) => same(self.launch.cluster[n as usize]),
            Special::ClusterCtarank => {
                same(in_cluster(0) + self.launch.cluster[0] * (in_cluster(1) + self.launch.cluster[1] * in_cluster(2)))
            }
            Special::ClusterNctarank => same(self.launch.cluster.iter().product()),
            Special::Laneid => lanes(&|lane| lane),
            Special::Warpid => same(self.warp.id),
            Special::Nwarpid => same(block.iter().product::<u32>().div_ceil(32)),
            Special::LanemaskEq => lanes(&|lane| 1 << lane),
            Special::LanemaskLe => lanes(&|lane| u32::MAX >> (31 - lane)),
            Special::LanemaskLt => lanes(&|lane| (1 << lane) - 1),
            Special::LanemaskGe => lanes(&|lane| u32::MAX << lane),
            Special::LanemaskGt => lanes(&|lane| !(u32::MAX >> (31 - lane))),
            Special::Clock => same(self.state.warp_instructions as u32),
            Special::ClockHi => same((self.state.warp_instructions >> 32) as u32),
            Special::Clock64 => [self.state.warp_instructions; 32],
            Special::DynamicSmemSize => same(self.launch.dynamic_shared),
            Special::TotalSmemSize => same(self.shared.own().bytes.len() as u32),
            Special::Zero => same(0),
            Special::One => same(1),
        }
    }
}
