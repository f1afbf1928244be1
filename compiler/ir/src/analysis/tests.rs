//! Analyses against the interpreter: the values of random programs agree with the analyses.

mod memory;
mod program;

use std::collections::HashMap;

use super::{Address, Affine, AffineForm, AxisInfos, BoundSide, Mask, Poly, Ranges, Symbol, Wraps, axis_info};
use crate::interp::{ArgValue, HostMemory, LaunchConfig, Machine, RunOptions, traced};
use crate::ops::eval::sign_extend;
use crate::text::parse;
use crate::{Elem, Kernel, Op, OpKind, Shape, Traits, Value, ValueDef};

/// The state of the interpreter, as symbols are evaluated in it.
struct State<'a, 'm> {
    kernel: &'a Kernel,
    machine: &'a Machine<'m>,
    affine: &'a Affine<'a>,
}

impl State<'_, '_> {
    fn signed(&self, value: Value, element: usize) -> i64 {
        let elem = self.kernel.value_type(value).elem().expect("it is a number or pointer");
        let bits = self.machine.get(value).slot(element);
        if elem.bits() == 1 { bits as i64 } else { sign_extend(bits, elem) }
    }

    /// The trip count of a loop that was entered with the current values of its operands.
    fn rounds(&self, op: Op) -> i64 {
        let [lower, upper, step] = [0, 1, 2].map(|i| self.signed(self.kernel.operand(op, i), 0));
        ((upper - lower + step - 1) / step).max(0)
    }

    /// The number behind a symbol at a place in the tile.
    fn symbol(&self, symbol: Symbol, place: &[u32]) -> Option<i64> {
        Some(match symbol {
            Symbol::Dim(d) => place[d as usize].into(),
            Symbol::Round(op) => {
                let index = self.kernel.block(self.kernel.op(op).blocks[0]).args[0];
                let [lower, step] = [0, 2].map(|i| self.signed(self.kernel.operand(op, i), 0));
                (self.signed(index, 0) - lower) / step
            }
            Symbol::Rounds(op) => self.rounds(op),
            Symbol::Program(axis) => self.machine.program[axis as usize].into(),
            Symbol::Programs(axis) => self.machine.grid[axis as usize].into(),
            Symbol::Scalar(value) => self.signed(value, 0),
            Symbol::Wrap(number) => {
                let wrap = self.affine.wrap(number);
                let [l, r] = [&wrap.dividend, &wrap.divisor].map(|form| self.exact(form, place));
                let (l, r) = (l?, r?);
                // Without sign the bits of negative numbers count.
                if !wrap.signed && (l < 0 || r < 0) {
                    return None;
                }
                l.checked_rem(r)?
            }
        })
    }

    /// The number that a sum is; `None` where it takes the bits of a number that may have wrapped.
    fn sum(&self, poly: &Poly, place: &[u32]) -> Option<i64> {
        poly.evaluate(|symbol| self.symbol(symbol, place))
    }

    fn exact(&self, form: &AffineForm, place: &[u32]) -> Option<i64> {
        self.sum(&form.poly, place).filter(|_| form.wraps == Wraps::Never)
    }
}

/// All places of a tile in row-major order; one for a scalar.
fn places(shape: Option<Shape>) -> Vec<Vec<u32>> {
    let mut out = vec![Vec::new()];
    for size in shape.iter().flat_map(|s| s.iter()) {
        out = out.iter().flat_map(|p| (0..*size).map(move |i| [&p[..], &[i]].concat())).collect();
    }
    out
}

/// Fails with a message unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(format!($($message)*));
        }
    };
}

/// Counts of checked values, so that a test that checks nothing fails.
#[derive(Debug, Default)]
struct Seen {
    ranges: usize,
    runs: usize,
    strided: usize,
    exact: usize,
    wrapped: usize,
    remainders: usize,
    carried: usize,
    masks: usize,
    addresses: usize,
}

/// In a loop a value is looked at so often.
const MAX_LOOKS: u32 = 12;

