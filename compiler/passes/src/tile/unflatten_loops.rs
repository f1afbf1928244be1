//! Recovers a loop nest from a flattened loop over the parts of all tiles: a loop over tiles that contains one over the
//! parts of a tile.
//!
//! ```text
//! for_range 0, %n, 1, (-1, %tile, 0) ^(%i, %k, %tile, %sum) {     for_range 0, %n / %parts, 1, (%tile) ^(%i, %tile) {
//!   %part = select (%k == %parts - 1), 0, %k + 1                    the tile's addresses, of %tile
//!   if_else (%part == 0) { the tile's addresses, of %tile }    →    for_range 0, %parts, 1, (0) ^(%part, %sum) {
//!   %more = dot .., %sum                                               %more = dot .., %sum
//!   if_else (%part == %parts - 1) { store; 0 } { %more }             }
//! }                                                                  store
//!                                                                  }
//! ```
//!
//! Persistent kernels were written like this for compilers that pipeline innermost loops only. Here, addresses that are
//! computed in a branch cannot be known ahead of time, and the passes for dots need the two loops. The conditions:
//!
//! - The loop counts from 0 by 1, has a dot and no loop in it, and its results are unused.
//! - Parts are counted from 0 to `%parts - 1` repeatedly, by a loop-carried value or as the index modulo `%parts`
//!   (`parts.rs`).
//! - All side effects are in branches for the last part, and only arithmetic follows them. So iterations after the last
//!   whole tile have no effects and are dropped, and there is no tile if `%parts` is below 1.
//! - The results of these branches are used by the next iteration alone, and the values yielded before the last part
//!   are computed in the loop or loop-carried. A branch for the first part otherwise yields loop-carried values.
//! - The values used in branches can be recomputed, by arithmetic alone, where the branches are moved (`rewrite.rs`).

mod parts;
mod rewrite;

use rtc_ir::{Block, Kernel, Op, OpKind, Phase, Value, constant_bits, regions, view};

use crate::rewrite::dead::has_effect;
use crate::{Pass, PassContext, PassError};
use parts::{Number, Parts};

/// The pass.
pub const PASS: Pass = Pass { name: "unflatten-loops", needs: Phase::Tile, leaves: Phase::Tile, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    for op in rtc_ir::walk(kernel) {
        for parts in candidates(kernel, op) {
            let Some(flat) = Flat::of(kernel, op, parts) else { continue };
            let mut trial = kernel.clone();
            if rewrite::unflatten(&mut trial, &flat)? {
                *kernel = trial;
                break;
            }
        }
    }
    Ok(())
}

/// How an innermost loop with a dot may count parts.
fn candidates(kernel: &Kernel, op: Op) -> Vec<Parts> {
    let OpKind::ForRange { unsigned: false, .. } = kernel.kind(op) else { return Vec::new() };
    let inside = rtc_ir::walk_block(kernel, kernel.op(op).blocks[0]);
    let range = view::ForRange::at(kernel, op);
    let counts = [range.lower(), range.step()].map(|value| constant_bits(kernel, value)) == [Some(0), Some(1)];
    let has_loop = inside.iter().any(|op| regions::is_loop(kernel.kind(*op)));
    let has_dot = inside.iter().any(|op| matches!(kernel.kind(*op), OpKind::Dot { .. }));
    let used = kernel.op(op).results.iter().any(|result| kernel.is_used(*result));
    if counts && has_dot && !has_loop && !used { Parts::found(kernel, op) } else { Vec::new() }
}

/// A loop over the parts of all tiles.
struct Flat {
    /// The loop.
    of: Op,
    /// Its body, and the end of that.
    body: Block,
    end: Op,
    /// How it counts parts.
    parts: Parts,
    /// Branches that are taken for the first part.
    first: Vec<Op>,
    /// Branches that are taken for the last part.
    last: Vec<Op>,
}

impl Flat {
    fn of(kernel: &Kernel, of: Op, parts: Parts) -> Option<Flat> {
        let body = kernel.op(of).blocks[0];
        let end = kernel.terminator(body)?;
        let mut flat = Flat { of, body, end, parts, first: Vec::new(), last: Vec::new() };
        for op in kernel.ops(body).filter(|op| *op != end && !flat.parts.counting.contains(op)).collect::<Vec<_>>() {
            let taken = flat.taken(kernel, op);
            let shows = has_effect(kernel, op);
            if !flat.last.is_empty() && !taken.last && reads(kernel, op) {
                return None;
            }
            if taken.first && !shows && flat.yields_carried(kernel, op) {
                flat.first.push(op);
            } else if taken.last && flat.ends_tile(kernel, op) {
                flat.last.push(op);
            } else if shows || !flat.last.is_empty() && reads(kernel, op) {
                return None;
            }
        }
        let results = flat.last.iter().flat_map(|branch| &kernel.op(*branch).results);
        let users = results.flat_map(|result| kernel.users(*result));
        let handed_on = |user: Op| user == end || flat.last.contains(&flat.around(kernel, user));
        (!flat.last.is_empty() && users.into_iter().all(handed_on)).then_some(flat)
    }

