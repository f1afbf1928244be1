//! What is known along one dimension of a tile, and how it changes with sums, products and comparisons. All numbers are
//! powers of two.

use crate::Predicate;

/// No divisor is larger.
pub(super) const CAP: u64 = 1 << 40;

/// What is known along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Length of runs that grow by one.
    pub contiguity: u64,
    /// Divides the first value of each such run.
    pub divisibility: u64,
    /// Length of runs of equal values.
    pub constancy: u64,
}

impl Axis {
    pub(super) const UNKNOWN: Axis = Axis { contiguity: 1, divisibility: 1, constancy: 1 };

    /// A number that divides every value.
    pub(super) fn divides_all(self) -> u64 {
        if self.contiguity > 1 { 1 } else { self.divisibility }
    }

    pub(super) fn join(self, other: Axis) -> Axis {
        let contiguity = gcd(self.contiguity, other.contiguity);
        Axis {
            contiguity,
            divisibility: gcd(self.start_of(contiguity), other.start_of(contiguity)),
            constancy: gcd(self.constancy, other.constancy),
        }
    }

    /// What divides the first value of each run when runs are cut to `contiguity`.
    pub(super) fn start_of(self, contiguity: u64) -> u64 {
        if contiguity < self.contiguity { gcd(self.divisibility, contiguity) } else { self.divisibility }
    }
}

pub(super) fn sum(l: Axis, r: Axis) -> Axis {
    let contiguity = gcd(l.contiguity, r.constancy).max(gcd(l.constancy, r.contiguity));
    Axis {
        contiguity,
        divisibility: gcd(l.start_of(contiguity), r.start_of(contiguity)),
        constancy: gcd(l.constancy, r.constancy),
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
    }
}

pub(super) fn product(l: Axis, r: Axis, left: Option<i64>, right: Option<i64>) -> Axis {
    if left == Some(1) {
        return r;
    }
    if right == Some(1) {
        return l;
    }
    Axis {
        contiguity: 1,
        divisibility: capped(l.divides_all().saturating_mul(r.divides_all())),
        constancy: gcd(l.constancy, r.constancy),
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
