//! The cost model of the timeline.

/// Rates and latencies of an SM, in cycles. Loads and copies are served by one memory pipe, MMAs by the tensor core of
/// the warp's scheduler, instructions by the scheduler; a warp alone issues every other cycle. Bank conflicts, caches and
/// other blocks on the SM are not modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Its name.
    pub name: &'static str,
    /// Schedulers, each with a tensor core.
    pub schedulers: u32,
    /// Cycles between two instructions of one warp.
    pub issue: u64,
    /// Cycles until the data of a load from global memory arrives.
    pub global_latency: u64,
    /// Bytes from global memory per cycle: those of L2 for an SM when all load.
    pub global_bytes: u64,
    /// Cycles until the data of a load from shared memory arrives.
    pub shared_latency: u64,
    /// Bytes from shared memory per cycle.
    pub shared_bytes: u64,
    /// Cycles until the result of an MMA arrives, besides its time on the tensor core.
    pub mma_latency: u64,
    /// Operations on 16-bit floats per cycle of a tensor core.
    pub mma_flops: u64,
}

impl Model {
    /// Hopper.
    pub const SM_90: Model = Model {
        name: "sm_90",
        schedulers: 4,
        issue: 2,
        global_latency: 600,
        global_bytes: 48,
        shared_latency: 30,
        shared_bytes: 128,
        mma_latency: 32,
        mma_flops: 1024,
    };

    /// Ampere.
    pub const SM_80: Model =
        Model { name: "sm_80", global_latency: 500, global_bytes: 40, mma_latency: 18, mma_flops: 512, ..Model::SM_90 };

    /// The model for a target such as `sm_90a`: that of Hopper from there on.
    pub fn of_arch(arch: &str) -> &'static Model {
        let number = arch.trim_start_matches("sm_").trim_end_matches(char::is_alphabetic);
        if number.parse::<u32>().is_ok_and(|number| number < 90) { &Model::SM_80 } else { &Model::SM_90 }
    }
}
