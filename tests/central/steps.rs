//! The steps of random kernels.

use std::fmt::Write;

use super::{LIMIT, Maker, Value, is_float, numel, ty};

impl Maker {
    /// Adds one operation, or a few that belong together.
    pub(super) fn step(&mut self) {
        let made = match self.random.below(31) {
            0..=4 => {
                let a = self.any();
                Some(self.binary(&a))
            }
            5 => {
                let a = self.any_number();
                Some(self.unary(&a))
            }
            6 | 7 => {
                let a = self.any();
                Some(self.cast(&a))
            }
            8 => {
                let a = self.any_number();
                let b = self.partner(&a);
                let names: &[&str] = if a.is_float() {
                    &["eq", "ne", "lt", "le", "gt", "ge"]
                } else {
                    &["eq", "ne", "lt", "ge", "ult", "uge"]
                };
                let predicate = *self.random.pick(names);
                let condition = self.compare(&a, &b, predicate);
                let other = self.partner(&a);
                self.scope.push(condition.clone());
                Some(self.op(
                    "select",
                    &format!("{}, {}, {}", condition.name, a.name, other.name),
                    "",
                    a.elem,
                    &a.shape,
                ))
            }
            9 | 10 => self.transposed(),
            11 | 12 => self.reshaped(),
            13 => self.widened(),
            14 => self.joined(),
            15..=17 => self.reduced(),
            18 => self.scanned(),
            19 => self.gathered(),
            20 => self.sorted(),
            21 if self.depth == 0 => self.counted(),
            25 if self.depth == 0 => self.multiplied(),
            26 | 27 => self.indexed(),
            28 => self.walked(),
            29 if self.depth == 0 => self.pipelined(),
            30 if self.depth == 0 => self.reused(),
            22 | 23 if self.depth < 2 => self.repeated(),
            24 if self.depth < 2 => self.chosen(),
            _ => self.met(),
        };
        if let Some(value) = made {
            self.scope.push(value);
        }
    }

    fn transposed(&mut self) -> Option<Value> {
        let a = self.any_where(|v| v.shape.len() >= 2)?;
        let (order, shape) = self.random.rotated(&a.shape);
        Some(self.op("trans", &a.name, &format!("order = {order:?}"), a.elem, &shape))
    }

    fn reshaped(&mut self) -> Option<Value> {
        let a = self.any_tile();
        let rank = 1 + self.random.below(4);
        let mut shape = vec![1u32; rank];
        let mut left = numel(&a.shape);
        while left > 1 {
            let axis = self.random.below(rank);
            shape[axis] *= 2;
            left /= 2;
        }
        (shape != a.shape).then(|| self.op("reshape", &a.name, "", a.elem, &shape))
    }

    fn widened(&mut self) -> Option<Value> {
        let a = self.any_where(|v| !v.shape.is_empty() && v.shape.len() < 4 && numel(&v.shape) <= LIMIT / 4)?;
        let axis = self.random.below(a.shape.len() + 1);
        let mut shape = a.shape.clone();
        shape.insert(axis, 1);
        let a = self.op("expand_dims", &a.name, &format!("axis = {axis}"), a.elem, &shape);
        shape[axis] = 1 << self.random.below(3);
        if shape[axis] == 1 {
            return Some(a);
        }
        Some(self.op("broadcast", &a.name, "", a.elem, &shape))
    }

    fn joined(&mut self) -> Option<Value> {
        if let Some(a) = self.any_where(|v| v.shape.len() >= 2 && v.shape.last() == Some(&2))
            && self.random.below(2) == 0
        {
            let (lhs, rhs) = (self.name(), self.name());
            let shape = a.shape[..a.shape.len() - 1].to_vec();
            let half = ty(a.elem, &shape);
            let _ = writeln!(self.body, "{lhs}, {rhs} = split {} : {half}, {half}", a.name);
            self.scope.push(Value { name: lhs, elem: a.elem, shape: shape.clone() });
            return Some(Value { name: rhs, elem: a.elem, shape });
        }
        let a = self.any_where(|v| !v.shape.is_empty() && v.shape.len() < 4 && numel(&v.shape) <= LIMIT / 2)?;
        let b = self.partner(&a);
        let shape = [&a.shape[..], &[2]].concat();
        Some(self.op("join", &format!("{}, {}", a.name, b.name), "", a.elem, &shape))
    }

