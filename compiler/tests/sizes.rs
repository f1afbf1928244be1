//! Kernels that would take minutes to compile are refused at once, with the sizes that make them so large; of those that
//! take seconds a remark tells.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use rtc_compiler::{Failure, LaunchOptions, Observer, Program, Signature, Silent, Source, Spec, compile, decisions};
use rtc_source::render;

/// A refusal takes well below a second; tests are built with little optimization and run side by side.
const PATIENCE: Duration = Duration::from_secs(30);

/// Ten times less than is allowed by default, so that what is not refused does not hold up the tests.
const LIMIT: u64 = 50_000;

/// The diagnostic of a kernel `k` that is to be refused.
fn refusal(source: &str, signature: &str, num_warps: u32) -> String {
    let start = Instant::now();
    let program = Program::parse(&[Source::new("k.rt", source)]);
    if let Some(first) = program.diagnostics().first() {
        return render(program.sources(), first, false);
    }
    let names: Vec<&str> = program.kernel(None).unwrap().params.iter().map(|p| p.name.as_str()).collect();
    let mut spec = Spec { args: Signature::parse(signature).unwrap().bind(&names).unwrap(), ..Spec::default() };
    spec.options.num_warps = num_warps;
    spec.options.max_instructions = LIMIT;
    let specialization = spec.specialize(&program).unwrap();
    let outcome = compile(&program, &specialization, "sm_80", String::new(), &mut Silent);
    assert!(start.elapsed() < PATIENCE, "{:?} for\n{}", start.elapsed(), &source[..source.len().min(500)]);
    match outcome {
        Ok(_) => panic!("this compiles:\n{source}"),
        Err(Failure::Diagnostics(list)) => render(program.sources(), &list[0], false),
        Err(failure) => panic!("{failure}"),
    }
}

const P: &str = "*fp32:16";

#[test]
fn what_is_spread_over_too_many_registers_is_refused() {
    let load = "    o = tl.arange(0, N)\n    x = tl.load(p + o)\n";
    let mut said = String::new();
    for (signature, warps, body) in [
        ("1048576", 4, "    tl.store(p + o, tl.sqrt(x) * x + tl.exp(x) / (x + 1.0))"),
        ("1048576", 32, "    tl.store(p + o, tl.log(x) / (tl.log(x + 1.0) + 1.0) + tl.log(x * x) * tl.sqrt(x))"),
        ("1048576", 4, "    tl.store(p, tl.sum(x, 0) + tl.argmax(x, 0))"),
        ("1048576", 4, "    tl.store(p + o, tl.cumsum(x, 0))"),
        (
            "131072",
            1,
            "    tl.store(p + o, x * x + 1.0)\n    tl.store(p + 2 * N + o, tl.sqrt(x))\n    tl.store(p + 4 * N + o, -x)",
        ),
        ("32768", 1, "    tl.store(p + o, tl.sort(x))"),
        ("1048576", 4, "    tl.atomic_add(p + o, x)"),
        ("1048576", 4, "    tl.device_print(\"x\", x)"),
    ] {
        let source = format!("@triton.jit\ndef k(p, N: tl.constexpr):\n{load}{body}\n");
        let text = refusal(&source, &format!("{P}, {signature}"), warps);
        assert!(text.starts_with("error[out-of-resources]"), "{text}");
        writeln!(said, "{text}").unwrap();
    }
    insta::assert_snapshot!(said);
}

#[test]
fn what_does_not_fit_in_shared_memory_is_refused() {
    let mut said = String::new();
    for (block, body) in [
        (512, "tl.dot(x, x, input_precision=\"ieee\")"),
        (1024, "tl.dot(x.to(tl.float16), x.to(tl.float16))"),
        (512, "tl.trans(x)"),
    ] {
        let source = format!(
            "@triton.jit\ndef k(p, N: tl.constexpr):\n    o = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]\n    \
             x = tl.load(p + o)\n    tl.store(p + o, {body})\n"
        );
        writeln!(said, "{}", refusal(&source, &format!("{P}, {block}"), 4)).unwrap();
    }
    insta::assert_snapshot!(said);
}

