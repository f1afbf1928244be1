//! Hidden parameters: the launch fills them, and no argument of the source corresponds to them.
//!
//! They come after all others. In the text form an attribute describes each:
//!
//! ```text
//! %programs: i32 {sig = "i32", grid = 0}
//! %a: desc<128x64xf16, 128> {sig = "tensormap", base = "a_ptr", shape = ["M", "K"], strides = ["stride", 1]}
//! ```
//!
//! The first is the number of programs along an axis. The second is a tensor map that the host encodes, for memory
//! behind the pointer `a_ptr`; sizes and strides are expressions of integer parameters ([`Expr`]), outermost first and
//! in elements. `start` is the number of elements between the pointer and the first one, `padding = nan` the value
//! outside of the tensor instead of zero, and `data_type` the number of a `CUtensorMapDataType` if it is not that of
//! the element. The box and the swizzle are those of the type; with `shrinks = 1` the box has no more rows than the tensor.

use rtc_abi::metadata::Padding;
use rtc_abi::{Expr, ValueType};

use crate::reductions::unsigned;
use crate::{AttrValue, Kernel, Param, Scalar, Type};

/// The value that the launch passes for a hidden parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hidden {
    /// The number of programs along an axis: 0, 1 or 2.
    Grid(u32),
    /// A tensor map that the host encodes.
    TensorMap(Box<MapSource>),
}

/// Where a tensor lies that the host makes a map of; element, box and swizzle are those of the parameter's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapSource {
    /// Name of the pointer parameter that it lies behind.
    pub base: String,
    /// The first element, counted from the pointer.
    pub start: Expr,
    /// Sizes, outermost first.
    pub shape: Vec<Expr>,
    /// Strides in elements, outermost first; the innermost is 1.
    pub strides: Vec<Expr>,
    /// The number of the `CUtensorMapDataType`, where it is not that of the element.
    pub data_type: Option<u32>,
    /// The value of copies outside of the tensor.
    pub padding: Padding,
    /// Whether the box has no more rows, in the last dimension but one, than the tensor.
    pub shrinks: bool,
}

impl MapSource {
    /// All expressions.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        std::iter::once(&self.start).chain(&self.shape).chain(&self.strides)
    }
}

/// The number of `CU_TENSOR_MAP_DATA_TYPE_TFLOAT32`: copies round to nearest.
pub const TFLOAT32: u32 = 11;

/// `CUtensorMapDataType`s for an element, in addition to its own.
fn other_data_types(elem: Scalar) -> Vec<u32> {
    match elem {
        Scalar::F32 => vec![7, TFLOAT32],
        _ => unsigned(elem).into_iter().collect(),
    }
}

impl Hidden {
    /// The attributes of the text form.
    pub(crate) fn attrs(&self) -> Vec<(&'static str, AttrValue)> {
        let map = match self {
            Hidden::Grid(axis) => return vec![("grid", AttrValue::Int((*axis).into()))],
            Hidden::TensorMap(map) => map,
        };
        let list = |exprs: &[Expr]| AttrValue::List(exprs.iter().map(written).collect());
        let mut attrs = vec![("base", AttrValue::Str(map.base.clone()))];
        if map.start != Expr::from(0) {
            attrs.push(("start", written(&map.start)));
        }
        attrs.extend([("shape", list(&map.shape)), ("strides", list(&map.strides))]);
        attrs.extend(map.data_type.map(|number| ("data_type", AttrValue::Int(number.into()))));
        if map.padding == Padding::Nan {
            attrs.push(("padding", AttrValue::Word("nan".into())));
        }
        if map.shrinks {
            attrs.push(("shrinks", AttrValue::Int(1)));
        }
        attrs
    }

