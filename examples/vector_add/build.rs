//! Compiles the kernel for two element types; the best of two targets is taken when it is loaded.

fn main() {
    rtc_build::Config::new()
        .arch(["sm_80", "sm_90a"])
        .instance(
            rtc_build::Instance::new("add_kernel", "*{T}, *{T}, *{T}, i32, BLOCK=1024")
                .types("T", ["fp32", "i32"])
                // Launches whose arguments are multiples of 16 get wider loads and stores.
                .specialize("x_ptr:16, y_ptr:16, out_ptr:16, n:16"),
        )
        .compile(&["vector_add.rt"])
        .unwrap();
}