#[test]
fn what_is_unrolled_too_often_is_refused() {
    let mut said = String::new();
    for body in [
        "    for i in tl.static_range(10_000):\n        x = x * 2.0 + i",
        "    for i in tl.static_range(100):\n        for j in tl.static_range(100):\n            x += tl.load(p + i * j + o)",
        "    for i in tl.static_range(100):\n        for j in tl.static_range(100):\n            x = tl.exp(x * 2.0 + i) + tl.sum(x, 0)",
        "    for i in tl.static_range(1000):\n        for j in tl.static_range(1000):\n            x += j",
        "    for i in tl.static_range(1_000_000):\n        x += i",
    ] {
        let source = format!(
            "@triton.jit\ndef k(p):\n    o = tl.arange(0, 1024)\n    x = tl.load(p + o)\n{body}\n    tl.store(p + o, x)\n"
        );
        writeln!(said, "{}", refusal(&source, P, 4)).unwrap();
    }
    insta::assert_snapshot!(said);
}

/// A second's worth of instructions: what is refused in the other tests compiles where the limit allows it.
#[test]
fn what_is_long_is_compiled_and_remarked_on() {
    struct Heard(Option<u64>);
    impl Observer for Heard {
        fn long(&mut self, instructions: u64) {
            self.0 = Some(instructions);
        }
    }
    let source = "@triton.jit\ndef k(p):\n    o = tl.arange(0, 8192)\n    x = tl.load(p + o)\n    \
                  for i in tl.static_range(420):\n        x = x * 2.0 + i\n    tl.store(p + o, x)\n";
    let program = Program::parse(&[Source::new("k.rt", source)]);
    let mut spec = Spec { args: Signature::parse(P).unwrap().bind(&["p"]).unwrap(), ..Spec::default() };
    let mut run = |limit: Option<u64>| {
        let mut heard = Heard(None);
        spec.options.max_instructions = limit.unwrap_or(LaunchOptions::default().max_instructions);
        let specialization = spec.specialize(&program).unwrap();
        (compile(&program, &specialization, "sm_80", String::new(), &mut heard), heard.0)
    };
    let (compiled, heard) = run(None);
    let remarks: Vec<String> = compiled
        .unwrap()
        .warnings
        .iter()
        .map(|d| format!("{:?}: {}", d.severity, render(program.sources(), d, false)))
        .collect();
    assert!(heard.is_some_and(|n| n > LIMIT), "{heard:?}");
    let (refused, heard) = run(Some(LIMIT));
    assert_eq!(heard, None);
    let Err(Failure::Diagnostics(list)) = refused else { panic!("{refused:?}") };
    insta::assert_snapshot!(format!("{}\n{}", remarks.join("\n"), render(program.sources(), &list[0], false)));
}

#[test]
fn what_loops_and_branches_too_often_is_refused() {
    let mut said = String::new();
    for statement in ["    for i{i} in range(n):\n        x += i{i} * x\n", "    if n > {i}:\n        x += {i}\n"] {
        let statements: String = (0..3000).map(|i| statement.replace("{i}", &i.to_string())).collect();
        let source = format!("@triton.jit\ndef k(p, n):\n    x = 0\n{statements}    tl.store(p, x)\n");
        writeln!(said, "{}", refusal(&source, &format!("{P}, i32"), 4)).unwrap();
    }
    insta::assert_snapshot!(said);
}

#[test]
fn what_grows_while_compiling_is_refused() {
    let mut said = String::new();
    for source in [
        "@triton.jit\ndef k(p):\n    t = (1,)\n    for i in tl.static_range(40):\n        t = t + t\n    tl.store(p, t[5])\n",
        "@triton.jit\ndef k(p):\n    t = (1, 2) * 1_000_000_000\n    tl.store(p, t[5])\n",
        "@triton.jit\ndef k(p):\n    t = [[[[i for i in range(200)] for j in range(200)] for k in range(200)] for l in range(200)]\n",
        "@triton.jit\ndef k(p):\n    x: tl.constexpr = 7 ** 7 ** 7 ** 7\n    tl.store(p, x)\n",
        "@tl.constexpr_function\ndef f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\n\n@triton.jit\ndef k(p):\n    tl.store(p, f(35))\n",
        "@tl.constexpr_function\ndef f(n):\n    while True:\n        n += 1\n    return n\n\n@triton.jit\ndef k(p):\n    tl.store(p, f(35))\n",
    ] {
        writeln!(said, "{}", refusal(source, P, 4)).unwrap();
    }
    insta::assert_snapshot!(said);
}

