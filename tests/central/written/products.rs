//! Matrix products of whole numbers, alone and in loops that passes pipeline or divide among warps.

use super::types::{BF16, Dtype, E4M3, E5M2, F16, F32, F64, I8, I32};
use super::{Content, Maker, Value};

/// The operands of a dot.
struct Kind {
    operand: Dtype,
    sums: Dtype,
    /// The other arguments of the call.
    options: &'static str,
    /// The greatest number in the operands.
    most: u64,
}

const KINDS: [Kind; 12] = [
    Kind { operand: F16, sums: F32, options: "", most: 3 },
    Kind { operand: F16, sums: F32, options: "", most: 3 },
    Kind { operand: BF16, sums: F32, options: "", most: 3 },
    Kind { operand: F16, sums: F16, options: ", out_dtype=tl.float16", most: 1 },
    Kind { operand: I8, sums: I32, options: ", out_dtype=tl.int32", most: 9 },
    Kind { operand: F32, sums: F32, options: "", most: 3 },
    Kind { operand: F32, sums: F32, options: ", input_precision=\"ieee\"", most: 3 },
    Kind { operand: F32, sums: F32, options: ", input_precision=\"tf32x3\"", most: 3 },
    Kind { operand: F64, sums: F64, options: ", out_dtype=tl.float64", most: 3 },
    Kind { operand: F16, sums: F32, options: "", most: 3 },
    Kind { operand: E5M2, sums: F32, options: "", most: 3 },
    Kind { operand: E4M3, sums: F32, options: "", most: 3 },
];

/// How the operands of a loop are read.
#[derive(Clone, Copy, PartialEq)]
enum Access {
    /// Pointers that move from iteration to iteration.
    Moved,
    /// Pointers computed from the loop's index.
    Computed,
    Blocks,
    Descriptors,
}

