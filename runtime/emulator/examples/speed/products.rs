//! Loops of matrix products: `mma.sync` on fragments from shared memory, `wgmma` on tiles there.

use super::Measured;

/// A form of `mma.sync` or `wgmma`.
struct Form {
    name: &'static str,
    /// Size along k and types, as PTX writes them.
    k: u32,
    types: &'static str,
    /// The content of the inputs.
    word: fn(u32) -> u32,
}

/// Two halves of moderate size.
fn halves(i: u32) -> u32 {
    0x3c00_3800 + i % 701 * 0x1_0003
}

/// Four bytes whose exponents are near the middle.
fn bytes(i: u32) -> u32 {
    0x3830_3438 ^ ((i % 701).wrapping_mul(0x9e37_79b1) & 0x8787_8787)
}

/// Two of bf16 of moderate size; also an f32, and each part of an f64.
fn brains(i: u32) -> u32 {
    0x3f80_3f00 + i % 127 * 0x1_0003
}

/// All of them.
pub fn measured() -> Vec<Measured> {
    let warp = [
        Form { name: "mma f16", k: 16, types: "f32.f16.f16.f32", word: halves },
        Form { name: "mma bf16", k: 16, types: "f32.bf16.bf16.f32", word: brains },
        Form { name: "mma tf32", k: 8, types: "f32.tf32.tf32.f32", word: brains },
        Form { name: "mma e4m3", k: 32, types: "f32.e4m3.e4m3.f32", word: bytes },
        Form { name: "mma s8", k: 32, types: "s32.s8.s8.s32", word: bytes },
        Form { name: "mma f64", k: 4, types: "f64.f64.f64.f64", word: brains },
    ];
    let group = [
        Form { name: "wgmma f16", k: 16, types: "f32.f16.f16", word: halves },
        Form { name: "wgmma bf16", k: 16, types: "f32.bf16.bf16", word: brains },
        Form { name: "wgmma tf32", k: 8, types: "f32.tf32.tf32", word: brains },
        Form { name: "wgmma e4m3", k: 32, types: "f32.e4m3.e4m3", word: bytes },
        Form { name: "wgmma s8", k: 32, types: "s32.s8.s8", word: bytes },
    ];
    warp.iter().map(of_warps).chain(group.iter().map(of_groups)).collect()
}

