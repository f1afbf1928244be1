//! LAUNCH.json: a kernel launch as a file, with its tensors in a safetensors file beside it.
//!
//! The format is a contract (it changes only by adding). Reading checks what stands in the file; [`LaunchFile::run`]
//! checks it against the kernel and the tensors, runs it on any device and gives every tensor as it is after the launch.
//! Every error names the field.
//!
//! ```
//! let error = rtc_testing::LaunchFile::parse(r#"{"spec": {}, "grid": [1, 1, "n +"], "args": {}}"#).unwrap_err();
//! assert!(error.to_string().contains("`grid[2]`"));
//! ```

use crate::storages::{Place, Storages, Undefined};
use crate::{Dtype, Error, Result, Tensors};
use rtc_abi::spec::{ArgKind, ArgSpec, ConstValue};
use rtc_abi::tuning::HostValue;
use rtc_abi::{DType, Expr, Metadata, Param, ParamType, ValueType};
use rtc_runtime::{Arg, Device, DeviceAddress, Kernel, SliceMut, TensorDescriptor};
use rtc_source::json_fields::{self, Field, FieldError};
use serde_json::Value;
use std::time::Duration;

/// The content of a LAUNCH.json.
#[derive(Clone, Debug)]
pub struct LaunchFile {
    /// What the kernel is compiled for, as in SPEC.json; read by the compiler.
    pub spec: Value,
    /// Programs to launch: numbers, or expressions over integer arguments and constexprs.
    grid: [Expr; 3],
    /// Path of the safetensors file, as written; relative to the LAUNCH.json.
    pub tensors: Option<String>,
    args: Vec<NamedValue>,
}

/// A value and the path of its field.
#[derive(Clone, Debug)]
struct NamedValue {
    name: String,
    path: String,
    value: LaunchValue,
}

#[derive(Clone, Debug)]
enum LaunchValue {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Tensor(Place),
    Descriptor {
        tensor: Place,
        shape: Vec<i128>,
        strides: Vec<i128>,
        block_shape: Vec<i128>,
        pads_nan: bool,
        swizzle: Option<u32>,
    },
    Tuple(Vec<NamedValue>),
}

/// An argument of the kernel.
enum Resolved<'s> {
    Bool(bool),
    Int(i128),
    Float(f64),
    Null,
    /// From here on to the end of an allocation.
    Memory(SliceMut<'s>),
    Descriptor(Box<TensorDescriptor<'s>>),
}

impl<'s> Resolved<'s> {
    /// The argument; a descriptor stays where it is.
    fn arg<'a>(&'a mut self) -> Arg<'a>
    where
        's: 'a,
    {
        match self {
            Resolved::Bool(v) => Arg::Bool(*v),
            Resolved::Int(v) => Arg::Int(*v),
            Resolved::Float(v) => Arg::Float(*v),
            Resolved::Null => DeviceAddress::NULL.into(),
            Resolved::Memory(slice) => slice.reborrow().into(),
            Resolved::Descriptor(descriptor) => Arg::Descriptor(descriptor),
        }
    }
}

/// What a launch gave.
///
/// ```
/// use rtc_runtime::Device;
/// use rtc_testing::{LaunchFile, Outcome, Tensor, Tensors};
/// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
/// // SAFETY: the files were made together.
/// let scale = unsafe { Device::auto().load_json(ptx, json)? }; // scale(x, y, a, n): y[i] = x[i] * a
/// let launch = LaunchFile::parse(
///     r#"{"spec": {}, "grid": ["cdiv(n, 32)"], "args": {"x": {"tensor": "x"}, "y": {"tensor": "y"}, "a": 3.0, "n": 2}}"#,
/// )?;
/// assert_eq!(launch.sizes()[0].to_string(), "cdiv(n, 32)");
/// assert_eq!(launch.grid(scale.metadata()).ok(), Some([1, 1, 1]));
/// let mut tensors = Tensors::default();
/// tensors.insert("x", Tensor::of(vec![2], &[1.0f32, 2.0])?);
/// tensors.insert("y", Tensor::of(vec![2], &[0.0f32; 2])?);
/// let Outcome { outputs, .. } = launch.run(&scale, &tensors)?;
/// assert_eq!(outputs.get("y"), Some(&Tensor::of(vec![2], &[3.0f32, 6.0])?));
/// // The arguments alone, for launches of another kind, and as the functions of autotuning see them.
/// let count = launch.with_args(scale.device(), scale.metadata(), &tensors, |args| args.len())?;
/// assert_eq!((count, launch.host_values(&[], &tensors).len()), (4, 4));
/// # Ok::<(), rtc_testing::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Every tensor of the input file, as it is after the launch.
    pub outputs: Tensors,
    /// The time that the launch took on the device.
    pub elapsed: Duration,
}

