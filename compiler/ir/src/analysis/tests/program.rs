//! Random programs of integers and addresses, as text: straight lines and loops, no accesses.

use std::fmt::Write;

/// A sequence of random numbers.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// Kinds of values by their type.
const TYPES: [&str; 11] = [
    "i32",
    "i64",
    "tile<16xi32>",
    "tile<16xi64>",
    "tile<16x8xi32>",
    "tile<16xptr<i16>>",
    "tile<16x8xptr<i16>>",
    "tile<16xi1>",
    "tile<16x8xi1>",
    "tile<8x16xi32>",
    "tile<16xi8>",
];
const SCALAR: usize = 0;
const LONG: usize = 1;
const TILE: usize = 2;
const WIDE: usize = 3;
const SQUARE: usize = 4;
const POINTERS: usize = 5;
const ADDRESSES: usize = 6;
const MASK: usize = 7;
const SQUARE_MASK: usize = 8;
const TURNED: usize = 9;
const BYTES: usize = 10;

const NUMBERS: [i64; 20] =
    [0, 1, 2, 3, 5, 7, 8, 16, 24, 48, 64, -1, -3, -16, -32, 100, 4096, 65536, 2147483647, -1640531535];
const DIVISORS: [i64; 8] = [1, 2, 3, 4, 8, 16, 12, 64];

struct Writer {
    random: Random,
    out: String,
    count: usize,
    /// The names that can be used here, by type.
    names: [Vec<String>; TYPES.len()],
}

/// A program from a seed.
pub(super) fn program(seed: u64) -> String {
    let mut w = Writer {
        random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        out: String::new(),
        count: 0,
        names: Default::default(),
    };
    w.names[SCALAR] = vec!["a".into(), "b".into(), "n".into()];
    w.line(SCALAR, "program_id {axis = 0}");
    w.line(SCALAR, "program_id {axis = 1}");
    w.line(SCALAR, "num_programs {axis = 0}");
    w.line(SCALAR, "constant {value = 16}");
    w.line(LONG, "constant {value = -24}");
    w.line(TILE, "arange {start = 0, end = 16}");
    w.line(WIDE, "constant {value = 3}");
    w.line(POINTERS, "splat %x");
    w.line(ADDRESSES, "splat %x");
    w.line(MASK, "constant {value = 1}");
    let all = w.line(TILE, "constant {value = 5}");
    w.square(&all);
    w.compare(SQUARE, SQUARE_MASK);
    w.lines(30, 0);
    format!(
        "kernel @k(%x: ptr<i16> {{sig = \"*i16\", align = 16}}, %a: i32 {{sig = \"i32\", align = 16}}, %b: i32 {{sig = \"i32\"}}, %n: i32 {{sig = \"i32\", align = 8}}) warps 1 phase tile {{\n{}  ret\n}}\n",
        w.out
    )
}

