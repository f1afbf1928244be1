//! SPEC.json and signature strings: what is accepted, what every mistake says, and what options and hints do.
#![allow(clippy::unwrap_used)]

use rtc_compiler::{
    ArgKind, ConstValue, Failure, LaunchOptions, Observer, Program, Signature, Silent, Source, Spec, Specialization,
    Stage, compile, emit,
};

const SPEC: &str = r#"{"kernel": "matmul_kernel",
 "args": [{"name": "a_ptr", "type": "*fp16", "divisible_by": 16}, {"name": "M", "type": "i32", "divisible_by": 16},
          {"name": "stride_ak", "constexpr": 1}, {"name": "DTYPE", "constexpr": {"dtype": "fp16"}},
          {"name": "ACT", "constexpr": {"function": "leaky_relu"}}, {"name": "desc", "type": "tensordesc<fp16[128,64]>"}],
 "options": {"num_warps": 8, "num_stages": 3, "num_ctas": 1, "maxnreg": null, "enable_fp_fusion": true}, "arch": "sm_90a"}"#;

fn kinds(spec: &Spec) -> String {
    spec.args.iter().map(|a| format!("{}: {}\n", a.name, a.kind)).collect()
}

#[test]
fn the_documented_spec_is_read() {
    let spec = Spec::parse(SPEC).unwrap();
    assert_eq!((spec.kernel.as_deref(), spec.arch.as_deref()), (Some("matmul_kernel"), Some("sm_90a")));
    assert_eq!((spec.options.num_warps, spec.options.maxnreg), (8, None));
    insta::assert_snapshot!(kinds(&spec), @r"
    a_ptr: *fp16:16
    M: i32:16
    stride_ak: 1
    DTYPE: fp16
    ACT: leaky_relu
    desc: tensordesc<fp16[128,64]>
    ");
}

#[test]
fn every_kind_of_constexpr_and_tuple() {
    let spec = Spec::parse(
        r#"{"args": [{"name": "a", "constexpr": 1.0}, {"name": "b", "constexpr": "x"}, {"name": "c", "constexpr": null},
        {"name": "d", "constexpr": [1, [true]]}, {"name": "e", "constexpr": {"float": "-inf"}},
        {"name": "f", "constexpr": {"dtype": "*fp32"}}, {"name": "g", "constexpr": {"tuple": [1, 2], "fields": ["x", "y"]}},
        {"name": "h", "tuple": [{"type": "i32", "divisible_by": 16}, {"constexpr": 3}, {"tuple": []}], "fields": ["p", "q", "r"]},
        {"name": "i", "constexpr": 18446744073709551615}, {"name": "j", "constexpr": {"float": "nan"}},
        {"name": "k", "constexpr": {"opaque": "torch.float16"}}, {"name": "l", "type": "*ki8"}]}"#,
    );
    insta::assert_snapshot!(kinds(&spec.unwrap()), @r#"
    a: 1.0
    b: "x"
    c: None
    d: (1, (True,))
    e: float("-inf")
    f: *fp32
    g: (x=1, y=2)
    h: (p=i32:16, q=3, r=())
    i: 18446744073709551615
    j: float("nan")
    k: <torch.float16>
    l: *ki8
    "#);
}

#[test]
fn every_launch_option_is_known() {
    for name in rtc_compiler::OPTION_NAMES {
        let text = format!(r#"{{"options": {{"{name}": null}}}}"#);
        assert!(Spec::parse(&text).is_ok(), "{name}");
    }
    let spec = Spec::parse(
        r#"{"options": {"num_stages": 0, "num_ctas": 2, "maxnreg": 128, "enable_fp_fusion": false, "debug": true,
        "sanitize_overflow": false, "launch_pdl": true, "launch_cooperative_grid": true, "enable_reflect_ftz": false,
        "default_dot_input_precision": "ieee", "allowed_dot_input_precisions": ["ieee"], "ptx_version": 87, "warp_size": 32,
        "max_num_imprecise_acc_default": 0, "extern_libs": {}, "supported_fp8_dtypes": ["fp8e5"], "arch": "sm90"}}"#,
    );
    let options = spec.unwrap().options;
    assert_eq!((options.num_stages, options.num_ctas, options.maxnreg), (0, 2, Some(128)));
    assert!(options.debug && options.launch_pdl && options.launch_cooperative_grid);
    assert!(!options.enable_fp_fusion && !options.sanitize_overflow && !options.enable_reflect_ftz);
    assert_eq!(options.default_dot_input_precision, "ieee");
}