#[test]
fn what_is_nested_too_deeply_is_refused() {
    let around = |before: &str, after: &str, n: usize| format!("{}1.0{}", before.repeat(n), after.repeat(n));
    let chain = |part: &str, n: usize| format!("1.0{}", part.repeat(n));
    for expression in [
        around("(", ")", 10_000),
        around("[", "]", 10_000),
        around("-", "", 20_000),
        around("not ", "", 20_000),
        around("tl.exp(", ")", 3_000),
        chain(" + 1.0", 10_000),
        chain(" ** 1", 10_000),
        chain(" if p else 1.0", 10_000),
    ] {
        let source = format!("@triton.jit\ndef k(p):\n    x = {expression}\n    tl.store(p, x)\n");
        let text = refusal(&source, P, 4);
        assert!(text.starts_with("error[syntax]: this expression is nested too deeply"), "{text}");
    }
    let branches: String = (0..5000).map(|i| format!("    elif N == {i}:\n        x = {i}\n")).collect();
    let source =
        format!("@triton.jit\ndef k(p, N):\n    x = 0\n    if N == -1:\n        x = 1\n{branches}    tl.store(p, x)\n");
    let text = refusal(&source, &format!("{P}, i32"), 4);
    assert!(text.starts_with("error[syntax]: an `if` with more than 200 `elif`"), "{text}");
}

/// Loops inside each other double no work: forty levels take as long as forty loops.
#[test]
fn deep_loops_compile() {
    let start = Instant::now();
    let mut source = String::from("@triton.jit\ndef k(p, n):\n    x = 0.0\n");
    for level in 0..40 {
        writeln!(source, "{}for i{level} in range(n):", " ".repeat(4 + level)).unwrap();
    }
    write!(source, "{}x += tl.sum(tl.load(p + tl.arange(0, 256)), 0)\n    tl.store(p, x)\n", " ".repeat(44)).unwrap();
    let program = Program::parse(&[Source::new("k.rt", source)]);
    let args = Signature::parse("*fp32:16, i32").unwrap().bind(&["p", "n"]).unwrap();
    let spec = Spec { args, ..Spec::default() }.specialize(&program).unwrap();
    let compiled = compile(&program, &spec, "sm_80", String::new(), &mut Silent).unwrap();
    assert!(compiled.artifact.ptx.contains("bar.sync"), "{}", compiled.artifact.ptx);
    assert!(start.elapsed() < PATIENCE);
}

/// The PTX of a kernel with dots of fp16 blocks, and its remarks.
fn products(body: &str, signature: &str) -> (String, Vec<String>) {
    let tile = "@triton.jit\ndef tile(p, R: tl.constexpr, C: tl.constexpr):\n    \
                return p + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]\n";
    let source = format!("{tile}@triton.jit\ndef k(p, z, n):\n{body}");
    let program = Program::parse(&[Source::new("k.rt", &source)]);
    let args = Signature::parse(signature).unwrap().bind(&["p", "z", "n"]).unwrap();
    let spec = Spec { kernel: Some("k".into()), args, ..Spec::default() };
    let spec = spec.specialize(&program).unwrap();
    let compiled = compile(&program, &spec, "sm_90a", String::new(), &mut Silent).unwrap();
    let decided = decisions(&program, &spec, "sm_90a").unwrap().loops;
    let said = compiled.warnings.iter().chain(&decided).map(|d| d.message.clone()).collect();
    (compiled.artifact.ptx, said)
}

