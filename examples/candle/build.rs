//! Compiles the kernels for the rows and heads that the model has.

fn main() {
    rtc_build::Config::new()
        .arch(["sm_80", "sm_90a"])
        .instance(
            rtc_build::Instance::new("softmax_kernel", "*fp32, *fp32, i32, i32, BLOCK=1024").specialize("n_cols:16"),
        )
        .instance(
            rtc_build::Instance::new(
                "attention_kernel",
                "*fp16:16, *fp16:16, *fp16:16, *fp16:16, fp32, i32, BLOCK_M=64, BLOCK_N=32",
            )
            .values("D", ["32", "64"]),
        )
        .compile(&["kernels.rt"])
        .unwrap();
}
