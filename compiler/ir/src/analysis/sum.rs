//! Polynomials of named numbers of a launch, as written to the metadata.
//!
//! A name is an integer argument, `grid.0` for the number of programs along an axis, or the text of a quotient, minimum or
//! maximum of such sums. Sums are kept in one form, so that equal ones are equal and differences cancel.

use std::collections::BTreeMap;

/// A longer sum is given up: it would not be readable.
const MAX_TERMS: usize = 24;
/// Names of more bytes are given up.
const MAX_NAME: usize = 400;
/// No factor is larger.
const MAX_FACTOR: i128 = 1 << 63;

/// A sum of products of named numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sum {
    /// The factor of each product of names, not 0; the names of a product are sorted.
    terms: BTreeMap<Vec<String>, i128>,
}

impl Sum {
    /// A number.
    pub fn constant(factor: i128) -> Sum {
        Sum { terms: if factor == 0 { BTreeMap::new() } else { BTreeMap::from([(Vec::new(), factor)]) } }
    }

    /// A named number.
    pub fn named(name: impl Into<String>) -> Sum {
        Sum { terms: BTreeMap::from([(vec![name.into()], 1)]) }
    }

    /// The number that it is, if it is one.
    pub fn value(&self) -> Option<i128> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// The products with their factors.
    pub fn terms(&self) -> impl Iterator<Item = (&[String], i128)> {
        self.terms.iter().map(|(names, factor)| (&names[..], *factor))
    }

    /// The sum with `factor` times another; `None` if it gets too long.
    pub fn plus(&self, other: &Sum, factor: i128) -> Option<Sum> {
        let mut out = self.clone();
        for (names, by) in &other.terms {
            out.add(names.clone(), by.checked_mul(factor)?)?;
        }
        out.checked()
    }

    /// The product; `None` if it gets too long.
    pub fn times(&self, other: &Sum) -> Option<Sum> {
        let mut out = Sum::default();
        for (left, l) in &self.terms {
            for (right, r) in &other.terms {
                let mut names = [&left[..], &right[..]].concat();
                names.sort_unstable();
                out.add(names, l.checked_mul(*r)?)?;
            }
        }
        out.checked()
    }

    /// The quotient of two sums that are not negative, rounded down; `by` is at least 1.
    pub fn quotient(&self, by: &Sum) -> Option<Sum> {
        match (self.value(), by.value()) {
            (_, Some(1)) | (Some(0), _) => Some(self.clone()),
            (Some(l), Some(r)) if r > 0 => Some(Sum::constant(l.div_euclid(r))),
            _ => Sum::compound(format!("({} // {})", self.factor_text(), by.factor_text())),
        }
    }

    /// The lesser of two sums.
    pub fn lesser(&self, other: &Sum) -> Option<Sum> {
        self.picked(other, "min", 1)
    }

    /// The greater of two sums.
    pub fn greater(&self, other: &Sum) -> Option<Sum> {
        self.picked(other, "max", -1)
    }

    /// Whether it is at least 0 wherever all names that `is` says so of are.
    pub fn is_never_negative(&self, is: impl Fn(&str) -> bool) -> bool {
        self.terms.iter().all(|(names, factor)| *factor > 0 && names.iter().all(|name| is(name)))
    }

    /// The text, as [`rtc_abi::Expr`] reads it.
    pub fn print(&self) -> String {
        let mut out = String::new();
        // Positive terms first, so that few texts begin with a sign.
        let constants_last = |names: &Vec<String>| names.is_empty();
        let mut terms: Vec<(&Vec<String>, i128)> = self.terms.iter().map(|(n, f)| (n, *f)).collect();
        terms.sort_by_key(|(names, factor)| (*factor < 0, constants_last(names)));
        for (names, factor) in terms {
            let sign = match (out.is_empty(), factor < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            let size = factor.unsigned_abs();
            let product = match (names.is_empty(), size) {
                (true, _) => size.to_string(),
                (false, 1) => names.join(" * "),
                (false, _) => format!("{size} * {}", names.join(" * ")),
            };
            out.push_str(sign);
            out.push_str(&product);
        }
        if out.is_empty() { "0".into() } else { out }
    }

    fn picked(&self, other: &Sum, name: &str, sign: i128) -> Option<Sum> {
        let difference = other.plus(self, -1)?.value();
        match difference.map(|d| d * sign >= 0) {
            Some(true) => Some(self.clone()),
            Some(false) => Some(other.clone()),
            None => {
                let [l, r] = if self <= other { [self, other] } else { [other, self] };
                Sum::compound(format!("{name}({}, {})", l.print(), r.print()))
            }
        }
    }

    /// The text as a factor of a product.
    fn factor_text(&self) -> String {
        let text = self.print();
        let plain = self.terms.len() <= 1 && !text.starts_with('-') && !text.contains(" * ");
        if plain { text } else { format!("({text})") }
    }

    fn compound(text: String) -> Option<Sum> {
        (text.len() <= MAX_NAME).then(|| Sum::named(text))
    }

    fn add(&mut self, names: Vec<String>, factor: i128) -> Option<()> {
        let sum = self.terms.get(&names).copied().unwrap_or(0).checked_add(factor)?;
        if sum == 0 {
            self.terms.remove(&names);
        } else {
            self.terms.insert(names, sum);
        }
        Some(())
    }

    fn checked(self) -> Option<Sum> {
        let fits = self.terms.len() <= MAX_TERMS && self.terms.values().all(|factor| factor.abs() < MAX_FACTOR);
        fits.then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_what_their_text_says() {
        let [n, m] = ["n", "grid.0"].map(Sum::named);
        let number = Sum::constant;
        let product = m.times(&number(64)).and_then(|s| s.plus(&n, -1)).and_then(|s| s.plus(&number(3), 1));
        let product = product.expect("it is short");
        assert_eq!(product.print(), "64 * grid.0 + 3 - n");
        let values = |name: &str| if name == "n" { Some(100) } else { Some(7) };
        let check = |sum: Option<Sum>, expected: i64| {
            let sum = sum.expect("it is short");
            let expr: rtc_abi::Expr = sum.print().parse().unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(expr.eval(values), Ok(expected), "{}", sum.print());
        };
        check(Some(product.clone()), 64 * 7 + 3 - 100);
        check(n.quotient(&product), 100 / 351);
        check(n.plus(&number(31), 1).and_then(|s| s.quotient(&number(32))).and_then(|s| s.times(&m)), 28);
        check(n.lesser(&m).and_then(|s| s.times(&number(-2))), -14);
        check(n.greater(&m).and_then(|s| s.plus(&n, -1)), 0);
        check(product.times(&product), 351 * 351);
        assert_eq!(n.greater(&n.plus(&number(1), 1).expect("short")).map(|s| s.print()).as_deref(), Some("n + 1"));
        assert_eq!(n.plus(&n, -1), Some(number(0)));
        assert!(product.times(&n).is_some_and(|s| !s.is_never_negative(|_| true)));
    }
}
