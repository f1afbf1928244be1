//! Random kernels: element-wise operations, casts, shape operations, reductions, scans, gathers, sorts, atomics, loops,
//! pipelined ones among them, and branches over small tiles. The same seed gives the same kernel.
//!
//! Only operations with exactly defined results are generated: no division by zero, no shift by the width or more, no
//! float to integer out of range, no float sums in an unspecified order, no contraction.

use std::fmt::Write;

use crate::data::Random;

mod pipelined;
mod reused;
mod steps;

/// A value in reach.
#[derive(Clone, Debug, PartialEq)]
struct Value {
    name: String,
    elem: &'static str,
    /// Empty for a scalar.
    shape: Vec<u32>,
}

impl Value {
    fn ty(&self) -> String {
        ty(self.elem, &self.shape)
    }

    fn is_float(&self) -> bool {
        is_float(self.elem)
    }

    fn is_int(&self) -> bool {
        !self.is_float() && self.elem != "i1"
    }
}

fn is_float(elem: &str) -> bool {
    elem.contains('f')
}

fn ty(elem: &str, shape: &[u32]) -> String {
    if shape.is_empty() {
        return elem.to_string();
    }
    let dims: Vec<String> = shape.iter().map(u32::to_string).collect();
    format!("tile<{}x{elem}>", dims.join("x"))
}

fn numel(shape: &[u32]) -> u32 {
    shape.iter().product()
}

fn bits(elem: &str) -> u32 {
    match elem {
        "i8" => 8,
        "i16" | "f16" | "bf16" => 16,
        "i64" | "f64" => 64,
        _ => 32,
    }
}

const ELEMS: [&str; 12] = ["i32", "i32", "i32", "f32", "f32", "f16", "bf16", "i8", "i16", "i64", "f64", "f16"];
/// Most elements of a tile.
const LIMIT: u32 = 1024;

struct Maker {
    random: Random,
    header: String,
    params: Vec<String>,
    body: String,
    /// Values in reach, oldest first.
    scope: Vec<Value>,
    names: usize,
    depth: usize,
}

/// The text of a kernel with its header.
pub fn kernel(seed: u64) -> String {
    let mut maker = Maker {
        random: Random::new(seed ^ 0x5eed_0000_0000),
        header: String::new(),
        params: Vec::new(),
        body: String::new(),
        scope: Vec::new(),
        names: 0,
        depth: 0,
    };
    maker.whole(seed)
}

impl Maker {
    fn whole(&mut self, seed: u64) -> String {
        let warps = *self.random.pick(&[1, 1, 2, 4, 4, 8]);
        let program = self.op("program_id", "", "axis = 0", "i32", &[]);
        self.scope.push(program);
        for _ in 0..1 + self.random.below(3) {
            let value = self.input();
            self.scope.push(value);
        }
        for _ in 0..4 + self.random.below(14) {
            self.step();
        }
        // Unused values are stored, and a few others.
        let mut outputs: Vec<Value> = self.scope.clone();
        outputs
            .retain(|v| !self.body.contains(&format!(" {},", v.name)) && !self.body.contains(&format!(" {} ", v.name)));
        outputs.truncate(6);
        outputs.extend(self.scope.last().cloned());
        for value in outputs {
            self.output(value);
        }
        // One target is enough for each: the seeds alternate.
        let target = ["sm_80", "sm_90a"][seed as usize % 2];
        let (header, params, body) = (&self.header, self.params.join(", "), &self.body);
        let options = format!("warps {warps} no_fp_fusion phase tile");
        format!(
            "// random {seed}\n// only {target}\n// spills\n// finding: overflow\n{header}kernel @random_{seed}({params}) {options} {{\n{body}ret\n}}\n"
        )
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("%v{}", self.names)
    }

    fn op(&mut self, mnemonic: &str, operands: &str, attrs: &str, elem: &'static str, shape: &[u32]) -> Value {
        let name = self.name();
        let attrs = if attrs.is_empty() { String::new() } else { format!(" {{{attrs}}}") };
        let _ = writeln!(self.body, "{name} = {mnemonic} {operands} {attrs} : {}", ty(elem, shape));
        Value { name, elem, shape: shape.to_vec() }
    }

