//! The accesses of a kernel to the memory behind its pointers, and their check before a launch.
//!
//! ```
//! use rtc_abi::{Elements, Extents, Metadata, Param, ValueType};
//! # let text = r#"{"kernel": "f", "symbol": "f", "arch": "sm_80", "ptx_version": 83, "num_warps": 4, "num_ctas": 1,
//! #   "threads_per_block": 128, "shared_bytes": 0, "global_scratch_bytes": 0, "global_scratch_align": 1,
//! #   "cluster": [1, 1, 1], "params": [{"name": "x", "type": "*fp32", "offset": 0, "size": 8, "access": "read",
//! #   "extent": "grid.0 * stride", "extent_needs": ["stride"]}, {"name": "stride", "type": "i32", "offset": 8, "size": 4}],
//! #   "constexprs": {}, "source_hash": "", "compiler_version": ""}"#;
//! // A kernel f(x, stride) that reads `grid.0 * stride` elements of x if the stride is not negative.
//! let metadata = Metadata::from_json(text)?;
//! let extents = Extents::new(&metadata)?;
//! let with_stride = |stride| extents.elements(0, |param| (param == 1).then_some(stride), [3, 1, 1]);
//! assert_eq!(with_stride(100), Elements::AtMost(300));
//! assert!(matches!(with_stride(-1), Elements::Unknown(Some(_))));
//! # Ok::<(), rtc_abi::MetadataError>(())
//! ```

use crate::extent_program::{BOUNDS, ExtentProgram, Input, Maker};
use crate::metadata::error;
use crate::{Expr, Metadata, MetadataError};
use serde::{Deserialize, Serialize};

/// The kind of access to the memory behind a pointer.
///
/// ```
/// use rtc_abi::{Access, DType, Param, ValueType};
/// let mut param = Param::new("x_ptr", ValueType::Pointer { pointee: DType::Fp32, is_const: false });
/// assert_eq!(param.access, None); // not known
/// param.access = Some(Access::Read);
/// assert_ne!(param.access, Some(Access::ReadWrite));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// It reads at most.
    Read,
    /// It writes and never reads.
    Write,
    /// Both.
    ReadWrite,
}

/// How many elements from a pointer on one launch touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elements {
    /// No more than these.
    AtMost(u64),
    /// Nothing is proved: of no launch (`None`), or not of this one, for it breaks the condition that is given.
    Unknown(Option<String>),
}

/// The extents of the parameters of a kernel, ready to be evaluated without looking up names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extents {
    params: Vec<Option<ParamBound>>,
    program: ExtentProgram,
}

/// The bound of a parameter.
#[derive(Clone, Debug, PartialEq)]
struct ParamBound {
    extent: Named,
    needs: Vec<Named>,
    /// Its number in the program; [`BOUNDS`] where that has no room.
    number: usize,
}

/// The bounds of all parameters of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Evaluated {
    elements: [u64; BOUNDS],
}

/// An expression with the sources of its names.
#[derive(Clone, Debug, PartialEq)]
struct Named {
    expr: Expr,
    names: Vec<Input>,
}

impl Extents {
    /// Those of a kernel.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] for a name in an expression that is neither an integer argument nor an axis of the grid.
    pub fn new(metadata: &Metadata) -> Result<Extents, MetadataError> {
        let named = |at: usize, field: &str, expr: &Expr| {
            let name = |name: &String| {
                if let Some(axis) = ["grid.0", "grid.1", "grid.2"].iter().position(|grid| grid == name) {
                    return Ok(Input::Grid(axis));
                }
                let found = metadata.visible_params().iter().position(|p| p.name == *name && p.ty.is_integer());
                let unknown = || error(&format!("params[{at}].{field}"), format!("`{name}` is no integer argument"));
                found.map(Input::Param).ok_or_else(unknown)
            };
            Ok(Named { expr: expr.clone(), names: expr.names().iter().map(name).collect::<Result<_, _>>()? })
        };
        let mut maker = Maker::default();
        let bound = |(at, param): (usize, &crate::Param)| {
            let Some(extent) = &param.extent else { return Ok(None) };
            let extent = named(at, "extent", extent)?;
            let needs = param.extent_needs.iter().map(|need| named(at, "extent_needs", need));
            let needs = needs.collect::<Result<Vec<Named>, MetadataError>>()?;
            let in_program = maker.bound((&extent.expr, &extent.names), needs.iter().map(|n| (&n.expr, &n.names[..])));
            let number = in_program.unwrap_or(BOUNDS);
            Ok(Some(ParamBound { extent, needs, number }))
        };
        let params = metadata.visible_params().iter().enumerate().map(bound).collect::<Result<_, _>>()?;
        Ok(Extents { params, program: maker.finish() })
    }

