//! The known properties along one dimension of a tile, and their transfer through sums, products and comparisons. All
//! numbers but steps are powers of two.

use crate::Predicate;

/// No divisor is larger.
pub(super) const CAP: u64 = 1 << 40;

/// The known properties along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Length of runs that grow by one.
    pub contiguity: u64,
    /// Divides the first value of each such run.
    pub divisibility: u64,
    /// Length of runs of equal values.
    pub constancy: u64,
    /// Runs that grow by something else.
    pub strided: Strided,
}

/// Runs that grow by a constant step, in elements for pointers. It says which places lie near each other, no more: a wrap
/// may fall into a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strided {
    /// The step, neither 0 nor 1 where the run is longer than 1.
    pub step: i64,
    /// Length of runs.
    pub run: u64,
}

impl Strided {
    /// Nothing is known.
    pub const NONE: Strided = Strided { step: 0, run: 1 };

    fn new(step: i64, run: u64) -> Strided {
        if run > 1 && !matches!(step, 0 | 1) { Strided { step, run } } else { Strided::NONE }
    }

    /// The longest runs of a sum or difference, from all that is known of both sides.
    fn of(sides: [Axis; 2], combine: impl Fn(i64, i64) -> Option<i64>) -> Strided {
        let mut best = Strided::NONE;
        for (l, longest) in sides[0].runs() {
            for (r, other) in sides[1].runs() {
                let found = combine(l, r).map_or(Strided::NONE, |step| Strided::new(step, gcd(longest, other)));
                if found.run > best.run {
                    best = found;
                }
            }
        }
        best
    }
}

impl Axis {
    pub(super) const UNKNOWN: Axis = Axis { contiguity: 1, divisibility: 1, constancy: 1, strided: Strided::NONE };

    /// Steps and the lengths of the runs that grow by them.
    fn runs(self) -> [(i64, u64); 3] {
        [(0, self.constancy), (1, self.contiguity), (self.strided.step, self.strided.run)]
    }

    /// The runs of this times a constant.
    fn scaled(self, factor: i64) -> Strided {
        let runs = [(1, self.contiguity), (self.strided.step, self.strided.run)];
        let scaled =
            runs.map(|(step, run)| step.checked_mul(factor).map_or(Strided::NONE, |step| Strided::new(step, run)));
        scaled.into_iter().max_by_key(|strided| strided.run).unwrap_or(Strided::NONE)
    }

    /// A number that divides every value.
    pub fn divides_all(self) -> u64 {
        if self.contiguity > 1 { 1 } else { self.divisibility }
    }

    pub(super) fn join(self, other: Axis) -> Axis {
        let contiguity = gcd(self.contiguity, other.contiguity);
        Axis {
            contiguity,
            divisibility: gcd(self.start_of(contiguity), other.start_of(contiguity)),
            constancy: gcd(self.constancy, other.constancy),
            strided: if self.strided.step == other.strided.step {
                Strided::new(self.strided.step, gcd(self.strided.run, other.strided.run))
            } else {
                Strided::NONE
            },
        }
    }

    /// The divisor of the first value of each run when runs are cut to `contiguity`.
    pub(super) fn start_of(self, contiguity: u64) -> u64 {
        if contiguity < self.contiguity { gcd(self.divisibility, contiguity) } else { self.divisibility }
    }
}

/// The properties of a tile of sizes `from` seen with sizes `to`, in row-major order: the bits of a place, lowest first, are
/// those of the last index, then those of the one before it.
pub(super) fn reshaped(source: &[Axis], from: &[u32], to: &[u32]) -> Vec<Axis> {
    let bits = |dims: &[u32]| -> Vec<(usize, u32)> {
        let of = |axis: usize| (0..dims[axis].trailing_zeros()).map(move |bit| (axis, bit));
        (0..dims.len()).rev().flat_map(of).collect()
    };
    let (from_bits, to_bits) = (bits(from), bits(to));
    let all = source.iter().map(|axis| axis.divides_all()).max().unwrap_or(1);
    let axis = |axis: usize| {
        let own = to_bits.iter().zip(&from_bits).filter(|((of, _), _)| *of == axis).map(|(_, place)| *place);
        let equal = own.clone().take_while(|(of, bit)| 2u64 << bit <= source[*of].constancy).count();
        // Steps of one in the result are steps of one in the source where the lowest bits are those of the same axis.
        let along = own.clone().next().filter(|(_, bit)| *bit == 0).map(|(of, _)| of);
        let grows = |(number, (of, bit)): &(usize, (usize, u32))| {
            Some(*of) == along && *number == *bit as usize && 2u64 << bit <= source[*of].contiguity
        };
        let contiguity = 1 << own.enumerate().take_while(grows).count();
        let divisibility = match along {
            Some(of) if contiguity > 1 => source[of].start_of(contiguity),
            _ => all,
        };
        Axis { contiguity, divisibility, constancy: 1 << equal, strided: Strided::NONE }
    };
    (0..to.len()).map(axis).collect()
}