impl Maker {
    fn kind(&mut self) -> &'static Kind {
        let fp8 = if self.target == "sm_80" { 2 } else { 0 };
        &KINDS[self.random.below(KINDS.len() - fp8)]
    }

    /// One product.
    pub(super) fn multiplied(&mut self) -> Value {
        let kind = self.kind();
        let least = if kind.operand.bits() == 8 { 32 } else { 16 };
        let [m, n] = [0; 2].map(|_| 16u32 << self.random.below(3));
        let k = least << self.random.below(2);
        let a = self.operand(kind, [m, k]);
        let b = self.operand(kind, [k, n]);
        let most = u64::from(k) * kind.most * kind.most;
        if self.random.below(2) == 0 {
            let start = self.loaded(kind.sums, &[m, n], Some(3));
            let text = format!("tl.dot({a}, {b}, {}{})", start.name, kind.options);
            return self.bind(&text, kind.sums, &[m, n], Some(most + 3));
        }
        self.bind(&format!("tl.dot({a}, {b}{})", kind.options), kind.sums, &[m, n], Some(most))
    }

    fn operand(&mut self, kind: &Kind, [rows, columns]: [u32; 2]) -> String {
        let is_turned = self.random.below(2) == 0;
        let shape = if is_turned { [columns, rows] } else { [rows, columns] };
        let given = match self.any_where(|v| v.dtype == kind.operand && v.shape == shape && v.most <= Some(kind.most)) {
            Some(given) if given.most.is_some() => given,
            _ => self.loaded(kind.operand, &shape, Some(kind.most)),
        };
        if is_turned { format!("{}.T", given.name) } else { given.name }
    }

    /// An argument with one of these values.
    fn length(&mut self, values: &[u32], signature: &'static str) -> String {
        let name = self.name("n");
        let mut values: Vec<i64> = values.iter().map(|value| i64::from(*value)).collect();
        let by = self.random.below(values.len());
        values.rotate_left(by);
        self.args.push((name.clone(), Content::Number(signature, values)));
        name
    }

    fn whole_tensor(&mut self, dtype: Dtype, count: u32, most: u64) -> String {
        let name = self.name("x");
        let seed = self.random.below(1 << 20) as u64;
        let content =
            Content::Tensor(format!("*{}:16", dtype.signature()), format!("range {count} -{most} {most}"), seed);
        self.args.push((name.clone(), content));
        name
    }

    /// A loop over products whose operands are loaded in it.
    pub(super) fn pipelined(&mut self) -> Value {
        self.has_dots = true;
        if self.random.below(4) == 0 {
            return self.attended();
        }
        let kind = self.kind();
        let Kind { operand, sums, options, most } = kind;
        let [m, n] = *self.random.pick(&[
            [64, 32],
            [64, 64],
            [16, 16],
            [32, 32],
            [128, 32],
            [64, 16],
            [16, 64],
            [128, 64],
            [64, 64],
            [128, 64],
        ]);
        let k: u32 = if operand.bits() == 8 { 32 } else { *self.random.pick(&[16, 32, 32, 64]) };
        let rounds = 4;
        let depth = k * rounds;
        let access =
            *self.random.pick(&[Access::Moved, Access::Moved, Access::Computed, Access::Blocks, Access::Descriptors]);
        // Operand B as it is, or transposed; TMA needs rows of 16 bytes.
        let is_turned = self.random.below(2) == 0;
        let a = self.whole_tensor(*operand, self.grid * m * depth, *most);
        let b = self.whole_tensor(*operand, n * depth, *most);
        let is_masked = matches!(access, Access::Moved | Access::Computed) && self.random.below(3) > 0;
        // Where the loop ends: an argument as it is, which passes can follow best, or something computed from it. Without
        // masks it ends with whole tiles.
        let end = match (self.random.below(4), is_masked) {
            (0, true) => {
                let length = self.number(depth).name;
                let end = self.name("e");
                self.line(&format!("{end} = tl.minimum({length}, {depth})"));
                end
            }
            (0, false) => {
                let length = self.number(depth).name;
                let end = self.name("e");
                self.line(&format!("{end} = tl.maximum(tl.minimum({length}, {depth}), 0) // {k} * {k}"));
                end
            }
            (1, false) => depth.to_string(),
            (_, true) => self.length(&[depth, 0, 1, depth - 1, k, k + 1, k - 1, 2 * k + 3, 3 * k], "i32"),
            (_, false) => self.length(&[depth, 0, k, 2 * k, 3 * k], "i32:16"),
        };
        let [acc, i, va, vb, pa, pb, rows, columns, inner] =
            ["acc", "k", "a", "b", "pa", "pb", "rm", "rn", "rk"].map(|start| self.name(start));
        let (b_rows, b_columns) =
            if is_turned { ("1".to_string(), depth.to_string()) } else { (n.to_string(), "1".into()) };
        match access {
            Access::Moved | Access::Computed => {
                self.line(&format!("{rows} = pid * {m} + tl.arange(0, {m})"));
                self.line(&format!("{columns} = tl.arange(0, {n})"));
                self.line(&format!("{inner} = tl.arange(0, {k})"));
                self.line(&format!("{pa} = {a} + {rows}[:, None] * {depth} + {inner}[None, :]"));
                self.line(&format!("{pb} = {b} + {inner}[:, None] * {b_rows} + {columns}[None, :] * {b_columns}"));
            }
            Access::Blocks => {
                let order = if is_turned { "(0, 1)" } else { "(1, 0)" };
                self.line(&format!(
                    "{pa} = tl.make_block_ptr({a}, ({}, {depth}), ({depth}, 1), (pid * {m}, 0), ({m}, {k}), (1, 0))",
                    self.grid * m
                ));
                self.line(&format!(
                    "{pb} = tl.make_block_ptr({b}, ({depth}, {n}), ({b_rows}, {b_columns}), (0, 0), ({k}, {n}), {order})"
                ));
            }
            Access::Descriptors => {
                let (shape, block) = if is_turned {
                    (format!("{n}, {depth}"), format!("{n}, {k}"))
                } else {
                    (format!("{depth}, {n}"), format!("{k}, {n}"))
                };
                let stride = if is_turned { depth } else { n };
                self.line(&format!(
                    "{pa} = tl.make_tensor_descriptor({a}, [{}, {depth}], [{depth}, 1], [{m}, {k}])",
                    self.grid * m
                ));
                self.line(&format!("{pb} = tl.make_tensor_descriptor({b}, [{shape}], [{stride}, 1], [{block}])"));
            }
        }
        self.line(&format!("{acc} = tl.zeros(({m}, {n}), dtype=tl.{})  # {}[{m}, {n}]", sums.0, sums.0));
        let stages = *self.random.pick(&["", "", ", num_stages=1", ", num_stages=2", ", num_stages=4"]);
        self.line(&format!("for {i} in tl.range(0, {end}, {k}{stages}):"));
        self.depth += 1;
        let [mask_a, mask_b] = if is_masked {
            let left = format!("{end} - {i}");
            [
                format!(", mask={inner}[None, :] < {left}, other=0.0"),
                format!(", mask={inner}[:, None] < {left}, other=0.0"),
            ]
            .map(|mask| if matches!(*operand, E5M2 | E4M3) { mask.replace(", other=0.0", "") } else { mask })
            .map(|mask| if operand.is_float() { mask } else { mask.replace("0.0", "0") })
        } else {
            [String::new(), String::new()]
        };
        match access {
            Access::Moved | Access::Blocks => {
                self.line(&format!("{va} = tl.load({pa}{mask_a})"));
                self.line(&format!("{vb} = tl.load({pb}{mask_b})"));
            }
            Access::Computed => {
                self.line(&format!("{va} = tl.load({pa} + {i}{mask_a})"));
                self.line(&format!("{vb} = tl.load({pb} + {i} * {b_rows}{mask_b})"));
            }
            Access::Descriptors => {
                self.line(&format!("{va} = {pa}.load([pid * {m}, {i}])"));
                let load = if is_turned { format!("{pb}.load([0, {i}]).T") } else { format!("{pb}.load([{i}, 0])") };
                self.line(&format!("{vb} = {load}"));
            }
        }
        let mut bound = u64::from(depth) * most * most;
        if self.random.below(4) == 0 && operand.bits() > 8 {
            self.line(&format!("{va} = {va} * 2"));
            bound *= 2;
        }
        let text = match self.random.below(4) {
            0 | 1 => format!("{acc} = tl.dot({va}, {vb}, {acc}{options})"),
            2 => format!("{acc} += tl.dot({va}, {vb}{options})"),
            _ => {
                self.line(&format!("if {i} >= {k}:"));
                self.depth += 1;
                self.line(&format!("{acc} += 1"));
                bound += u64::from(rounds);
                self.depth -= 1;
                format!("{acc} = tl.dot({va}, {vb}, {acc}{options})")
            }
        };
        self.line(&text);
        match access {
            Access::Moved => {
                self.line(&format!("{pa} += {k}"));
                self.line(&format!("{pb} += {k} * {b_rows}"));
            }
            Access::Blocks => {
                self.line(&format!("{pa} = tl.advance({pa}, (0, {k}))"));
                self.line(&format!("{pb} = tl.advance({pb}, ({k}, 0))"));
            }
            Access::Computed | Access::Descriptors => {}
        }
        self.depth -= 1;
        let most = Some(bound).filter(|bound| *bound <= sums.whole());
        let value = Value { name: acc, dtype: *sums, shape: vec![m, n], most };
        if *sums == F32 && self.random.below(2) == 0 {
            self.scope.push(value.clone());
            return self.bind(&format!("{}.to(tl.float16)", value.name), F16, &[m, n], most);
        }
        value
    }

    /// Two chained dots, as in attention.
    fn attended(&mut self) -> Value {
        let [m, n, d] = *self.random.pick(&[[64, 32, 32], [64, 64, 64], [16, 16, 16], [128, 32, 64], [32, 64, 16]]);
        let dtype = *self.random.pick(&[F16, F16, BF16]);
        let length = n * 4;
        let [q, keys, values] =
            [self.grid * m * d, length * d, length * d].map(|count| self.whole_tensor(dtype, count, 1));
        let limit = self.number(length).name;
        let [acc, i, rows, columns, inner, vq, top, s, p, vv] =
            ["acc", "j", "rm", "rn", "rd", "q", "top", "s", "p", "u"].map(|start| self.name(start));
        self.line(&format!("{rows} = pid * {m} + tl.arange(0, {m})"));
        self.line(&format!("{columns} = tl.arange(0, {n})"));
        self.line(&format!("{inner} = tl.arange(0, {d})"));
        self.line(&format!("{vq} = tl.load({q} + {rows}[:, None] * {d} + {inner}[None, :])"));
        self.line(&format!("{acc} = tl.zeros(({m}, {d}), dtype=tl.float32)"));
        self.line(&format!("{top} = tl.full(({m},), -1000.0, tl.float32)"));
        let is_masked = self.random.below(3) > 0;
        let end = if is_masked {
            format!("tl.minimum({limit}, {length})")
        } else {
            format!("tl.maximum(tl.minimum({limit}, {length}), 0) // {n} * {n}")
        };
        let last = self.name("e");
        self.line(&format!("{last} = {end}"));
        self.line(&format!("for {i} in range(0, {last}, {n}):"));
        self.depth += 1;
        let mask =
            if is_masked { format!(", mask=({i} + {columns})[:, None] < {last}, other=0.0") } else { String::new() };
        self.line(&format!("{s} = tl.load({keys} + ({i} + {columns})[:, None] * {d} + {inner}[None, :]{mask})"));
        self.line(&format!("{s} = tl.dot({vq}, {s}.T)"));
        if is_masked {
            self.line(&format!("{s} = tl.where(({i} + {columns})[None, :] < {last}, {s}, -1000.0)"));
        }
        self.line(&format!("{top} = tl.maximum({top}, tl.max({s}, 1))"));
        self.line(&format!("{p} = tl.where({s} < {top}[:, None], 1.0, 2.0)"));
        self.line(&format!("{vv} = tl.load({values} + ({i} + {columns})[:, None] * {d} + {inner}[None, :]{mask})"));
        if self.random.below(2) == 0 {
            self.line(&format!("{acc} = {acc} + tl.dot({p}.to(tl.{}), {vv})", dtype.0));
        } else {
            self.line(&format!("{acc} = tl.dot({p}.to(tl.{}), {vv}, {acc})", dtype.0));
        }
        self.depth -= 1;
        self.scope.push(Value { name: top, dtype: F32, shape: vec![m], most: Some(1000) });
        Value { name: acc, dtype: F32, shape: vec![m, d], most: Some(u64::from(length) * 2) }
    }
}
