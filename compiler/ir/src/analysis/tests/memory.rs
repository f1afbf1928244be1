//! Random kernels that read and write memory behind pointers: none touches more than the analysis says.

use std::fmt::Write;

use super::program::Random;
use crate::analysis::{Extent, touched};
use crate::interp::{ArgValue, FaultKind, HostMemory, LaunchConfig, RunOptions, run};
use crate::text::parse;
use rtc_abi::Access;

const NUMBERS: [i64; 12] = [0, 1, 2, 3, 8, 16, 17, 64, -1, -5, 65536, 2147483600];
const ARGUMENTS: [i64; 12] = [0, 1, 2, 3, 5, 8, 16, 20, 33, 100, -1, -7];
/// Buffers of more elements are not allocated.
const MOST: i64 = 1 << 20;

struct Writer {
    random: Random,
    out: String,
    count: usize,
    scalars: Vec<String>,
    /// Tiles of 16 indices.
    tiles: Vec<String>,
    masks: Vec<String>,
}

fn kernel(seed: u64) -> String {
    let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let scalars = ["a", "b", "n"].map(String::from).to_vec();
    let mut w = Writer { random, out: String::new(), count: 0, scalars, tiles: Vec::new(), masks: Vec::new() };
    for text in ["program_id {axis = 0}", "program_id {axis = 1}", "num_programs {axis = 0}", "constant {value = 16}"] {
        w.scalar(text);
    }
    let places = w.line("tile<16xi32>", "arange {start = 0, end = 16}");
    w.tiles.push(places);
    w.body(14, 0);
    w.access();
    format!(
        "kernel @k(%x: ptr<i16> {{sig = \"*i16\"}}, %y: ptr<i16> {{sig = \"*i16\"}}, %a: i32 {{sig = \"i32\"}}, %b: i32 {{sig = \"i32\"}}, %n: i32 {{sig = \"i32\"}}) warps 1 phase tile {{\n{}  ret\n}}\n",
        w.out
    )
}

impl Writer {
    fn body(&mut self, count: usize, depth: usize) {
        for _ in 0..count {
            match self.random.below(15) {
                0 => {
                    let number = NUMBERS[self.random.below(NUMBERS.len())];
                    self.scalar(&format!("constant {{value = {number}}}"));
                }
                1..=3 => {
                    let names = ["addi", "muli", "muli", "subi", "divsi", "remsi", "minsi", "maxsi"];
                    let name = names[self.random.below(names.len())];
                    let (l, r) = (pick(&mut self.random, &self.scalars), pick(&mut self.random, &self.scalars));
                    self.scalar(&format!("{name} %{l}, %{r}"));
                }
                4..=6 => {
                    let names = ["addi", "addi", "addi", "muli", "subi", "remsi"];
                    let name = names[self.random.below(names.len())];
                    let scalar = pick(&mut self.random, &self.scalars);
                    let filled = self.line("tile<16xi32>", &format!("splat %{scalar}"));
                    let tile = pick(&mut self.random, &self.tiles);
                    let result = self.line("tile<16xi32>", &format!("{name} %{tile}, %{filled}"));
                    self.tiles.push(result);
                }
                7 | 8 => {
                    let names = ["lt", "lt", "lt", "le", "ge", "gt", "ult"];
                    let predicate = names[self.random.below(names.len())];
                    let scalar = pick(&mut self.random, &self.scalars);
                    let filled = self.line("tile<16xi32>", &format!("splat %{scalar}"));
                    let tile = pick(&mut self.random, &self.tiles);
                    let mut mask =
                        self.line("tile<16xi1>", &format!("cmpi %{tile}, %{filled} {{predicate = {predicate}}}"));
                    if !self.masks.is_empty() && self.random.below(2) == 0 {
                        let other = pick(&mut self.random, &self.masks);
                        mask = self.line("tile<16xi1>", &format!("andi %{mask}, %{other}"));
                    }
                    self.masks.push(mask);
                }
                9 | 10 if depth < 2 => self.nested(depth),
                11 | 12 => self.access(),
                _ => {}
            }
        }
    }

    fn nested(&mut self, depth: usize) {
        let kept = (self.scalars.clone(), self.tiles.clone(), self.masks.clone());
        if self.random.below(3) == 0 {
            let (l, r) = (pick(&mut self.random, &self.scalars), pick(&mut self.random, &self.scalars));
            let condition = self.line("i1", &format!("cmpi %{l}, %{r} {{predicate = lt}}"));
            let _ = writeln!(self.out, "  if_else %{condition} ^() {{");
            self.body(5, depth + 1);
            self.access();
            (self.scalars, self.tiles, self.masks) = kept.clone();
            self.out.push_str("  yields ()\n  } ^() {\n");
            self.body(3, depth + 1);
            self.out.push_str("  yields ()\n  }\n");
        } else {
            let bounds = [[0, 2].as_slice(), &[5, 16, 40], &[1, 4, 16]];
            let [lower, fixed, step] = bounds.map(|list| list[self.random.below(list.len())]);
            let [lower, fixed, step] = [lower, fixed, step].map(|n| self.scalar(&format!("constant {{value = {n}}}")));
            let argument = ["a", "b", "n"][self.random.below(3)].to_owned();
            let upper =
                if self.random.below(2) == 0 { fixed } else { self.scalar(&format!("minsi %{argument}, %{fixed}")) };
            let start = pick(&mut self.random, &self.tiles);
            let (index, carried, result) = (self.fresh(), self.fresh(), self.fresh());
            let _ = writeln!(
                self.out,
                "  %{result} = for_range %{lower}, %{upper}, %{step}, (%{start}) : tile<16xi32> ^(%{index}: i32, %{carried}: tile<16xi32>) {{"
            );
            self.scalars.push(index);
            self.tiles.push(carried.clone());
            let by = pick(&mut self.random, &kept.0);
            self.body(5, depth + 1);
            self.access();
            let filled = self.line("tile<16xi32>", &format!("splat %{by}"));
            let next = self.line("tile<16xi32>", &format!("addi %{carried}, %{filled}"));
            let _ = writeln!(self.out, "  yields (%{next})\n  }}");
            (self.scalars, self.tiles, self.masks) = kept;
            self.tiles.push(result);
            return;
        }
        (self.scalars, self.tiles, self.masks) = kept;
    }

