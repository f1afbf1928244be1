//! The counting of parts in a flattened loop over the parts of all tiles.
//!
//! ```text
//! (-1 or %parts - 1) ^(%k)    %part = select (%k == %parts - 1), 0, %k + 1                 yields (%part)
//! (0)                ^(%part) %next = select (%part == %parts - 1), 0, %part + 1           yields (%next)
//!                    ^(%i)    %part = remsi %i, %parts, and the tile is divsi %i, %parts
//! ```
//!
//! The select may be a branch, and may compare `%k + 1 == %parts`.

use rtc_ir::{Kernel, Op, OpKind, Predicate, Traits, Type, Value, constant_int, view};

/// A sum of a value and a constant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    /// `None` is 0.
    pub base: Option<Value>,
    /// The constant; only the low bits count.
    pub offset: i64,
}

impl Number {
    /// A constant.
    pub fn of_constant(offset: i64) -> Number {
        Number { base: None, offset }
    }

    /// A scalar integer.
    fn of(kernel: &Kernel, mut value: Value) -> Number {
        let mut offset = 0i64;
        loop {
            if let Some(constant) = constant(kernel, value) {
                return Number { base: None, offset: offset.wrapping_add(constant) };
            }
            let sum = kernel.def_op(value).and_then(|op| match kernel.kind(op) {
                OpKind::AddI {} => {
                    let sum = view::AddI::at(kernel, op);
                    let sides = [(sum.lhs(), sum.rhs()), (sum.rhs(), sum.lhs())];
                    sides.into_iter().find_map(|(rest, by)| Some((rest, constant(kernel, by)?)))
                }
                OpKind::SubI {} => {
                    let difference = view::SubI::at(kernel, op);
                    Some((difference.lhs(), constant(kernel, difference.rhs())?.wrapping_neg()))
                }
                _ => None,
            });
            let Some((rest, by)) = sum else { return Number { base: Some(value), offset } };
            (value, offset) = (rest, offset.wrapping_add(by));
        }
    }

    /// With a constant added.
    pub fn plus(&self, by: i64) -> Number {
        Number { base: self.base, offset: self.offset.wrapping_add(by) }
    }

    /// Whether two integers of so many bits are the same one.
    pub fn is(&self, other: &Number, kernel: &Kernel, bits: u32) -> bool {
        let bases = match (self.base, other.base) {
            (None, None) => true,
            (Some(a), Some(b)) => alike(kernel, a, b, MOST_STEPS),
            _ => false,
        };
        bases && self.offset.wrapping_sub(other.offset) << (64 - bits) == 0
    }
}

/// The depth to which two values are compared.
const MOST_STEPS: u32 = 8;

/// Whether two values are computed alike, by operations that give the same again.
fn alike(kernel: &Kernel, a: Value, b: Value, steps: u32) -> bool {
    let [Some(x), Some(y)] = [a, b].map(|value| kernel.def_op(value)) else { return a == b };
    let (left, right) = (kernel.op(x), kernel.op(y));
    let is_same = || {
        steps > 0
            && left.kind == right.kind
            && left.kind.spec().traits.has(Traits::PURE)
            && left.blocks.is_empty()
            && left.optional == right.optional
            && kernel.value_type(a) == kernel.value_type(b)
            && left.results.iter().position(|v| *v == a) == right.results.iter().position(|v| *v == b)
            && left.operands.len() == right.operands.len()
    };
    a == b || is_same() && left.operands.iter().zip(&right.operands).all(|(a, b)| alike(kernel, *a, *b, steps - 1))
}

/// A scalar constant as a signed number.
fn constant(kernel: &Kernel, value: Value) -> Option<i64> {
    let Type::Scalar(_) = kernel.value_type(value) else { return None };
    constant_int(kernel, value)
}

/// How a loop counts parts.
pub(super) struct Parts {
    /// The values that are the part.
    pub part: Vec<Value>,
    /// How many there are.
    pub count: Number,
    /// The bits of the part.
    pub bits: u32,
    /// The carried value that counts, which is not needed without the count; `None` if the part follows from the loop's own
    /// counter.
    pub carried: Option<usize>,
    /// Operations that do nothing but count.
    pub counting: Vec<Op>,
    /// Values that are the number of the tile.
    pub tile: Vec<Value>,
}

impl Parts {
    /// The possible counters of parts of a loop that counts from 0 by 1.
    pub fn found(kernel: &Kernel, of: Op) -> Vec<Parts> {
        let body = kernel.op(of).blocks[0];
        let args = kernel.block(body).args.clone();
        let mut out: Vec<Parts> = (0..args.len() - 1).filter_map(|number| Parts::carried(kernel, of, number)).collect();
        for op in kernel.ops(body) {
            if let Some(remainder) = view::RemSI::of(kernel, op)
                && remainder.lhs() == args[0]
                && !out.iter().any(|found| found.counting.contains(&op))
            {
                out.push(Parts::of_counter(kernel, of, remainder.rhs()));
            }
        }
        out
    }

