//! The tile IR of the kernel, kept as a snapshot. `docs/rust/guides.md` shows this.

#[test]
fn the_tile_ir_stays() {
    let rtc = std::env::var("RTC").unwrap_or_else(|_| "rtc".into());
    let arguments = ["emit", "kernels/scale.rt", "--stage", "tile-opt", "--signature", "*fp32:16, *fp32:16, i32, BLOCK=128"];
    let output = std::process::Command::new(rtc).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stdout));
}