#[test]
fn bad_specs_name_the_field() {
    let cases = [
        "",
        "{",
        "[]",
        r#"{"kernels": "f"}"#,
        r#"{"kernel": 3}"#,
        r#"{"kernel": "1f"}"#,
        r#"{"args": {}}"#,
        r#"{"args": [3]}"#,
        r#"{"args": [{"type": "i32"}]}"#,
        r#"{"args": [{"name": "x"}]}"#,
        r#"{"args": [{"name": "x", "type": "i32", "constexpr": 1}]}"#,
        r#"{"args": [{"name": "x", "type": "fp33"}]}"#,
        r#"{"args": [{"name": "x", "type": 32}]}"#,
        r#"{"args": [{"name": "x", "type": "i32", "divisible_by": "16"}]}"#,
        r#"{"args": [{"name": "x", "type": "i32", "divisible_by": 0}]}"#,
        r#"{"args": [{"name": "x", "type": "fp32", "divisible_by": 16}]}"#,
        r#"{"args": [{"name": "x", "type": "tensordesc<fp16[]>"}]}"#,
        r#"{"args": [{"name": "x", "type": "tensordesc<fp16[8]>", "divisible_by": 16}]}"#,
        r#"{"args": [{"name": "x", "type": "i32"}, {"name": "x", "type": "i32"}]}"#,
        r#"{"args": [{"name": "x", "type": "i32", "align": 16}]}"#,
        r#"{"args": [{"name": "x", "constexpr": {"dtype": "f33"}}]}"#,
        r#"{"args": [{"name": "x", "constexpr": {"float": "big"}}]}"#,
        r#"{"args": [{"name": "x", "constexpr": {"function": "a b"}}]}"#,
        r#"{"args": [{"name": "x", "constexpr": {}}]}"#,
        r#"{"args": [{"name": "x", "constexpr": {"dtype": "i32", "float": "inf"}}]}"#,
        r#"{"args": [{"name": "x", "constexpr": {"value": 3}}]}"#,
        r#"{"args": [{"name": "x", "constexpr": {"tuple": [1], "fields": ["a", "b"]}}]}"#,
        r#"{"args": [{"name": "x", "constexpr": [1, {"float": true}]}]}"#,
        r#"{"args": [{"name": "x", "tuple": [{"type": "i32"}, {"type": "i33"}]}]}"#,
        r#"{"args": [{"name": "x", "tuple": [{"type": "i32"}], "fields": []}]}"#,
        r#"{"options": 4}"#,
        r#"{"options": {"num_warp": 4}}"#,
        r#"{"options": {"num_warps": 3}}"#,
        r#"{"options": {"num_warps": "4"}}"#,
        r#"{"options": {"num_warps": 4.5}}"#,
        r#"{"options": {"num_stages": -1}}"#,
        r#"{"options": {"num_ctas": 32}}"#,
        r#"{"options": {"maxnreg": 0}}"#,
        r#"{"options": {"enable_fp_fusion": 1}}"#,
        r#"{"options": {"default_dot_input_precision": "fp32"}}"#,
        r#"{"options": {"warp_size": 64}}"#,
        r#"{"options": {"extern_libs": {"a": "b.bc"}}}"#,
        r#"{"arch": 90}"#,
    ];
    let said: String =
        cases.iter().map(|text| format!("{text}\n    {}\n", Spec::parse(text).expect_err(text))).collect();
    insta::assert_snapshot!(said);
}