    fn on1(&mut self, mnemonic: &str, a: &Value, attrs: &str, elem: &'static str) -> Value {
        self.op(mnemonic, &a.name, attrs, elem, &a.shape)
    }

    fn on2(&mut self, mnemonic: &str, a: &Value, b: &Value) -> Value {
        self.op(mnemonic, &format!("{}, {}", a.name, b.name), "", a.elem, &a.shape)
    }

    fn constant(&mut self, value: &str, elem: &'static str, shape: &[u32]) -> Value {
        self.op("constant", "", &format!("value = {value}"), elem, shape)
    }

    fn shape(&mut self) -> Vec<u32> {
        let rank = 1 + self.random.below(3);
        let mut shape: Vec<u32> = (0..rank).map(|_| 1 << self.random.below(if rank == 1 { 10 } else { 6 })).collect();
        while numel(&shape) > LIMIT / 2 {
            let axis = self.random.below(rank);
            shape[axis] = (shape[axis] / 2).max(1);
        }
        shape
    }

    /// Row-major offsets along the axes in an order, as an `i32` tile; and how many elements they span.
    fn offsets(&mut self, shape: &[u32], order: &[usize]) -> Value {
        let mut strides = vec![0; shape.len()];
        let mut stride = 1;
        for axis in order.iter().rev() {
            strides[*axis] = stride;
            stride *= shape[*axis];
        }
        let mut sum: Option<Value> = None;
        for (axis, size) in shape.iter().enumerate() {
            let mut part = self.op("arange", "", &format!("start = 0, end = {size}"), "i32", &[*size]);
            for _ in 0..axis {
                let shape = [&[1], &part.shape[..]].concat();
                part = self.op("expand_dims", &part.name.clone(), "axis = 0", "i32", &shape);
            }
            while part.shape.len() < shape.len() {
                let shape = [&part.shape[..], &[1]].concat();
                let at = part.shape.len();
                part = self.op("expand_dims", &part.name.clone(), &format!("axis = {at}"), "i32", &shape);
            }
            if strides[axis] != 1 {
                let factor = self.constant(&strides[axis].to_string(), "i32", &part.shape.clone());
                part = self.on2("muli", &part, &factor);
            }
            if part.shape != shape {
                part = self.op("broadcast", &part.name.clone(), "", "i32", shape);
            }
            sum = Some(match sum {
                Some(sum) => self.on2("addi", &sum, &part),
                None => part,
            });
        }
        sum.expect("tiles have axes")
    }