#[test]
fn operands_that_shared_memory_cannot_hold_stay_in_registers() {
    let body = |count: u32, is_shared: bool| {
        let mut text = String::new();
        for i in 0..count {
            let at = i * 65536;
            writeln!(text, "    a{i} = tl.load(tile(p + {at}, 64, 256))").unwrap();
            writeln!(text, "    b{i} = tl.load(tile(p + {at}, 256, 128))").unwrap();
        }
        // Each operand of two products stays in shared memory while the others are there.
        let other = |i: u32| format!(" + tl.dot(a{i}, b{})", (i + 1) % count);
        let sum = |i: u32| format!("tl.dot(a{i}, b{i}){}", if is_shared { other(i) } else { String::new() });
        let sums: Vec<String> = (0..count).map(sum).collect();
        writeln!(text, "    tl.store(tile(z, 64, 128), {})", sums.join(" + ")).unwrap();
        text
    };
    let products = |count, is_shared| products(&body(count, is_shared), "*fp16:16, *fp32:16, i32").0;
    assert!(products(2, true).contains("wgmma.mma_async"));
    let ptx = products(3, true);
    assert!(ptx.contains("mma.sync") && !ptx.contains("wgmma.mma_async"));
    // Those of one product at a time take turns there.
    assert!(products(3, false).contains("wgmma.mma_async"));
}

#[test]
fn how_loops_are_pipelined_is_remarked_on() {
    let body = "    s = tl.zeros((64, 64), tl.float32)\n    for i in range(n):\n        \
                a = tl.load(tile(p + i * 2048, 64, 32))\n        s = tl.dot(a, a.T, s)\n    tl.store(tile(z, 64, 64), s)\n";
    let (_, said) = products(body, "*fp16:16, *fp32:16, i32");
    let plan = "the loop is pipelined: copies from `p` (TMA) are issued by a producer warp; the warps are specialized: 1 producer warp with 40 registers per thread, 4 consumer warps with 216; 6 slots of 4096 \
                bytes, 2 blocks per SM loop over the programs";
    assert!(said.iter().any(|line| line.starts_with(plan)), "{said:?}");
    // An index that is loaded is no sum of arguments.
    let (_, said) =
        products(&body.replace("p + i * 2048", "p + tl.load(z + i).to(tl.int32) * 2048"), "*fp16:16, *fp32:16, i32");
    let plan = "the loop is pipelined: copies from `p` (`cp.async`, 16 bytes at a time) are issued 2 iterations ahead, 4 slots of 4096 \
                bytes, with an MMA in flight from one iteration to the next";
    assert!(said.iter().any(|line| line.starts_with(plan)), "{said:?}");
}

#[test]
fn more_warps_than_the_launch_says_are_remarked_on_and_the_metadata_has_both_numbers() {
    let source = "@triton.jit\ndef k(p, z, n):\n    a = p + tl.arange(0, 128)[:, None] * 32 + tl.arange(0, 32)[None, :]\n    \
                  b = p + tl.arange(0, 32)[:, None] * 256 + tl.arange(0, 256)[None, :]\n    \
                  s = tl.zeros((128, 256), tl.float32)\n    for i in range(n):\n        \
                  s = tl.dot(tl.load(a + i * 4096), tl.load(b + i * 8192), s)\n    \
                  tl.store(z + tl.arange(0, 128)[:, None] * 256 + tl.arange(0, 256)[None, :], s)\n";
    let program = Program::parse(&[Source::new("k.rt", source)]);
    let threads = |maxnreg| {
        let args = Signature::parse("*fp16:16, *fp32:16, i32").unwrap().bind(&["p", "z", "n"]).unwrap();
        let mut spec = Spec { args, ..Spec::default() };
        spec.options.maxnreg = maxnreg;
        let compiled =
            compile(&program, &spec.specialize(&program).unwrap(), "sm_80", String::new(), &mut Silent).unwrap();
        let metadata = &compiled.artifact.metadata;
        let said = compiled.warnings.iter().any(|warning| {
            warning.message
                == "`num_warps` is raised from 4 to 8: with 4, each thread would hold 256 registers of accumulators and operands, with 8, 128"
        });
        (metadata.num_warps, metadata.threads_per_block, said)
    };
    assert_eq!(threads(None), (4, 256, true));
    assert_eq!(threads(Some(255)), (4, 128, false));
}
