//! C sources: the compiler takes them without a warning, and over a driver that only notes what it is told they load the right
//! variants, choose among them, and pass what they are given and what a launch fills in by itself.
#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use rtc_abi::metadata::TensorMap;
use rtc_abi::{DType, Expr, ParamType};
use rtc_build::internal::{KernelArtifacts, write_c};
use rtc_build::{Config, Instance};
use rtc_compiler::{Program, Signature, Silent, Source, Spec};
use std::path::{Path, PathBuf};
use std::process::Command;

const CUDA_H: &str = include_str!("c/cuda.h");
const DRIVER: &str = include_str!("c/driver.c");

const ADD: &str = "\
# Adds a number where a flag is set. */
@triton.jit
def add_kernel(x_ptr, out_ptr, n, by, flag, long, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    if flag:
        x += by
    tl.store(out_ptr + offsets, x + long, mask=mask)
";
const ADD_SIGNATURE: &str = "*fp32:16, *fp32:16, i32:16, fp32, u1, i64, 128";
const ADD_MAIN: &str = r#"
static void shown(void **p) {
    printf(": %#llx %#llx %d %g %d %lld", *(CUdeviceptr *)p[0], *(CUdeviceptr *)p[1], *(int32_t *)p[2],
           (double)*(float *)p[3], *(uint8_t *)p[4], (long long)*(int64_t *)p[5]);
}
int main(void) {
    static const int capabilities[] = {75, 80, 86, 90, 100};
    add_kernel_t kernel;
    show = shown;
    for (int i = 0; i < 5; i++) {
        capability = capabilities[i];
        printf("%d: %d\n", capability, add_kernel_load(&kernel));
    }
    printf("%d\n", add_kernel_launch(&kernel, 0, 3, 2, 1, 0x1000, 0x2000, 48, 1.5f, true, -5));
    printf("%d\n", add_kernel_launch(&kernel, 0, 3, 1, 1, 0x1008, 0x2000, 48, 1.5f, true, -5));
    printf("%d\n", add_kernel_launch(&kernel, 0, 3, 1, 1, 0x1000, 0x2000, 47, 1.5f, true, -5));
    printf("%d\n", add_kernel_launch(&kernel, 0, 0, 1, 1, 0x1000, 0x2000, 48, 1.5f, true, -5));
    printf("%d\n", add_kernel_unload(&kernel));
    return add_kernel_launch(&kernel, 0, 3, 2, 1, 0x1000, 0x2000, 48, 1.5f, true, -5) != CUDA_ERROR_INVALID_HANDLE;
}
"#;

fn ready(text: &str, signature: &str, archs: &[&str]) -> KernelArtifacts {
    let program = Program::parse(&[Source::new("k.rt", text)]);
    let info = program.kernel(None).unwrap().clone();
    let params: Vec<&str> = info.params.iter().map(|p| p.name.as_str()).collect();
    let args = Signature::parse(signature).unwrap().bind(&params).unwrap();
    let spec = Spec { kernel: Some(info.name.clone()), args, options: Default::default(), arch: None };
    let specialization = spec.specialize(&program).unwrap();
    let compile = |arch: &&str| {
        rtc_compiler::compile(&program, &specialization, arch, String::new(), &mut Silent).unwrap().artifact
    };
    let variants = archs.iter().map(compile).collect();
    KernelArtifacts { name: info.name.clone(), info, specialization, variants }
}

fn cc(folder: &Path, args: &[&str]) {
    let output = Command::new("cc").current_dir(folder).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A folder with the header of the driver.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("c-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("cuda.h"), CUDA_H).unwrap();
    folder
}

/// Compiles `STEM.c` and a program, and gives what that prints; removes the folder.
fn run(folder: PathBuf, stem: &str, main: &str) -> String {
    std::fs::write(folder.join("main.c"), format!("{DRIVER}#include \"{stem}.h\"\n{main}")).unwrap();
    let strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-I."];
    cc(&folder, &[&strict[..], &[&format!("{stem}.c"), "main.c", "-o", "main"]].concat());
    // The header also serves C++.
    if Command::new("c++").arg("--version").output().is_ok_and(|o| o.status.success()) {
        let both = ["-Wall", "-Wextra", "-I.", "-x", "c++", "-fsyntax-only", &format!("{stem}.h")];
        let output = Command::new("c++").current_dir(&folder).args(both).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let output = Command::new(folder.join("main")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    std::fs::remove_dir_all(folder).unwrap();
    text
}

#[test]
fn sources_compile_and_launch() {
    let folder = folder("source");
    let [header, source] = write_c(&folder, "add", vec![ready(ADD, ADD_SIGNATURE, &["sm_90a", "sm_80"])]).unwrap();
    insta::assert_snapshot!("header", std::fs::read_to_string(header).unwrap());
    let source = std::fs::read_to_string(source).unwrap();
    let code: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with('"')).collect();
    insta::assert_snapshot!("source", code.join("\n"));
    insta::assert_snapshot!("launched", run(folder, "add", ADD_MAIN));
}

/// Sums blocks of rows; a type, a value, promises, a configuration under a condition.
const SCALE: &str = "\
@triton.jit
def scale(x, y, n, stride, BLOCK: tl.constexpr, UP: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i * stride, mask=i < n)
    tl.store(y + i, v * UP, mask=i < n)
";

#[test]
fn families_choose_at_the_launch() {
    let folder = folder("family");
    std::fs::write(folder.join("scale.rt"), SCALE).unwrap();
    let instance = Instance::new("scale", "*{T}, *{T}, i32, i32, BLOCK=128")
        .types("T", ["fp32", "fp16"])
        .values("UP", ["2", "3"])
        .configure("n >= 1000 * 10", "BLOCK=1024, num_warps=8")
        .specialize("x:16, y:16, n:16, stride:1")
        .specialize("x:16");
    let config = Config::new().arch(["sm_80", "sm_90a"]).instance(instance).c_sources().out_dir(&folder);
    config.compile(&[folder.join("scale.rt")]).unwrap();
    let main = r#"
static void grid(const scale_fp16_3_config_t *config, void *context, unsigned int size[3]) {
    printf("block %u, %u warps: ", config->BLOCK, config->num_warps);
    size[0] = (*(int *)context + config->BLOCK - 1) / config->BLOCK;
}
static void shown(void **p) { printf(": %#llx %#llx", *(CUdeviceptr *)p[0], *(CUdeviceptr *)p[1]); }
static void launch(const scale_fp16_3_t *kernel, CUdeviceptr x, int n, int stride) {
    printf("x %#llx n %d stride %d: ", x, n, stride);
    printf("%d\n", scale_fp16_3_launch(kernel, 0, grid, &n, x, 0x20000, n, stride));
}
int main(void) {
    scale_fp32_2_t other;
    scale_fp16_3_t kernel;
    show = shown;
    printf("%d %d\n", scale_fp32_2_load(&other), scale_fp16_3_load(&kernel));
    launch(&kernel, 0x1000, 160, 1);   /* all promises */
    launch(&kernel, 0x1000, 161, 1);   /* x alone */
    launch(&kernel, 0x1002, 160, 1);   /* none */
    launch(&kernel, 0x1000, 9999, 3);
    launch(&kernel, 0x1002, 10000, 1); /* the configuration */
    launch(&kernel, 0x1000, 0, 1);
    return scale_fp16_3_unload(&kernel) + scale_fp32_2_unload(&other);
}
"#;
    insta::assert_snapshot!("family", run(folder, "scale", main));
}

const MATMUL: &str = "\
@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    num_n = tl.cdiv(N, BN)
    m = pid // num_n * BM + tl.arange(0, BM)
    n = pid % num_n * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        x = tl.load(a + m[:, None] * K + (i * BK + k)[None, :], mask=(m < M)[:, None] & (i * BK + k < K)[None, :], other=0.0)
        y = tl.load(b + (i * BK + k)[:, None] * N + n[None, :], mask=(i * BK + k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc += tl.dot(x, y)
    tl.store(c + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m < M)[:, None] & (n < N)[None, :])
";

#[test]
fn launches_fill_in_maps_and_grids() {
    let folder = folder("maps");
    let mut kernel =
        ready(MATMUL, "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, 128, 128, 64", &["sm_80", "sm_90a"]);
    let metadata = &kernel.variants[1].metadata;
    assert!(metadata.persistent.is_some() && metadata.params.len() > 6, "{}", metadata.to_json());
    // What the launch adds besides.
    let metadata = &mut kernel.variants[0].metadata;
    (metadata.cluster, metadata.launch_pdl, metadata.launch_cooperative_grid) = ([2, 1, 1], true, true);
    metadata.global_scratch_bytes = 48;
    write_c(&folder, "matmul", vec![kernel]).unwrap();
    let main = r#"
int main(void) {
    matmul_t kernel;
    capability = 80;
    printf("%d\n", matmul_load(&kernel));
    printf("%d\n", matmul_launch(&kernel, 0, 300, 1, 1, 0x1000, 0x2000, 0x3000, 1024, 512, 256));
    matmul_unload(&kernel);
    capability = 90;
    printf("%d\n", matmul_load(&kernel));
    printf("%d\n", matmul_launch(&kernel, 0, 300, 1, 1, 0x1000, 0x2000, 0x3000, 1024, 512, 256));
    printf("%d\n", matmul_launch(&kernel, 0, 3, 1, 1, 0x1000, 0x2000, 0x3000, 1024, 512, 0));
    printf("%d\n", matmul_launch(&kernel, 0, 3, 1, 1, 0x1000, 0x2000, 0x3000, 1024, 504, 256));
    return matmul_unload(&kernel);
}
"#;
    insta::assert_snapshot!("maps", run(folder, "matmul", main));
}

#[test]
fn tensors_are_arguments() {
    let folder = folder("tensor");
    let mut kernel = ready(ADD, ADD_SIGNATURE, &["sm_90a"]);
    let param = &mut kernel.variants[0].metadata.params[0];
    param.ty = ParamType::Descriptor { element: DType::Fp32, block_shape: vec![16, 32] };
    param.divisible_by = 1;
    let map =
        TensorMap { dtype: DType::Fp32, block_shape: vec![16, 32], swizzle: 128, l2_promotion: 256, interleave: 0 };
    param.tensor_map = Some(map);
    write_c(&folder, "add", vec![kernel]).unwrap();
    let main = r#"
int main(void) {
    add_kernel_t kernel;
    rtc_tensor_t x = {0x4000, {100, 64}, {128, 1}, true};
    printf("%d\n", add_kernel_load(&kernel));
    printf("%d\n", add_kernel_launch(&kernel, 0, 3, 2, 1, &x, 0x2000, 48, 1.5f, true, -5));
    x.strides[0] = 127;
    printf("%d\n", add_kernel_launch(&kernel, 0, 3, 2, 1, &x, 0x2000, 48, 1.5f, true, -5));
    x = (rtc_tensor_t){0x4008, {100, 64}, {128, 1}, false};
    printf("%d\n", add_kernel_launch(&kernel, 0, 3, 2, 1, &x, 0x2000, 48, 1.5f, true, -5));
    return 0;
}
"#;
    insta::assert_snapshot!("tensor", run(folder, "add", main));
}

#[test]
fn arithmetic_of_sizes_is_that_of_expressions() {
    let numbers = [i64::MIN, i64::MIN + 1, -8, -7, -1, 0, 1, 2, 7, 8, 1 << 31, 1 << 32, i64::MAX - 1, i64::MAX];
    let names = [("+", "add"), ("-", "sub"), ("*", "mul"), ("//", "floordiv"), ("%", "mod"), ("cdiv", "cdiv")];
    let mut main = String::from("int main(void) {\n    bool bad;\n    int wrong = 0;\n");
    let c = |n: i64| if n == i64::MIN { "INT64_MIN".to_owned() } else { format!("INT64_C({n})") };
    for (op, name) in names {
        let text = if op == "cdiv" { "cdiv(a, b)".to_owned() } else { format!("a {op} b") };
        let expr: Expr = text.parse().unwrap();
        for (a, b) in numbers.iter().flat_map(|a| numbers.iter().map(move |b| (*a, *b))) {
            let value = expr.eval_values(&[a, b]);
            let expected = value.clone().unwrap_or(0);
            main.push_str(&format!(
                "    bad = false;\n    wrong += rtc_{name}({}, {}, &bad) != {} || bad != {};\n",
                c(a),
                c(b),
                c(expected),
                value.is_err()
            ));
        }
    }
    main.push_str("    printf(\"%d\\n\", wrong);\n    return 0;\n}\n");
    let folder = folder("arithmetic");
    let arithmetic = include_str!("../src/c/arithmetic.c");
    std::fs::write(folder.join("a.h"), format!("#include <stdbool.h>\n#include <stdint.h>\n{arithmetic}")).unwrap();
    std::fs::write(folder.join("a.c"), "#include \"cuda.h\"\n").unwrap();
    assert_eq!(run(folder, "a", &main), "0\n");
}