    /// How many elements behind parameter `param` a launch touches at most. `arg` gives the integer arguments by the number
    /// of their parameter.
    pub fn elements(&self, param: usize, arg: impl Fn(usize) -> Option<i64>, grid: [u32; 3]) -> Elements {
        match self.params.get(param) {
            Some(Some(bound)) => self.elements_or_why(bound, &arg, grid),
            _ => Elements::Unknown(None),
        }
    }

    /// Evaluates the bounds of several parameters for a launch.
    #[inline]
    pub fn evaluate(&self, arg: impl Fn(usize) -> Option<i64>, grid: [u32; 3]) -> Evaluated {
        Evaluated { elements: self.program.run(arg, grid) }
    }

    /// The number of a parameter's bound for [`Evaluated::at_most`]; those with the same bound have the same.
    pub fn bound(&self, param: usize) -> usize {
        self.params.get(param).and_then(Option::as_ref).map_or(BOUNDS, |bound| bound.number)
    }

    /// For each expression again, with the reason where a condition does not hold or something has no value.
    #[cold]
    fn elements_or_why(&self, bound: &ParamBound, arg: &impl Fn(usize) -> Option<i64>, grid: [u32; 3]) -> Elements {
        let value = |Named { expr, names }: &Named| {
            expr.eval_at(|index| match names[index] {
                Input::Param(number) => arg(number),
                Input::Grid(axis) => Some(grid[axis].into()),
            })
        };
        for need in &bound.needs {
            match value(need) {
                Ok(number) if number >= 0 => {}
                Ok(number) => {
                    let need = &need.expr;
                    return Elements::Unknown(Some(format!("`{need}` is {number}, which is below 0")));
                }
                Err(error) => return Elements::Unknown(Some(error.to_string())),
            }
        }
        match value(&bound.extent) {
            Ok(elements) => Elements::AtMost(elements.max(0).unsigned_abs()),
            Err(error) => Elements::Unknown(Some(error.to_string())),
        }
    }
}

impl Evaluated {
    /// How many elements behind the parameters with this bound the launch accesses at most. `u64::MAX` if nothing is
    /// proved, and if only [`Extents::elements`] can compute it.
    ///
    /// ```
    /// let nothing = rtc_abi::Extents::default();
    /// let evaluated: rtc_abi::Evaluated = nothing.evaluate(|_| None, [1, 1, 1]);
    /// assert_eq!(evaluated.at_most(nothing.bound(0)), u64::MAX);
    /// ```
    #[inline]
    pub fn at_most(&self, bound: usize) -> u64 {
        self.elements.get(bound).copied().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Param, ParamType};

    /// The joint evaluation equals that of each parameter alone.
    #[test]
    fn once_and_one_by_one_agree() {
        let pointer = |at: usize| {
            let mut param = Param::new(format!("p{at}"), "*fp32".parse::<ParamType>().expect("a type"));
            let text = ["n", "n * m", "grid.0 * 64", "n // m", "min(n, m) + 1", "cdiv(n, m) - 4"][at % 6];
            param.extent = Some(format!("{text} + {}", at / 6).parse().expect("an expression"));
            param.extent_needs =
                ["m", "n - 3", "n"][..at % 4].iter().map(|need| need.parse().expect("reads")).collect();
            param
        };
        let mut params: Vec<Param> = (0..20).map(pointer).collect();
        params.extend(["n", "m"].map(|name| Param::new(name, DType::Int64)));
        let metadata = Metadata::new("k", "sm_80", 80, 32, params);
        let extents = Extents::new(&metadata).expect("names are known");
        assert!((0..20).any(|param| extents.bound(param) == BOUNDS));
        let (mut unknown, mut at_once) = (0, 0);
        for (n, m) in [(5, 2), (0, 0), (-1, 3), (2, -7), (i64::MAX, 2), (i64::MIN, -1), (100, 0)] {
            let arg = |index: usize| [n, m].get(index.checked_sub(20)?).copied();
            let evaluated = extents.evaluate(arg, [3, 1, 1]);
            for param in 0..22 {
                let alone = extents.elements(param, arg, [3, 1, 1]);
                unknown += usize::from(matches!(alone, Elements::Unknown(Some(_))));
                let elements = evaluated.at_most(extents.bound(param));
                if elements != u64::MAX {
                    at_once += 1;
                    assert_eq!(alone, Elements::AtMost(elements), "p{param} with {n}, {m}");
                }
            }
        }
        assert!(unknown > 20 && at_once > 20, "{unknown} {at_once}");
    }
}
