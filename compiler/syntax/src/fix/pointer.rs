//! The parts of a block pointer, and the variables that replace it.

use std::collections::{HashMap, HashSet};

use rtc_source::Span;

use super::calls::{Result, elements, literal, needed, refuse};
use super::names::Names;
use super::scan::{Binding, What};
use crate::ast::{Arg, Expr, ExprKind};

/// The arguments of `make_block_ptr`.
pub(super) struct MakeBlockPtr<'a> {
    pub call: Span,
    /// The module that has the function.
    pub module: &'a Expr,
    pub base: &'a Expr,
    pub sizes: &'a [Expr],
    pub strides: &'a [Expr],
    pub offsets: &'a [Expr],
    pub block: &'a [Expr],
}

impl<'a> MakeBlockPtr<'a> {
    pub fn read(call: &'a Expr, module: &'a Expr, bound: &[(&'static str, &'a Arg)]) -> Result<MakeBlockPtr<'a>> {
        let list = |name: &str| elements(needed(bound, name, call.span)?, &format!("`{name}`"));
        let made = MakeBlockPtr {
            call: call.span,
            module,
            base: &needed(bound, "base", call.span)?.value,
            sizes: list("shape")?,
            strides: list("strides")?,
            offsets: list("offsets")?,
            block: list("block_shape")?,
        };
        let rank = made.block.len();
        if rank == 0 || [made.sizes, made.strides, made.offsets].iter().any(|list| list.len() != rank) {
            return refuse(call.span, "shape, strides, offsets and block have different numbers of dimensions");
        }
        Ok(made)
    }
}

/// A part of a block pointer.
enum Part {
    /// A number that is the same in all functions.
    Number(String),
    /// The same everywhere in the function: its text.
    Fixed(String),
    /// Kept in variables: for each block pointer one.
    Kept(HashMap<String, String>),
}

impl Part {
    fn of(&self, variable: &str) -> &str {
        match self {
            Part::Number(text) | Part::Fixed(text) => text,
            Part::Kept(names) => names.get(variable).map_or("", String::as_str),
        }
    }
}

/// The common properties of block pointers in all functions that pass them to each other.
pub(super) struct Shape {
    pub rank: usize,
    /// The dimensions that are checked somewhere.
    pub checked: HashSet<usize>,
    /// Sizes and strides that are the same number wherever such a block pointer is made, if functions hand them to each other.
    sizes: Vec<Option<String>>,
    strides: Vec<Option<String>>,
}

