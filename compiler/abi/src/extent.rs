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
}

#[derive(Clone, Debug, PartialEq)]
struct Bound {
    extent: Named,
    needs: Vec<Named>,
}

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
        let bound = |(at, param): (usize, &crate::Param)| {
            let Some(extent) = &param.extent else { return Ok(None) };
            let needs = param.extent_needs.iter().map(|need| named(at, "extent_needs", need));
            Ok(Some(Bound { extent: named(at, "extent", extent)?, needs: needs.collect::<Result<_, _>>()? }))
        };
        let params = metadata.visible_params().iter().enumerate().map(bound).collect::<Result<_, _>>()?;
        Ok(Extents { params })
    }

    /// How many elements behind parameter `param` a launch touches at most. `arg` gives the integer arguments by the number
    /// of their parameter.
    pub fn elements(&self, param: usize, arg: impl Fn(usize) -> Option<i64>, grid: [u32; 3]) -> Elements {
        let Some(Some(Bound { extent, needs })) = self.params.get(param) else { return Elements::Unknown(None) };
        let value = |named: &Named| {
            named.expr.eval_at(|index| match named.names[index] {
                Name::Param(number) => arg(number),
                Name::Grid(axis) => Some(grid[axis].into()),
            })
        };
        for need in needs {
            match value(need) {
                Ok(number) if number >= 0 => {}
                Ok(number) => return Elements::Unknown(Some(format!("`{}` is {number}, which is below 0", need.expr))),
                Err(error) => return Elements::Unknown(Some(error.to_string())),
            }
        }
        match value(extent) {
            Ok(elements) => Elements::AtMost(elements.max(0).unsigned_abs()),
            Err(error) => Elements::Unknown(Some(error.to_string())),
        }
    }
}