fn list(letter: char, range: std::ops::Range<u32>) -> String {
    let names: Vec<String> = range.map(|n| format!("%{letter}{n}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// The inner loop of a dot: fragments from shared memory, eight `mma` per iteration.
fn of_warps(form: &Form) -> Measured {
    let Form { name, k, types, word } = *form;
    let turns = 200;
    let (wide, trans) = (name.ends_with("f64"), if k == 16 { ".trans" } else { "" });
    let mut text = String::from(
        ".version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n) {
    .shared .align 16 .b8 s[8192];
    .reg .b32 %r<20>; .reg .b32 %a<8>; .reg .b32 %b<16>; .reg .b32 %d<32>; .reg .b64 %rd<8>; .reg .pred %p<2>;
    .reg .b64 %A<8>; .reg .b64 %B<16>; .reg .b64 %D<32>;
    ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y]; ld.param.b32 %r1, [n];
    mov.u32 %r2, %tid.x; mul.wide.u32 %rd3, %r2, 16; add.s64 %rd4, %rd1, %rd3;
    mov.u32 %r3, s; mad.lo.u32 %r4, %r2, 16, %r3;
    ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%rd4]; st.shared.v4.b32 [%r4], {%r5, %r6, %r7, %r8};
    st.shared.v4.b32 [%r4+4096], {%r8, %r7, %r6, %r5}; bar.sync 0;
    and.b32 %r9, %r2, 31; mad.lo.u32 %r10, %r9, 16, %r3; mov.b32 %r11, 0;\n",
    );
    for i in 0..32 {
        text.push_str(&format!("mov.b32 %d{i}, 0; mov.b64 %D{i}, 0;\n"));
    }
    text.push_str("LOOP: ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%a0, %a1, %a2, %a3}, [%r10];\n");
    for i in 0..4 {
        let to = list('b', 4 * i..4 * i + 4);
        text.push_str(&format!("ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {to}, [%r10+{}];\n", 512 * (i + 1)));
    }
    if wide {
        for i in 0..16 {
            text.push_str(&format!("mov.b64 %B{i}, {{%b{i}, %b{i}}}; mov.b64 %A{}, {{%a0, %a1}};\n", i % 8));
        }
    }
    for i in 0..8 {
        let (a, b, d) = match wide {
            true => (list('A', 0..2), list('B', i..i + 1), list('D', 4 * i..4 * i + 4)),
            false => (list('a', 0..4), list('b', 2 * i..2 * i + 2), list('d', 4 * i..4 * i + 4)),
        };
        text.push_str(&format!("mma.sync.aligned.m16n8k{k}.row.col.{types} {d}, {a}, {b}, {d};\n"));
    }
    text.push_str("add.s32 %r11, %r11, 1; setp.lt.s32 %p1, %r11, %r1; @%p1 bra LOOP;\nadd.s64 %rd5, %rd2, %rd3;\n");
    text.push_str("st.global.v4.b32 [%rd5], {%d0, %d5, %d10, %d31};\nst.global.b64 [%rd5], %D7;\nret;\n}\n");
    let mut measured = Measured::with(name, &text, (8, 128), 4096, turns, word);
    measured.operations = 8 * 4 * u64::from(turns) * 8 * (2 * 16 * 8 * u64::from(k));
    measured
}

/// Dots of 64 rows and 128 columns, both operands in shared memory: four `wgmma` per iteration.
fn of_groups(form: &Form) -> Measured {
    let Form { name, k, types, word } = *form;
    let turns = 40;
    let mut text = String::from(
        ".version 8.3
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n) {
    .shared .align 1024 .b8 s[24576];
    .reg .b32 %r<20>; .reg .b32 %d<64>; .reg .b64 %rd<8>; .reg .b64 %x<8>; .reg .pred %p<2>;
    ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y]; ld.param.b32 %r1, [n];
    mov.u32 %r2, %tid.x; mul.wide.u32 %rd3, %r2, 16; add.s64 %rd4, %rd1, %rd3;
    mov.u32 %r3, s; mad.lo.u32 %r4, %r2, 16, %r3;\n",
    );
    for at in (0..24576).step_by(2048) {
        text.push_str(&format!(
            "ld.global.v4.b32 {{%r5, %r6, %r7, %r8}}, [%rd4+{at}]; st.shared.v4.b32 [%r4+{at}], {{%r5, %r6, %r7, %r8}};\n"
        ));
    }
    for i in 0..64 {
        text.push_str(&format!("mov.b32 %d{i}, 0;\n"));
    }
    // Rows of 128 bytes, swizzled.
    let layout = 1u64 << 16 | (1024 >> 4) << 32 | 1 << 62;
    text.push_str(&format!(
        "fence.proxy.async; bar.sync 0; shr.u32 %r9, %r3, 4; cvt.u64.u32 %x0, %r9; add.s64 %x0, %x0, {layout};
add.s64 %x1, %x0, 512; mov.b32 %r11, 0; setp.eq.b32 %p0, %r1, %r1;
LOOP: wgmma.fence.sync.aligned;\n"
    ));
    let whole = types.starts_with("s32");
    let tail = match (whole, k) {
        (true, _) => "",
        (_, 16) => ", 1, 1, 0, 0",
        _ => ", 1, 1",
    };
    for i in 0..4 {
        let d = list('d', 0..64);
        text.push_str(&format!("add.s64 %x2, %x0, {}; add.s64 %x3, %x1, {};\n", 2 * i, 2 * i));
        text.push_str(&format!("wgmma.mma_async.sync.aligned.m64n128k{k}.{types} {d}, %x2, %x3, %p0{tail};\n"));
    }
    text.push_str("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n");
    text.push_str("add.s32 %r11, %r11, 1; setp.lt.s32 %p1, %r11, %r1; @%p1 bra LOOP;\nadd.s64 %rd5, %rd2, %rd3;\n");
    text.push_str("st.global.v4.b32 [%rd5], {%d0, %d5, %d10, %d63};\nret;\n}\n");
    let mut measured = Measured::with(name, &text, (2, 128), 24576, turns, word);
    measured.operations = 2 * u64::from(turns) * 4 * (2 * 64 * 128 * u64::from(k));
    measured
}
