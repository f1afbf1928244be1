//! The steps of random kernels in the kernel language.

use super::types::{BF16, BOOL, Dtype, ELEMENTS, F16, F32, F64, I32, U32, promote, widened, with_number};
use super::{LIMIT, Maker, Value};

impl Maker {
    /// Adds one statement, or a few that belong together.
    pub(super) fn step(&mut self) {
        let made = match self.random.below(34) {
            0..=5 => Some(self.binary()),
            6 => self.unary(),
            7 | 8 => {
                let a = self.any();
                let to = *self.random.pick(&ELEMENTS);
                Some(self.cast(&a, to))
            }
            9 => Some(self.compared()),
            10 | 11 => self.transposed(),
            12 => self.reshaped(),
            13 => self.widened(),
            14 => self.joined(),
            15..=17 => self.reduced(),
            18 | 19 => self.scanned(),
            20 => self.gathered(),
            21 => self.sorted(),
            22 if self.depth == 0 => self.counted(),
            23 if self.depth == 0 => Some(self.multiplied()),
            24 | 25 if self.depth < 2 => self.repeated(),
            26 if self.depth < 2 => self.chosen(),
            27 if self.depth < 2 => self.turned(),
            28 | 29 if self.depth == 0 && !self.has_dots => Some(self.pipelined()),
            30 => self.called(),
            31 => self.indexed(),
            32 => self.histogram(),
            _ => Some(self.binary()),
        };
        if let Some(value) = made {
            self.scope.push(value);
        }
        let lines = self.body.len();
        for value in &self.scope {
            self.born.entry(value.name.clone()).or_insert(lines);
        }
    }

    /// Another operand for `a` with its type, shape and bound, as an expression; `None` for a plain number.
    fn partner(&mut self, a: &Value) -> (String, Option<Value>) {
        let (name, shape) = (a.name.clone(), a.shape.clone());
        match self.random.below(6) {
            0 | 1 => {
                if let Some(b) = self.any_where(|v| v.shape == shape && v.name != name) {
                    return (b.name.clone(), Some(b));
                }
            }
            2 if shape.len() == 2 => {
                let row = self.any_where(|v| v.shape.len() == 1 && v.shape[0] == shape[1]);
                if let Some(b) = row {
                    return (format!("{}[None, :]", b.name), Some(Value { shape, ..b }));
                }
                let column = self.any_where(|v| v.shape.len() == 1 && v.shape[0] == shape[0]);
                if let Some(b) = column {
                    return (format!("{}[:, None]", b.name), Some(Value { shape, ..b }));
                }
            }
            3 => {
                if let Some(b) = self.any_where(|v| v.shape.is_empty() && v.name != name) {
                    return (b.name.clone(), Some(Value { shape, ..b }));
                }
            }
            4 if self.depth == 0 && !shape.is_empty() => {
                let dtype = if self.random.below(2) == 0 { a.dtype } else { *self.random.pick(&ELEMENTS) };
                let dtype = if dtype == BOOL { I32 } else { dtype };
                let b = self.input_of(dtype, &shape);
                self.scope.push(b.clone());
                return (b.name.clone(), Some(b));
            }
            _ => {}
        }
        let number = if a.dtype.is_float() && a.most.is_none() {
            *self.random.pick(&["1.5", "0.25", "3", "-2.0", "7"])
        } else {
            *self.random.pick(&["1", "2", "3", "7", "5"])
        };
        (number.to_string(), None)
    }

    fn binary(&mut self) -> Value {
        let a = self.any();
        self.binary_of(&a)
    }