impl Shape {
    pub fn of(names: &Names<'_>, made: &[&MakeBlockPtr<'_>], several_functions: bool) -> Result<Shape> {
        let Some(first) = made.first() else {
            return refuse(Span::default(), "where the block pointer is made cannot be seen");
        };
        let rank = first.block.len();
        if let Some(other) = made.iter().find(|m| m.block.len() != rank) {
            return refuse(other.call, "the variable holds block pointers of different numbers of dimensions");
        }
        let number = |of: &dyn Fn(&MakeBlockPtr<'_>) -> Option<i128>| -> Option<i128> {
            of(first).filter(|n| several_functions && made.iter().all(|m| of(m) == Some(*n)))
        };
        let text = |e: &Expr| names.operand(e);
        let shared = |list: &dyn Fn(&MakeBlockPtr<'_>, usize) -> Option<i128>, own: &[Expr]| -> Vec<Option<String>> {
            (0..rank).map(|d| number(&|m: &MakeBlockPtr<'_>| list(m, d)).map(|_| text(&own[d]))).collect()
        };
        let sizes = shared(&|m, d| literal(&m.sizes[d]), first.sizes);
        let strides = shared(&|m, d| literal(&m.strides[d]), first.strides);
        Ok(Shape { rank, checked: HashSet::new(), sizes, strides })
    }
}

/// Block pointers of a function that are bound to each other.
pub(super) struct Group {
    pub rank: usize,
    /// The text of the module that has the functions.
    pub module: String,
    /// Whether several statements make them, so that types must not depend on which one did.
    several: bool,
    base: Part,
    /// The dimensions that are checked somewhere.
    sizes: Vec<Option<Part>>,
    strides: Vec<Part>,
    positions: Vec<Part>,
}

impl Group {
    /// `is_given`: some of them come from other functions, with all parts.
    pub fn new(
        names: &mut Names<'_>,
        variables: &HashSet<&str>,
        bindings: &[&Binding<'_>],
        (shape, module): (&Shape, String),
        is_given: bool,
    ) -> Group {
        let made: Vec<&MakeBlockPtr> = bindings
            .iter()
            .filter_map(|b| if let What::MakeBlockPtr(made) = &b.what { Some(made) } else { None })
            .collect();
        let mut variables: Vec<&str> = variables.iter().copied().collect();
        variables.sort_unstable();
        let several = made.len() + usize::from(is_given) > 1;
        let mut part = |e: Option<&Expr>, number: Option<&String>, suffix: &str| match (number, e) {
            (Some(number), _) => Part::Number(number.clone()),
            (None, Some(e)) if !several && !is_given && names.is_fixed(e) => Part::Fixed(names.operand(e)),
            _ => {
                let name = |v: &&str| ((*v).to_owned(), names.fresh(format!("{v}_{suffix}")));
                Part::Kept(variables.iter().map(name).collect())
            }
        };
        let (rank, first) = (shape.rank, made.first());
        let mut size = |d: usize| part(first.map(|m| &m.sizes[d]), shape.sizes[d].as_ref(), &format!("size{d}"));
        let sizes = (0..rank).map(|d| shape.checked.contains(&d).then(|| size(d))).collect();
        let mut stride =
            |d: usize| part(first.map(|m| &m.strides[d]), shape.strides[d].as_ref(), &format!("stride{d}"));
        let strides = (0..rank).map(&mut stride).collect();
        Group {
            rank,
            several,
            base: part(first.map(|m| m.base), None, "base"),
            sizes,
            strides,
            positions: (0..rank).map(|d| part(None, None, &format!("i{d}"))).collect(),
            module,
        }
    }

    /// The parts that make up a block pointer for another function: all, or only its place.
    pub fn parts(&self, variable: &str, all: bool) -> Vec<String> {
        let fixed = [&self.base].into_iter().chain(self.sizes.iter().flatten()).chain(&self.strides);
        let fixed = fixed.filter(|part| all && !matches!(part, Part::Number(_)));
        fixed.chain(&self.positions).map(|part| part.of(variable).to_owned()).collect()
    }

    /// The statements in the place of one that binds a block pointer.
    pub fn bind(&self, names: &Names<'_>, binding: &Binding<'_>) -> Result<Vec<String>> {
        let to = binding.target;
        match &binding.what {
            What::MakeBlockPtr(made) => Ok(self.make(names, to, made)),
            What::Given { .. } => Ok(Vec::new()),
            What::From { from, by } => {
                if !by.is_empty() && by.len() != self.rank {
                    return refuse(binding.stmt, format!("`offsets` has not {} elements", self.rank));
                }
                Ok(self.advance(names, to, from, by))
            }
        }
    }

    fn make(&self, names: &Names<'_>, to: &str, made: &MakeBlockPtr<'_>) -> Vec<String> {
        let tl = &self.module;
        let mut lines = Vec::new();
        if let Part::Kept(_) = self.base {
            lines.push(format!("{} = {}", self.base.of(to), names.operand(made.base)));
        }
        let number = |e: &Expr| match self.several {
            true => format!("{tl}.cast({}, {tl}.int64)", names.source(e.span)),
            false => names.operand(e),
        };
        for (d, size) in self.sizes.iter().enumerate() {
            if let Some(part @ Part::Kept(_)) = size {
                lines.push(format!("{} = {}", part.of(to), number(&made.sizes[d])));
            }
        }
        for (d, part) in self.strides.iter().enumerate() {
            if let Part::Kept(_) = part {
                lines.push(format!("{} = {}", part.of(to), number(&made.strides[d])));
            }
        }
        for (d, part) in self.positions.iter().enumerate() {
            let start = match literal(&made.offsets[d]) {
                Some(0) => String::new(),
                _ => format!("{} + ", names.operand(&made.offsets[d])),
            };
            let block = names.source(made.block[d].span);
            lines.push(format!("{} = {start}{tl}.arange(0, {block}).to({tl}.int64)", part.of(to)));
        }
        lines
    }

    fn advance(&self, names: &Names<'_>, to: &str, from: &str, by: &[&Expr]) -> Vec<String> {
        let mut lines = if to == from { Vec::new() } else { self.same_tensor(to, from) };
        for (d, part) in self.positions.iter().enumerate() {
            let moved = by.get(d).filter(|by| literal(by) != Some(0)).map(|by| names.operand(by));
            match moved {
                Some(by) if to == from => lines.push(format!("{} += {by}", part.of(to))),
                Some(by) => lines.push(format!("{} = {} + {by}", part.of(to), part.of(from))),
                None if to == from => {}
                None => lines.push(format!("{} = {}", part.of(to), part.of(from))),
            }
        }
        if lines.is_empty() {
            lines.push("pass".to_owned());
        }
        lines
    }

    /// Unifies the tensors of two block pointers.
    pub fn same_tensor(&self, to: &str, from: &str) -> Vec<String> {
        let parts = [&self.base].into_iter().chain(self.sizes.iter().flatten()).chain(&self.strides);
        let kept = parts.filter(|part| matches!(part, Part::Kept(_)));
        kept.map(|part| format!("{} = {}", part.of(to), part.of(from))).collect()
    }

    /// The addresses of a block pointer.
    pub fn addresses(&self, variable: &str) -> String {
        let mut text = self.base.of(variable).to_owned();
        for (d, stride) in self.strides.iter().enumerate() {
            text.push_str(&format!(" + {}", self.position(variable, d)));
            match stride.of(variable) {
                "1" => {}
                stride => text.push_str(&format!(" * {stride}")),
            }
        }
        text
    }

    /// The condition that elements are within the tensor along some dimensions.
    pub fn mask(&self, variable: &str, checked: &[usize]) -> Option<String> {
        let within = |d: &usize| {
            let size = self.sizes.get(*d)?.as_ref()?.of(variable);
            let position = self.position(variable, *d);
            Some(format!("({position} >= 0) & ({position} < {size})"))
        };
        let conditions: Vec<String> = checked.iter().filter_map(within).collect();
        (!conditions.is_empty()).then(|| conditions.join(" & "))
    }

    /// Positions along a dimension, in the shape of the block.
    fn position(&self, variable: &str, d: usize) -> String {
        let name = self.positions[d].of(variable);
        if self.rank == 1 {
            return name.to_owned();
        }
        let index: Vec<&str> = (0..self.rank).map(|other| if other == d { ":" } else { "None" }).collect();
        format!("{name}[{}]", index.join(", "))
    }
}

/// Whether an expression is a string with one of these contents.
pub(super) fn word(e: &Expr) -> Option<&str> {
    match &e.kind {
        ExprKind::Str(text) => Some(text),
        ExprKind::None => Some(""),
        _ => None,
    }
}
