//! Compiles the product in the configurations that `rtc tune` found, for the sizes that it was run on, and in a small one for
//! all others.

fn main() {
    rtc_build::Config::new()
        .arch(["sm_80", "sm_90a"])
        .instance(
            rtc_build::Instance::new(
                "partial_matmul",
                "*fp16:16, *fp16:16, *fp32:16, i32, i32, i32, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=8",
            )
            .tuned("tuned.json"),
        )
        .compile(&["partial_matmul.rt"])
        .unwrap();
}
