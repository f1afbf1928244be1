//! Texts and bytes with a few places changed, for tests that nothing of the kind ends a program.
// Each test that has this file uses what it needs.
#![allow(dead_code)]

/// xorshift64*.
pub struct Random(u64);

impl Random {
    /// A number below `n`, 0 for none.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n.max(1)
    }

    /// A text with one to four places changed.
    pub fn damage(&mut self, text: &[u8]) -> Vec<u8> {
        const WORDS: [&str; 22] = [
            "0",
            "-1",
            "99999999999999999999",
            "18446744073709551615",
            "-9223372036854775808",
            "1e999",
            "null",
            "true",
            "\"\"",
            "[]",
            "{}",
            "\"x\"",
            "[[[[[[[[",
            "((((((((",
            "\"%\"",
            "n",
            "cdiv(",
            " // 0",
            "% 0",
            "\\u0000",
            "\u{202e}",
            ",",
        ];
        let mut text = text.to_vec();
        for _ in 0..=self.below(3) {
            let (at, other) = (self.below(text.len()), self.below(text.len()));
            let (from, to) = (at.min(other), at.max(other).min(at.min(other) + 40));
            match self.below(5) {
                0 => text[at] ^= 1 << self.below(8),
                1 => text.truncate(at),
                2 => drop(text.drain(from..to)),
                3 => {
                    let piece = text[from..to].to_vec();
                    text.splice(other..other, piece);
                }
                _ => drop(text.splice(from..(from + self.below(4)).min(to), WORDS[self.below(WORDS.len())].bytes())),
            }
            if text.is_empty() {
                text.push(b'{');
            }
        }
        text
    }
}

/// Numbers by the seed that RTC_FUZZ_SEED tells.
pub fn random() -> Random {
    let seed = std::env::var("RTC_FUZZ_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    println!("seed {seed}");
    Random(0x9e37_79b9_7f4a_7c15 ^ seed)
}

/// How many texts are tried: RTC_FUZZ_ROUNDS, or else so many.
pub fn rounds(usual: usize) -> usize {
    std::env::var("RTC_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Calls `read` with so many damaged texts; gives how many it could read.
pub fn read_damaged(text: &[u8], read: &dyn Fn(&[u8]) -> bool) -> usize {
    let mut random = random();
    (0..rounds(20_000)).filter(|_| read(&random.damage(text))).count()
}
