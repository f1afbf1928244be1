//! Changes of tile IR texts, so that many still read. Shared with the fuzz target `tile_ir`.

/// A linear congruential generator; the upper half is used.
pub struct Random(pub u64);

impl Random {
    /// A number below `n`; 0 for 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

/// Words of the language, so that changes often still read.
const WORDS: &[&str] = &[
    "%x",
    "%a",
    "%i",
    "#l0",
    "#l1",
    "tile<4xi32>",
    "tile<1x2x4x8xf32, #l1>",
    "f32",
    "i1",
    "ptr<f16>",
    "0",
    "-1",
    "64",
    "4294967296",
    "1.5",
    "inf",
    "nan(0x7ff8000000000000)",
    "mask",
    "reduce",
    "addf",
    "yields",
    "^",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "=",
    ",",
    ":",
    "axis",
    "\"s\"",
    "é",
    "warps 8",
    "phase laid",
    "phase scheduled",
    "loc(0:1..2)",
    "trans",
    "reshape",
    "split",
    "join",
    "cat",
    "dot",
    "dot_buffers",
    "broadcast",
    "scan",
    "mma_v2(shape [64, 64], warps [4, 1])",
    "#s0",
    "shared<4xi32>",
    "shared<4x8xf16, #s0, 3>",
    "barrier<2>",
    "desc<4x8xf16>",
    "block_ptr<4xf32>",
    "alloc_shared",
    "alloc_barriers",
    "slot",
    "shared_trans",
    "shared_slice",
    "local_store",
    "local_load",
    "nvmma(shape [64, 64], bits 16, swizzle 128, order [1, 0])",
];

/// Up to three changes of a text; lines of `others` may get in.
pub fn mutate(random: &mut Random, text: &str, others: &[String]) -> String {
    let mut text = text.to_string();
    for _ in 0..1 + random.below(3) {
        let cut = |random: &mut Random, text: &str| {
            let mut at = random.below(text.len() + 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (a, b) = (cut(random, &text), cut(random, &text));
        match random.below(6) {
            0 => text.insert_str(a, WORDS[random.below(WORDS.len())]),
            1 => {
                let end = a + text[a..].find([' ', '\n']).unwrap_or(0);
                text.replace_range(a..end, "");
            }
            2 => {
                let mut lines: Vec<&str> = text.lines().collect();
                let (i, j) = (random.below(lines.len()), random.below(lines.len()));
                if i < lines.len() && j < lines.len() {
                    lines.swap(i, j);
                }
                text = lines.join("\n");
            }
            3 => {
                let other = &others[random.below(others.len())];
                let line = other.lines().nth(random.below(other.lines().count())).unwrap_or_default();
                text.insert_str(a, line);
            }
            4 => {
                let word = WORDS[random.below(WORDS.len())];
                let end = a + text[a..].find([' ', ',', '\n']).unwrap_or(0);
                text.replace_range(a..end, word);
            }
            _ => {
                let (a, b) = (a.min(b), a.max(b).min(a.min(b) + 12));
                if text.is_char_boundary(b) {
                    let piece = text[a..b].to_string();
                    text.insert_str(b, &piece);
                }
            }
        }
    }
    text
}
