//! Compiles the kernel for blocks of 1024 elements.

fn main() {
    rtc_build::Config::new()
        .arch(["sm_80", "sm_90a"])
        .kernel("gelu_dropout_kernel", "*fp32:16, *fp32:16, i32, fp32, i32, BLOCK=1024")
        .compile(&["dropout.rt"])
        .unwrap();
}