    /// Takes the attributes that say what the launch passes out of those of a parameter.
    pub(crate) fn from_attrs(attrs: &mut Vec<(String, AttrValue)>) -> Result<Option<Hidden>, String> {
        let mut take = |name: &str| attrs.iter().position(|(n, _)| n == name).map(|at| attrs.remove(at).1);
        let number = |name: &str, value: AttrValue| match value {
            AttrValue::Int(n) => u32::try_from(n).map_err(|_| format!("`{name}` is out of range")),
            _ => Err(format!("`{name}` is a number")),
        };
        if let Some(axis) = take("grid") {
            return number("grid", axis).map(|axis| Some(Hidden::Grid(axis)));
        }
        let base = match take("base") {
            None => return Ok(None),
            Some(AttrValue::Str(base)) => base,
            Some(_) => return Err("`base` is the name of a parameter, in quotes".into()),
        };
        let mut list = |name: &str| match take(name) {
            Some(AttrValue::List(items)) => items.into_iter().map(read).collect::<Result<Vec<Expr>, String>>(),
            _ => Err(format!("a tensor map has a list `{name}`")),
        };
        let (shape, strides) = (list("shape")?, list("strides")?);
        let start = take("start").map_or(Ok(Expr::from(0)), read)?;
        let data_type = take("data_type").map(|value| number("data_type", value)).transpose()?;
        let padding = match take("padding") {
            None => Padding::Zero,
            Some(AttrValue::Word(word)) if word == "nan" => Padding::Nan,
            Some(AttrValue::Word(word)) if word == "zero" => Padding::Zero,
            Some(_) => return Err("`padding` is `zero` or `nan`".into()),
        };
        let shrinks = match take("shrinks") {
            None | Some(AttrValue::Int(0)) => false,
            Some(AttrValue::Int(1)) => true,
            Some(_) => return Err("`shrinks` is 0 or 1".into()),
        };
        let map = MapSource { base, start, shape, strides, data_type, padding, shrinks };
        Ok(Some(Hidden::TensorMap(Box::new(map))))
    }
}

/// A number as such, any other expression in quotes.
fn written(expr: &Expr) -> AttrValue {
    let text = expr.to_string();
    text.parse().map(AttrValue::Int).unwrap_or(AttrValue::Str(text))
}

fn read(value: AttrValue) -> Result<Expr, String> {
    match value {
        AttrValue::Int(number) => Ok(number.into()),
        AttrValue::Str(text) => text.parse().map_err(|e: rtc_abi::expr::ParseError| e.to_string()),
        _ => Err("an expression is a number, or a text in quotes".into()),
    }
}

/// The errors of a kernel's hidden parameters.
pub(crate) fn check(kernel: &Kernel) -> Vec<String> {
    let mut wrong = Vec::new();
    let visible = kernel.params.iter().take_while(|p| p.hidden.is_none()).count();
    let (given, rest) = kernel.params.split_at(visible);
    for param in rest {
        let name = &param.name;
        let checked = match &param.hidden {
            None => Err("stands after one that the launch fills".to_owned()),
            Some(Hidden::Grid(axis)) => check_grid(kernel, param, *axis),
            Some(Hidden::TensorMap(map)) => check_map(kernel, given, param, map),
        };
        wrong.extend(checked.err().map(|message| format!("parameter `{name}` {message}")));
    }
    wrong
}

fn check_grid(kernel: &Kernel, param: &Param, axis: u32) -> Result<(), String> {
    let is_i32 = kernel.value_type(param.value) == Type::Scalar(Scalar::I32.into());
    if axis > 2 || !is_i32 || param.ty.to_string() != "i32" {
        return Err("is no `i32` for axis 0, 1 or 2 of the grid".into());
    }
    Ok(())
}

fn check_map(kernel: &Kernel, given: &[Param], param: &Param, map: &MapSource) -> Result<(), String> {
    let Type::Desc(desc) = kernel.value_type(param.value) else {
        return Err("has a tensor map and is no tensor descriptor".into());
    };
    let of = |name: &str| given.iter().find(|p| p.name == name).map(|p| &p.ty);
    if !of(&map.base).is_some_and(|ty| ty.is_pointer()) {
        return Err(format!("lies behind `{}`, which is no pointer among the parameters before", map.base));
    }
    if map.shape.len() != desc.shape.rank() || map.strides.len() != desc.shape.rank() {
        return Err(format!("has {} sizes and {} strides for {desc}", map.shape.len(), map.strides.len()));
    }
    if map.strides.last() != Some(&Expr::from(1)) {
        return Err("has an innermost stride that is not 1".into());
    }
    let is_integer = |name: &String| match of(name) {
        Some(rtc_abi::ParamType::Value(ValueType::Scalar(dtype))) => dtype.is_integer(),
        _ => false,
    };
    if let Some(name) = map.exprs().flat_map(Expr::names).find(|name| !is_integer(name)) {
        return Err(format!("depends on `{name}`, which is no integer among the parameters before"));
    }
    if map.padding == Padding::Nan && !desc.elem.is_float() {
        return Err("pads integers with NaN".into());
    }
    if map.shrinks && desc.shape.rank() < 2 {
        return Err("has no rows that the tensor could have fewer of".into());
    }
    if map.data_type.is_some_and(|number| !other_data_types(desc.elem).contains(&number)) {
        return Err(format!("has a data type that does not stand for {}", desc.elem));
    }
    Ok(())
}