    fn order(&mut self, rank: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..rank).collect();
        if self.random.below(3) == 0 {
            for i in (1..rank).rev() {
                order.swap(i, self.random.below(i + 1));
            }
        }
        order
    }

    fn pointers(&mut self, name: &str, elem: &'static str, shape: &[u32]) -> String {
        let attrs = if self.random.below(3) == 0 { "" } else { ", align = 16" };
        let base = format!("%{name}");
        self.params.push(format!("{base}: ptr<{elem}> {{sig = \"*{elem}\"{attrs}}}"));
        if shape.is_empty() {
            return base;
        }
        let order = self.order(shape.len());
        let offsets = self.offsets(shape, &order);
        let (splat, moved) = (self.name(), self.name());
        let pointers = ty(&format!("ptr<{elem}>"), shape);
        let _ = writeln!(self.body, "{splat} = splat {base} : {pointers}");
        let _ = writeln!(self.body, "{moved} = addptr {splat}, {} : {pointers}", offsets.name);
        moved
    }

    fn input(&mut self) -> Value {
        let (elem, shape) = (*self.random.pick(&ELEMS), self.shape());
        self.input_of(elem, &shape)
    }

    /// A loaded tile of numbers from -3 to 3.
    fn whole_numbers(&mut self, elem: &'static str, shape: &[u32]) -> Value {
        let name = format!("x{}", self.params.len());
        let seed = self.random.below(1 << 20);
        let _ = writeln!(self.header, "// arg {name} = {elem} range {} -3 3 {seed}", numel(shape));
        let pointers = self.pointers(&name, elem, shape);
        self.op("load", &pointers, "", elem, shape)
    }

    fn input_of(&mut self, elem: &'static str, shape: &[u32]) -> Value {
        let name = format!("x{}", self.params.len());
        let content = match self.random.below(4) {
            0 => "special",
            1 => "bits",
            2 => "near",
            _ => "range",
        };
        let limits = if content == "range" { " -9 9" } else { "" };
        let seed = self.random.below(1 << 20);
        let _ = writeln!(self.header, "// arg {name} = {elem} {content} {}{limits} {seed}", numel(shape));
        let pointers = self.pointers(&name, elem, shape);
        let mask = if self.random.below(3) == 0 { self.mask(shape) } else { None };
        let operands = match mask {
            Some(mask) if self.random.below(2) == 0 => {
                let other = self.constant(if is_float(elem) { "2.5" } else { "3" }, elem, shape);
                format!("{pointers}, mask = {}, other = {}", mask.name, other.name)
            }
            Some(mask) => format!("{pointers}, mask = {}", mask.name),
            None => pointers,
        };
        let attrs =
            *self.random.pick(&["", "", "", "", "cache = ca", "cache = cg", "evict = evict_first", "volatile = true"]);
        self.op("load", &operands, attrs, elem, shape)
    }

    /// A mask that holds for a first part, in row-major order, or for what a comparison gives.
    fn mask(&mut self, shape: &[u32]) -> Option<Value> {
        if let Some(mask) = self.any_where(|v| v.elem == "i1" && v.shape == shape)
            && self.random.below(2) == 0
        {
            return Some(mask);
        }
        let order: Vec<usize> = (0..shape.len()).collect();
        let offsets = self.offsets(shape, &order);
        let limit = self.random.below(numel(shape) as usize + 1);
        let limit = self.constant(&limit.to_string(), "i32", shape);
        let predicate = *self.random.pick(&["lt", "ge", "ne", "ult"]);
        Some(self.compare(&offsets, &limit, predicate))
    }

    fn compare(&mut self, a: &Value, b: &Value, predicate: &str) -> Value {
        let mnemonic = if a.is_float() { "cmpf" } else { "cmpi" };
        self.op(mnemonic, &format!("{}, {}", a.name, b.name), &format!("predicate = {predicate}"), "i1", &a.shape)
    }

    fn output(&mut self, value: Value) {
        let value = if value.elem == "i1" { self.on1("extui", &value, "to = i8", "i8") } else { value };
        let name = format!("y{}", self.params.len());
        let _ = writeln!(self.header, "// arg {name} = {} uninit {}", value.elem, numel(&value.shape));
        let pointers = self.pointers(&name, value.elem, &value.shape);
        let mask = if value.shape.is_empty() || self.random.below(4) > 0 { None } else { self.mask(&value.shape) };
        let mask = mask.map_or(String::new(), |m| format!(", mask = {}", m.name));
        let _ = writeln!(self.body, "store {pointers}, {}{mask}", value.name);
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

    fn any_number(&mut self) -> Value {
        match self.any() {
            v if v.elem == "i1" => self.any_where(|v| v.elem != "i1").expect("the program's index is one"),
            v => v,
        }
    }

    /// Another value of the same type.
    fn partner(&mut self, of: &Value) -> Value {
        let same = of.clone();
        if let Some(value) = self.any_where(|v| v.elem == same.elem && v.shape == same.shape && v.name != same.name)
            && self.random.below(4) > 0
        {
            return value;
        }
        if let Some(scalar) = self.any_where(|v| v.elem == same.elem && v.shape.is_empty() && v.name != same.name)
            && !of.shape.is_empty()
            && self.random.below(2) == 0
        {
            return self.op("splat", &scalar.name, "", of.elem, &of.shape);
        }
        if self.depth == 0 && !of.shape.is_empty() && of.elem != "i1" && self.random.below(2) == 0 {
            return self.input_of(of.elem, &of.shape);
        }
        let number = match of.elem {
            "i1" => self.random.pick(&["0", "1"]),
            e if is_float(e) => self.random.pick(&["1.5", "-0.0", "3.0", "inf", "0.0078125"]),
            _ => self.random.pick(&["1", "-1", "7", "100", "0"]),
        };
        let number = number.to_string();
        self.constant(&number, of.elem, &of.shape)
    }

    fn binary(&mut self, a: &Value) -> Value {
        let b = self.partner(a);
        self.binary_of(a, &b)
    }

    fn binary_of(&mut self, a: &Value, b: &Value) -> Value {
        if a.is_float() {
            let mut names =
                vec!["addf", "subf", "mulf", "minnum", "maxnum", "minimum", "maximum", "copysign", "addf", "mulf"];
            if matches!(a.elem, "f32" | "f64") {
                names.push("divf_rn");
            }
            let name = *self.random.pick(&names);
            return self.on2(name, a, b);
        }
        if a.elem == "i1" {
            let name = *self.random.pick(&["andi", "ori", "xori"]);
            return self.on2(name, a, b);
        }
        let wide = matches!(a.elem, "i32" | "i64");
        match self.random.below(12) {
            0 => {
                let most = self.constant(&(bits(a.elem) - 1).to_string(), a.elem, &a.shape);
                let count = self.on2("andi", b, &most);
                let name = *self.random.pick(&["shli", "shrsi", "shrui"]);
                self.on2(name, a, &count)
            }
            1 => {
                // A positive divisor: neither zero nor overflow.
                let (low, one) = (self.constant("30", a.elem, &a.shape), self.constant("1", a.elem, &a.shape));
                let low = self.on2("andi", b, &low);
                let divisor = self.on2("addi", &low, &one);
                let name = *self.random.pick(&["divsi", "divui", "remsi", "remui"]);
                self.on2(name, a, &divisor)
            }
            2 if wide => {
                let name = *self.random.pick(&["mulhsi", "mulhui"]);
                self.on2(name, a, b)
            }
            _ => {
                let names =
                    ["addi", "subi", "muli", "andi", "ori", "xori", "minsi", "maxsi", "minui", "maxui", "addi", "muli"];
                let name = *self.random.pick(&names);
                self.on2(name, a, b)
            }
        }
    }

    fn unary(&mut self, a: &Value) -> Value {
        if a.is_float() {
            let name = *self.random.pick(&["negf", "absf", "floor", "ceil", "truncate", "rint"]);
            return self.on1(name, a, "", a.elem);
        }
        let names: &[&str] = if matches!(a.elem, "i32" | "i64") { &["absi", "clz", "popc", "brev"] } else { &["absi"] };
        let name = *self.random.pick(names);
        self.on1(name, a, "", a.elem)
    }

    fn cast(&mut self, a: &Value) -> Value {
        let to = *self.random.pick(&ELEMS);
        self.cast_to(a, to)
    }

    fn cast_to(&mut self, a: &Value, to: &'static str) -> Value {
        let attrs = format!("to = {to}");
        if a.elem == to {
            return a.clone();
        }
        match (a.is_float(), is_float(to)) {
            (true, true) => self.on1("castf", a, &attrs, to),
            (true, false) => {
                // Kept in the range of the narrowest integer, which also takes NaN out.
                let (low, high) = (self.constant("-100.0", a.elem, &a.shape), self.constant("100.0", a.elem, &a.shape));
                let above = self.on2("maxnum", a, &low);
                let kept = self.on2("minnum", &above, &high);
                self.on1("fptosi", &kept, &attrs, to)
            }
            (false, true) => {
                let name = if a.elem == "i1" || self.random.below(2) == 0 { "uitofp" } else { "sitofp" };
                self.on1(name, a, &attrs, to)
            }
            (false, false) => {
                let width = |e: &str| if e == "i1" { 1 } else { bits(e) };
                let name = match width(to) < width(a.elem) {
                    true => "trunci",
                    false if self.random.below(2) == 0 => "extsi",
                    false => "extui",
                };
                self.on1(name, a, &attrs, to)
            }
        }
    }
}
