//! Promises about numbers: what `multiple_of`, `max_contiguous` and `max_constancy` say is looked at, and the value goes on.

use super::FindingKind;
use super::machine::{Machine, Stop};
use crate::ops::eval::sign_extend;
use crate::{Elem, HintKind, Op, Type, view};

impl Machine<'_> {
    /// Records an assumption that does not hold.
    ///
    /// On a tile, `multiple_of` applies to the first number of each run of consecutive numbers, as in the compiler's
    /// analysis.
    pub(crate) fn check_hint(&mut self, op: Op, kind: HintKind, values: &[u32]) -> Result<(), Stop> {
        let value = view::Hint::at(self.kernel, op).value();
        let ty = self.kernel.value_type(value);
        let elem = ty.elem().unwrap_or(Elem::I64);
        let numbers: Vec<i64> = self.elements(value)?.iter().map(|bits| sign_extend(*bits, elem)).collect();
        let step = elem.pointee().map_or(1, |scalar| i64::from(scalar.bytes()));
        for (axis, promised) in values.iter().enumerate().filter(|(_, promised)| **promised > 1) {
            let lines = Lines::of(ty, axis);
            if let Some(slot) = lines.broken(&numbers, kind, i64::from(*promised), step) {
                let promised = *promised;
                self.find(op, FindingKind::FalsePromise { kind, promised, number: numbers[slot] }, ty, slot);
                break;
            }
        }
        Ok(())
    }
}

/// The elements of a tile along an axis.
struct Lines {
    count: usize,
    length: usize,
    stride: usize,
}

impl Lines {
    fn of(ty: Type, axis: usize) -> Lines {
        let Some(shape) = ty.shape() else { return Lines { count: 1, length: 1, stride: 1 } };
        let sizes: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        let all: usize = sizes.iter().product();
        let length = sizes.get(axis).copied().unwrap_or(1);
        Lines { count: all / length.max(1), length, stride: sizes.iter().skip(axis + 1).product() }
    }

    /// The first element that breaks a promise.
    fn broken(&self, numbers: &[i64], kind: HintKind, promised: i64, step: i64) -> Option<usize> {
        let place = |line: usize, i: usize| (line / self.stride * self.length + i) * self.stride + line % self.stride;
        for line in 0..self.count {
            for i in 0..self.length {
                let at = place(line, i);
                let number = *numbers.get(at)?;
                let before = i.checked_sub(1).and_then(|i| numbers.get(place(line, i))).copied();
                let within = i as i64 % promised != 0;
                let holds = match (kind, before) {
                    (HintKind::MultipleOf, Some(before)) if number == before.wrapping_add(step) => true,
                    (HintKind::MultipleOf, _) => number % promised == 0,
                    (HintKind::MaxContiguous, Some(before)) if within => number == before.wrapping_add(step),
                    (HintKind::MaxConstancy, Some(before)) if within => number == before,
                    _ => true,
                };
                if !holds {
                    return Some(at);
                }
            }
        }
        None
    }
}