impl Writer {
    fn lines(&mut self, count: usize, depth: usize) {
        for _ in 0..count {
            match self.random.below(18) {
                0 => {
                    let number = self.random.of(&NUMBERS);
                    self.line(SCALAR, &format!("constant {{value = {number}}}"));
                }
                1..=3 => {
                    let ty = self.random.of(&[SCALAR, LONG, TILE, WIDE, SQUARE]);
                    let name = self
                        .random
                        .of(&["addi", "addi", "subi", "muli", "muli", "minsi", "maxsi", "andi", "ori", "xori"]);
                    self.binary(name, ty);
                }
                4 | 5 => {
                    let ty = self.random.of(&[SCALAR, TILE, SQUARE]);
                    let (name, divides) = self.random.of(&[
                        ("divsi", true),
                        ("remsi", true),
                        ("divui", true),
                        ("remui", true),
                        ("shli", false),
                        ("shrsi", false),
                        ("shrui", false),
                    ]);
                    let by = match (divides, self.random.below(3)) {
                        (true, 0) => self.splat("n", ty),
                        (true, _) => {
                            let d = self.random.of(&DIVISORS);
                            self.line(ty, &format!("constant {{value = {d}}}"))
                        }
                        (false, _) => {
                            let d = self.random.below(6);
                            self.line(ty, &format!("constant {{value = {d}}}"))
                        }
                    };
                    let left = self.any(ty);
                    self.line(ty, &format!("{name} %{left}, %{by}"));
                }
                6 => {
                    let (from, to) = self.random.of(&[(SCALAR, TILE), (SCALAR, SQUARE), (LONG, WIDE)]);
                    let scalar = self.any(from);
                    self.line(to, &format!("splat %{scalar}"));
                }
                7 => {
                    let start = self.random.of(&[0, 16, 3, -16]);
                    self.line(TILE, &format!("arange {{start = {start}, end = {}}}", start + 16));
                }
                8 | 9 => {
                    let tile = self.any(TILE);
                    self.square(&tile);
                }
                10 => {
                    let (from, to) = self.random.of(&[(TILE, MASK), (SQUARE, SQUARE_MASK)]);
                    self.compare(from, to);
                    self.binary("andi", to);
                }
                11 => {
                    let mask = self.any(MASK);
                    self.spread(&mask, "i1", SQUARE_MASK);
                }
                12 => {
                    let (name, from, to, elem) = self.random.of(&[
                        ("extsi", TILE, WIDE, "i64"),
                        ("extsi", SCALAR, LONG, "i64"),
                        ("extui", TILE, WIDE, "i64"),
                        ("trunci", WIDE, TILE, "i32"),
                        ("trunci", LONG, SCALAR, "i32"),
                        ("extui", MASK, TILE, "i32"),
                        ("extsi", MASK, TILE, "i32"),
                        ("trunci", TILE, BYTES, "i8"),
                    ]);
                    let value = self.any(from);
                    self.line(to, &format!("{name} %{value} {{to = {elem}}}"));
                }
                13 => {
                    let (pointer, offset) = self.random.of(&[(POINTERS, TILE), (POINTERS, WIDE), (ADDRESSES, SQUARE)]);
                    let (p, o) = (self.any(pointer), self.any(offset));
                    self.line(pointer, &format!("addptr %{p}, %{o}"));
                }
                14 => {
                    let (mask, ty) = self.random.of(&[(MASK, TILE), (SQUARE_MASK, SQUARE)]);
                    let (c, l, r) = (self.any(mask), self.any(ty), self.any(ty));
                    self.line(ty, &format!("select %{c}, %{l}, %{r}"));
                }
                15 => {
                    let square = self.any(SQUARE);
                    let ways = [("trans", "{order = [1, 0]}"), ("reshape", "{reorder = false}")];
                    let (name, how) = ways[self.count % 2];
                    let turned = self.line(TURNED, &format!("{name} %{square} {how}"));
                    let (name, how) = ways[self.count / 2 % 2];
                    self.line(SQUARE, &format!("{name} %{turned} {how}"));
                }
                _ if depth < 2 => self.repeat(depth),
                _ => {}
            }
        }
    }

