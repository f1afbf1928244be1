//! Sums of products: what affine forms are written in.

use smallvec::SmallVec;

use super::interval::Interval;
use crate::{Op, Value};

/// A sum with more products is given up: it is no index.
const MAX_TERMS: usize = 32;
/// The most symbols of a product.
const MAX_SYMBOLS: usize = 6;
/// No factor is larger.
const MAX_FACTOR: i128 = 1 << 62;

/// The factors of a sum's products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Symbol {
    /// The place in the tile along a dimension, from 0.
    Dim(u8),
    /// The number of the iteration of a `for_range`, from 0.
    Round(Op),
    /// How many iterations a `for_range` had.
    Rounds(Op),
    /// The index of the program along an axis of the grid.
    Program(u8),
    /// The number of programs along an axis of the grid.
    Programs(u8),
    /// An argument of the kernel, or another scalar without further information; as a signed number.
    Scalar(Value),
    /// A remainder of tiles, see [`super::Affine::wrap`].
    Wrap(u32),
}

/// A product of symbols and a constant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// The symbols in order, with repetitions.
    pub symbols: SmallVec<[Symbol; 3]>,
    /// The constant, not 0.
    pub factor: i128,
}

impl Term {
    /// The term divided by another without a rest.
    pub fn divided(&self, by: &Term) -> Option<Term> {
        let mut symbols = self.symbols.clone();
        for symbol in &by.symbols {
            let at = symbols.iter().position(|s| s == symbol)?;
            symbols.remove(at);
        }
        (self.factor % by.factor == 0).then(|| Term { symbols, factor: self.factor / by.factor })
    }
}

/// A sum of products of symbols and constants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Poly {
    /// In the order of their symbols; no two have the same ones.
    terms: Vec<Term>,
}

impl Poly {
    /// A number.
    pub fn constant(factor: i128) -> Poly {
        Poly { terms: if factor == 0 { Vec::new() } else { vec![Term { symbols: SmallVec::new(), factor }] } }
    }

    /// A symbol.
    pub fn symbol(symbol: Symbol) -> Poly {
        Poly { terms: vec![Term { symbols: SmallVec::from_slice(&[symbol]), factor: 1 }] }
    }

    /// One product.
    pub fn term(term: Term) -> Poly {
        Poly { terms: vec![term] }
    }

    /// The products.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The number that it is, if it is one.
    pub fn value(&self) -> Option<i128> {
        match &self.terms[..] {
            [] => Some(0),
            [term] if term.symbols.is_empty() => Some(term.factor),
            _ => None,
        }
    }

    /// Whether `test` is true for some symbol.
    pub fn mentions(&self, mut test: impl FnMut(Symbol) -> bool) -> bool {
        self.terms.iter().flat_map(|t| &t.symbols).any(|s| test(*s))
    }

    /// The sum with `factor` times another; `None` if it gets too long.
    pub fn plus(&self, other: &Poly, factor: i128) -> Option<Poly> {
        let scaled = other.terms.iter().map(|t| Term { symbols: t.symbols.clone(), factor: t.factor * factor });
        Poly::of(self.terms.iter().cloned().chain(scaled).collect())
    }

    /// The product; `None` if it gets too long.
    pub fn times(&self, other: &Poly) -> Option<Poly> {
        let mut terms = Vec::new();
        for l in &self.terms {
            for r in &other.terms {
                let mut symbols: SmallVec<[Symbol; 3]> = l.symbols.iter().chain(&r.symbols).copied().collect();
                symbols.sort_unstable();
                terms.push(Term { symbols, factor: l.factor.checked_mul(r.factor)? });
            }
        }
        Poly::of(terms)
    }

    /// Every symbol as `map` says: another one, or 0.
    pub fn mapped(&self, mut map: impl FnMut(Symbol) -> Option<Symbol>) -> Poly {
        let renamed = |term: &Term| {
            let mut symbols: SmallVec<[Symbol; 3]> = term.symbols.iter().map(|s| map(*s)).collect::<Option<_>>()?;
            symbols.sort_unstable();
            Some(Term { symbols, factor: term.factor })
        };
        Poly { terms: merged(self.terms.iter().filter_map(renamed).collect()) }
    }

    /// The factor of `symbol`, and the rest; `None` if it occurs in a power.
    pub fn split(&self, symbol: Symbol) -> Option<(Poly, Poly)> {
        let (mut by, mut rest) = (Vec::new(), Vec::new());
        for term in &self.terms {
            match term.symbols.iter().filter(|s| **s == symbol).count() {
                0 => rest.push(term.clone()),
                1 => {
                    let symbols = term.symbols.iter().filter(|s| **s != symbol).copied().collect();
                    by.push(Term { symbols, factor: term.factor });
                }
                _ => return None,
            }
        }
        by.sort_by(|a, b| a.symbols.cmp(&b.symbols));
        Some((Poly { terms: by }, Poly { terms: rest }))
    }

    /// From where to where it goes if the symbols go as `of` says.
    pub fn interval(&self, of: impl Fn(Symbol) -> Interval) -> Interval {
        let mut sum = Interval::constant(0);
        for term in &self.terms {
            let product = term.symbols.iter().fold(Interval::constant(term.factor), |p, s| p.product(of(*s)));
            sum = sum.sum(product);
        }
        sum
    }

    /// Its number if the symbols are those that `of` says, modulo 2^64.
    pub fn evaluate(&self, of: impl Fn(Symbol) -> Option<i64>) -> Option<i64> {
        self.terms.iter().try_fold(0i64, |sum, term| {
            let product = term.symbols.iter().try_fold(term.factor as i64, |p, s| Some(p.wrapping_mul(of(*s)?)))?;
            Some(sum.wrapping_add(product))
        })
    }

    /// The text, with the names that `name` gives.
    pub fn print(&self, name: &dyn Fn(Symbol) -> String) -> String {
        let mut out = String::new();
        for term in &self.terms {
            let sign = match (out.is_empty(), term.factor < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            let factor = term.factor.unsigned_abs();
            let names: Vec<String> = term.symbols.iter().map(|s| name(*s)).collect();
            let product = match (names.is_empty(), factor) {
                (true, _) => factor.to_string(),
                (false, 1) => names.join("*"),
                (false, _) => format!("{factor}*{}", names.join("*")),
            };
            out.push_str(&format!("{sign}{product}"));
        }
        if out.is_empty() { "0".into() } else { out }
    }

    /// The sum of these products, unless it is too long.
    fn of(terms: Vec<Term>) -> Option<Poly> {
        let terms = merged(terms);
        let short = terms.len() <= MAX_TERMS && terms.iter().all(|t| t.symbols.len() <= MAX_SYMBOLS);
        (short && terms.iter().all(|t| t.factor.abs() < MAX_FACTOR)).then_some(Poly { terms })
    }
}

/// Sorts products, and adds those of the same symbols.
fn merged(mut terms: Vec<Term>) -> Vec<Term> {
    terms.sort_by(|a, b| a.symbols.cmp(&b.symbols));
    let mut out: Vec<Term> = Vec::with_capacity(terms.len());
    for term in terms {
        match out.last_mut() {
            Some(last) if last.symbols == term.symbols => last.factor += term.factor,
            _ => out.push(term),
        }
    }
    out.retain(|t| t.factor != 0);
    out
}