pub(super) fn sum(l: Axis, r: Axis) -> Axis {
    let contiguity = gcd(l.contiguity, r.constancy).max(gcd(l.constancy, r.contiguity));
    Axis {
        contiguity,
        divisibility: gcd(l.start_of(contiguity), r.start_of(contiguity)),
        constancy: gcd(l.constancy, r.constancy),
        strided: Strided::of([l, r], i64::checked_add),
    }
}

pub(super) fn difference(l: Axis, r: Axis) -> Axis {
    let contiguity = gcd(l.contiguity, r.constancy).max(1);
    Axis {
        contiguity,
        divisibility: gcd(l.start_of(contiguity), r.divides_all()),
        constancy: gcd(l.constancy, r.constancy),
        strided: Strided::of([l, r], i64::checked_sub),
    }
}

pub(super) fn pointer_sum(pointer: Axis, offset: Axis, bytes: u64) -> Axis {
    let contiguity = gcd(pointer.contiguity, offset.constancy).max(gcd(pointer.constancy, offset.contiguity));
    let pointer_start = if contiguity < pointer.contiguity {
        gcd(pointer.divisibility, contiguity * bytes)
    } else {
        pointer.divisibility
    };
    let offset_start = capped(offset.start_of(contiguity).saturating_mul(bytes));
    Axis {
        contiguity,
        divisibility: gcd(pointer_start, offset_start),
        constancy: gcd(pointer.constancy, offset.constancy),
        strided: Strided::of([pointer, offset], i64::checked_add),
    }
}

pub(super) fn product(l: Axis, r: Axis, left: Option<i64>, right: Option<i64>) -> Axis {
    if left == Some(1) {
        return r;
    }
    if right == Some(1) {
        return l;
    }
    let strided = left.map(|factor| r.scaled(factor)).or(right.map(|factor| l.scaled(factor)));
    Axis {
        contiguity: 1,
        divisibility: capped(l.divides_all().saturating_mul(r.divides_all())),
        constancy: gcd(l.constancy, r.constancy),
        strided: strided.unwrap_or(Strided::NONE),
    }
}

/// Runs of equal results: where one side grows in aligned runs and the other is a multiple of the run.
pub(super) fn comparison_constancy(l: Axis, r: Axis, predicate: Predicate) -> u64 {
    let run = |grows: Axis, bound: Axis| {
        let run = gcd(gcd(grows.contiguity, grows.divisibility), bound.divides_all());
        if bound.constancy >= run { run } else { 1 }
    };
    let plain = gcd(l.constancy, r.constancy);
    plain.max(match predicate {
        Predicate::Lt | Predicate::Ge | Predicate::Ult | Predicate::Uge => run(l, r),
        Predicate::Gt | Predicate::Le | Predicate::Ugt | Predicate::Ule => run(r, l),
        Predicate::Eq | Predicate::Ne => 1,
    })
}

pub(super) fn divisibility_of(x: i64) -> u64 {
    power_of_two_part(x.unsigned_abs())
}

pub(super) fn power_of_two_part(x: u64) -> u64 {
    if x == 0 { CAP } else { (1 << x.trailing_zeros()).min(CAP) }
}

pub(super) fn capped(x: u64) -> u64 {
    x.min(CAP)
}

/// All quantities are powers of two (0 is the neutral element of folds).
pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if a == 0 || b == 0 { a.max(b) } else { a.min(b) }
}

pub(super) fn lcm_power(known: u64, promised: u64) -> u64 {
    known.max(power_of_two_part(promised))
}