    /// In which iterations the first block of a branch is executed.
    fn taken(&self, kernel: &Kernel, op: Op) -> Taken {
        let number = || {
            let OpKind::IfElse {} = kernel.kind(op) else { return None };
            self.parts.equals(kernel, view::IfElse::at(kernel, op).condition())
        };
        let Some(number) = number() else { return Taken { first: false, last: false } };
        let last = self.parts.count.plus(-1);
        let is = |other: &Number| number.is(other, kernel, self.parts.bits);
        Taken { first: is(&Number::of_constant(0)), last: is(&last) }
    }

    /// Whether a branch for the first part yields what the loop carries otherwise.
    fn yields_carried(&self, kernel: &Kernel, branch: Op) -> bool {
        yielded(kernel, branch, 1).iter().all(|value| self.carried(kernel, *value).is_some())
    }

    /// Whether what a branch for the last part yields otherwise is known without it.
    fn ends_tile(&self, kernel: &Kernel, branch: Op) -> bool {
        let otherwise = kernel.op(branch).blocks[1];
        let is_known = |value: &Value| {
            let made = kernel.def_op(*value);
            made.is_none_or(|made| kernel.op(made).parent != Some(otherwise) && !self.last.contains(&made))
        };
        let mut ops = kernel.ops(otherwise).filter(|op| Some(*op) != kernel.terminator(otherwise));
        ops.all(|op| !has_effect(kernel, op)) && yielded(kernel, branch, 1).iter().all(is_known)
    }

    /// The operation of the loop's body that is, or contains, an operation.
    fn around(&self, kernel: &Kernel, mut op: Op) -> Op {
        while let Some(block) = kernel.op(op).parent.filter(|block| *block != self.body) {
            let Some(around) = kernel.block(block).parent else { break };
            op = around;
        }
        op
    }

    /// Which of the values that the loop carries this is.
    fn carried(&self, kernel: &Kernel, value: Value) -> Option<usize> {
        kernel.block(self.body).args[1..].iter().position(|arg| *arg == value)
    }

    /// Whether a loop-carried value is used outside of the branches for first and last parts, or becomes another one.
    fn is_seen(&self, kernel: &Kernel, value: Value) -> bool {
        let others = (0..kernel.variadic(self.end).len()).filter(|number| self.carried(kernel, value) != Some(*number));
        let beside = |user: Op| {
            let around = self.around(kernel, user);
            around != self.end && !self.first.contains(&around) && !self.last.contains(&around)
        };
        others.into_iter().any(|number| self.next(kernel, number) == value)
            || kernel.users(value).into_iter().any(beside)
    }

    /// The next value of a loop-carried value if the part is not the last one.
    fn next(&self, kernel: &Kernel, number: usize) -> Value {
        let next = kernel.variadic(self.end)[number];
        match self.by_last(kernel, next) {
            Some((branch, number)) => yielded(kernel, branch, 1)[number],
            None => next,
        }
    }

    /// The branch for the last part that a value is a result of, and which.
    fn by_last(&self, kernel: &Kernel, value: Value) -> Option<(Op, usize)> {
        let branch = kernel.def_op(value).filter(|op| self.last.contains(op))?;
        let number = kernel.op(branch).results.iter().position(|result| *result == value)?;
        Some((branch, number))
    }
}

/// Whether an operation or one nested in it reads memory.
fn reads(kernel: &Kernel, op: Op) -> bool {
    rtc_ir::walk_op(kernel, op).into_iter().any(|op| kernel.effects(op).next().is_some())
}

/// When the first block of a branch is executed.
struct Taken {
    first: bool,
    last: bool,
}

/// The values that a block of a branch yields.
fn yielded(kernel: &Kernel, branch: Op, block: usize) -> &[Value] {
    kernel.terminator(kernel.op(branch).blocks[block]).map_or(&[], |end| kernel.variadic(end))
}