impl LaunchFile {
    /// Reads the text of a LAUNCH.json.
    ///
    /// # Errors
    ///
    /// The first field that is missing, unknown, or of another form.
    pub fn parse(text: &str) -> std::result::Result<LaunchFile, FieldError> {
        let json = json_fields::parse(text)?;
        let root = Field::root(&json);
        root.only(&["spec", "grid", "args", "tensors", "golden"])?;
        let spec = root.required("spec")?;
        spec.members()?;
        let grid_field = root.required("grid")?;
        let sizes = grid_field.items()?;
        if sizes.is_empty() || sizes.len() > 3 {
            return Err(grid_field.error(format!("expected 1 to 3 sizes, found {}", sizes.len())));
        }
        let mut grid = [1, 1, 1].map(Expr::from);
        for (size, field) in grid.iter_mut().zip(&sizes) {
            *size = match field.value() {
                Value::String(text) => {
                    text.parse().map_err(|e: rtc_abi::expr::ParseError| field.error(e.to_string()))?
                }
                _ => Expr::from(i64::from(field.u32()?)),
            };
        }
        let mut args = Vec::new();
        for (name, field) in root.required("args")?.members()? {
            args.push(NamedValue { name: name.to_owned(), path: field.path().to_owned(), value: value(&field)? });
        }
        let tensors = root.optional("tensors")?.map(|f| f.string().map(String::from)).transpose()?;
        Ok(LaunchFile { spec: spec.value().clone(), grid, tensors, args })
    }

    /// Launches the kernel with these tensors on the kernel's device.
    ///
    /// # Errors
    ///
    /// [`Error::LaunchFile`] with the field that does not fit the kernel or the tensors, [`Error::Runtime`] if the device
    /// fails.
    pub fn run(&self, kernel: &impl AsRef<Kernel>, tensors: &Tensors) -> Result<Outcome> {
        let kernel = kernel.as_ref();
        let grid = self.grid(kernel.metadata())?;
        let (storages, elapsed) =
            self.prepared(kernel.device(), kernel.metadata(), tensors, |args| -> Result<Duration> {
                let stream = kernel.device().default_stream();
                let start = stream.record()?;
                let launched = kernel.launch(stream, grid, args);
                launched.map_err(|error| self.name_field(error))?;
                let end = stream.record()?;
                stream.synchronize()?;
                Ok(end.elapsed_since(&start)?)
            })?;
        let elapsed = elapsed?;
        Ok(Outcome { outputs: storages.read_back(tensors)?, elapsed })
    }

    /// The same launch with one more argument: the tensor of that name, for the parameter of that name.
    #[must_use]
    pub fn with_tensor(mut self, name: &str) -> LaunchFile {
        let value = LaunchValue::Tensor(Place::whole(name));
        self.args.push(NamedValue { name: name.to_owned(), path: format!("args.{name}"), value });
        self
    }