struct Check<'a> {
    kernel: &'a Kernel,
    ranges: &'a Ranges<'a>,
    infos: &'a AxisInfos,
    forms: &'a HashMap<Value, AffineForm>,
    masks: &'a HashMap<Value, Mask>,
    addresses: &'a HashMap<Value, Address>,
    affine: &'a Affine<'a>,
    /// How often each value was looked at.
    looks: HashMap<Value, u32>,
    seen: Seen,
}

impl Check<'_> {
    fn value(&mut self, machine: &Machine<'_>, value: Value) -> Result<(), String> {
        let kernel = self.kernel;
        let looks = self.looks.entry(value).or_default();
        *looks += 1;
        if *looks > MAX_LOOKS {
            return Ok(());
        }
        let ty = kernel.value_type(value);
        let Some(elem) = ty.elem() else { return Ok(()) };
        let state = State { kernel, machine, affine: self.affine };
        let places = places(ty.shape());
        let numbers: Vec<i64> = (0..places.len()).map(|i| state.signed(value, i)).collect();
        if let Elem::Num(_) = elem {
            let (sure, expected) = (self.ranges.of(value), self.ranges.expected(value));
            for x in &numbers {
                let x = i128::from(*x);
                ensure!(sure.low <= x && x <= sure.high, "{x} is not in {sure:?}");
                ensure!(expected.low <= x && x <= expected.high, "{x} is not expected in {expected:?}");
            }
            self.seen.ranges += usize::from(sure != super::Interval::full(elem.bits()));
        }
        self.runs(value, elem, ty.shape(), &numbers)?;
        if let Some(form) = self.forms.get(&value) {
            self.form(&state, form, elem, &places, &numbers)?;
        }
        if let Some(mask) = self.masks.get(&value) {
            self.mask(&state, mask, &places, &numbers)?;
        }
        if let Some(address) = self.addresses.get(&value) {
            self.address(&state, address, &places, &numbers)?;
        }
        Ok(())
    }

    fn runs(&mut self, value: Value, elem: Elem, shape: Option<Shape>, numbers: &[i64]) -> Result<(), String> {
        let sizes: Vec<u32> = shape.map_or(vec![1], |s| s.to_vec());
        let unit = elem.pointee().map_or(1, |s| i64::from(s.bytes()));
        if let Some(constant) = self.infos.constant(value).filter(|_| elem.bits() > 1) {
            ensure!(numbers.iter().all(|x| *x == sign_extend(constant as u64, elem)), "not all are {constant}");
        }
        for (axis, size) in sizes.iter().enumerate() {
            let info = self.infos.axis(value, axis);
            let inner: usize = sizes[axis + 1..].iter().map(|s| *s as usize).product();
            for (i, x) in numbers.iter().enumerate() {
                let at = i / inner % *size as usize;
                let start = |run: u64| i - (at % run.min(u64::from(*size)) as usize) * inner;
                ensure!(*x == numbers[start(info.constancy)], "axis {axis}: {info:?}");
                if elem.bits() == 1 {
                    continue;
                }
                // Within an aligned piece nothing wraps.
                let piece = info.contiguity.min((info.divisibility / unit as u64).max(1));
                let first = start(piece);
                let grown = ((i - first) / inner) as i64 * unit;
                ensure!(x.wrapping_sub(numbers[first]) == grown, "axis {axis}: {info:?}");
                let (first, strided) = (start(info.strided.run), info.strided);
                let grown = ((i - first) / inner) as i64 * unit * strided.step;
                // If some value overflowed, the lowest bits do not show it.
                ensure!((x.wrapping_sub(numbers[first]) - grown) as u8 == 0, "axis {axis}: {info:?}");
                self.seen.strided += usize::from(strided.run > 1);
                let whole = (numbers[start(info.contiguity)] as u64).trailing_zeros().min(elem.bits());
                ensure!(
                    whole == elem.bits() || info.divisibility.trailing_zeros() <= whole,
                    "axis {axis}: {info:?}, {x}"
                );
                self.seen.runs += usize::from(piece > 1 || info.constancy > 1);
            }
        }
        Ok(())
    }

    fn form(
        &mut self,
        state: &State<'_, '_>,
        form: &AffineForm,
        elem: Elem,
        places: &[Vec<u32>],
        numbers: &[i64],
    ) -> Result<(), String> {
        let unit = elem.pointee().map_or(1, |s| i64::from(s.bytes()));
        let start = form.pointer.map_or(0, |pointer| state.signed(pointer, 0));
        for (place, x) in places.iter().zip(numbers) {
            let Some(sum) = state.sum(&form.poly, place) else { continue };
            let expected = sum.wrapping_mul(unit).wrapping_add(start);
            let unused = 64 - form.bits;
            ensure!(expected << unused == *x << unused, "{form:?} at {place:?}");
            match form.wraps {
                Wraps::Never => ensure!(expected == *x, "{form:?} at {place:?}"),
                _ => self.seen.wrapped += 1,
            }
            self.seen.exact += usize::from(form.wraps == Wraps::Never);
            self.seen.remainders += usize::from(form.poly.mentions(|s| matches!(s, Symbol::Wrap(_))));
            self.seen.carried += usize::from(form.poly.mentions(|s| matches!(s, Symbol::Round(_) | Symbol::Rounds(_))));
        }
        Ok(())
    }

    fn mask(&mut self, state: &State<'_, '_>, mask: &Mask, places: &[Vec<u32>], numbers: &[i64]) -> Result<(), String> {
        let sure = mask.bounds.iter().all(|b| b.wraps == Wraps::Never);
        for (place, x) in places.iter().zip(numbers) {
            let mut all = Some(true);
            for bound in mask.bounds.iter().filter(|b| b.wraps == Wraps::Never) {
                let sides = state.sum(&bound.offset, place).zip(state.sum(&bound.bound, place));
                let holds = sides.map(|(offset, limit)| match bound.side {
                    BoundSide::Below => offset < limit,
                    BoundSide::AtLeast => offset >= limit,
                });
                all = all.zip(holds).map(|(a, b)| a && b);
                ensure!(*x == 0 || holds != Some(false), "{bound:?} at {place:?}");
            }
            if mask.others.is_empty()
                && sure
                && let Some(all) = all
            {
                ensure!(all == (*x != 0), "{mask:?} at {place:?}");
                self.seen.masks += usize::from(!mask.bounds.is_empty());
            }
        }
        Ok(())
    }

    fn address(
        &mut self,
        state: &State<'_, '_>,
        address: &Address,
        places: &[Vec<u32>],
        numbers: &[i64],
    ) -> Result<(), String> {
        if address.wraps != Wraps::Never {
            return Ok(());
        }
        for (place, x) in places.iter().zip(numbers) {
            let axis = |(axis, d): (&super::AddressAxis, &u32)| {
                let index = state.sum(&axis.start, place)?.wrapping_add(i64::from(*d));
                let index = match &axis.modulus {
                    Some(modulus) => index.checked_rem(state.exact(modulus, place)?)?,
                    None => index,
                };
                Some(index.wrapping_mul(state.sum(&axis.stride, place)?))
            };
            let parts: Option<Vec<i64>> = address.axes.iter().zip(place).map(axis).collect();
            let (Some(parts), Some(rest)) = (parts, state.sum(&address.rest, place)) else { continue };
            let elements = parts.iter().fold(rest, |a, b| a.wrapping_add(*b));
            let start = state.signed(address.pointer, 0);
            ensure!(start.wrapping_add(elements.wrapping_mul(2)) == *x, "{address:?} at {place:?}");
            self.seen.addresses += 1;
        }
        Ok(())
    }
}

