//! Compiles the kernel for heads of 32 and of 64 columns.

fn main() {
    rtc_build::Config::new()
        .arch(["sm_80", "sm_90a"])
        .instance(
            rtc_build::Instance::new(
                "attention_kernel",
                "*fp16:16, *fp16:16, *fp16:16, *fp16:16, fp32, i32, BLOCK_M=64, BLOCK_N=32",
            )
            .values("D", ["32", "64"])
            .specialize("n:16"),
        )
        .compile(&["attention.rt"])
        .unwrap();
}