    /// Allocates the tensors and gives the arguments for a kernel with these parameters to `f`.
    ///
    /// # Errors
    ///
    /// As for [`LaunchFile::run`] but for the launch.
    pub fn with_args<R>(
        &self,
        device: &Device,
        metadata: &Metadata,
        tensors: &Tensors,
        f: impl FnOnce(&[Arg<'_>]) -> R,
    ) -> Result<R> {
        Ok(self.prepared(device, metadata, tensors, f)?.1)
    }

    fn prepared<R>(
        &self,
        device: &Device,
        metadata: &Metadata,
        tensors: &Tensors,
        f: impl FnOnce(&[Arg<'_>]) -> R,
    ) -> Result<(Storages, R)> {
        self.check_names(metadata)?;
        let mut storages = Storages::default();
        for arg in &self.args {
            collect(&mut storages, arg, tensors)?;
        }
        storages.allocate(device, tensors)?;
        let params = metadata.visible_params().iter();
        let resolved = params.map(|param| self.resolve(param, &storages, tensors));
        let mut resolved = resolved.collect::<std::result::Result<Vec<_>, FieldError>>()?;
        let args: Vec<Arg<'_>> = resolved.iter_mut().map(Resolved::arg).collect();
        let result = f(&args);
        drop(args);
        drop(resolved);
        Ok((storages, result))
    }

    /// The sizes of the grid as they are written.
    pub fn sizes(&self) -> &[Expr; 3] {
        &self.grid
    }

    /// The sizes of the grid for a kernel with these constexprs.
    ///
    /// # Errors
    ///
    /// `grid[i]` if a size names something unknown, or is not in the range of that axis.
    pub fn grid(&self, metadata: &Metadata) -> std::result::Result<[u32; 3], FieldError> {
        let named = |name: &str| {
            let number = |value: &Value| value.as_i64().or_else(|| value.as_bool().map(i64::from));
            let given = self.args.iter().find(|arg| arg.name == name).and_then(|arg| match arg.value {
                LaunchValue::Int(value) => i64::try_from(value).ok(),
                LaunchValue::Bool(value) => Some(value.into()),
                _ => None,
            });
            let option = (name == "num_warps").then(|| i64::from(metadata.num_warps));
            given.or_else(|| metadata.constexprs.get(name).and_then(number)).or(option)
        };
        let mut grid = [1; 3];
        for (i, (size, expr)) in grid.iter_mut().zip(&self.grid).enumerate() {
            let wrong = |message: String| FieldError { path: format!("grid[{i}]"), message };
            let value = expr.eval(named).map_err(|error| wrong(error.to_string()))?;
            *size = u32::try_from(value).map_err(|_| {
                let most = rtc_runtime::Grid::MAX[i];
                wrong(format!("`{expr}` is {value}, a grid has from 0 to {most} programs along this axis"))
            })?;
        }
        Ok(grid)
    }

    /// The arguments as the functions of autotuning see them; `spec` says the types of tensors.
    pub fn host_values(&self, spec: &[ArgSpec], tensors: &Tensors) -> Vec<(String, HostValue)> {
        let kind = |name: &str| spec.iter().find(|arg| arg.name == name).map(|arg| &arg.kind);
        let given = self.args.iter().map(|arg| {
            let value = match &arg.value {
                LaunchValue::None => HostValue::Value(ConstValue::None),
                LaunchValue::Bool(value) => HostValue::Value(ConstValue::Bool(*value)),
                LaunchValue::Int(value) => HostValue::Value(ConstValue::Int(*value)),
                LaunchValue::Float(value) => HostValue::Value(ConstValue::Float(*value)),
                LaunchValue::Tensor(place) | LaunchValue::Descriptor { tensor: place, .. } => {
                    let shape = tensors.get(&place.tensor).map(|t| t.shape.iter().map(|n| *n as u64).collect());
                    let dtype = match kind(&arg.name) {
                        Some(ArgKind::Value { ty: ValueType::Pointer { pointee, .. }, .. }) => Some(*pointee),
                        Some(ArgKind::Descriptor { element, .. }) => Some(*element),
                        _ => None,
                    };
                    match (dtype, &arg.value, kind(&arg.name)) {
                        (None, ..) => HostValue::Unknown,
                        (
                            Some(dtype),
                            LaunchValue::Descriptor { .. },
                            Some(ArgKind::Descriptor { block_shape, .. }),
                        ) => HostValue::Descriptor { dtype, shape, block_shape: block_shape.clone() },
                        (Some(dtype), ..) => HostValue::Tensor { dtype, shape },
                    }
                }
                LaunchValue::Tuple(_) => HostValue::Unknown,
            };
            (arg.name.clone(), value)
        });
        let mut values: Vec<(String, HostValue)> = given.collect();
        // Constexprs stand in the spec, and only there as what they are.
        for arg in spec {
            if let ArgKind::Constexpr(value) = &arg.kind {
                values.retain(|(name, _)| *name != arg.name);
                values.push((arg.name.clone(), HostValue::Value(value.clone())));
            }
        }
        values
    }

    /// Every name of `args` must be a parameter, run-time or constexpr.
    fn check_names(&self, metadata: &Metadata) -> std::result::Result<(), FieldError> {
        let root = |p: &Param| p.name.split('.').next().unwrap_or_default().to_owned();
        let in_spec = |name: &str| self.spec_arg(name).is_some();
        for arg in &self.args {
            let known = metadata.visible_params().iter().any(|p| root(p) == arg.name)
                || metadata.constexprs.contains_key(&arg.name)
                || in_spec(&arg.name);
            if !known {
                let mut names: Vec<String> = metadata.visible_params().iter().map(root).collect();
                names.dedup();
                let message =
                    format!("kernel `{}` has no such parameter; it has {}", metadata.kernel, names.join(", "));
                return Err(FieldError { path: arg.path.clone(), message });
            }
            if let Some(built) = metadata.constexprs.get(&arg.name)
                && differs(&arg.value, built)
            {
                let message = format!(
                    "kernel `{}` was compiled for the value {built}; leave this one out, or compile for it",
                    metadata.kernel
                );
                return Err(FieldError { path: arg.path.clone(), message });
            }
        }
        Ok(())
    }

    /// The entry of the spec for a parameter.
    fn spec_arg(&self, name: &str) -> Option<&Value> {
        self.spec.get("args")?.as_array()?.iter().find(|a| a.get("name").and_then(Value::as_str) == Some(name))
    }

    /// The argument for one kernel parameter, such as `x_ptr`, `t.0`, `desc.shape.1`.
    fn resolve<'s>(
        &self,
        param: &Param,
        storages: &'s Storages,
        tensors: &Tensors,
    ) -> std::result::Result<Resolved<'s>, FieldError> {
        let mut segments = param.name.split('.');
        let root = segments.next().unwrap_or_default();
        let missing = |path: String| FieldError { path, message: format!("missing; the kernel needs a {}", param.ty) };
        let mut found = self.args.iter().find(|a| a.name == root).ok_or_else(|| missing(format!("args.{root}")))?;
        let mut spec = self.spec_arg(root);
        while let LaunchValue::Tuple(items) = &found.value {
            let Some(segment) = segments.next() else { break };
            let by_name = || {
                let fields = spec?.get("fields")?.as_array()?;
                fields.iter().position(|f| f.as_str() == Some(segment))
            };
            let index = segment.parse().ok().or_else(by_name);
            let item = index.and_then(|i: usize| Some((i, items.get(i)?)));
            let (index, item) = item.ok_or_else(|| missing(format!("{}.tuple element `{segment}`", found.path)))?;
            spec = spec.and_then(|s| s.get("tuple")?.get(index));
            found = item;
        }
        let error = |message: String| FieldError { path: found.path.clone(), message };
        match &found.value {
            LaunchValue::None => Err(error(format!("null cannot be passed as a {}", param.ty))),
            LaunchValue::Bool(v) => Ok(Resolved::Bool(*v)),
            LaunchValue::Int(0) if param.ty.is_pointer() => Ok(Resolved::Null),
            LaunchValue::Int(v) if param.ty.is_pointer() => {
                Err(error(format!("the kernel needs a {}: write {{\"tensor\": ..}} instead of {v}", param.ty)))
            }
            LaunchValue::Int(v) => Ok(Resolved::Int(*v)),
            LaunchValue::Float(v) => Ok(Resolved::Float(*v)),
            LaunchValue::Tensor(place) => {
                check_dtype(param, &place.tensor, tensors)
                    .map_err(|m| FieldError { path: format!("{}.tensor", found.path), message: m })?;
                Ok(Resolved::Memory(storages.slice(place)))
            }
            LaunchValue::Descriptor { tensor, shape, strides, block_shape, pads_nan, swizzle } => {
                if let ParamType::Descriptor { block_shape: own, .. } = &param.ty {
                    let within = |field: &str, message| {
                        Err(FieldError { path: format!("{}.descriptor.{field}", found.path), message })
                    };
                    if !block_shape.iter().copied().eq(own.iter().map(|n| i128::from(*n))) {
                        return within("block_shape", format!("the kernel was compiled for {own:?}"));
                    }
                    let own = param.tensor_map.as_ref().map(|map| map.swizzle);
                    if let (Some(own), Some(given)) = (own, swizzle)
                        && own != *given
                    {
                        return within("swizzle", format!("the kernel was compiled for {own}"));
                    }
                    if let Err(message) = check_dtype(param, &tensor.tensor, tensors) {
                        return within("tensor", message);
                    }
                    let numbers = |field: &str, list: &[i128]| {
                        let number = |n: &i128| u64::try_from(*n);
                        list.iter().map(number).collect::<std::result::Result<Vec<_>, _>>().map_err(|_| FieldError {
                            path: format!("{}.descriptor.{field}", found.path),
                            message: format!("{list:?} has a number that is negative or has more than 64 bits"),
                        })
                    };
                    let (shape, strides) = (numbers("shape", shape)?, numbers("strides", strides)?);
                    let descriptor = TensorDescriptor::new(storages.slice(tensor), &shape, &strides);
                    let descriptor = if *pads_nan { descriptor.padded_with_nan() } else { descriptor };
                    return Ok(Resolved::Descriptor(Box::new(descriptor)));
                }
                let part = segments.next().unwrap_or_default();
                let index = segments.next().and_then(|s| s.parse::<usize>().ok());
                let entry = |list: &[i128]| index.and_then(|i| list.get(i).copied()).map(Resolved::Int);
                let arg = match part {
                    "base" | "" => Some(Resolved::Memory(storages.slice(tensor))),
                    "shape" => entry(shape),
                    "strides" => entry(strides),
                    "padding" => Some(Resolved::Bool(*pads_nan)),
                    _ => None,
                };
                arg.ok_or_else(|| {
                    error(format!("the descriptor has nothing for the kernel's parameter `{}`", param.name))
                })
            }
            LaunchValue::Tuple(_) => Err(error("a tuple stands where the kernel needs one value".into())),
        }
    }

    /// An argument that does not fit is a fault of its field.
    fn name_field(&self, error: rtc_runtime::Error) -> Error {
        match error {
            rtc_runtime::Error::Argument { name, ty, message, .. }
            | rtc_runtime::Error::OutOfRange { name, ty, message, .. } => {
                let root = name.split('.').next().unwrap_or(&name);
                let path = self.args.iter().find(|a| a.name == root).map_or(String::new(), |a| a.path.clone());
                Error::LaunchFile(FieldError { path, message: format!("parameter `{name}` of type {ty}: {message}") })
            }
            other => other.into(),
        }
    }
}

/// Notes where the tensors of an argument lie.
fn collect(storages: &mut Storages, arg: &NamedValue, tensors: &Tensors) -> std::result::Result<(), FieldError> {
    match &arg.value {
        LaunchValue::Tensor(place) => storages.collect(place, arg.path.clone(), tensors),
        LaunchValue::Descriptor { tensor, .. } => storages.collect(tensor, format!("{}.descriptor", arg.path), tensors),
        LaunchValue::Tuple(items) => items.iter().try_for_each(|item| collect(storages, item, tensors)),
        _ => Ok(()),
    }
}

/// Whether a number is another one than that of the constexpr; what else a constexpr may be is only carried along.
fn differs(given: &LaunchValue, built: &Value) -> bool {
    let built = built.as_bool().map(f64::from).or_else(|| built.as_f64());
    let given = match given {
        LaunchValue::Bool(v) => f64::from(*v),
        LaunchValue::Int(v) => *v as f64,
        LaunchValue::Float(v) => *v,
        _ => return false,
    };
    built.is_some_and(|built| built != given)
}

fn value(field: &Field<'_>) -> std::result::Result<LaunchValue, FieldError> {
    Ok(match field.value() {
        Value::Null => LaunchValue::None,
        Value::Bool(v) => LaunchValue::Bool(*v),
        Value::Number(v) => match (v.as_i128(), v.as_f64()) {
            (Some(int), _) => LaunchValue::Int(int),
            (None, Some(float)) => LaunchValue::Float(float),
            (None, None) => return Err(field.expected("a number of at most 64 bits")),
        },
        Value::Object(members) if members.contains_key("tensor") => LaunchValue::Tensor(place(field)?),
        Value::Object(members) if members.len() == 1 => {
            let (kind, inner) = &field.members()?[0];
            match *kind {
                "float" => {
                    let float = inner.string()?.parse();
                    LaunchValue::Float(float.map_err(|_| inner.expected(r#"a float such as "inf", "-inf" or "nan""#))?)
                }
                "tuple" => {
                    let items = inner.items()?.into_iter().enumerate().map(|(i, f)| {
                        Ok(NamedValue { name: i.to_string(), path: f.path().to_owned(), value: value(&f)? })
                    });
                    LaunchValue::Tuple(items.collect::<std::result::Result<_, FieldError>>()?)
                }
                "descriptor" => descriptor(inner)?,
                // Values of constexprs; the spec says them, here they are only carried along.
                "dtype" | "function" | "opaque" => LaunchValue::None,
                _ => return Err(inner.error("unknown kind of argument; known are tensor, float, tuple, descriptor")),
            }
        }
        Value::Array(_) | Value::String(_) => LaunchValue::None,
        Value::Object(_) => {
            return Err(field.expected(
                r#"a number, true, false, {"tensor": ..}, {"float": ..}, {"tuple": [..]} or {"descriptor": ..}"#,
            ));
        }
    })
}

fn place(field: &Field<'_>) -> std::result::Result<Place, FieldError> {
    field.only(&["tensor", "view_of", "offset", "shape", "strides", "undefined"])?;
    let list =
        |field: Field<'_>| field.items()?.iter().map(Field::integer).collect::<std::result::Result<Vec<i128>, _>>();
    let shape = match (field.optional("shape")?, field.optional("strides")?) {
        (None, None) => None,
        (Some(shape), Some(strides)) => {
            let (sizes, steps) = (list(shape.clone())?, list(strides.clone())?);
            if sizes.len() != steps.len() {
                return Err(strides.error(format!("{} entries, `shape` has {}", steps.len(), sizes.len())));
            }
            let sizes = sizes.iter().map(|n| u64::try_from(*n)).collect::<std::result::Result<_, _>>();
            let steps = steps.iter().map(|n| i64::try_from(*n)).collect::<std::result::Result<_, _>>();
            let too_large = || shape.error("sizes and strides have at most 63 bits, sizes are not negative");
            Some((sizes.map_err(|_| too_large())?, steps.map_err(|_| too_large())?))
        }
        _ => return Err(field.error("`shape` and `strides` belong together")),
    };
    Ok(Place {
        tensor: field.required("tensor")?.string()?.to_owned(),
        view_of: field.optional("view_of")?.map(|f| f.string().map(String::from)).transpose()?,
        offset: field.optional("offset")?.map_or(Ok(0), |f| f.u64())?,
        shape,
        undefined: undefined(field)?,
    })
}

/// The uninitialized bytes of a tensor: `true` for all of its memory, or ranges `[first, end]`.
fn undefined(field: &Field<'_>) -> std::result::Result<Undefined, FieldError> {
    let Some(field) = field.optional("undefined")? else { return Ok(Undefined::Ranges(Vec::new())) };
    match field.value() {
        Value::Bool(true) => return Ok(Undefined::Whole),
        Value::Bool(false) => return Ok(Undefined::Ranges(Vec::new())),
        Value::Array(_) => {}
        _ => return Err(field.expected("true, false or a list of [first byte, end]")),
    }
    let range = |item: Field<'_>| match item.items()?.as_slice() {
        [first, end] => Ok(first.u64()?..end.u64()?),
        _ => Err(item.expected("[first byte, end]")),
    };
    Ok(Undefined::Ranges(field.items()?.into_iter().map(range).collect::<std::result::Result<_, FieldError>>()?))
}

fn descriptor(field: &Field<'_>) -> std::result::Result<LaunchValue, FieldError> {
    let known = ["tensor", "view_of", "offset", "undefined", "shape", "strides", "block_shape", "padding", "swizzle"];
    field.only(&known)?;
    let list = |name: &str| {
        field.required(name)?.items()?.iter().map(Field::integer).collect::<std::result::Result<Vec<_>, _>>()
    };
    let tensor = Place {
        tensor: field.required("tensor")?.string()?.to_owned(),
        view_of: field.optional("view_of")?.map(|f| f.string().map(String::from)).transpose()?,
        offset: field.optional("offset")?.map_or(Ok(0), |f| f.u64())?,
        shape: None,
        undefined: undefined(field)?,
    };
    let (shape, strides, block) = (list("shape")?, list("strides")?, list("block_shape")?);
    for (name, other) in [("strides", &strides), ("block_shape", &block)] {
        if other.len() != shape.len() {
            let message = format!("{} entries, `shape` has {}", other.len(), shape.len());
            return Err(field.required(name)?.error(message));
        }
    }
    let pads_nan = match field.optional("padding")? {
        None => false,
        Some(padding) => match padding.string()? {
            "zero" => false,
            "nan" => true,
            _ => return Err(padding.expected(r#""zero" or "nan""#)),
        },
    };
    let swizzle = match field.optional("swizzle")? {
        None => None,
        Some(swizzle) => match swizzle.u32()? {
            bytes @ (0 | 32 | 64 | 128) => Some(bytes),
            _ => return Err(swizzle.expected("0, 32, 64 or 128")),
        },
    };
    Ok(LaunchValue::Descriptor { tensor, shape, strides, block_shape: block, pads_nan, swizzle })
}

/// A tensor must have the element type of the pointer; the sign of integers does not matter, and bytes may stand for
/// any 8-bit type.
fn check_dtype(param: &Param, name: &str, tensors: &Tensors) -> std::result::Result<(), String> {
    let element = match &param.ty {
        ParamType::Descriptor { element, .. } => Some(*element),
        ty => ty.pointee(),
    };
    let (Some(pointee), Some(tensor)) = (element, tensors.get(name)) else {
        return Err(format!("a tensor cannot be passed as a {}", param.ty));
    };
    use Dtype::*;
    let fits = match pointee {
        DType::UInt1 | DType::Int8 | DType::UInt8 => matches!(tensor.dtype, BOOL | I8 | U8),
        DType::Int16 | DType::UInt16 => matches!(tensor.dtype, I16 | U16),
        DType::Int32 | DType::UInt32 => matches!(tensor.dtype, I32 | U32),
        DType::Int64 | DType::UInt64 => matches!(tensor.dtype, I64 | U64),
        DType::Fp16 => tensor.dtype == F16,
        DType::Bf16 => tensor.dtype == BF16,
        DType::Fp32 => tensor.dtype == F32,
        DType::Fp64 => tensor.dtype == F64,
        DType::Fp8E5 => matches!(tensor.dtype, F8_E5M2 | I8 | U8),
        DType::Fp8E4Nv => matches!(tensor.dtype, F8_E4M3 | I8 | U8),
        DType::Fp8E4B15 => matches!(tensor.dtype, I8 | U8),
        DType::Fp8E4B8 | DType::Fp8E5B16 => false,
    };
    if fits {
        Ok(())
    } else {
        Err(format!("tensor `{name}` holds {:?}, the kernel needs a {}", tensor.dtype, param.ty))
    }
}