/// Runs a program and looks at everything that it computes.
fn check(text: &str, args: [i64; 3], seen: &mut Seen) -> Result<(), String> {
    let kernel = &parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let verified = crate::verify(kernel).unwrap_or_else(|e| panic!("{}", crate::print_errors(kernel, &e)));
    let (ranges, infos) = (Ranges::new(kernel), axis_info(kernel));
    let mut affine = Affine::new(kernel, &ranges);
    let (mut forms, mut masks, mut addresses) = (HashMap::new(), HashMap::new(), HashMap::new());
    for op in crate::walk(kernel) {
        let args = kernel.op(op).blocks.iter().flat_map(|b| &kernel.block(*b).args);
        for value in kernel.op(op).results.iter().chain(args) {
            match kernel.value_type(*value).elem() {
                Some(Elem::I1) => {
                    masks.insert(*value, affine.bounds(*value));
                }
                Some(elem) => {
                    forms.extend(affine.of(*value).map(|form| (*value, form)));
                    if elem.pointee().is_some() {
                        addresses.extend(affine.address(*value, None).map(|address| (*value, address)));
                    }
                }
                None => {}
            }
        }
    }
    let mut check = Check {
        kernel,
        ranges: &ranges,
        infos: &infos,
        forms: &forms,
        masks: &masks,
        addresses: &addresses,
        affine: &affine,
        looks: HashMap::new(),
        seen: std::mem::take(seen),
    };
    let mut wrong = None;
    let mut memory = HostMemory::new();
    let args = [ArgValue::Pointer(0x10_0000)].into_iter().chain(args.map(ArgValue::Int)).collect();
    let launch = LaunchConfig { grid: [3, 2, 1], args };
    traced(verified, &mut memory, &launch, &RunOptions::default(), &mut |machine, op| {
        let data = kernel.op(op);
        // The operands of a terminator are checked at their uses; by now they have been passed on.
        if data.kind.spec().traits.has(Traits::TERMINATOR) {
            return;
        }
        let handed =
            |v: &&Value| !matches!(kernel.value(**v).def, ValueDef::Result(..)) || is_result_of_loop(kernel, **v);
        let results: &[Value] = if data.blocks.is_empty() { &data.results } else { &[] };
        for value in results.iter().chain(data.operands.iter().filter(handed)) {
            if let Err(message) = check.value(machine, *value) {
                wrong.get_or_insert_with(|| {
                    let at = format!("value {} of {:?}, operands {:?}", value.as_u32(), data.kind, data.operands);
                    format!("{at}: {message}\n{}", crate::text::print(kernel))
                });
            }
        }
    })
    .unwrap_or_else(|fault| panic!("{:?}\n{text}", fault.kind));
    *seen = check.seen;
    wrong.map_or(Ok(()), Err)
}

