//! Loops with matrix products whose operands are loaded in the loop, so that passes load them ahead of time.

use std::fmt::Write;

use super::{Maker, Value, is_float, numel, ty};

/// A value that a loop carries: what it starts from and its name in the loop.
struct Carried {
    start: Value,
    arg: Value,
}

/// The indices of a loop.
struct Span {
    lower: i32,
    step: i32,
    rounds: i32,
}

/// How an operand comes from memory.
struct Operand {
    /// Its shape there.
    shape: [u32; 2],
    swapped: bool,
    elem: &'static str,
    /// The elements that the product takes.
    wanted: &'static str,
    /// The pointers of the first iteration.
    pointers: Value,
    /// The left side of its mask: offsets within it, or the numbers of its rows.
    offsets: Value,
    /// Elements from one iteration to the next.
    by: u32,
    /// The index among the loop-carried values, if the pointers are carried.
    carried: Option<usize>,
}

impl Maker {
    /// A loop over products of small whole numbers, so that every order of the sums gives the same.
    pub(super) fn pipelined(&mut self) -> Option<Value> {
        let [m, n] =
            *self.random.pick(&[[64, 16], [64, 32], [16, 16], [32, 32], [64, 64], [128, 16], [128, 32], [16, 64]]);
        let k = *self.random.pick(&[16, 32, 32, 64]);
        let types = [("f16", "f32"), ("f16", "f32"), ("bf16", "f32"), ("i8", "i32"), ("f32", "f32"), ("f16", "f16")];
        let (elem, sums) = *self.random.pick(&types);
        let span = Span {
            lower: *self.random.pick(&[0, 0, -3, 5]),
            step: *self.random.pick(&[1, 1, 2, 3, 16]),
            rounds: self.random.below(6) as i32,
        };
        let mut carried = Vec::new();
        let start = self.whole_numbers(sums, &[m, n]);
        self.carry(&mut carried, start);
        let lhs = self.operand_in_loop([m, k], elem, &span, &mut carried);
        let rhs = self.operand_in_loop([k, n], elem, &span, &mut carried);
        let third = (self.random.below(3) == 0).then(|| self.operand_in_loop([k, n], elem, &span, &mut carried));
        let second = self.random.below(3) == 0;
        let second_sums = [m, if third.is_some() { n } else { m }];
        let second = (third.is_some() || second).then(|| {
            let start = self.constant("0", sums, &second_sums);
            self.carry(&mut carried, start)
        });
        let kept = (self.random.below(4) == 0).then(|| {
            let start = self.constant("0", elem, &[m, k]);
            self.carry(&mut carried, start)
        });
        let stored = (self.random.below(5) == 0).then(|| {
            let name = format!("y{}", self.params.len());
            let _ = writeln!(self.header, "// arg {name} = {sums} fill {} 1", m * n);
            self.pointers(&name, sums, &[m, n])
        });
        let results = self.open_loop(&span, &carried);

        let index = Value { name: format!("{}_index", results[0]), elem: "i32", shape: Vec::new() };
        let mut yielded: Vec<String> = carried.iter().map(|c| c.arg.name.clone()).collect();
        let a = self.load_in_loop(&lhs, &span, &index, &carried, &mut yielded);
        let b = self.load_in_loop(&rhs, &span, &index, &carried, &mut yielded);
        let sum = self.add_product(&a, &b, &carried[0].arg.clone(), &index);
        yielded[0] = sum.name.clone();
        if let Some(second) = second {
            let other = match &third {
                Some(third) => self.load_in_loop(third, &span, &index, &carried, &mut yielded),
                None => self.op("trans", &a.name, "order = [1, 0]", elem, &[k, m]),
            };
            let sum = self.add_product(&a, &other, &carried[second].arg.clone(), &index);
            yielded[second] = sum.name;
        }
        if let Some(kept) = kept {
            let before = carried[kept].arg.clone();
            let next = if self.random.below(2) == 0 {
                a.clone()
            } else {
                self.on2(if is_float(elem) { "addf" } else { "addi" }, &a, &before)
            };
            yielded[kept] = next.name;
        }
        if let Some(pointers) = stored {
            let _ = writeln!(self.body, "store {pointers}, {}", sum.name);
        }
        let _ = writeln!(self.body, "yields ({})\n}}", yielded.join(", "));
        let mut values = results.into_iter().zip(&carried).map(|(name, c)| Value { name, ..c.start.clone() });
        let first = values.next();
        self.scope.extend(values.filter(|value| !value.elem.starts_with("ptr")));
        first
    }

