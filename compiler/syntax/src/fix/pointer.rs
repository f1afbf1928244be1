//! What a block pointer is made of, and the variables that stand for it.

use std::collections::{HashMap, HashSet};

use rtc_source::Span;

use super::calls::{Result, elements, literal, needed, refuse};
use super::function::{Binding, What};
use super::names::Names;
use crate::ast::{Arg, Expr, ExprKind};

/// The arguments of `make_block_ptr`.
pub(super) struct Made<'a> {
    pub call: Span,
    /// The module that has the function.
    pub module: &'a Expr,
    pub base: &'a Expr,
    pub sizes: &'a [Expr],
    pub strides: &'a [Expr],
    pub offsets: &'a [Expr],
    pub block: &'a [Expr],
}

impl<'a> Made<'a> {
    pub fn read(call: &'a Expr, module: &'a Expr, bound: &[(&'static str, &'a Arg)]) -> Result<Made<'a>> {
        let list = |name: &str| elements(needed(bound, name, call.span)?, &format!("`{name}`"));
        let made = Made {
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
    /// The same everywhere: its text.
    Fixed(String),
    /// Kept in variables: for each block pointer one.
    Kept(HashMap<String, String>),
}

impl Part {
    fn of(&self, variable: &str) -> &str {
        match self {
            Part::Fixed(text) => text,
            Part::Kept(names) => names.get(variable).map_or("", String::as_str),
        }
    }
}

/// Block pointers that are bound to each other.
pub(super) struct Group {
    pub rank: usize,
    /// The text of the module that has the functions.
    pub module: String,
    /// Whether several statements make them, so that types must not depend on which one did.
    several: bool,
    base: Part,
    /// Of the dimensions that are checked somewhere.
    sizes: Vec<Option<Part>>,
    strides: Vec<Part>,
    positions: Vec<Part>,
}

impl Group {
    pub fn new(
        names: &mut Names<'_>,
        variables: &HashSet<&str>,
        bindings: &[&Binding<'_>],
        checked: impl FnOnce(usize) -> Result<HashSet<usize>>,
    ) -> Result<Group> {
        let made: Vec<&Made> =
            bindings.iter().filter_map(|b| if let What::Made(made) = &b.what { Some(made) } else { None }).collect();
        let Some(first) = made.first() else {
            let at = bindings.first().map(|b| b.stmt).unwrap_or_default();
            return refuse(at, "where the block pointer is made cannot be seen");
        };
        let rank = first.block.len();
        if let Some(other) = made.iter().find(|m| m.block.len() != rank) {
            return refuse(other.call, "the variable holds block pointers of different numbers of dimensions");
        }
        let checked = checked(rank)?;
        let mut variables: Vec<&str> = variables.iter().copied().collect();
        variables.sort_unstable();
        let several = made.len() > 1;
        let mut part = |e: Option<&Expr>, suffix: &str| match e {
            Some(e) if !several && names.is_fixed(e) => Part::Fixed(names.operand(e)),
            _ => {
                let name = |v: &&str| ((*v).to_owned(), names.fresh(format!("{v}_{suffix}")));
                Part::Kept(variables.iter().map(name).collect())
            }
        };
        Ok(Group {
            rank,
            several,
            base: part(Some(first.base), "base"),
            sizes: (0..rank)
                .map(|d| checked.contains(&d).then(|| part(first.sizes.get(d), &format!("size{d}"))))
                .collect(),
            strides: (0..rank).map(|d| part(first.strides.get(d), &format!("stride{d}"))).collect(),
            positions: (0..rank).map(|d| part(None, &format!("i{d}"))).collect(),
            module: names.source(first.module.span).to_owned(),
        })
    }

    /// The statements in the place of one that binds a block pointer.
    pub fn bind(&self, names: &Names<'_>, binding: &Binding<'_>) -> Result<Vec<String>> {
        let to = binding.target;
        match &binding.what {
            What::Made(made) => Ok(self.make(names, to, made)),
            What::From { from, by } => {
                if !by.is_empty() && by.len() != self.rank {
                    return refuse(binding.stmt, format!("`offsets` has not {} elements", self.rank));
                }
                Ok(self.advance(names, to, from, by))
            }
        }
    }

    fn make(&self, names: &Names<'_>, to: &str, made: &Made<'_>) -> Vec<String> {
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
        let mut lines = Vec::new();
        if to != from {
            let parts = [&self.base].into_iter().chain(self.sizes.iter().flatten()).chain(&self.strides);
            for part in parts.filter(|part| matches!(part, Part::Kept(_))) {
                lines.push(format!("{} = {}", part.of(to), part.of(from)));
            }
        }
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

    /// What holds for elements that lie within the tensor along some dimensions.
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
