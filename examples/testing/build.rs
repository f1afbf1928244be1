//! Compiles the kernel that the tests look at.

fn main() {
    rtc_build::Config::new()
        .kernel("scale_kernel", "*fp32:16, *fp32:16, i32, BLOCK=128")
        .compile(&["kernels/scale.rt"])
        .unwrap();
}
