//! What a kernel does to the memory behind its pointers, and the check of that before a launch.
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

use crate::metadata::error;
use crate::{Expr, Metadata, MetadataError};
use serde::{Deserialize, Serialize};

/// What a kernel does to the memory behind a pointer.
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
    params: Vec<Option<Bound>>,
    /// The extents and the conditions of all, each once: several pointers often have the same.
    exprs: Vec<Named>,
}

/// Numbers of expressions.
#[derive(Clone, Debug, PartialEq)]
struct Bound {
    extent: usize,
    needs: Vec<usize>,
    /// The same as bits; more than there are where the number of one is too large.
    bits: u32,
}

/// Values of the expressions in one launch, each evaluated once.
#[derive(Clone, Copy, Debug)]
pub struct Evaluated {
    /// Which have a value.
    known: u32,
    /// Which have a value that is not negative.
    holds: u32,
    values: [i64; KEPT],
}

/// Further expressions are evaluated for each parameter.
const KEPT: usize = 8;

/// An expression with what each of its names stands for.
#[derive(Clone, Debug, PartialEq)]
struct Named {
    expr: Expr,
    names: Vec<Name>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Name {
    Param(usize),
    Grid(usize),
}

impl Extents {
    /// Those of a kernel; an error for a name that is neither an integer argument nor an axis of the grid.
    pub fn new(metadata: &Metadata) -> Result<Extents, MetadataError> {
        let named = |at: usize, field: &str, expr: &Expr| {
            let name = |name: &String| {
                if let Some(axis) = ["grid.0", "grid.1", "grid.2"].iter().position(|grid| grid == name) {
                    return Ok(Name::Grid(axis));
                }
                let found = metadata.visible_params().iter().position(|p| p.name == *name && p.ty.is_integer());
                let unknown = || error(&format!("params[{at}].{field}"), format!("`{name}` is no integer argument"));
                found.map(Name::Param).ok_or_else(unknown)
            };
            Ok(Named { expr: expr.clone(), names: expr.names().iter().map(name).collect::<Result<_, _>>()? })
        };
        let mut exprs: Vec<Named> = Vec::new();
        let mut number = |named: Named| {
            let known = exprs.iter().position(|other| *other == named);
            known.unwrap_or_else(|| {
                exprs.push(named);
                exprs.len() - 1
            })
        };
        let bound = |(at, param): (usize, &crate::Param)| {
            let Some(extent) = &param.extent else { return Ok(None) };
            let extent = number(named(at, "extent", extent)?);
            let needs = param.extent_needs.iter().map(|need| Ok(number(named(at, "extent_needs", need)?)));
            let needs = needs.collect::<Result<Vec<usize>, MetadataError>>()?;
            let bits = needs.iter().fold(0, |bits, need| bits | 1u32.checked_shl(*need as u32).unwrap_or(1 << 31));
            Ok(Some(Bound { extent, needs, bits }))
        };
        let params = metadata.visible_params().iter().enumerate().map(bound).collect::<Result<_, _>>()?;
        Ok(Extents { params, exprs })
    }

    /// How many elements behind parameter `param` a launch touches at most. `arg` gives the integer arguments by the number
    /// of their parameter.
    pub fn elements(&self, param: usize, arg: impl Fn(usize) -> Option<i64>, grid: [u32; 3]) -> Elements {
        match self.params.get(param) {
            Some(Some(bound)) => self.elements_or_why(bound, &arg, grid),
            _ => Elements::Unknown(None),
        }
    }

    /// Evaluates them for a launch of which several parameters are asked for.
    #[inline]
    pub fn evaluate(&self, arg: impl Fn(usize) -> Option<i64>, grid: [u32; 3]) -> Evaluated {
        let mut out = Evaluated { known: 0, holds: 0, values: [0; KEPT] };
        for (number, (Named { expr, names }, to)) in self.exprs.iter().zip(&mut out.values).enumerate() {
            if let Some(value) = expr.quick_at(|index| names[index].value(&arg, grid)) {
                *to = value;
                out.known |= 1 << number;
                out.holds |= u32::from(value >= 0) << number;
            }
        }
        out
    }

    /// How many elements behind a parameter the launch that was evaluated touches at most. `None` where nothing is proved, and
    /// where it takes [`Extents::elements`] to tell.
    #[inline]
    pub fn at_most(&self, evaluated: &Evaluated, param: usize) -> Option<u64> {
        let bound = self.params.get(param)?.as_ref()?;
        let elements = evaluated.values.get(bound.extent)?;
        let holds = evaluated.known >> bound.extent & 1 == 1 && evaluated.holds & bound.bits == bound.bits;
        holds.then_some((*elements).max(0) as u64)
    }

    /// For each expression anew, with the reason where a condition does not hold or something has no value.
    #[cold]
    fn elements_or_why(&self, bound: &Bound, arg: &impl Fn(usize) -> Option<i64>, grid: [u32; 3]) -> Elements {
        let value = |number: usize| {
            let Named { expr, names } = &self.exprs[number];
            expr.eval_at(|index| names[index].value(arg, grid))
        };
        for need in &bound.needs {
            match value(*need) {
                Ok(number) if number >= 0 => {}
                Ok(number) => {
                    let need = &self.exprs[*need].expr;
                    return Elements::Unknown(Some(format!("`{need}` is {number}, which is below 0")));
                }
                Err(error) => return Elements::Unknown(Some(error.to_string())),
            }
        }
        match value(bound.extent) {
            Ok(elements) => Elements::AtMost(elements.max(0).unsigned_abs()),
            Err(error) => Elements::Unknown(Some(error.to_string())),
        }
    }
}

impl Name {
    #[inline]
    fn value(self, arg: impl Fn(usize) -> Option<i64>, grid: [u32; 3]) -> Option<i64> {
        match self {
            Name::Param(number) => arg(number),
            Name::Grid(axis) => Some(grid[axis].into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::lay_out;
    use crate::{DType, Param, ParamType};

    /// What is evaluated for a launch at once is what each parameter gives by itself.
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
        let metadata = Metadata {
            kernel: "k".into(),
            symbol: "k".into(),
            arch: "sm_80".into(),
            ptx_version: 80,
            num_warps: 1,
            num_ctas: 1,
            threads_per_block: 32,
            shared_bytes: 0,
            global_scratch_bytes: 0,
            global_scratch_align: 1,
            cluster: [1; 3],
            launch_pdl: false,
            launch_cooperative_grid: false,
            params: lay_out(params),
            persistent: None,
            constexprs: serde_json::Map::new(),
            source_hash: String::new(),
            compiler_version: String::new(),
        };
        let extents = Extents::new(&metadata).expect("names are known");
        assert!(extents.exprs.len() > KEPT);
        let (mut unknown, mut at_once) = (0, 0);
        for (n, m) in [(5, 2), (0, 0), (-1, 3), (2, -7), (i64::MAX, 2), (i64::MIN, -1), (100, 0)] {
            let arg = |index: usize| [n, m].get(index.checked_sub(20)?).copied();
            let evaluated = extents.evaluate(arg, [3, 1, 1]);
            for param in 0..22 {
                let alone = extents.elements(param, arg, [3, 1, 1]);
                unknown += usize::from(matches!(alone, Elements::Unknown(Some(_))));
                if let Some(elements) = extents.at_most(&evaluated, param) {
                    at_once += 1;
                    assert_eq!(alone, Elements::AtMost(elements), "p{param} with {n}, {m}");
                }
            }
        }
        assert!(unknown > 20 && at_once > 20, "{unknown} {at_once}");
    }
}