    fn carry(&mut self, carried: &mut Vec<Carried>, start: Value) -> usize {
        let arg = Value { name: self.name(), ..start.clone() };
        carried.push(Carried { start, arg });
        carried.len() - 1
    }

    /// The code before the loop for an operand that is loaded in it.
    fn operand_in_loop(
        &mut self,
        [rows, columns]: [u32; 2],
        elem: &'static str,
        span: &Span,
        carried: &mut Vec<Carried>,
    ) -> Operand {
        let swapped = self.random.below(3) == 0;
        let shape = if swapped { [columns, rows] } else { [rows, columns] };
        let wanted = elem;
        let elem = if elem == "f16" && self.random.below(6) == 0 { "i8" } else { elem };
        let by = *self.random.pick(&[shape[1], shape[1], 16, 16, 8, 32, 1, 0, 2 * numel(&shape)]);
        let (name, seed) = (format!("x{}", self.params.len()), self.random.below(1 << 20));
        let count = numel(&shape) + by * span.rounds as u32;
        let _ = writeln!(self.header, "// arg {name} = {elem} range {count} -1 1 {seed}");
        let (pointer, pointers) = (pointer_to(elem), self.pointers(&name, elem, &shape));
        let pointers = Value { name: pointers, elem: pointer, shape: shape.to_vec() };
        let offsets = if self.random.below(3) == 0 {
            self.offsets(&shape, &[0, 1])
        } else {
            let rows = self.op("arange", "", &format!("start = 0, end = {}", shape[0]), "i32", &shape[..1]);
            let rows = self.op("expand_dims", &rows.name, "axis = 1", "i32", &[shape[0], 1]);
            self.op("broadcast", &rows.name, "", "i32", &shape)
        };
        let place = (self.random.below(2) == 0).then(|| self.carry(carried, pointers.clone()));
        Operand { shape, swapped, elem, wanted, pointers, offsets, by, carried: place }
    }

    /// The start of the loop; the names of its results.
    fn open_loop(&mut self, span: &Span, carried: &[Carried]) -> Vec<String> {
        let Span { lower, step, rounds } = *span;
        let beyond = self.random.below(step as usize) as i32;
        let upper = if rounds == 0 { lower - beyond } else { lower + (rounds - 1) * step + 1 + beyond };
        let upper = if self.random.below(3) == 0 {
            self.constant(&upper.to_string(), "i32", &[]).name
        } else {
            let name = format!("n{}", self.params.len());
            let _ = writeln!(self.header, "// arg {name} = {upper}");
            self.params.push(format!("%{name}: i32 {{sig = \"i32\"}}"));
            format!("%{name}")
        };
        let [lower, step] = [lower, step].map(|number| self.constant(&number.to_string(), "i32", &[]).name);
        let results: Vec<String> = carried.iter().map(|_| self.name()).collect();
        let list = |of: &dyn Fn(&Carried) -> String| carried.iter().map(of).collect::<Vec<_>>().join(", ");
        let (starts, types) = (list(&|c| c.start.name.clone()), list(&|c| c.start.ty()));
        let args = list(&|c| format!("{}: {}", c.arg.name, c.arg.ty()));
        let mut hints = vec![format!("[num_stages, {}]", 1 + self.random.below(6))];
        if self.random.below(6) == 0 {
            hints.push("[unroll, 2]".into());
        }
        let _ = writeln!(
            self.body,
            "{} = for_range {lower}, {upper}, {step}, ({starts}) {{hints = [{}]}} : {types} ^({}_index: i32, {args}) {{",
            results.join(", "),
            hints.join(", "),
            results[0],
        );
        results
    }