    pub(super) fn binary_of(&mut self, a: &Value) -> Value {
        let (text, b) = self.partner(a);
        let dtype = b.as_ref().map_or(with_number(a.dtype), |b| promote(a.dtype, b.dtype));
        let other = match &b {
            Some(b) => b.most,
            None => text.trim_start_matches('-').parse().ok(),
        };
        let bounds = a.most.zip(other);
        let shape = a.shape.clone();
        let a = &a.name;
        if dtype.is_float() {
            return match self.random.below(8) {
                0..=2 => self.bind(&format!("{a} + {text}"), dtype, &shape, bounds.map(|(a, b)| a + b)),
                3 => self.bind(&format!("{a} - {text}"), dtype, &shape, bounds.map(|(a, b)| a + b)),
                4 | 5 => self.bind(&format!("{a} * {text}"), dtype, &shape, bounds.map(|(a, b)| a.saturating_mul(b))),
                6 if dtype == F64 => self.bind(&format!("{a} / {text}"), F64, &shape, None),
                6 if dtype == F32 && b.is_some() => {
                    self.bind(&format!("tl.div_rn({a}.to(tl.float32), {text}.to(tl.float32))"), F32, &shape, None)
                }
                _ => {
                    let name = *self.random.pick(&["maximum", "minimum"]);
                    let number = if text.contains('.') { F32 } else { I32 };
                    let dtype = match (&b, dtype) {
                        (None, dtype) => promote(dtype, number),
                        (Some(_), dtype) => dtype,
                    };
                    let dtype = if dtype == BF16 { F32 } else { dtype };
                    let nan = *self.random.pick(&["", "", ", propagate_nan=tl.PropagateNan.ALL"]);
                    let most = bounds.map(|(a, b)| a.max(b));
                    self.bind(&format!("tl.{name}({a}, {text}{nan})"), dtype, &shape, most)
                }
            };
        }
        if dtype == BOOL {
            let operation = *self.random.pick(&["&", "|", "^"]);
            return self.bind(&format!("{a} {operation} {text}"), BOOL, &shape, Some(1));
        }
        match self.random.below(14) {
            0 => {
                let operation = *self.random.pick(&["<<", ">>"]);
                let (most, name) = (dtype.bits() - 1, dtype.0);
                let count = match b {
                    Some(_) => format!("({text}.to(tl.{name}) & {most})"),
                    None => text,
                };
                self.bind(&format!("{a}.to(tl.{name}) {operation} {count}"), dtype, &shape, None)
            }
            // The divisor is from 1 to 31, of the same type: neither zero nor overflow.
            1 | 2 => {
                let operation = *self.random.pick(&["//", "%"]);
                let divisor = match b {
                    Some(_) => format!("(({text}.to(tl.{}) & 30) + 1)", dtype.0),
                    None => text,
                };
                self.bind(&format!("{a}.to(tl.{}) {operation} {divisor}", dtype.0), dtype, &shape, None)
            }
            3 if dtype.bits() >= 32 && b.is_some() => {
                let name = dtype.0;
                self.bind(&format!("tl.umulhi({a}.to(tl.{name}), {text}.to(tl.{name}))"), dtype, &shape, None)
            }
            4 => {
                let name = *self.random.pick(&["maximum", "minimum"]);
                let dtype = if b.is_some() { dtype } else { promote(dtype, I32) };
                self.bind(&format!("tl.{name}({a}, {text})"), dtype, &shape, None)
            }
            _ => {
                let operation = *self.random.pick(&["+", "-", "*", "&", "|", "^", "+", "*"]);
                let most = match operation {
                    "+" | "-" if dtype.is_signed() => bounds.map(|(a, b)| a + b),
                    "*" => bounds.map(|(a, b)| a.saturating_mul(b)),
                    _ => None,
                };
                self.bind(&format!("{a} {operation} {text}"), dtype, &shape, most)
            }
        }
    }

    fn unary(&mut self) -> Option<Value> {
        let a = self.any_where(|v| v.dtype != BOOL)?;
        let (name, dtype, shape) = (&a.name, a.dtype, &a.shape);
        Some(match self.random.below(6) {
            0 => self.bind(&format!("-{name}"), dtype, shape, a.most.filter(|_| dtype.is_signed() || dtype.is_float())),
            1 => self.bind(&format!("tl.abs({name})"), dtype, shape, a.most),
            2 if dtype.is_int() => self.bind(&format!("~{name}"), dtype, shape, None),
            3 if a.most.is_some() && dtype == F32 => {
                let operation = *self.random.pick(&["floor", "ceil"]);
                let factor = *self.random.pick(&["0.5", "0.75", "-0.25"]);
                self.bind(&format!("tl.{operation}({name} * {factor})"), F32, shape, a.most)
            }
            4 if dtype == F32 || dtype == F64 => {
                self.bind(&format!("tl.fma({name}, {name}, {name})"), dtype, shape, None)
            }
            5 if dtype == F32 => self.bind(&format!("tl.sqrt_rn(tl.abs({name}))"), F32, shape, None),
            _ => return None,
        })
    }