    /// A loop that carries a scalar, a tile, addresses and something that is not moved evenly.
    fn repeat(&mut self, depth: usize) {
        let lower = self.random.of(&[0, 0, 2, -8]);
        let (upper, step) = (lower + self.random.of(&[0, 1, 5, 9]), self.random.of(&[2, 3, 4, 8]));
        let [lower, upper, step] =
            [lower, upper, step].map(|number| self.line(SCALAR, &format!("constant {{value = {number}}}")));
        let carried = [SCALAR, TILE, ADDRESSES, SCALAR];
        let starts = carried.map(|ty| self.any(ty));
        let types = carried.map(|ty| TYPES[ty]).join(", ");
        let (args, results): (Vec<String>, Vec<String>) = (0..4).map(|_| (self.fresh(), self.fresh())).unzip();
        let index = self.fresh();
        let list = |names: &[String]| names.iter().map(|n| format!("%{n}")).collect::<Vec<_>>().join(", ");
        let typed: Vec<String> = args.iter().zip(carried).map(|(n, ty)| format!("%{n}: {}", TYPES[ty])).collect();
        let _ = writeln!(
            self.out,
            "  {} = for_range %{lower}, %{upper}, %{step}, ({}) : {types} ^(%{index}: i32, {}) {{",
            list(&results),
            list(&starts),
            typed.join(", ")
        );
        let before = self.names.clone();
        // Steps of the same number each time, and others.
        let (by, tile, square) = (self.any(SCALAR), self.any(TILE), self.any(SQUARE));
        self.names[SCALAR].push(index);
        args.iter().zip(carried).for_each(|(name, ty)| self.names[ty].push(name.clone()));
        self.lines(8, depth + 1);
        let (by, square) = if self.random.below(4) == 0 { (self.any(SCALAR), self.any(SQUARE)) } else { (by, square) };
        let ends = [
            self.line(SCALAR, &format!("addi %{by}, %{}", args[0])),
            self.line(TILE, &format!("subi %{}, %{tile}", args[1])),
            self.line(ADDRESSES, &format!("addptr %{}, %{square}", args[2])),
            self.any(SCALAR),
        ];
        let _ = writeln!(self.out, "  yields ({})\n  }}", list(&ends));
        self.names = before;
        results.into_iter().zip(carried).for_each(|(name, ty)| self.names[ty].push(name));
    }

    fn square(&mut self, tile: &str) {
        if self.random.below(2) == 0 {
            self.spread(tile, "i32", SQUARE);
        } else {
            let row = self.fresh();
            let _ = writeln!(self.out, "  %{row} = arange {{start = 0, end = 8}} : tile<8xi32>");
            let wide = self.fresh();
            let _ = writeln!(self.out, "  %{wide} = expand_dims %{row} {{axis = 0}} : tile<1x8xi32>");
            self.line(SQUARE, &format!("broadcast %{wide}"));
        }
    }

    /// A tile of 16 along the first dimension of one of 16 x 8.
    fn spread(&mut self, tile: &str, elem: &str, to: usize) {
        let column = self.fresh();
        let _ = writeln!(self.out, "  %{column} = expand_dims %{tile} {{axis = 1}} : tile<16x1x{elem}>");
        self.line(to, &format!("broadcast %{column}"));
    }

    fn compare(&mut self, from: usize, to: usize) {
        let predicate = self.random.of(&["lt", "le", "gt", "ge", "ult", "ule", "eq", "lt"]);
        let left = self.any(from);
        let right = if self.random.below(3) == 0 {
            self.any(from)
        } else {
            let scalar = self.any(SCALAR);
            self.splat(&scalar, from)
        };
        let (left, right) = if self.random.below(4) == 0 { (right, left) } else { (left, right) };
        self.line(to, &format!("cmpi %{left}, %{right} {{predicate = {predicate}}}"));
    }

    fn splat(&mut self, scalar: &str, ty: usize) -> String {
        if ty == SCALAR { scalar.into() } else { self.line(ty, &format!("splat %{scalar}")) }
    }

    fn binary(&mut self, name: &str, ty: usize) {
        let (left, right) = (self.any(ty), self.any(ty));
        self.line(ty, &format!("{name} %{left}, %{right}"));
    }

    fn any(&mut self, ty: usize) -> String {
        let index = self.random.below(self.names[ty].len());
        self.names[ty][index].clone()
    }

    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("v{}", self.count)
    }

    fn line(&mut self, ty: usize, text: &str) -> String {
        let name = self.fresh();
        let _ = writeln!(self.out, "  %{name} = {text} : {}", TYPES[ty]);
        self.names[ty].push(name.clone());
        name
    }
}
