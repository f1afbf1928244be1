//! `wgmma` of every type on numbers whose sums round, and on special ones.

use super::case::{ALL, B_START, BF16, Case, E4M3, E5M2, F16, Lay, Operands, S8, STEPS, TF32};
use super::inputs::{column, kind_of};
use super::launch::{Launch, Param, Part};

const K128: Lay = Lay { swizzle: 128, outer: false };

fn class(ty: &str, special: bool) -> &'static str {
    match (ty, special) {
        ("f16", false) => "hwide",
        ("f16", true) => "f16x2",
        ("bf16", false) => "bwide",
        ("bf16", true) => "bf16x2",
        ("e4m3", false) => "e4m3x4",
        ("e5m2", false) => "e5m2x4",
        ("e4m3" | "e5m2" | "s8" | "u8", _) => "s8x4",
        ("s32", _) => "i32",
        (_, false) => "fwide",
        (_, true) => "f32",
    }
}

fn bytes(class: &str, which: usize, length: usize) -> Vec<u8> {
    let size = if kind_of(class) == 'h' { 2 } else { 4 };
    let values = column(class, which, length / size);
    values.iter().flat_map(|v| v.to_le_bytes()[..size].to_vec()).collect()
}

fn launch(case: &Case, special: bool) -> Launch {
    let Operands { types, k, bytes: size, .. } = case.operands;
    let [d, a, b] = types.split('.').collect::<Vec<_>>()[..] else { panic!("{types}") };
    let (n, depth) = (case.n, k * STEPS);
    let mut image = bytes(class(a, special), 0, B_START);
    let end = (0..n).flat_map(|row| (0..depth).map(move |i| (row, i)));
    let end = end.map(|(row, i)| case.b.place(n, depth, size, row, i) + size).max().unwrap();
    image.extend(bytes(class(b, special), 1, end.next_multiple_of(2048)));
    let registers = bytes(class(a, special), 2, 128 * 4 * 4 * STEPS);
    let before = bytes(class(d, special), 2, 128 * 4 * case.registers());
    let halves = d == "f16";
    let part = Part { offset: 0, count: before.len() / if halves { 2 } else { 4 }, bytes: if halves { 2 } else { 4 } };
    let shared = image.len();
    let mut params = vec![
        Param::In(image),
        Param::In(registers),
        Param::Out(before),
        Param::Number(shared as u64, 4),
        Param::Number(u64::from(case.adds), 4),
    ];
    for step in 0..STEPS {
        params.push(Param::Number(case.a.map_or(0, |lay| lay.descriptor(0, 64, depth, size, step * k)), 8));
        params.push(Param::Number(case.b.descriptor(B_START, n, depth, size, step * k), 8));
    }
    let name = format!("wgmma {}{}", case.name(), if special { " special" } else { "" });
    Launch {
        name,
        ptx: case.kernel(),
        blocks: 1,
        threads: 128,
        shared,
        params,
        parts: vec![part],
        all: false,
        ulp: 0,
        power: None,
        pairs: false,
    }
}

/// All launches.
pub fn products() -> Vec<Launch> {
    let mut all = ALL.to_vec();
    all.push(Operands { types: "f32.e4m3.e5m2", ..E4M3 });
    all.push(Operands { types: "f32.e5m2.e4m3", ..E5M2 });
    all.push(Operands { types: "f16.e5m2.e5m2", ..E5M2 });
    all.push(Operands { types: "s32.s8.u8", ..S8 });
    all.push(Operands { types: "s32.u8.s8", ..S8 });
    let mut launches = Vec::new();
    for operands in &all {
        for special in [false, true] {
            launches.push(launch(&Case::new(*operands, 64, Some(K128), K128), special));
            launches.push(launch(&Case::new(*operands, 32, None, K128), special));
        }
        for lay in Lay::all(operands) {
            launches.push(launch(&Case::new(*operands, 16, Some(lay), lay), false));
        }
        launches.push(launch(&Case { adds: false, ..Case::new(*operands, 24, None, K128) }, false));
    }
    for n in [8, 16, 40, 96, 128, 192, 248, 256] {
        launches.push(launch(&Case::new(F16, n, Some(K128), K128), false));
        if n % 16 == 0 {
            launches.push(launch(&Case::new(S8, n, Some(K128), K128), false));
        }
    }
    for signs in [(1, -1), (-1, 1), (-1, -1)] {
        for operands in [F16, BF16, TF32, E5M2] {
            launches.push(launch(&Case { signs, ..Case::new(operands, 16, Some(K128), K128) }, false));
        }
    }
    launches
}