    /// A cast, of floats to integers only where they are in range.
    pub(super) fn cast(&mut self, a: &Value, to: Dtype) -> Value {
        let Value { name, dtype, shape, most } = a;
        if dtype.is_float() && !to.is_float() {
            let most = most.filter(|most| *most <= 100 && to.is_signed());
            if most.is_some() {
                return self.bind(&format!("{name}.to(tl.{})", to.0), to, shape, most);
            }
            let low = if to.is_signed() { "-100.0" } else { "0.0" };
            let wide = if matches!(*dtype, F16 | BF16) { format!("{name}.to(tl.float32)") } else { name.clone() };
            let kept = format!("tl.minimum(tl.maximum({wide}, {low}), 100.0)");
            return self.bind(&format!("{kept}.to(tl.{})", to.0), to, shape, None);
        }
        if to == *dtype {
            return a.clone();
        }
        let same = to.bits() == dtype.bits() && *dtype != BOOL;
        if same && self.random.below(3) == 0 {
            return self.bind(&format!("{name}.to(tl.{}, bitcast=True)", to.0), to, shape, None);
        }
        // A negative number is large in an unsigned type.
        let most = most.filter(|_| to.is_float() || to.is_signed() || !dtype.is_signed());
        let most = most.filter(|_| !dtype.is_float() || to.is_float());
        self.bind(&format!("{name}.to(tl.{})", to.0), to, shape, most)
    }

    fn compared(&mut self) -> Value {
        let a = self.any();
        let (text, b) = self.partner(&a);
        let operation = *self.random.pick(&["==", "!=", "<", "<=", ">", ">="]);
        let condition = self.bind(&format!("{} {operation} {text}", a.name), BOOL, &a.shape, Some(1));
        self.scope.push(condition.clone());
        let (other, dtype, most) = match b {
            Some(b) => (text, promote(a.dtype, b.dtype), a.most.zip(b.most).map(|(a, b)| a.max(b))),
            None => ("1".to_string(), with_number(a.dtype), a.most.map(|a| a.max(1))),
        };
        self.bind(&format!("tl.where({}, {}, {other})", condition.name, a.name), dtype, &a.shape, most)
    }

    fn transposed(&mut self) -> Option<Value> {
        let a = self.any_where(|v| v.shape.len() >= 2)?;
        let (order, shape) = self.random.rotated(&a.shape);
        let text = match order.len() {
            2 if self.random.below(2) == 0 => format!("{}.T", a.name),
            2 => format!("tl.trans({})", a.name),
            _ => format!("tl.permute({}, {order:?})", a.name),
        };
        let turned = self.bind(&text, a.dtype, &shape, a.most);
        if shape == a.shape && self.random.below(2) == 0 {
            self.scope.push(turned.clone());
            let operation = if a.dtype == BOOL { "^" } else { "+" };
            let most = a.most.filter(|_| a.dtype.is_float() || a.dtype.is_signed()).map(|most| most * 2);
            return Some(self.bind(&format!("{} {operation} {}", a.name, turned.name), a.dtype, &shape, most));
        }
        Some(turned)
    }

    fn reshaped(&mut self) -> Option<Value> {
        let a = self.any_tile();
        let rank = 1 + self.random.below(4);
        let mut shape = vec![1u32; rank];
        let mut left = a.numel();
        while left > 1 {
            let axis = self.random.below(rank);
            shape[axis] *= 2;
            left /= 2;
        }
        let text = match rank {
            1 if self.random.below(2) == 0 => format!("tl.ravel({})", a.name),
            _ => format!("tl.reshape({}, {shape:?})", a.name),
        };
        Some(self.bind(&text, a.dtype, &shape, a.most))
    }

    fn widened(&mut self) -> Option<Value> {
        let a = self.any_where(|v| !v.shape.is_empty() && v.shape.len() < 4 && v.numel() <= LIMIT / 4)?;
        let axis = self.random.below(a.shape.len() + 1);
        let mut shape = a.shape.clone();
        shape.insert(axis, 1 << self.random.below(3));
        let text = format!("tl.broadcast_to(tl.expand_dims({}, {axis}), {shape:?})", a.name);
        Some(self.bind(&text, a.dtype, &shape, a.most))
    }