#[test]
fn signatures_are_read() {
    let text = r#"*fp32:16, *kfp16, i32:16, i64 , i32:1, fp32, 1024, -3, 0x10, 1.5, -2e-3, True, False, None, "gelu, ok", tl.float16, float("inf"), leaky_relu, (i32, 4, *fp32:16), (1, 2), (3,), tensordesc<bf16[64, 32]>, LAST=7, DT=tl.int8,"#;
    let signature = Signature::parse(text).unwrap();
    let names: Vec<String> = (0..22).map(|i| format!("p{i}")).collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.extend(["DT", "LAST"]);
    let args = signature.bind(&names).unwrap();
    let said: String = args.iter().map(|a| format!("{}: {}\n", a.name, a.kind)).collect();
    insta::assert_snapshot!(said, @r#"
    p0: *fp32:16
    p1: *kfp16
    p2: i32:16
    p3: i64
    p4: 1
    p5: fp32
    p6: 1024
    p7: -3
    p8: 16
    p9: 1.5
    p10: -0.002
    p11: True
    p12: False
    p13: None
    p14: "gelu, ok"
    p15: fp16
    p16: float("inf")
    p17: leaky_relu
    p18: (i32, 4, *fp32:16)
    p19: (1, 2)
    p20: (3,)
    p21: tensordesc<bf16[64,32]>
    LAST: 7
    DT: i8
    "#);
    assert_eq!(args[4].kind, ArgKind::Constexpr(ConstValue::Int(1)));
    assert!(matches!(args[19].kind, ArgKind::Constexpr(ConstValue::Tuple { .. })));
    assert_eq!(Signature::parse("  ").unwrap(), Signature::default());
}

#[test]
fn bad_signatures_name_the_entry() {
    let deep = format!("{}1{}", "(".repeat(40), ")".repeat(40));
    let cases = [
        "i33",
        "*fp31",
        "**fp32",
        "i32,,i32",
        ",",
        "i32:",
        "i32:0",
        "i32:x",
        "fp32:16",
        "u1:16",
        "tensordesc<fp16[64]>:16",
        "tensordesc<fp16>",
        "tl.float31",
        "\"open",
        "\"a\"b",
        "(i32",
        "i32)",
        "(i32]",
        "1x",
        "-",
        "0x",
        "1e",
        "-inf",
        "+nan",
        "float(\"x\")",
        "float(1)",
        "x=1, i32",
        "x=1, x=2",
        "x=",
        "a b",
        "\"\\q\"",
        "i32 i32",
        &deep,
    ];
    let said: String = cases.iter().map(|text| format!("{}\n", Signature::parse(text).expect_err(text))).collect();
    insta::assert_snapshot!(said);
}

#[test]
fn signatures_that_do_not_fit_the_kernel() {
    let bind = |text: &str| Signature::parse(text).unwrap().bind(&["x", "n"]).unwrap_err().to_string();
    insta::assert_snapshot!(bind("i32, i32, i32"), @"signature, entry 3 `i32`: the kernel has only 2 parameters: x, n");
    insta::assert_snapshot!(bind("m=1"), @"signature, entry 1 `m=1`: the kernel has no parameter `m`; it has x, n");
    insta::assert_snapshot!(bind("i32, x=1"), @"signature, entry 2 `x=1`: parameter `x` already has an entry");
}

#[test]
fn specs_that_do_not_fit_the_kernel() {
    let source = "@triton.jit\ndef f(x, n, N: tl.constexpr, m=1):\n    pass\n";
    let program = Program::parse(&[Source::new("f.py", source)]);
    let fails = |text: &str| Spec::parse(text).unwrap().specialize(&program).unwrap_err().to_string();
    insta::assert_snapshot!(fails(r#"{"kernel": "g"}"#), @"error[unknown-kernel]: there is no `@triton.jit` function `g`; the file has f");
    insta::assert_snapshot!(fails(r#"{"args": [{"name": "y", "type": "i32"}]}"#), @"error[spec]: `args[0].name`: kernel `f` has no parameter `y`; it has x, n, N, m");
    insta::assert_snapshot!(fails(r#"{"args": [{"name": "x", "type": "i32"}]}"#), @"error[spec]: `args`: nothing is said about parameter `n` of kernel `f`; give its type or its value");
    insta::assert_snapshot!(fails(r#"{"args": [{"name": "x", "type": "i32"}, {"name": "n", "type": "i32"}, {"name": "N", "type": "i32"}]}"#), @"error[spec]: parameter `N` of kernel `f` is a constexpr: it needs a value, not the type `i32`");
    let fits =
        r#"{"args": [{"name": "x", "type": "i32"}, {"name": "n", "type": "i32"}, {"name": "N", "constexpr": 4}]}"#;
    assert_eq!(Spec::parse(fits).unwrap().specialize(&program).unwrap().kernel, "f");
}

/// PTX of the only kernel of a text.
fn ptx(text: &str, signature: &str, num_warps: u32) -> Result<String, Failure> {
    let program = Program::parse(&[Source::new("kernels.rt", text)]);
    let kernel = &program.kernels()[0];
    let names: Vec<&str> = kernel.params.iter().map(|p| p.name.as_str()).collect();
    let args = Signature::parse(signature).expect("it reads").bind(&names).expect("it binds");
    let options = LaunchOptions { num_warps, ..LaunchOptions::default() };
    let specialization = Specialization { kernel: kernel.name.clone(), args, options };
    compile(&program, &specialization, "sm_90a", String::new(), &mut Silent).map(|c| c.artifact.ptx)
}

#[test]
fn a_hint_as_a_statement_is_meant_for_its_value() {
    let with = |hint: &str| {
        let text = format!(
            "@triton.jit\ndef k(x, y, start):\n    at = tl.load(start) + tl.arange(0, 1024)\n    {hint}\n    \
             tl.store(y + at, tl.load(x + at))\n"
        );
        ptx(&text, "*fp32:16, *fp32:16, *i32:16", 4).expect("it compiles").contains("ld.global.v4")
    };
    assert!(with("tl.max_contiguous(tl.multiple_of(at, 1024), 1024)"));
    assert!(!with("pass"));
}

#[test]
fn more_threads_than_a_block_has_are_out_of_resources() {
    let failure = ptx("@triton.jit\ndef k(x):\n    tl.store(x, 1.0)\n", "*fp32", 128).expect_err("4096 threads");
    assert!(matches!(failure, Failure::Request { code: rtc_source::Code::OUT_OF_RESOURCES, .. }), "{failure}");
    let text = failure.to_string();
    assert!(text.contains("4096") && text.contains("1024"), "{text}");
}

#[test]
fn denormals_are_flushed_unless_the_option_says_no() {
    let text = "@triton.jit\ndef k(x):\n    v = tl.load(x)\n    tl.store(x, tl.exp2(v) + tl.sqrt(v) + tl.rsqrt(v))\n";
    let flushes = |enable_reflect_ftz: bool| {
        let program = Program::parse(&[Source::new("kernels.rt", text)]);
        let args = Signature::parse("*fp32").and_then(|s| s.bind(&["x"])).expect("it fits");
        let options = LaunchOptions { enable_reflect_ftz, ..LaunchOptions::default() };
        let specialization = Specialization { kernel: "k".into(), args, options };
        let compiled = compile(&program, &specialization, "sm_90a", String::new(), &mut Silent).expect("it compiles");
        compiled.artifact.ptx.matches(".ftz").count()
    };
    assert_eq!((flushes(true), flushes(false)), (3, 0));
}

#[test]
fn an_observer_gets_the_stages_that_it_wants() {
    struct Texts(Vec<(Stage, String)>);
    impl Observer for Texts {
        fn wants(&self, stage: Stage) -> bool {
            [Stage::Mlir, Stage::Llvm].contains(&stage)
        }

        fn text(&mut self, stage: Stage, text: &str) {
            self.0.push((stage, text.to_owned()));
        }
    }
    let program = Program::parse(&[Source::new("k.rt", "@triton.jit\ndef k(p):\n    tl.store(p, 1.0)\n")]);
    let spec = Spec { args: Signature::parse("*fp32").unwrap().bind(&["p"]).unwrap(), ..Spec::default() };
    let specialization = spec.specialize(&program).unwrap();
    let mut texts = Texts(Vec::new());
    let compiled = compile(&program, &specialization, "sm_80", String::new(), &mut texts).unwrap();
    let silent = compile(&program, &specialization, "sm_80", String::new(), &mut Silent).unwrap();
    assert_eq!(compiled, silent);
    let wanted = [Stage::Mlir, Stage::Llvm];
    let emitted = wanted.map(|stage| (stage, emit(&program, &specialization, "sm_80", stage, &mut Silent).unwrap()));
    assert_eq!(texts.0, emitted);
}
