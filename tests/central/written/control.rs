//! Loops and branches of kernels that are written at random.

use super::types::{BOOL, I32};
use super::{Maker, Value};

impl Maker {
    /// New names for a few values, which a loop or a branch then gives other values.
    fn carried(&mut self) -> Vec<Value> {
        let count = 1 + self.random.below(2);
        let mut carried = Vec::new();
        for _ in 0..count {
            let from = self.any();
            let name = self.name("c");
            self.line(&format!("{name} = {}  # {}{:?}", from.name, from.dtype.0, from.shape));
            carried.push(Value { name, most: None, ..from });
        }
        carried
    }

    /// Some steps in a block of their own, which give the carried values new ones.
    fn block(&mut self, carried: &[Value], more: &[Value]) {
        let before = self.scope.len();
        self.scope.extend(more.iter().chain(carried).cloned());
        self.depth += 1;
        let own = self.scope.len();
        for _ in 0..self.random.below(4) {
            self.step();
        }
        for value in carried {
            // A value of the block, if it can be brought to the shape; otherwise a new one.
            let made: Vec<Value> = self.scope[own.min(self.scope.len())..].to_vec();
            let fits = |v: &&Value| v.shape == value.shape || (v.numel() == value.numel() && !value.shape.is_empty());
            let fits = |v: &&Value| fits(v) && (!v.shape.is_empty() || value.shape.is_empty());
            let fitting: Vec<Value> = made.iter().filter(fits).cloned().collect();
            let next = match fitting.last() {
                Some(next) if next.shape == value.shape => next.clone(),
                Some(next) => {
                    let text = format!("tl.reshape({}, {:?})", next.name, value.shape);
                    self.bind(&text, next.dtype, &value.shape, next.most)
                }
                None => self.binary_of(value),
            };
            let next = self.cast(&next, value.dtype);
            self.line(&format!("{} = {}  # {}{:?}", value.name, next.name, value.dtype.0, value.shape));
        }
        self.depth -= 1;
        self.scope.truncate(before);
    }

    /// A loop over a range, known or not.
    pub(super) fn repeated(&mut self) -> Option<Value> {
        let carried = self.carried();
        let counter = self.name("i");
        let index = Value { name: counter.clone(), dtype: I32, shape: Vec::new(), most: None };
        let rounds = 1 + self.random.below(4);
        let (range, more) = match self.random.below(6) {
            0 => (format!("tl.static_range({rounds})"), Vec::new()),
            1 => (format!("range(0, {rounds})"), vec![index]),
            2 => (format!("tl.range(1, {}, 2, loop_unroll_factor=2)", rounds * 2), vec![index]),
            3 => (format!("range({}, 0, -1)", rounds), vec![index]),
            _ => {
                let n = self.number(rounds as u32).name;
                let stages = *self.random.pick(&["", ", num_stages=2", ", num_stages=3"]);
                (format!("tl.range(0, tl.minimum({n}, 4){stages})"), vec![index])
            }
        };
        self.line(&format!("for {counter} in {range}:"));
        self.block(&carried, &more);
        self.scope.extend(carried);
        None
    }

    /// A loop that goes on as long as something holds.
    pub(super) fn turned(&mut self) -> Option<Value> {
        let carried = self.carried();
        let (counter, most) = (self.name("w"), 1 + self.random.below(4));
        let n = self.number(most as u32).name;
        self.line(&format!("{counter} = pid * 0  # int32[]"));
        self.line(&format!("while {counter} < tl.minimum({n}, {most}):"));
        let index = Value { name: counter.clone(), dtype: I32, shape: Vec::new(), most: None };
        self.block(&carried, &[index]);
        self.depth += 1;
        self.line(&format!("{counter} += 1"));
        self.depth -= 1;
        self.scope.extend(carried);
        None
    }

    /// A branch, with or without the other one.
    pub(super) fn chosen(&mut self) -> Option<Value> {
        let condition = match self.any_where(|v| v.dtype == BOOL && v.shape.is_empty()) {
            Some(condition) => condition.name,
            None => match self.any_where(|v| v.dtype.is_int() && v.shape.is_empty() && v.name != "pid") {
                Some(number) => format!("({} & 1) == 0", number.name),
                None => {
                    let n = self.number(4).name;
                    format!("{n} > pid")
                }
            },
        };
        let carried = self.carried();
        self.line(&format!("if {condition}:"));
        self.block(&carried, &[]);
        if self.random.below(2) == 0 {
            self.line("else:");
            self.block(&carried, &[]);
        }
        self.scope.extend(carried);
        None
    }
}