    fn joined(&mut self) -> Option<Value> {
        if let Some(a) = self.any_where(|v| v.shape.len() >= 2 && v.shape.last() == Some(&2))
            && self.random.below(2) == 0
        {
            let (lhs, rhs) = (self.name("v"), self.name("v"));
            self.line(&format!("{lhs}, {rhs} = tl.split({})", a.name));
            let shape = a.shape[..a.shape.len() - 1].to_vec();
            self.scope.push(Value { name: lhs, shape: shape.clone(), ..a.clone() });
            return Some(Value { name: rhs, shape, ..a });
        }
        let a = self.any_where(|v| !v.shape.is_empty() && v.shape.len() < 4 && v.numel() <= LIMIT / 2)?;
        let same = a.clone();
        let b = self.any_where(|v| v.dtype == same.dtype && v.shape == same.shape)?;
        let most = a.most.zip(b.most).map(|(a, b)| a.max(b));
        let mut shape = a.shape.clone();
        if self.random.below(2) == 0 {
            *shape.last_mut()? *= 2;
            return Some(self.bind(&format!("tl.interleave({}, {})", a.name, b.name), a.dtype, &shape, most));
        }
        shape.push(2);
        Some(self.bind(&format!("tl.join({}, {})", a.name, b.name), a.dtype, &shape, most))
    }

    fn reduced(&mut self) -> Option<Value> {
        let a = self.any_tile();
        let axis = self.random.below(a.shape.len());
        let count = u64::from(a.shape[axis]);
        let mut shape = a.shape.clone();
        shape.remove(axis);
        let Value { name, dtype, most, .. } = &a;
        let total = most.map(|most| most * count).filter(|total| *total <= dtype.whole());
        let is_summable = !dtype.is_float() || total.is_some();
        Some(match self.random.below(7) {
            0 | 1 if is_summable => {
                let dtype = if dtype.is_float() { *dtype } else { widened(*dtype) };
                self.bind(&format!("tl.sum({name}, axis={axis})"), dtype, &shape, total.filter(|_| !most.is_none()))
            }
            2 | 3 => {
                let operation = *self.random.pick(&["max", "min"]);
                let dtype = match *dtype {
                    F16 | BF16 => F32,
                    other if !other.is_float() && other.bits() < 32 => I32,
                    other => other,
                };
                self.bind(&format!("tl.{operation}({name}, {axis})"), dtype, &shape, *most)
            }
            4 if most.is_some() || dtype.is_int() => {
                let operation = *self.random.pick(&["argmax", "argmin"]);
                self.bind(&format!("tl.{operation}({name}, {axis})"), I32, &shape, Some(count))
            }
            5 if dtype.is_int() => self.bind(&format!("tl.xor_sum({name}, {axis})"), *dtype, &shape, None),
            _ if dtype.is_int() => {
                let function = *self.random.pick(&["plus", "times", "greater", "either"]);
                // A narrow sum keeps its type here, as `reduce` requires.
                let keep = self.random.below(2) == 0;
                let extra = if keep { ", keep_dims=True" } else { "" };
                if keep {
                    shape.insert(axis, 1);
                }
                self.bind(&format!("tl.reduce({name}, {axis}, {function}{extra})"), *dtype, &shape, None)
            }
            _ => return None,
        })
    }

    fn scanned(&mut self) -> Option<Value> {
        let a = self.any_where(|v| !v.shape.is_empty() && v.dtype.is_int())?;
        let axis = self.random.below(a.shape.len());
        let reverse = if self.random.below(2) == 0 { ", reverse=True" } else { "" };
        let (name, dtype, shape) = (&a.name, a.dtype, &a.shape);
        Some(match self.random.below(4) {
            0 => self.bind(&format!("tl.cumsum({name}, {axis}{reverse})"), widened(dtype), shape, None),
            1 => {
                let same = a.clone();
                let b = self.any_where(|v| v.dtype == same.dtype && v.shape == same.shape)?;
                let (x, y) = (self.name("v"), self.name("v"));
                self.line(&format!("{x}, {y} = tl.associative_scan(({name}, {}), {axis}, linear{reverse})", b.name));
                self.scope.push(Value { name: x, most: None, ..a.clone() });
                Value { name: y, most: None, ..a }
            }
            _ => {
                let function = *self.random.pick(&["plus", "times", "greater", "either"]);
                self.bind(&format!("tl.associative_scan({name}, {axis}, {function}{reverse})"), dtype, shape, None)
            }
        })
    }

