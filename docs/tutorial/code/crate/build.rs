//! Compiles the kernel of the tutorial's second chapter.

fn main() {
    rtc_build::Config::new()
        .kernel("softmax_kernel", "*fp32:16, *fp32:16, i32, i32, BLOCK=1024")
        .compile(&["../softmax.py"])
        .unwrap();
}
