//! Changes of kernel texts, word by word, so that many still read. Shared with the fuzz target `source`.

/// Numbers that follow from a seed (xorshift).
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `n`; 0 for 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Cuts a text into words, numbers, blanks and single signs.
pub fn tokens(text: &str) -> Vec<&str> {
    let class = |c: char| match c {
        _ if c.is_alphanumeric() || c == '_' => 0,
        ' ' => 1,
        _ => 2,
    };
    let mut out = Vec::new();
    let mut start = 0;
    let mut last = None;
    for (at, c) in text.char_indices() {
        if last.is_some_and(|l| l != class(c) || l == 2) {
            out.push(&text[start..at]);
            start = at;
        }
        last = Some(class(c));
    }
    out.push(&text[start..]);
    out
}

/// The tokens that are inserted, in addition to tokens from elsewhere.
const SPICE: &[&str] = &[
    "0",
    "1",
    "-1",
    "3",
    "12",
    "1048576",
    "9223372036854775808",
    "1e39",
    "0.5",
    "None",
    "True",
    "\"s\"",
    "tl.constexpr",
    "(",
    ")",
    "[",
    "]",
    ":",
    ",",
    "+",
    "//",
    "%",
    "**",
    "not ",
    "and",
    "==",
    "*",
    "~",
    "<<",
    "if",
    "else",
    "for",
    "while",
    "return",
    "lambda",
    "tl.load",
    "tl.dot",
    "tl.sum",
    "tl.arange",
    "tl.static_range",
    "range",
    ".to",
    ".shape",
    "\n",
    "    ",
    "tl.float16",
    "tl.int8",
    "tl.float8e5",
    "tl.reshape",
    "tl.where",
    "is",
    "in",
    "assert",
    "min",
    "é",
    "\0",
];

/// Up to three changes of a text that is given in tokens.
pub fn mutant(tokens: &[&str], random: &mut Random) -> String {
    let mut tokens: Vec<&str> = tokens.to_vec();
    for _ in 0..1 + random.below(3) {
        let at = random.below(tokens.len());
        let other = tokens[random.below(tokens.len())];
        match random.below(5) {
            0 => drop(tokens.remove(at)),
            1 => tokens.insert(at, other),
            2 => tokens[at] = other,
            3 => tokens[at] = SPICE[random.below(SPICE.len())],
            _ => tokens.insert(at, SPICE[random.below(SPICE.len())]),
        }
        if tokens.is_empty() {
            break;
        }
    }
    tokens.concat()
}
