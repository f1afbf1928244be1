//! Compiles the kernel of the vector-add example for two targets.

fn main() {
    rtc_build::Config::new()
        .arch(["sm_80", "sm_90a"])
        .kernel("add_kernel", "*fp32:16, *fp32:16, *fp32:16, i32, 1024")
        .instance(
            // The same for lengths that are multiples of 16, which lets loads and stores be as wide as they can.
            rtc_build::Instance::new("add_kernel", "*fp32:16, *fp32:16, *fp32:16, i32:16, 1024").named("add_sixteens"),
        )
        .compile(&["../vector_add/vector_add.rt"])
        .unwrap_or_else(|error| panic!("{error}"));
}
