//! The estimated work of a kernel in a launch.

use crate::stages::{planned, target};
use crate::{Failure, Program, Specialization};
use rtc_abi::Metadata;
use rtc_passes::work::{Launch, Work, work};

/// The estimated work of a program in a launch, and the metadata: the passes run, the back end does not. The
/// `source_hash` of the metadata is that of the kernel after the passes: two kernels with one hash have the same code.
///
/// # Errors
///
/// As for [`compile`](crate::compile).
pub fn estimate(
    program: &Program,
    specialization: &Specialization,
    arch: &str,
    launch: &Launch,
) -> Result<(Work, Metadata), Failure> {
    let (kernel, metadata) = planned(program, specialization, arch)?;
    Ok((work(&kernel, launch, target(arch)?.capability), metadata))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Signature, Source, Spec};
    use rtc_passes::work::Unit;

    fn estimated(text: &str, signature: &str, grid: [u32; 3], integers: &[(&str, i64)]) -> (Work, Metadata) {
        let program = Program::parse(&[Source::new("k.rt", text)]);
        let kernel = program.kernel(None).expect("there is one");
        let names: Vec<&str> = kernel.params.iter().map(|p| p.name.as_str()).collect();
        let args = Signature::parse(signature).and_then(|s| s.bind(&names)).expect("it fits");
        let spec = Spec { args, ..Spec::default() };
        let specialization = spec.specialize(&program).expect("it fits");
        let launch = Launch { grid, integers: integers.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect() };
        estimate(&program, &specialization, "sm_90a", &launch).expect("it compiles")
    }

    const ROWS: &str = "@triton.jit\ndef rows(x, y, stride, n, B: tl.constexpr):\n    \
        row = tl.program_id(0)\n    total = tl.zeros((B,), tl.float32)\n    \
        for at in range(0, n, B):\n        cols = at + tl.arange(0, B)\n        \
        total += tl.load(x + row * stride + cols, mask=cols < n, other=0.0)\n    \
        tl.store(y + row, tl.sum(total))\n";

    #[test]
    fn what_all_programs_read_is_told_apart() {
        let text = "@triton.jit\ndef norm(x, w, n, B: tl.constexpr):\n    row = tl.program_id(0)\n    \
            for at in range(0, n, B):\n        cols = at + tl.arange(0, B)\n        \
            v = tl.load(x + row * n + cols, mask=cols < n, other=0.0)\n        \
            tl.store(x + row * n + cols, v * tl.load(w + cols, mask=cols < n, other=0.0), mask=cols < n)\n";
        let work = estimated(text, "*fp32:16, *fp32:16, i32:16, 256", [64, 1, 1], &[("n", 1024)]).0;
        assert_eq!((work.read, work.common), (8192.0, 4096.0));
    }

    #[test]
    fn bytes_follow_the_loops() {
        let work = |n| estimated(ROWS, "*fp32:16, *fp32:16, i32:16, i32:16, 256", [64, 1, 1], &[("n", n)]).0;
        let (short, long) = (work(1024), work(4096));
        assert!(short.is_certain);
        assert_eq!((short.read, short.written), (4096.0, 4.0));
        assert_eq!(long.read, 16384.0);
        assert!(long.cycles > short.cycles + 3.0 * 700.0, "{short:?} {long:?}");
        assert!(long.instructions > 2.0 * short.instructions);
        let unknown = estimated(ROWS, "*fp32:16, *fp32:16, i32:16, i32:16, 256", [64, 1, 1], &[]).0;
        assert!(!unknown.is_certain);
    }

    const MATMUL: &str = "@triton.jit\ndef mm(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):\n    \
        m = tl.program_id(0) * BM + tl.arange(0, BM)\n    n = tl.program_id(1) * BN + tl.arange(0, BN)\n    \
        k = tl.arange(0, BK)\n    pa = a + m[:, None] * K + k[None, :]\n    pb = b + k[:, None] * N + n[None, :]\n    \
        acc = tl.zeros((BM, BN), tl.float32)\n    for i in range(0, tl.cdiv(K, BK)):\n        \
        acc += tl.dot(tl.load(pa), tl.load(pb))\n        pa += BK\n        pb += BK * N\n    \
        tl.store(c + m[:, None] * N + n[None, :], acc.to(tl.float16))\n";

    fn matmul(bm: u32, bn: u32, bk: u32) -> (Work, Metadata) {
        let signature = format!("*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, {bm}, {bn}, {bk}");
        let integers = [("M", 1024), ("N", 1024), ("K", 1024)];
        estimated(MATMUL, &signature, [1024 / bm, 1024 / bn, 1], &integers)
    }

    #[test]
    fn products_are_counted_by_who_computes_them() {
        let (work, metadata) = matmul(128, 128, 64);
        assert!(work.is_certain, "{work:?}");
        let expected = 2.0 * 128.0 * 128.0 * 1024.0;
        assert_eq!(work.dots, [(Unit::WarpGroup(16), expected)]);
        // Both operands, including prefetched ones: at most as much again as the depth of the pipeline.
        let read = 2.0 * 128.0 * 1024.0 * 2.0;
        assert!((read..1.4 * read).contains(&work.read), "{work:?}");
        assert_eq!(work.written, 2.0 * 128.0 * 128.0);
        assert!(metadata.shared_bytes >= 2 * 2 * 128 * 64 * 2, "{}", metadata.shared_bytes);
        // The sums alone take 128 registers.
        assert!((128..240).contains(&work.registers), "{work:?}");
        assert!(matmul(64, 64, 64).0.registers < work.registers);
    }

    #[test]
    fn products_take_at_least_the_time_of_the_tensor_cores() {
        let (work, _) = matmul(128, 128, 64);
        let least = work.dot_operations() / Unit::WarpGroup(16).per_cycle(90);
        assert!((least..6.0 * least).contains(&work.cycles), "{} of {least}", work.cycles);
    }
}
