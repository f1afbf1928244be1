//! Compiles the kernel for blocks of 1024 columns.

fn main() {
    rtc_build::Config::new()
        .arch(["sm_80", "sm_90a"])
        .kernel("layer_norm_kernel", "*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, i32, fp32, BLOCK=1024")
        .compile(&["layer_norm.rt"])
        .unwrap();
}
