//! Compiles the product for two element types, with and without an activation, and with larger blocks for large matrices.

fn main() {
    let strides = "i32, 1, i32, 1, i32, 1";
    rtc_build::Config::new()
        .arch(["sm_80", "sm_90a"])
        .instance(
            rtc_build::Instance::new(
                "matmul_kernel",
                format!("*{{T}}:16, *{{T}}:16, *{{T}}:16, i32, i32, i32, {strides}, 32, 32, 32, 8"),
            )
            .types("T", ["fp16", "bf16"])
            .values("ACTIVATION", ["None", "leaky_relu"])
            .configure("M >= 128 && N >= 128", "BLOCK_M=64, BLOCK_N=64, num_warps=8"),
        )
        .compile(&["matmul.rt"])
        .unwrap();
}