    fn access(&mut self) {
        let pointer = ["x", "y"][self.random.below(2)];
        let mut index = pick(&mut self.random, &self.tiles);
        if self.random.below(4) == 0 {
            index = self.line("tile<16xi64>", &format!("extsi %{index} {{to = i64}}"));
        }
        let all = self.line("tile<16xptr<i16>>", &format!("splat %{pointer}"));
        let at = self.line("tile<16xptr<i16>>", &format!("addptr %{all}, %{index}"));
        let mask = match self.masks.is_empty() || self.random.below(4) == 0 {
            true => String::new(),
            false => format!(", mask = %{}", pick(&mut self.random, &self.masks)),
        };
        if self.random.below(2) == 0 {
            self.line("tile<16xi16>", &format!("load %{at}{mask}"));
        } else {
            let value = self.line("tile<16xi16>", "constant {value = 7}");
            let _ = writeln!(self.out, "  store %{at}, %{value}{mask}");
        }
    }

    fn scalar(&mut self, text: &str) -> String {
        let name = self.line("i32", text);
        self.scalars.push(name.clone());
        name
    }

    fn line(&mut self, ty: &str, text: &str) -> String {
        let name = self.fresh();
        let _ = writeln!(self.out, "  %{name} = {text} : {ty}");
        name
    }

    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("v{}", self.count)
    }
}

fn pick(random: &mut Random, names: &[String]) -> String {
    // The latest are the most interesting.
    let from = if random.below(2) == 0 { names.len().saturating_sub(4) } else { 0 };
    names[from + random.below(names.len() - from)].clone()
}

/// How many elements a launch may touch; `None` if its arguments break a condition.
fn elements(extent: &Extent, args: [i64; 3], grid: [u32; 3]) -> Option<i64> {
    let value = |name: &str| match name {
        "a" => Some(args[0]),
        "b" => Some(args[1]),
        "n" => Some(args[2]),
        name => Some(grid[name.strip_prefix("grid.")?.parse::<usize>().ok()?].into()),
    };
    let holds = extent.needs.iter().all(|need| need.eval(value).is_ok_and(|number| number >= 0));
    extent.elements.eval(value).ok().filter(|_| holds).map(|elements| elements.max(0))
}

#[test]
fn no_kernel_touches_more_than_its_extents() {
    let (mut proved, mut launched, mut tight, mut empty) = (0, 0, 0, 0);
    for seed in 1..=600 {
        let text = kernel(seed);
        let kernel = &parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let verified = crate::verify(kernel).unwrap_or_else(|e| panic!("{}", crate::print_errors(kernel, &e)));
        let touched = touched(kernel);
        let [x, y] = [0, 1].map(|i| touched[i].extent.clone().expect("it is a pointer"));
        let (Ok(x), Ok(y)) = (x, y) else { continue };
        proved += 1;
        let mut random = Random(seed.wrapping_mul(77) | 1);
        for _ in 0..12 {
            let args = [0; 3].map(|_| ARGUMENTS[random.below(ARGUMENTS.len())]);
            let grid = [1 + random.below(3) as u32, 1 + random.below(2) as u32, 1];
            let (Some(x), Some(y)) = (elements(&x, args, grid), elements(&y, args, grid)) else { continue };
            if x.max(y) > MOST {
                continue;
            }
            let launch = |x: i64, y: i64| {
                let mut memory = HostMemory::new();
                let bases = [("x", x), ("y", y)].map(|(name, count)| memory.alloc(name, vec![0; 2 * count as usize]));
                let all = bases.map(ArgValue::Pointer).into_iter().chain(args.map(ArgValue::Int)).collect();
                let outcome = run(verified, &mut memory, &LaunchConfig { grid, args: all }, &RunOptions::default());
                let written = bases.map(|base| memory.bytes(base).is_some_and(|b| b.iter().any(|b| *b != 0)));
                (outcome.map(|_| ()).map_err(|fault| fault.kind), written)
            };
            let (outcome, written) = launch(x, y);
            if let Err(kind) = outcome {
                panic!(
                    "seed {seed}, arguments {args:?}, grid {grid:?}, {x} and {y} elements: {kind:?}\n{}",
                    super::super::print_touched(kernel)
                );
            }
            for (touched, written) in touched.iter().zip(written) {
                assert!(!written || touched.access != Some(Access::Read), "seed {seed}\n{text}");
            }
            launched += 1;
            empty += usize::from(x == 0 && y == 0);
            let is_short = |x, y| matches!(launch(x, y).0, Err(FaultKind::OutOfBounds { .. }));
            tight += usize::from(x > 0 && is_short(x - 1, y) || y > 0 && is_short(x, y - 1));
        }
    }
    let counts = format!("{proved} kernels proved, {launched} launches, {tight} need all, {empty} touch nothing");
    println!("{counts}");
    assert!(proved >= 150 && launched >= 500 && tight >= 150 && empty * 4 < launched, "{counts}");
}