    /// The operand in an iteration.
    fn load_in_loop(
        &mut self,
        operand: &Operand,
        span: &Span,
        index: &Value,
        carried: &[Carried],
        yielded: &mut [String],
    ) -> Value {
        let Operand { shape, elem, by, .. } = operand;
        let pointers = match operand.carried {
            Some(place) => {
                let by = self.constant(&by.to_string(), "i32", shape);
                let now = carried[place].arg.clone();
                yielded[place] = self.on2("addptr", &now, &by).name;
                now
            }
            None => {
                let (lower, step) = (span.lower.to_string(), span.step.to_string());
                let [lower, step, by] = [lower, step, by.to_string()].map(|number| self.constant(&number, "i32", &[]));
                let distance = self.on2("subi", index, &lower);
                let number = self.on2("divsi", &distance, &step);
                let offset = self.on2("muli", &number, &by);
                let offset = self.op("splat", &offset.name, "", "i32", shape);
                self.on2("addptr", &operand.pointers, &offset)
            }
        };
        let mut operands = pointers.name;
        if self.random.below(2) == 0 {
            // Fewer elements in later iterations.
            let (most, factor) = (self.random.below(2 * shape[0] as usize), self.random.below(12));
            let [most, factor] = [most, factor].map(|number| self.constant(&number.to_string(), "i32", &[]));
            let fewer = self.on2("muli", index, &factor);
            let limit = self.on2("subi", &most, &fewer);
            let limit = self.op("splat", &limit.name, "", "i32", shape);
            let mask = self.compare(&operand.offsets, &limit, "lt");
            let other = *self.random.pick(&["0", "0", "0", "2"]);
            let other = self.constant(other, elem, shape);
            operands = format!("{operands}, mask = {}, other = {}", mask.name, other.name);
        }
        let attrs = *self.random.pick(&["", "", "", "", "", "cache = cg", "evict = evict_last", "volatile = true"]);
        let mut tile = self.op("load", &operands, attrs, elem, shape);
        if operand.elem != operand.wanted {
            tile = self.on1("sitofp", &tile, &format!("to = {}", operand.wanted), operand.wanted);
        }
        if operand.swapped {
            tile = self.op("trans", &tile.name, "order = [1, 0]", operand.wanted, &[shape[1], shape[0]]);
        }
        tile
    }

    /// The product of two tiles added to a third.
    fn add_product(&mut self, a: &Value, b: &Value, sums: &Value, index: &Value) -> Value {
        let float = is_float(sums.elem);
        let product = |maker: &mut Maker, sums: &Value| {
            let operands = format!("{}, {}, {}", a.name, b.name, sums.name);
            maker.op("dot", &operands, "", sums.elem, &sums.shape)
        };
        match self.random.below(6) {
            0 => {
                let zeros = self.constant("0", sums.elem, &sums.shape);
                let part = product(self, &zeros);
                self.on2(if float { "addf" } else { "addi" }, &part, sums)
            }
            1 => {
                let most = self.constant("20", sums.elem, &sums.shape);
                let kept = self.on2(if float { "minnum" } else { "minsi" }, sums, &most);
                product(self, &kept)
            }
            2 => {
                let bound = self.constant("1", "i32", &[]);
                let condition = self.compare(index, &bound, "ge");
                let result = self.name();
                let ty = ty(sums.elem, &sums.shape);
                let _ = writeln!(self.body, "{result} = if_else {} : {ty} ^() {{", condition.name);
                let inner = product(self, sums);
                let _ = writeln!(self.body, "yields ({})\n}} ^() {{\nyields ({})\n}}", inner.name, sums.name);
                Value { name: result, ..sums.clone() }
            }
            _ => product(self, sums),
        }
    }
}

fn pointer_to(elem: &str) -> &'static str {
    match elem {
        "f16" => "ptr<f16>",
        "bf16" => "ptr<bf16>",
        "i8" => "ptr<i8>",
        _ => "ptr<f32>",
    }
}