    fn gathered(&mut self) -> Option<Value> {
        let a = self.any_tile();
        let axis = self.random.below(a.shape.len());
        let mut shape = a.shape.clone();
        shape[axis] = 1 << self.random.below(5);
        if shape.iter().product::<u32>() > LIMIT || a.dtype == BOOL {
            return None;
        }
        let most = a.shape[axis] - 1;
        let index = match self.any_where(|v| v.dtype == I32 && v.shape == shape) {
            Some(index) => format!("{} & {most}", index.name),
            None => format!("({}) & {most}", self.offsets(&shape)),
        };
        let index = self.bind(&index, I32, &shape, None);
        Some(self.bind(&format!("tl.gather({}, {}, {axis})", a.name, index.name), a.dtype, &shape, a.most))
    }

    fn sorted(&mut self) -> Option<Value> {
        let a = self.any_where(|v| !v.shape.is_empty() && v.dtype.is_int())?;
        let (name, shape) = (&a.name, &a.shape);
        if self.random.below(3) == 0 {
            let axis = self.random.below(shape.len());
            // Triton takes no axis of one element here.
            if shape[axis] == 1 {
                return None;
            }
            return Some(self.bind(&format!("tl.flip({name}, {axis})"), a.dtype, shape, a.most));
        }
        let descending = if self.random.below(2) == 0 { ", descending=True" } else { "" };
        Some(self.bind(&format!("tl.sort({name}{descending})"), a.dtype, shape, a.most))
    }

    fn called(&mut self) -> Option<Value> {
        let a = self.any_where(|v| v.dtype.is_int())?;
        let same = a.clone();
        let b = self.any_where(|v| v.dtype == same.dtype && v.shape == same.shape)?;
        let (x, y) = (self.name("v"), self.name("v"));
        self.line(&format!("{x}, {y} = halves({}, {})", a.name, b.name));
        self.scope.push(Value { name: x, most: None, ..a.clone() });
        Some(Value { name: y, most: None, ..a })
    }

    /// A load by a computed index, on which the analysis of addresses works.
    fn indexed(&mut self) -> Option<Value> {
        let (dtype, shape) = (*self.random.pick(&ELEMENTS), self.shape());
        let size = 64u32 << self.random.below(4);
        let mut index = format!("({})", self.offsets(&shape));
        for _ in 0..self.random.below(4) {
            let operation = *self.random.pick(&["+", "+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"]);
            let amount = match operation {
                "<<" | ">>" => self.random.pick(&["1", "2", "3"]).to_string(),
                "//" | "%" => self.random.pick(&["1", "2", "3", "4", "8", "16", "12", "32", "64", "5"]).to_string(),
                _ if self.random.below(4) == 0 => self.number(64).name,
                _ => self.random.pick(&["1", "2", "3", "4", "8", "16", "12", "32", "64", "5"]).to_string(),
            };
            index = format!("({index} {operation} {amount})");
        }
        let most = size - 1;
        let index = self.bind(&format!("{index} & {most}"), I32, &shape, None);
        let whole = (self.random.below(3) == 0).then_some(3);
        let x = self.name("x");
        let content = match whole {
            Some(_) => format!("range {} 0 3", size + 16),
            None => format!("bits {}", size + 16),
        };
        let seed = self.random.below(1 << 20) as u64;
        let align = *self.random.pick(&["", ":16", ":16"]);
        let signature = format!("*{}{align}", dtype.signature());
        self.args.push((x.clone(), super::Content::Tensor(signature, content, seed)));
        let before = *self.random.pick(&["", "", " + 1", " + 4", " + 16"]);
        let mask = if self.random.below(3) == 0 { format!(", mask={}", self.mask(&shape)) } else { String::new() };
        Some(self.bind(&format!("tl.load({x}{before} + {}{mask})", index.name), dtype, &shape, whole))
    }

    fn histogram(&mut self) -> Option<Value> {
        let a = self.any_where(|v| v.shape.len() == 1 && matches!(v.dtype, I32 | U32))?;
        Some(self.bind(&format!("tl.histogram({} & 15, 16)", a.name), I32, &[16], None))
    }
}
