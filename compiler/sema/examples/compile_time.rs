//! How long the analysis of a kernel takes in a fresh process and after that.
//!
//! ```text
//! cargo run --release -p rtc-sema --example compile_time
//! ```

use std::path::Path;
use std::time::{Duration, Instant};

use rtc_sema::spec::{ArgSpec, ConstValue, DType, LaunchOptions, Specialization, ValueType};
use rtc_sema::{ModuleAst, TargetInfo, compile_kernel};
use rtc_source::SourceMap;

fn main() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/matmul/kernel.rt");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) => return eprintln!("{}: {e}", path.display()),
    };
    let spec = matmul();
    let (parse, sema) = run(&text, &spec);
    println!("cold: parse {parse:?}, analysis {sema:?}");
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..50 {
        let (parse, sema) = run(&text, &spec);
        best = (best.0.min(parse), best.1.min(sema));
    }
    println!("warm: parse {:?}, analysis {:?}", best.0, best.1);
}

fn run(text: &str, spec: &Specialization) -> (Duration, Duration) {
    let mut sources = SourceMap::new();
    let file = sources.add("kernel.rt", text);
    let start = Instant::now();
    let (ast, _) = rtc_syntax::parse(file, text);
    let parse = start.elapsed();
    let start = Instant::now();
    let modules = [ModuleAst { name: "kernel", ast: &ast }];
    let target = rtc_abi::Target::named("sm_90a").expect("it is in the table");
    let result = compile_kernel(&sources, &modules, spec, TargetInfo { target, external_libdevice: false });
    let sema = start.elapsed();
    if let Err(findings) = result {
        eprintln!("{findings:?}");
    }
    (parse, sema)
}

fn matmul() -> Specialization {
    let pointer = |name| ArgSpec::value(name, ValueType::Pointer { pointee: DType::Fp16, is_const: false }, Some(16));
    let int = |name| ArgSpec::value(name, ValueType::Scalar(DType::Int32), None);
    let constant = |name, value| ArgSpec::constexpr(name, ConstValue::Int(value));
    let mut args: Vec<ArgSpec> = ["a_ptr", "b_ptr", "c_ptr"].into_iter().map(pointer).collect();
    args.extend(["M", "N", "K", "stride_am", "stride_ak", "stride_bk", "stride_bn", "stride_cm", "stride_cn"].map(int));
    args.extend([("BLOCK_M", 128), ("BLOCK_N", 128), ("BLOCK_K", 32), ("GROUP_M", 8)].map(|(n, v)| constant(n, v)));
    args.push(ArgSpec::constexpr("PRECISION", ConstValue::Str("tf32".into())));
    args.push(ArgSpec::constexpr("ACC", ConstValue::DType(ValueType::Scalar(DType::Fp32))));
    Specialization { kernel: "matmul_kernel".into(), args, options: LaunchOptions::default() }
}