fn is_result_of_loop(kernel: &Kernel, value: Value) -> bool {
    kernel.def_op(value).is_some_and(|op| matches!(kernel.kind(op), OpKind::ForRange { .. }))
}

#[test]
fn multiples_of_shifted_bits_may_wrap() {
    let text = "kernel @k(%x: ptr<i16> {sig = \"*i16\"}, %a: i32 {sig = \"i32\"}, %b: i32 {sig = \"i32\"}, %n: i32 {sig = \"i32\"}) \
                warps 1 phase tile {\n  %two = constant {value = 2} : i32\n  %bits = shrui %a, %two : i32\n  \
                %fifteen = constant {value = 15} : i32\n  %c = muli %bits, %fifteen : i32\n  ret\n}\n";
    for a in [1, -1, -96] {
        assert_eq!(check(text, [a, 1, 1], &mut Seen::default()), Ok(()));
    }
}

#[test]
fn what_programs_compute_is_as_analyses_say() {
    let mut seen = Seen::default();
    let mut wrong = Vec::new();
    for seed in 1..=100 {
        let text = program::program(seed);
        for args in [[16, 5, 8], [-48, 77, 24]] {
            if let Err(message) = check(&text, args, &mut seen) {
                wrong.push(format!("seed {seed}, arguments {args:?}: {message}"));
            }
        }
    }
    wrong.truncate(10);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let Seen { ranges, runs, strided, exact, wrapped, remainders, carried, masks, addresses } = seen;
    let least = [ranges, runs, strided, exact, wrapped, remainders, carried, masks, addresses].into_iter().min();
    assert!(least >= Some(1000), "{seen:?}");
}
