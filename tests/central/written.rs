//! Random kernels in the kernel language, each with many sets of inputs. The same seed gives the same kernel, and
//! Triton 3.6 accepts every kernel, too.
//!
//! As in `random.rs`, only operations with exactly defined results are generated. Float sums and products in an
//! unspecified order use whole numbers that are small enough for every order to give the same; an upper bound is kept
//! with each value.

use std::collections::HashMap;
use std::fmt::Write;

use crate::data::Random;

#[path = "written/control.rs"]
mod control;
#[path = "written/memory.rs"]
mod memory;
#[path = "written/products.rs"]
mod products;
#[path = "written/steps.rs"]
mod steps;
#[path = "written/types.rs"]
pub mod types;

use types::{Dtype, I32};

/// A value in reach.
#[derive(Clone, Debug, PartialEq)]
struct Value {
    name: String,
    dtype: Dtype,
    /// Empty for a scalar.
    shape: Vec<u32>,
    /// It holds whole numbers from minus this to this.
    most: Option<u64>,
}

impl Value {
    fn numel(&self) -> u32 {
        self.shape.iter().product()
    }
}

/// The kind of an argument.
#[derive(Clone, Debug)]
enum Content {
    /// A tensor: its signature; `special 64`, say; its seed.
    Tensor(String, String, u64),
    /// One without a seed, the same in every set.
    Fixed(String),
    /// A number: its signature, and its values in the sets.
    Number(&'static str, Vec<i64>),
}

/// A kernel with its inputs.
#[derive(Clone, Debug)]
pub struct Written {
    pub seed: u64,
    args: Vec<(String, Content)>,
    grid: u32,
    warps: u32,
    stages: u32,
    target: &'static str,
    /// The lines of the kernel's body.
    pub body: Vec<String>,
}

/// Functions of all kernels.
pub const PRELUDE: &str = "@triton.jit
def plus(a, b):
    return a + b

@triton.jit
def times(a, b):
    return a * b

@triton.jit
def greater(a, b):
    return tl.maximum(a, b)

@triton.jit
def either(a, b):
    return a ^ b

@triton.jit
def linear(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2

@triton.jit
def first_greatest(a, i, b, j):
    take = (a > b) | ((a == b) & (i < j))
    return tl.where(take, a, b), tl.where(take, i, j)

@triton.jit
def halves(x, y):
    return x + y, x - y
";

impl Written {
    /// The same kernel with another body.
    pub fn with(&self, body: &[String]) -> Written {
        Written { body: body.to_vec(), ..self.clone() }
    }

    /// A case of `tests/filetests/language` for a set of inputs.
    pub fn case(&self, set: u64) -> String {
        let mut text = format!("{PRELUDE}\n# case written_{}\n# agreed\n", self.seed);
        let used = |name: &str| self.body.iter().any(|line| mentions(line, name));
        let args: Vec<_> = self.args.iter().filter(|(name, _)| used(name)).collect();
        for (name, content) in &args {
            let _ = match content {
                Content::Tensor(signature, content, seed) if content.starts_with("special") => {
                    writeln!(text, "# arg {name} = {signature} {content} {seed} {}", set * 13)
                }
                Content::Tensor(signature, content, seed) => {
                    writeln!(text, "# arg {name} = {signature} {content} {}", seed + set * 7919)
                }
                Content::Fixed(content) => writeln!(text, "# arg {name} = {content}"),
                Content::Number(signature, values) => {
                    writeln!(text, "# arg {name} = {signature} {}", values[set as usize % values.len()])
                }
            };
        }
        let Written { grid, warps, stages, target, .. } = self;
        let _ = writeln!(text, "# warps {warps}\n# grid {grid} 1 1\n# only {target}\n# spills\n# finding: overflow");
        let _ = writeln!(text, "# option enable_fp_fusion = false\n# option num_stages = {stages}");
        let names: Vec<&str> = args.iter().map(|(name, _)| name.as_str()).collect();
        let _ = writeln!(text, "@triton.jit\ndef kernel({}):", names.join(", "));
        for line in &self.body {
            let _ = writeln!(text, "    {line}");
        }
        text
    }
}

/// Whether a line has a name as a word of its own.
pub fn mentions(line: &str, name: &str) -> bool {
    let code = line.split("  #").next().unwrap_or_default();
    code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

struct Maker {
    random: Random,
    args: Vec<(String, Content)>,
    body: Vec<String>,
    /// Values in reach, oldest first.
    scope: Vec<Value>,
    /// How many lines there were when a value came into reach.
    born: HashMap<String, usize>,
    names: usize,
    depth: usize,
    grid: u32,
    target: &'static str,
    /// Whether a loop with products is in it: one is enough.
    has_dots: bool,
}

/// Most elements of a tile.
const LIMIT: u32 = 1024;

/// The kernel of a seed.
pub fn kernel(seed: u64) -> Written {
    let mut random = Random::new(seed ^ 0x3717_7e40_0000_0000);
    let target = *random.pick(&["sm_80", "sm_90a", "sm_90a", "sm_89"]);
    let (grid, warps) = (*random.pick(&[1, 1, 2, 3]), *random.pick(&[1, 2, 4, 4, 8]));
    let stages = *random.pick(&[1, 2, 3, 4]);
    let mut maker = Maker {
        random,
        args: Vec::new(),
        body: Vec::new(),
        scope: Vec::new(),
        born: HashMap::new(),
        names: 0,
        depth: 0,
        grid,
        target,
        has_dots: false,
    };
    maker.line("pid = tl.program_id(0)  # int32[]");
    maker.scope.push(Value { name: "pid".into(), dtype: I32, shape: Vec::new(), most: Some(3) });
    maker.promotions();
    for _ in 0..1 + maker.random.below(2) {
        let value = maker.input();
        maker.scope.push(value);
    }
    // One of three kernels has a loop with dots in any case.
    if seed.is_multiple_of(3) {
        let sums = maker.pipelined();
        maker.scope.push(sums);
    }
    for _ in 0..4 + maker.random.below(9) {
        maker.step();
    }
    maker.outputs();
    Written { seed, args: maker.args, grid, warps, stages, target, body: maker.body }
}

impl Maker {
    fn line(&mut self, text: &str) {
        self.body.push(format!("{}{text}", "    ".repeat(self.depth)));
    }

    fn name(&mut self, start: &str) -> String {
        self.names += 1;
        format!("{start}{}", self.names)
    }

    /// Binds an expression to a new name. Its type follows as a comment, for readers and for the reducer.
    fn bind(&mut self, expression: &str, dtype: Dtype, shape: &[u32], most: Option<u64>) -> Value {
        let name = self.name("v");
        self.line(&format!("{name} = {expression}  # {}{shape:?}", dtype.0));
        if self.random.below(4) == 0 {
            self.line(&format!("tl.static_assert({name}.dtype == tl.{})", dtype.0));
        }
        Value { name, dtype, shape: shape.to_vec(), most: most.filter(|most| *most <= dtype.whole()) }
    }

    /// Prints the result types of sums, products and quotients for a few pairs of types.
    fn promotions(&mut self) {
        for _ in 0..6 {
            let [a, b] = [0; 2].map(|_| *self.random.pick(&types::ALL));
            let operation = *self.random.pick(&["+", "*", "-"]);
            let value = |dtype: Dtype| format!("tl.full([1], 1, tl.{})", dtype.0);
            let both = format!("{} {operation} {}", value(a), value(b));
            self.line(&format!("tl.static_assert(({both}).dtype == tl.{})", types::promote(a, b).0));
        }
    }

    fn shape(&mut self) -> Vec<u32> {
        let rank = 1 + self.random.below(3);
        let mut shape: Vec<u32> = (0..rank).map(|_| 1 << self.random.below(if rank == 1 { 10 } else { 6 })).collect();
        while shape.iter().product::<u32>() > LIMIT / 2 {
            let axis = self.random.below(rank);
            shape[axis] = (shape[axis] / 2).max(1);
        }
        shape
    }

    /// Stores the values not used since they came into scope, and the last ones.
    fn outputs(&mut self) {
        let lines_after = |v: &Value| &self.body[self.born.get(&v.name).copied().unwrap_or(0)..];
        let unused = |v: &Value| !lines_after(v).iter().any(|line| mentions(line, &v.name));
        let mut outputs: Vec<Value> = self.scope.iter().filter(|v| unused(v)).cloned().collect();
        outputs.extend(self.scope.last().filter(|last| !unused(last)).cloned());
        for value in outputs {
            self.output(&value);
        }
    }

    /// A value in reach, rather a late one.
    fn any(&mut self) -> Value {
        self.random.late(&self.scope).clone()
    }

    fn any_where(&mut self, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        self.random.pick_where(&self.scope, wanted).cloned()
    }

    fn any_tile(&mut self) -> Value {
        match self.any_where(|v| !v.shape.is_empty()) {
            Some(value) => value,
            None => self.input(),
        }
    }
}
