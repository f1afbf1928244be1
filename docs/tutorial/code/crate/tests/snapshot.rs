//! The tile IR of the kernel as a snapshot, made by the executable.

#[test]
fn the_tile_ir_stays() {
    let rtc = std::env::var("RTC").unwrap_or_else(|_| "rtc".into());
    let arguments = ["emit", "../softmax.py", "--stage", "tile-opt", "--signature", "*fp32:16, *fp32:16, i32, i32, 1024"];
    let output = std::process::Command::new(rtc).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stdout));
}