    /// The part as a remainder of the loop's counter.
    fn of_counter(kernel: &Kernel, of: Op, count: Value) -> Parts {
        let body = kernel.op(of).blocks[0];
        let index = kernel.block(body).args[0];
        let number = Number::of(kernel, count);
        let bits = bits(kernel, index);
        let mut parts =
            Parts { part: Vec::new(), count: number, bits, carried: None, counting: Vec::new(), tile: Vec::new() };
        for op in kernel.ops(body) {
            let found = match kernel.kind(op) {
                OpKind::RemSI {} => &mut parts.part,
                OpKind::DivSI {} => &mut parts.tile,
                _ => continue,
            };
            let Some([dividend, divisor]) = kernel.sides(op) else { continue };
            if dividend == index && Number::of(kernel, divisor).is(&number, kernel, bits) {
                found.push(kernel.result(op, 0));
                parts.counting.push(op);
            }
        }
        parts
    }

    /// The part as a carried value.
    fn carried(kernel: &Kernel, of: Op, number: usize) -> Option<Parts> {
        let body = kernel.op(of).blocks[0];
        let args = &kernel.block(body).args;
        let (index, counted) = (args[0], args[1 + number]);
        if kernel.value_type(counted) != kernel.value_type(index) {
            return None;
        }
        let next = kernel.variadic(kernel.terminator(body)?)[number];
        let chosen = kernel.def_op(next).filter(|op| kernel.op(*op).parent == Some(body))?;
        let bits = bits(kernel, index);
        let count = next_or_zero(kernel, chosen, next, counted)?;
        let start = Number::of(kernel, kernel.variadic(of)[number]);
        let parts =
            |part, counting| Parts { part: vec![part], count, bits, carried: Some(number), counting, tile: vec![] };
        if start.is(&Number::of_constant(0), kernel, bits) {
            return Some(parts(counted, Vec::new()));
        }
        let is_start = start.is(&Number::of_constant(-1), kernel, bits) || start.is(&count.plus(-1), kernel, bits);
        if !is_start {
            return None;
        }
        // Nothing but the choice may look at the part before.
        let mut counting = vec![chosen];
        let mut work = vec![counted];
        while let Some(value) = work.pop() {
            for user in kernel.users(value) {
                let block = kernel.op(user).parent?;
                if counting.contains(&user) || kernel.block(block).parent == Some(chosen) {
                    continue;
                }
                let counts = matches!(kernel.kind(user), OpKind::AddI {} | OpKind::SubI {} | OpKind::CmpI { .. });
                (block == body && counts).then_some(())?;
                counting.push(user);
                work.push(kernel.result(user, 0));
            }
        }
        Some(parts(next, counting))
    }

    /// The number that the part equals where a condition holds.
    pub fn equals(&self, kernel: &Kernel, condition: Value) -> Option<Number> {
        let compared = view::CmpI::defining(kernel, condition)?;
        let OpKind::CmpI { predicate: Predicate::Eq } = kernel.kind(compared.op()) else { return None };
        let [l, r] = [compared.lhs(), compared.rhs()].map(|side| Number::of(kernel, side));
        [(l, r), (r, l)].into_iter().find_map(|(this, other)| {
            let is_part = this.base.is_some_and(|base| self.part.contains(&base));
            is_part.then(|| other.plus(this.offset.wrapping_neg()))
        })
    }
}

fn bits(kernel: &Kernel, value: Value) -> u32 {
    kernel.value_type(value).elem().map_or(64, |elem| elem.bits())
}

/// How many numbers are counted, if a choice gives 0 after the last one and else the next.
fn next_or_zero(kernel: &Kernel, chosen: Op, next: Value, counted: Value) -> Option<Number> {
    let (condition, [yes, no]) = match kernel.kind(chosen) {
        OpKind::Select {} => {
            let select = view::Select::at(kernel, chosen);
            (select.condition(), [select.lhs(), select.rhs()])
        }
        OpKind::IfElse {} => {
            let number = kernel.op(chosen).results.iter().position(|result| *result == next)?;
            // Nothing else follows from this branch.
            (kernel.op(chosen).results.len() == 1).then_some(())?;
            let is_pure = |op: &Op| kernel.kind(*op).spec().traits.has(Traits::PURE);
            let ops = kernel.op(chosen).blocks.iter().flat_map(|block| {
                let end = kernel.terminator(*block);
                kernel.ops(*block).filter(move |op| Some(*op) != end)
            });
            ops.into_iter().all(|op| is_pure(&op)).then_some(())?;
            let yielded = [0, 1].map(|block| super::yielded(kernel, chosen, block)[number]);
            (view::IfElse::at(kernel, chosen).condition(), yielded)
        }
        _ => return None,
    };
    let compared = view::CmpI::defining(kernel, condition)?;
    let (zero, more) = match kernel.kind(compared.op()) {
        OpKind::CmpI { predicate: Predicate::Eq } => (yes, no),
        OpKind::CmpI { predicate: Predicate::Ne } => (no, yes),
        _ => return None,
    };
    let bits = bits(kernel, counted);
    let is_next = Number { base: Some(counted), offset: 1 }.is(&Number::of(kernel, more), kernel, bits);
    (constant(kernel, zero) == Some(0) && is_next).then_some(())?;
    let [l, r] = [compared.lhs(), compared.rhs()].map(|side| Number::of(kernel, side));
    [(l, r), (r, l)]
        .into_iter()
        .find_map(|(this, other)| (this.base == Some(counted)).then(|| other.plus(1i64.wrapping_sub(this.offset))))
}
