//! Verification, timing and precision of a kernel, in the emulator: right kernels, wrong ones, wrong references.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)]

use rtc_runtime::{Device, Kernel};
use rtc_testing::{Bench, Case, Dtype, Golden, Result, Rounds, Tensor, Tensors, Tolerance, precision, verify};

/// `scale(x, y, a, n)`: `y[i] = x[i] * a`, 32 elements a program.
fn scale() -> Kernel {
    let text = |ending: &str| {
        let path = format!("{}/../tests/kernels/scale.{ending}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    };
    // SAFETY: the files were made together.
    unsafe { Device::emulator().load_json(&text("ptx"), &text("json")) }.unwrap()
}

fn case(n: usize) -> Case {
    let x: Vec<f32> = (0..n).map(|i| i as f32 / 7.0 - 3.0).collect();
    let programs = n.div_ceil(32) as u32;
    let case = Case::new(format!("n = {n}"), [programs]).tensor("x", Tensor::of(vec![n], &x).unwrap());
    case.output("y", Dtype::F32, vec![n]).unwrap().value("a", 0.3).value("n", n as i64)
}

fn reference(inputs: &Tensors) -> Result<Tensors> {
    let x = inputs.get("x").unwrap().values::<f32>()?;
    let y: Vec<f32> = x.iter().map(|x| x * 0.3).collect();
    Ok(Tensors::from_iter([("y", Tensor::of(vec![x.len()], &y)?)]))
}

/// Sizes at the edges of blocks.
fn cases() -> Vec<Case> {
    [1, 31, 32, 33, 500].map(case).into()
}

#[test]
fn a_right_kernel() {
    let verified = verify(&scale(), &cases(), &reference, Tolerance::Ulp(1)).unwrap();
    verified.assert();
    assert_eq!(verified.comparisons.len(), 5);
    assert!(precision(&scale(), &cases(), &reference).unwrap().passes());
}

/// What the module of a build script gives is a kernel with a method of its own.
struct Generated(Kernel);

impl AsRef<Kernel> for Generated {
    fn as_ref(&self) -> &Kernel {
        &self.0
    }
}

#[test]
fn kernels_of_a_build_script_are_taken() {
    let generated = Generated(scale());
    verify(&generated, &cases(), &reference, Tolerance::Ulp(1)).unwrap().assert();
    assert!(precision(&generated, &cases(), &reference).unwrap().passes());
    Bench::new(&generated, case(100), &reference, Tolerance::ByType).unwrap();
    assert!(case(10).run(&generated).is_ok());
}

#[test]
fn what_is_not_written_shows() {
    let short = case(500).value("n", 499);
    let verified = verify(&scale(), &[short], &reference, Tolerance::ByType).unwrap();
    assert!(!verified.is_right());
    let text = verified.to_string();
    assert!(
        text.starts_with("kernel `scale`: wrong\n  n = 500, `y`: 500 elements") && text.contains("1 outside"),
        "{text}"
    );
    assert!(text.contains("at index 499 NaN instead of"), "{text}");
    assert!(!precision(&scale(), &[case(500).value("n", 499)], &reference).unwrap().passes());
}

#[test]
fn only_right_kernels_are_timed() {
    let bench = Bench::new(&scale(), case(100), &reference, Tolerance::ByType).unwrap();
    let times = bench.times(Rounds { warmup: 1, timed: 7 }).unwrap();
    assert!(times.quantile(0.0) <= times.median() && times.median() <= times.quantile(1.0));
    let wrong = Bench::new(&scale(), case(100).value("a", 0.31), &reference, Tolerance::ByType).unwrap_err();
    assert!(wrong.to_string().starts_with("nothing is timed before the results are right: kernel `scale`: wrong"));
}

#[test]
fn precision_is_measured_in_fp64() {
    let exact = |inputs: &Tensors| {
        let x = inputs.get("x").unwrap().values::<f32>()?;
        let y: Vec<f64> = x.iter().map(|x| f64::from(*x) * f64::from(0.3f32)).collect();
        Ok(Tensors::from_iter([("y", Tensor::of(vec![x.len()], &y)?)]))
    };
    let report = precision(&scale(), &[case(500)], &exact).unwrap();
    let errors = &report.errors[0];
    assert!(
        errors.passes()
            && errors.max_relative > 0.0
            && errors.max_relative < 2f64.powi(-24)
            && errors.mean_relative < errors.max_relative,
        "{report}"
    );
    // One bit in a thousand is too much for fp32, whose mean may be off by an eighth of that.
    let rough = |inputs: &Tensors| {
        let values: Vec<f64> = exact(inputs)?.get("y").unwrap().values::<f64>()?.iter().map(|y| y * 1.001).collect();
        Ok(Tensors::from_iter([("y", Tensor::of(vec![values.len()], &values)?)]))
    };
    let report = precision(&scale(), &[case(500)], &rough).unwrap();
    assert!(!report.passes(), "{report}");
    assert!(
        report
            .to_string()
            .starts_with("kernel `scale`: FAIL\n  n = 500, `y` F32 [500]: FAIL, MERE 9.990e-4 (< 1.221e-4)"),
        "{report}"
    );
}

#[test]
fn recorded_results() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("workflow-golden");
    std::fs::create_dir_all(&folder).unwrap();
    for case in cases() {
        let results = reference(case.inputs()).unwrap().to_bytes().unwrap();
        std::fs::write(folder.join(format!("{}.safetensors", case.name())), results).unwrap();
    }
    verify(&scale(), &cases(), &Golden::new(&folder), Tolerance::Ulp(1)).unwrap().assert();
    let missing = verify(&scale(), &[case(7)], &Golden::new(&folder), Tolerance::ByType).unwrap_err();
    assert!(missing.to_string().contains("n = 7.safetensors"), "{missing}");
}

#[test]
fn wrong_cases_and_references_are_named() {
    let text = |case: Case, reference: &dyn rtc_testing::Reference| {
        verify(&scale(), &[case], reference, Tolerance::ByType).unwrap_err().to_string()
    };
    let of = |name: &'static str, value: f32, n: usize| {
        move |_: &Tensors| Ok(Tensors::from_iter([(name, Tensor::of(vec![n], &vec![value; n])?)]))
    };
    assert_eq!(text(case(2), &of("x", 1.0, 2)), "case `n = 2`: the reference tells nothing of `y`");
    let nan = text(case(2), &of("y", f32::NAN, 2));
    assert_eq!(nan, "case `n = 2`: the reference has NaN in `y`, at 0: nothing can be compared with that");
    assert!(text(case(2), &of("y", 1.0, 3)).contains("tensor `y` is F32 [2], its reference F32 [3]"));
    let both = |inputs: &Tensors| {
        let mut all = reference(inputs)?;
        all.insert("z", Tensor::of(vec![1], &[1.0f32])?);
        Ok(all)
    };
    assert_eq!(text(case(2), &both), "case `n = 2`: the reference tells of `z`, which the launch does not have");
    assert!(text(case(2).value("m", 3), &reference).contains("`args.m`: kernel `scale` has no such parameter"));
    assert!(text(Case::new("empty", [1]), &|_: &Tensors| Ok(Tensors::default())).contains("args.x"));
    assert!(text(Case::new("no grid", []), &|_: &Tensors| Ok(Tensors::default())).contains("expected 1 to 3 sizes"));
}
