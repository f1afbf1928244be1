//! Compiles the kernel for three widths of its block, which become a const generic.

fn main() {
    rtc_build::Config::new()
        .arch(["sm_80", "sm_90a"])
        .instance(
            rtc_build::Instance::new("softmax_kernel", "*fp32, *fp32, i32, i32, i32, i32, STAGES=2")
                .values("BLOCK", ["256", "1024", "4096"])
                .specialize("x_ptr:16, y_ptr:16, x_stride:16, y_stride:16"),
        )
        .compile(&["softmax.rt"])
        .unwrap();
}
