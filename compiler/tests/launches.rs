//! The launch options in the metadata of kernels.

#![allow(clippy::unwrap_used)]

use rtc_compiler::{LaunchOptions, Program, Signature, Silent, Source, Spec, compile};

/// The attribute of the launch in the metadata, and whether the kernel waits before all accesses.
fn overlaps(body: &str, arch: &str, set: fn(&mut LaunchOptions)) -> (bool, bool) {
    let text = format!("@triton.jit\ndef k(x_ptr, n):\n    i = tl.program_id(0) * 128 + tl.arange(0, 128)\n{body}");
    let program = Program::parse(&[Source::new("k.rt", text)]);
    let args = Signature::parse("*fp32:16, i32").unwrap().bind(&["x_ptr", "n"]).unwrap();
    let mut spec = Spec { kernel: Some("k".into()), args, ..Spec::default() };
    set(&mut spec.options);
    let specialization = spec.specialize(&program).unwrap();
    let artifact = compile(&program, &specialization, arch, String::new(), &mut Silent).unwrap().artifact;
    let access = ["ld.global", "st.global", "ld.v", "red."].iter().filter_map(|word| artifact.ptx.find(word)).min();
    let waits = artifact.ptx.find("griddepcontrol.wait").is_some_and(|wait| wait < access.unwrap());
    (artifact.metadata.launch_pdl, waits)
}

#[test]
fn launches_overlap_where_the_kernel_can_wait() {
    const PLAIN: &str = "    tl.store(x_ptr + i, tl.load(x_ptr + i, i < n) + 1.0, i < n)\n";
    const EARLY: &str = "    if n > 0:\n        tl.store(x_ptr + i, 1.0, i < n)\n";
    const OWN: &str = "    tl.store(x_ptr + i, 1.0, i < n)\n    tl.extra.cuda.gdc_launch_dependents()\n";
    let auto = |_: &mut LaunchOptions| {};
    for body in [PLAIN, EARLY] {
        assert_eq!(overlaps(body, "sm_90a", auto), (true, true), "{body}");
        assert_eq!(overlaps(body, "sm_100a", auto), (true, true), "{body}");
        assert_eq!(overlaps(body, "sm_80", auto), (false, false), "{body}");
        assert_eq!(overlaps(body, "sm_90a", |options| options.overlap_launches = false), (false, false), "{body}");
        assert_eq!(
            overlaps(body, "sm_90a", |options| options.launch_cooperative_grid = true),
            (false, false),
            "{body}"
        );
        // The launch guarantees the kernel.
        assert_eq!(overlaps(body, "sm_90a", |options| options.launch_pdl = true), (true, false), "{body}");
    }
    assert_eq!(overlaps(OWN, "sm_90a", auto), (false, false));
}