    /// The lines of a combine block for one operand, and whether it may be used for the type.
    fn combine(&mut self, elem: &str) -> String {
        let ops: &[&str] = match elem {
            "i1" => &["andi", "ori", "xori"],
            e if is_float(e) => &["minnum", "maxnum", "minimum", "maximum"],
            _ => &["addi", "muli", "minsi", "maxui", "xori", "andi", "addi"],
        };
        let (op, name) = (*self.random.pick(ops), self.names);
        format!(
            "^(%l{name}: {elem}, %r{name}: {elem}) {{\n%o{name} = {op} %l{name}, %r{name} : {elem}\nyields (%o{name})\n}}"
        )
    }

    fn reduced(&mut self) -> Option<Value> {
        let a = self.any_tile();
        let axis = self.random.below(a.shape.len());
        let mut shape = a.shape.clone();
        shape.remove(axis);
        if a.is_int() && self.random.below(3) == 0 {
            return self.first_greatest(&a, axis, &shape);
        }
        let block = self.combine(a.elem);
        let name = self.name();
        let _ = writeln!(self.body, "{name} = reduce ({}) {{axis = {axis}}} : {} {block}", a.name, ty(a.elem, &shape));
        Some(Value { name, elem: a.elem, shape })
    }

    /// The greatest element with its index, the first one of equals.
    fn first_greatest(&mut self, a: &Value, axis: usize, shape: &[u32]) -> Option<Value> {
        let order: Vec<usize> = (0..a.shape.len()).collect();
        let index = self.offsets(&a.shape, &order);
        let (value, place, n, e) = (self.name(), self.name(), self.names, a.elem);
        let _ = writeln!(
            self.body,
            "{value}, {place} = reduce ({}, {}) {{axis = {axis}}} : {}, {} ^(%a{n}: {e}, %i{n}: i32, %b{n}: {e}, %j{n}: i32) {{
%gt{n} = cmpi %a{n}, %b{n} {{predicate = gt}} : i1
%eq{n} = cmpi %a{n}, %b{n} {{predicate = eq}} : i1
%lt{n} = cmpi %i{n}, %j{n} {{predicate = lt}} : i1
%both{n} = andi %eq{n}, %lt{n} : i1
%take{n} = ori %gt{n}, %both{n} : i1
%v{n}x = select %take{n}, %a{n}, %b{n} : {e}
%p{n}x = select %take{n}, %i{n}, %j{n} : i32
yields (%v{n}x, %p{n}x)
}}",
            a.name,
            index.name,
            ty(e, shape),
            ty("i32", shape)
        );
        self.scope.push(Value { name: value, elem: a.elem, shape: shape.to_vec() });
        Some(Value { name: place, elem: "i32", shape: shape.to_vec() })
    }

    fn scanned(&mut self) -> Option<Value> {
        let a = self.any_tile();
        let axis = self.random.below(a.shape.len());
        let reverse = self.random.below(2) == 0;
        let attrs = format!("axis = {axis}, reverse = {reverse}");
        if a.is_int() && self.random.below(2) == 0 {
            // Composition of linear maps: associative, but not commutative.
            let b = self.partner(&a);
            let (x, y, n, e) = (self.name(), self.name(), self.names, a.elem);
            let _ = writeln!(
                self.body,
                "{x}, {y} = scan ({}, {}) {{{attrs}}} : {}, {} ^(%a{n}: {e}, %b{n}: {e}, %c{n}: {e}, %d{n}: {e}) {{
%k{n} = muli %a{n}, %c{n} : {e}
%m{n} = muli %b{n}, %c{n} : {e}
%s{n} = addi %m{n}, %d{n} : {e}
yields (%k{n}, %s{n})
}}",
                a.name,
                b.name,
                a.ty(),
                a.ty()
            );
            self.scope.push(Value { name: x, ..a.clone() });
            return Some(Value { name: y, ..a });
        }
        let block = self.combine(a.elem);
        let name = self.name();
        let _ = writeln!(self.body, "{name} = scan ({}) {{{attrs}}} : {} {block}", a.name, a.ty());
        Some(Value { name, ..a })
    }

    fn gathered(&mut self) -> Option<Value> {
        let a = self.any_tile();
        let axis = self.random.below(a.shape.len());
        let mut shape = a.shape.clone();
        shape[axis] = 1 << self.random.below(5);
        if numel(&shape) > LIMIT {
            return None;
        }
        let index = match self.any_where(|v| v.elem == "i32" && v.shape == shape) {
            Some(index) => index,
            None => {
                let order: Vec<usize> = (0..shape.len()).rev().collect();
                self.offsets(&shape, &order)
            }
        };
        let most = self.constant(&(a.shape[axis] - 1).to_string(), "i32", &shape);
        let index = self.on2("andi", &index, &most);
        Some(self.op("gather", &format!("{}, {}", a.name, index.name), &format!("axis = {axis}"), a.elem, &shape))
    }

    fn sorted(&mut self) -> Option<Value> {
        let a = self.any_where(|v| v.is_int() && !v.shape.is_empty())?;
        let attrs = format!("descending = {}, signed = {}", self.random.below(2) == 0, self.random.below(2) == 0);
        Some(self.op("sort", &a.name, &attrs, a.elem, &a.shape))
    }

    /// Counts by atomics on memory, and by a histogram.
    fn counted(&mut self) -> Option<Value> {
        let a = self.any_where(|v| v.elem == "i32" && !v.shape.is_empty())?;
        let shape = a.shape.clone();
        let most = self.constant("15", "i32", &shape);
        let index = self.on2("andi", &a, &most);
        if shape.len() == 1 && self.random.below(2) == 0 {
            return Some(self.op("histogram", &index.name, "bins = 16", "i32", &[16]));
        }
        let name = format!("z{}", self.params.len());
        let _ = writeln!(self.header, "// arg {name} = i32 iota 16");
        self.params.push(format!("%{name}: ptr<i32> {{sig = \"*i32\"}}"));
        let pointers = ty("ptr<i32>", &shape);
        let (splat, moved) = (self.name(), self.name());
        let _ = writeln!(self.body, "{splat} = splat %{name} : {pointers}");
        let _ = writeln!(self.body, "{moved} = addptr {splat}, {} : {pointers}", index.name);
        let op = *self.random.pick(&["add", "max", "min", "xor", "and", "umax"]);
        let attrs = format!("op = {op}, sem = relaxed, scope = gpu");
        self.op("atomic_rmw", &format!("{moved}, {}", a.name), &attrs, "i32", &shape);
        None
    }

    /// An integer parameter, and a number that it is promised to be a multiple of.
    fn parameter(&mut self) -> Value {
        let name = format!("n{}", self.params.len());
        let (value, align) = *self.random.pick(&[(16, 16), (48, 16), (32, 16), (16, 1), (7, 1), (1, 1), (8, 4)]);
        let _ = writeln!(self.header, "// arg {name} = {value}");
        self.params.push(format!("%{name}: i32 {{sig = \"i32\", align = {align}}}"));
        Value { name: format!("%{name}"), elem: "i32", shape: Vec::new() }
    }

    /// An index computed from places, on which the analysis of addresses works; below `size`, a power of two.
    fn index(&mut self, shape: &[u32], size: u32) -> Value {
        let order: Vec<usize> =
            if self.random.below(2) == 0 { (0..shape.len()).collect() } else { (0..shape.len()).rev().collect() };
        let mut index = self.offsets(shape, &order);
        for _ in 0..self.random.below(4) {
            let amount = if self.random.below(4) == 0 {
                let parameter = self.parameter();
                self.op("splat", &parameter.name, "", "i32", shape)
            } else {
                let number = *self.random.pick(&["1", "2", "3", "4", "8", "16", "12", "32", "64", "5"]);
                self.constant(number, "i32", shape)
            };
            let names =
                ["addi", "addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "andi", "ori", "xori", "maxsi"];
            let name = *self.random.pick(&names);
            index = if self.random.below(6) == 0 {
                let count = *self.random.pick(&["1", "2", "4"]);
                let count = self.constant(count, "i32", shape);
                let name = *self.random.pick(&["shli", "shrui", "shrsi"]);
                self.on2(name, &index, &count)
            } else {
                self.on2(name, &index, &amount)
            };
        }
        let most = self.constant(&(size - 1).to_string(), "i32", shape);
        self.on2("andi", &index, &most)
    }

    /// A load by a computed index from a pointer that is moved first.
    fn indexed(&mut self) -> Option<Value> {
        let (elem, shape) = (*self.random.pick(&super::ELEMS), self.shape());
        let size = 64 << self.random.below(4);
        let before = *self.random.pick(&[0, 0, 1, 4, 16]);
        let name = format!("x{}", self.params.len());
        let seed = self.random.below(1 << 20);
        let _ = writeln!(self.header, "// arg {name} = {elem} bits {} {seed}", size + before);
        let attrs = *self.random.pick(&["", ", align = 16"]);
        self.params.push(format!("%{name}: ptr<{elem}> {{sig = \"*{elem}\"{attrs}}}"));
        let index = self.index(&shape, size);
        let mask = if self.random.below(3) == 0 { self.mask(&shape) } else { None };
        let (far, splat, moved) = (self.name(), self.name(), self.name());
        let offset = self.constant(&before.to_string(), "i64", &[]);
        let pointers = ty(&format!("ptr<{elem}>"), &shape);
        let _ = writeln!(self.body, "{far} = addptr %{name}, {} : ptr<{elem}>", offset.name);
        let _ = writeln!(self.body, "{splat} = splat {far} : {pointers}");
        let _ = writeln!(self.body, "{moved} = addptr {splat}, {} : {pointers}", index.name);
        let mask = mask.map_or(String::new(), |m| format!(", mask = {}", m.name));
        Some(self.op("load", &format!("{moved}{mask}"), "", elem, &shape))
    }

    /// A loop that carries pointers, and a sum of what they point to.
    fn walked(&mut self) -> Option<Value> {
        let (elem, shape) = (*self.random.pick(&["i32", "i8", "i64", "i16"]), self.shape());
        let (rounds, by) = (1 + self.random.below(4) as u32, *self.random.pick(&[1, 2, 4, 16, 3, 20]));
        let name = format!("x{}", self.params.len());
        let seed = self.random.below(1 << 20);
        let _ = writeln!(self.header, "// arg {name} = {elem} bits {} {seed}", numel(&shape) + rounds * by);
        let start = self.pointers(&name, elem, &shape);
        let sum = self.constant("0", elem, &shape);
        let bounds = [0, rounds, 1].map(|b| self.constant(&b.to_string(), "i32", &[]).name).join(", ");
        let [total, end, i, p, q, s, v, t, c] = std::array::from_fn(|_| self.name());
        let (pointers, tile, offsets) = (ty(&format!("ptr<{elem}>"), &shape), ty(elem, &shape), ty("i32", &shape));
        let _ = writeln!(
            self.body,
            "{total}, {end} = for_range {bounds}, ({}, {start}) : {tile}, {pointers} ^({i}: i32, {s}: {tile}, {p}: {pointers}) {{
{v} = load {p} : {tile}
{t} = addi {s}, {v} : {tile}
{c} = constant {{value = {by}}} : {offsets}
{q} = addptr {p}, {c} : {pointers}
yields ({t}, {q})
}}",
            sum.name
        );
        Some(Value { name: total, elem, shape })
    }

    /// A matrix product of small whole numbers, so that every order of its sums gives the same.
    fn multiplied(&mut self) -> Option<Value> {
        let [m, n, k] = [0; 3].map(|_| 1 << self.random.below(6));
        let (elem, acc) =
            *self.random.pick(&[("f16", "f32"), ("bf16", "f32"), ("i8", "i32"), ("f32", "f32"), ("f16", "f16")]);
        let mut operands = Vec::new();
        for (rows, columns) in [(m, k), (k, n)] {
            let swapped = self.random.below(2) == 0;
            let shape = if swapped { [columns, rows] } else { [rows, columns] };
            let mut operand = self.whole_numbers(elem, &shape);
            if swapped {
                operand = self.op("trans", &operand.name, "order = [1, 0]", elem, &[rows, columns]);
            }
            operands.push(operand.name);
        }
        let start = self.whole_numbers(acc, &[m, n]);
        operands.push(start.name);
        Some(self.op("dot", &operands.join(", "), "", acc, &[m, n]))
    }

    /// Adds two tiles of one shape that come by different ways: a conversion between layouts.
    fn met(&mut self) -> Option<Value> {
        let a = self.any_where(|v| v.shape.len() == 2 && v.shape[0] == v.shape[1] && v.elem != "i1");
        let Some(a) = a else {
            let a = self.any();
            return Some(self.binary(&a));
        };
        let other = self.op("trans", &a.name, "order = [1, 0]", a.elem, &a.shape);
        Some(self.binary_of(&a, &other))
    }

    /// Some steps in a block of its own; gives a value of each type in `wanted`.
    fn nested(&mut self, wanted: &[Value], fallback: &[Value]) -> Vec<Value> {
        let before = self.scope.len();
        self.scope.extend(fallback.iter().cloned());
        self.depth += 1;
        for _ in 0..1 + self.random.below(4) {
            self.step();
        }
        let out = wanted.iter().zip(fallback).map(|(w, f)| {
            let mut found: Vec<Value> =
                self.scope[before..].iter().filter(|v| v.elem == w.elem && v.shape == w.shape).cloned().collect();
            found.reverse();
            found.first().cloned().unwrap_or_else(|| f.clone())
        });
        let out: Vec<Value> = out.collect();
        self.depth -= 1;
        self.scope.truncate(before);
        out
    }

    fn carried(&mut self) -> Vec<Value> {
        (0..1 + self.random.below(3)).map(|_| self.any()).collect()
    }

    fn repeated(&mut self) -> Option<Value> {
        let carried = self.carried();
        let count = self.random.below(5);
        let bounds = [("0", "i32"), (["0", "1", "2", "3", "4"][count], "i32"), ("1", "i32")];
        let bounds: Vec<String> = bounds.iter().map(|(v, e)| self.constant(v, e, &[]).name).collect();
        let results: Vec<String> = carried.iter().map(|_| self.name()).collect();
        let index = Value { name: self.name(), elem: "i32", shape: Vec::new() };
        let args: Vec<Value> = carried.iter().map(|c| Value { name: self.name(), ..c.clone() }).collect();
        let list = |values: &[Value]| values.iter().map(|v| v.name.clone()).collect::<Vec<String>>().join(", ");
        let types: Vec<String> = carried.iter().map(Value::ty).collect();
        let typed: Vec<String> = args.iter().map(|a| format!("{}: {}", a.name, a.ty())).collect();
        let _ = writeln!(
            self.body,
            "{} = for_range {}, ({}) : {} ^({}: i32, {}) {{",
            results.join(", "),
            bounds.join(", "),
            list(&carried),
            types.join(", "),
            index.name,
            typed.join(", ")
        );
        self.scope.push(index);
        let yielded = self.nested(&carried, &args);
        self.scope.pop();
        let _ = writeln!(self.body, "yields ({})\n}}", list(&yielded));
        for (name, value) in results.into_iter().zip(&carried) {
            self.scope.push(Value { name, ..value.clone() });
        }
        None
    }

    fn chosen(&mut self) -> Option<Value> {
        let condition = match self.any_where(|v| v.elem == "i1" && v.shape.is_empty()) {
            Some(condition) => condition,
            None => {
                let a = self.any_where(|v| v.shape.is_empty() && v.elem != "i1")?;
                let b = self.partner(&a);
                self.compare(&a, &b, "lt")
            }
        };
        let values = self.carried();
        let results: Vec<String> = values.iter().map(|_| self.name()).collect();
        let types: Vec<String> = values.iter().map(Value::ty).collect();
        let _ =
            writeln!(self.body, "{} = if_else {} : {} ^() {{", results.join(", "), condition.name, types.join(", "));
        for end in ["} ^() {", "}"] {
            let yielded = self.nested(&values, &values);
            let names: Vec<String> = yielded.iter().map(|v| v.name.clone()).collect();
            let _ = writeln!(self.body, "yields ({})\n{end}", names.join(", "));
        }
        for (name, value) in results.into_iter().zip(&values) {
            self.scope.push(Value { name, ..value.clone() });
        }
        None
    }
}
