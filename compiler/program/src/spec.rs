//! SPEC.json: one instance of a kernel, as requested by other programs.
//!
//! The format is a contract (it changes only by adding). Every error names the field. What the fields mean stands in
//! [`rtc_abi::spec`]; the same data in one line of text is a [signature](crate::signature).
//!
//! ```
//! let spec = rtc_program::Spec::parse(r#"{
//!     "kernel": "add",
//!     "args": [{"name": "x", "type": "*fp32", "divisible_by": 16}, {"name": "BLOCK", "constexpr": 1024}],
//!     "options": {"num_warps": 8}, "arch": "sm_90a"}"#).unwrap();
//! assert_eq!(spec.options.num_warps, 8);
//! let error = rtc_program::Spec::parse(r#"{"args": [{"name": "x", "type": "fp33"}]}"#).unwrap_err();
//! assert_eq!(error.path, "args[0].type");
//! ```

use crate::{Failure, Program};
use rtc_abi::spec::{ArgKind, ArgSpec, ConstValue, LaunchOptions, Specialization};
use rtc_abi::{DType, InvalidPlan, ParamType, Structure, ValueType};
use rtc_source::Code;
use rtc_source::json_fields::{self, Field, FieldError};

/// The content of a SPEC.json.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Spec {
    /// Name of the kernel; may be left out where the file has only one.
    pub kernel: Option<String>,
    /// The arguments.
    pub args: Vec<ArgSpec>,
    /// Launch options.
    pub options: LaunchOptions,
    /// Target such as `sm_90a`.
    pub arch: Option<String>,
}

impl Spec {
    /// Reads the text of a SPEC.json.
    ///
    /// # Errors
    ///
    /// [`FieldError`] with the first field that is missing, unknown, or of another form.
    pub fn parse(text: &str) -> Result<Spec, FieldError> {
        let json = json_fields::parse(text)?;
        Spec::from_field(&Field::root(&json))
    }

    /// Reads a spec that is part of another document.
    ///
    /// # Errors
    ///
    /// As for [`Spec::parse`].
    pub fn from_field(field: &Field<'_>) -> Result<Spec, FieldError> {
        field.only(&["kernel", "args", "options", "arch"])?;
        let kernel = field.optional("kernel")?.map(|f| identifier(&f)).transpose()?;
        let mut args: Vec<ArgSpec> = Vec::new();
        if let Some(list) = field.get("args")? {
            for item in list.items()? {
                let arg = arg_spec(&item)?;
                if args.iter().any(|a| a.name == arg.name) {
                    return Err(item.required("name")?.error(format!("argument `{}` appears twice", arg.name)));
                }
                args.push(arg);
            }
        }
        let mut options = LaunchOptions::default();
        if let Some(fields) = field.optional("options")? {
            for (name, value) in fields.members()? {
                set_option(&mut options, name, &value)?;
            }
        }
        let arch = field.optional("arch")?.map(|f| f.string().map(String::from)).transpose()?;
        Ok(Spec { kernel, args, options, arch })
    }

    /// Finds the kernel in the program and checks that every argument is one of its parameters.
    ///
    /// # Errors
    ///
    /// [`Failure::Request`] if there is no such kernel or parameter, or if a parameter without a default has no argument.
    pub fn specialize(&self, program: &Program) -> Result<Specialization, Failure> {
        let kernel = program.kernel(self.kernel.as_deref())?;
        let names = || kernel.params.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ");
        for (i, arg) in self.args.iter().enumerate() {
            if !kernel.params.iter().any(|p| p.name == arg.name) {
                let close = did_you_mean(&arg.name, kernel.params.iter().map(|p| p.name.as_str()));
                let message = format!(
                    "`args[{i}].name`: kernel `{}` has no parameter `{}`{close}; it has {}",
                    kernel.name,
                    arg.name,
                    names()
                );
                return Err(Failure::request(Code::SPEC, message));
            }
        }
        let given = |name: &str| self.args.iter().any(|a| a.name == name);
        if let Some(missing) = kernel.params.iter().find(|p| !p.has_default && !given(&p.name)) {
            let message = format!(
                "`args`: nothing is said about parameter `{}` of kernel `{}`; give its type or its value",
                missing.name, kernel.name
            );
            return Err(Failure::request(Code::SPEC, message));
        }
        if let Some(arg) = self.args.iter().find(|a| {
            let is_constexpr = kernel.params.iter().any(|p| p.name == a.name && p.is_constexpr);
            is_constexpr && !matches!(a.kind, ArgKind::Constexpr(_))
        }) {
            let message = format!(
                "parameter `{}` of kernel `{}` is a constexpr: it needs a value, not the type `{}`",
                arg.name, kernel.name, arg.kind
            );
            return Err(Failure::request(Code::SPEC, message));
        }
        Ok(Specialization { kernel: kernel.name.clone(), args: self.args.clone(), options: self.options.clone() })
    }
}

/// Sets one launch option from JSON.
///
/// # Errors
///
/// [`FieldError`] for a name that no launch option has, and for a value that the option does not take.
pub fn set_option(options: &mut LaunchOptions, name: &str, field: &Field<'_>) -> Result<(), FieldError> {
    // `null` means the default, which the options already have.
    if field.value().is_null() {
        return known_option(name, field);
    }
    match name {
        "num_warps" => {
            options.num_warps = field.positive()?;
            // More than 32 read; no target has the threads for them, which is said in the words of resources.
            if !options.num_warps.is_power_of_two() || options.num_warps > 1024 {
                return Err(field.expected("a power of two from 1 to 32"));
            }
        }
        "num_stages" => options.num_stages = field.u32()?,
        "num_ctas" => {
            options.num_ctas = field.positive()?;
            if !options.num_ctas.is_power_of_two() || options.num_ctas > 16 {
                return Err(field.expected("a power of two from 1 to 16"));
            }
        }
        "maxnreg" => options.maxnreg = Some(field.positive()?),
        "enable_fp_fusion" => options.enable_fp_fusion = field.boolean()?,
        "launch_cooperative_grid" => options.launch_cooperative_grid = field.boolean()?,
        "launch_pdl" => options.launch_pdl = field.boolean()?,
        "overlap_launches" => options.overlap_launches = field.boolean()?,
        "debug" => options.debug = field.boolean()?,
        "sanitize_overflow" => options.sanitize_overflow = field.boolean()?,
        "debug_info" => options.debug_info = field.boolean()?,
        "enable_reflect_ftz" => options.enable_reflect_ftz = field.boolean()?,
        "default_dot_input_precision" => {
            let precision = field.string()?;
            if !options.allowed_dot_input_precisions.iter().any(|p| p == precision) {
                let known = options.allowed_dot_input_precisions.join(", ");
                return Err(field.expected(&format!("one of {known}")));
            }
            options.default_dot_input_precision = precision.to_owned();
        }
        "allowed_dot_input_precisions" => options.allowed_dot_input_precisions = field.strings()?,
        "max_num_imprecise_acc_default" => options.max_num_imprecise_acc_default = Some(field.u32()?),
        "warp_specialize" => options.warp_specialize = field.boolean()?,
        "structure" => {
            options.structure = field.string()?.parse().map_err(|_| field.expected(Structure::EXPECTED))?;
        }
        "plan" => {
            let plan = field.string()?.parse();
            options.plan = plan.map_err(|error: InvalidPlan| field.error(error.to_string()))?;
        }
        "max_instructions" => options.max_instructions = u64::from(field.positive()?),
        "ptx_version" => options.ptx_version = Some(field.positive()?),
        "warp_size" => {
            if field.u32()? != 32 {
                return Err(field.expected("32"));
            }
        }
        // Lists that only steer warnings, and `arch`, which the target decides.
        "supported_fp8_dtypes" | "deprecated_fp8_dot_operand_dtypes" => drop(field.strings()?),
        "arch" => drop(field.string()?),
        "extern_libs" | "ptx_options" | "ir_override" | "instrumentation_mode" => {
            let empty = match field.value() {
                serde_json::Value::String(text) => text.is_empty(),
                serde_json::Value::Array(items) => items.is_empty(),
                serde_json::Value::Object(members) => members.is_empty(),
                _ => false,
            };
            if !empty {
                return Err(field.error("not supported by rtc; leave it out"));
            }
        }
        _ => return known_option(name, field),
    }
    Ok(())
}

/// The launch options, by name.
pub const OPTION_NAMES: &[&str] = &[
    "num_warps",
    "num_stages",
    "num_ctas",
    "maxnreg",
    "enable_fp_fusion",
    "launch_cooperative_grid",
    "launch_pdl",
    "overlap_launches",
    "debug",
    "sanitize_overflow",
    "debug_info",
    "enable_reflect_ftz",
    "default_dot_input_precision",
    "allowed_dot_input_precisions",
    "max_num_imprecise_acc_default",
    "ptx_version",
    "warp_specialize",
    "structure",
    "plan",
    "max_instructions",
    "warp_size",
    "supported_fp8_dtypes",
    "deprecated_fp8_dot_operand_dtypes",
    "arch",
    "extern_libs",
    "ptx_options",
    "ir_override",
    "instrumentation_mode",
];

/// The launch options that Triton does not have, so that programs written for it can use their names for parameters: a keyword
/// argument that names a parameter of the kernel never sets one of these. It does set any other option of its name, as in Triton.
pub const RTC_OPTION_NAMES: &[&str] = &["overlap_launches", "warp_specialize", "structure", "plan", "max_instructions"];

/// `, did you mean ..` where a known name is close.
pub(crate) fn did_you_mean<'s>(name: &str, known: impl IntoIterator<Item = &'s str>) -> String {
    rtc_sema::suggest(name, known).map_or(String::new(), |close| format!(", did you mean `{close}`?"))
}

fn known_option(name: &str, field: &Field<'_>) -> Result<(), FieldError> {
    if OPTION_NAMES.contains(&name) {
        return Ok(());
    }
    let close = did_you_mean(name, OPTION_NAMES.iter().copied());
    Err(field.error(format!("unknown option `{name}`{close}; known are {}", OPTION_NAMES.join(", "))))
}

fn arg_spec(field: &Field<'_>) -> Result<ArgSpec, FieldError> {
    let name = identifier(&field.required("name")?)?;
    Ok(ArgSpec { name, kind: arg_kind(field, true)? })
}

/// `{"type": ..}`, `{"constexpr": ..}` or `{"tuple": [..]}`; `named`: the object also holds `name`.
fn arg_kind(field: &Field<'_>, named: bool) -> Result<ArgKind, FieldError> {
    let (ty, constexpr, tuple) = (field.get("type")?, field.get("constexpr")?, field.get("tuple")?);
    let allow = |rest: &[&str]| {
        let names: Vec<&str> = named.then_some("name").into_iter().chain(rest.iter().copied()).collect();
        field.only(&names)
    };
    match (ty, constexpr, tuple) {
        (Some(ty), None, None) => {
            allow(&["type", "divisible_by"])?;
            run_time(field, &ty)
        }
        (None, Some(value), None) => {
            allow(&["constexpr"])?;
            Ok(ArgKind::Constexpr(const_value(&value)?))
        }
        (None, None, Some(items)) => {
            allow(&["tuple", "fields"])?;
            let kinds = items.items()?.iter().map(|f| arg_kind(f, false)).collect::<Result<Vec<_>, _>>()?;
            let fields = tuple_fields(field, kinds.len())?;
            Ok(ArgKind::Tuple { items: kinds, fields })
        }
        (None, None, None) => Err(field.error("needs `type`, `constexpr` or `tuple`")),
        _ => Err(field.error("only one of `type`, `constexpr` and `tuple` can stand here")),
    }
}

fn run_time(field: &Field<'_>, ty: &Field<'_>) -> Result<ArgKind, FieldError> {
    let divisible_by = field.optional("divisible_by")?;
    let kind = run_time_type(ty.string()?).map_err(|message| ty.error(message))?;
    match (kind, divisible_by) {
        (ArgKind::Value { ty, .. }, Some(by)) => {
            let factor = by.positive()?;
            if !takes_divisibility(ty) {
                return Err(
                    by.error(format!("a value of type `{ty}` has no divisibility; only integers and pointers do"))
                );
            }
            Ok(ArgKind::Value { ty, divisible_by: Some(factor) })
        }
        (kind, None) => Ok(kind),
        (_, Some(by)) => Err(by.error("a descriptor has no divisibility")),
    }
}

/// Whether divisibility is a property of values of this type.
pub(crate) fn takes_divisibility(ty: ValueType) -> bool {
    match ty {
        ValueType::Scalar(dtype) => dtype.is_integer() && dtype != DType::UInt1,
        ValueType::Pointer { .. } => true,
    }
}

/// Reads the type of a run-time argument: a scalar, a pointer or `tensordesc<fp16[128,64]>`.
pub(crate) fn run_time_type(text: &str) -> Result<ArgKind, String> {
    match text.parse() {
        Ok(ParamType::Value(ty)) => Ok(ArgKind::Value { ty, divisible_by: None }),
        Ok(ParamType::Descriptor { element, block_shape }) => Ok(ArgKind::Descriptor { element, block_shape }),
        Err(_) if text.trim().starts_with("tensordesc_im2col") => Err(format!(
            "`{text}` is a descriptor of Gluon, for convolutions; only kernels of Gluon take one, which are not supported"
        )),
        Ok(ParamType::TensorMap) | Err(_) if text.trim().starts_with("tensordesc<") => Err(format!(
            "`{text}` is not a descriptor type; write it like `tensordesc<fp16[128,64]>` with 1 to 5 sizes"
        )),
        Ok(ParamType::TensorMap) | Err(_) => Err(format!(
            "`{text}` is not a type; types are i1 to i64, u8 to u64, fp16, bf16, fp32, fp64, fp8e5, \
             fp8e4nv, fp8e4b15, pointers such as *fp32, and tensordesc<..>"
        )),
    }
}

fn const_value(field: &Field<'_>) -> Result<ConstValue, FieldError> {
    use serde_json::Value;
    Ok(match field.value() {
        Value::Null => ConstValue::None,
        Value::Bool(v) => ConstValue::Bool(*v),
        Value::String(v) => ConstValue::Str(v.clone()),
        Value::Number(v) => match (v.as_i128(), v.as_f64()) {
            (Some(int), _) => ConstValue::Int(int),
            (None, Some(float)) => ConstValue::Float(float),
            (None, None) => return Err(field.expected("a number of at most 64 bits")),
        },
        Value::Array(_) => ConstValue::Tuple { items: const_items(field)?, fields: None },
        Value::Object(_) => return const_object(field),
    })
}

fn const_items(field: &Field<'_>) -> Result<Vec<ConstValue>, FieldError> {
    field.items()?.iter().map(const_value).collect()
}

fn const_object(field: &Field<'_>) -> Result<ConstValue, FieldError> {
    field.only(&["dtype", "function", "float", "tuple", "fields", "opaque"])?;
    if let Some(tuple) = field.get("tuple")? {
        field.only(&["tuple", "fields"])?;
        let items = const_items(&tuple)?;
        let fields = tuple_fields(field, items.len())?;
        return Ok(ConstValue::Tuple { items, fields });
    }
    let members = field.members()?;
    let [(name, value)] = members.as_slice() else {
        return Err(field.expected(r#"{"dtype": ..}, {"function": ..}, {"float": ..} or {"tuple": [..]}"#));
    };
    match *name {
        "dtype" => {
            let text = value.string()?;
            let ty = ValueType::parse(text).ok_or_else(|| value.error(format!("`{text}` is not a type")))?;
            Ok(ConstValue::DType(ty))
        }
        "function" => Ok(ConstValue::Function(identifier(value)?)),
        "float" => float_text(value).map(ConstValue::Float),
        "opaque" => Ok(ConstValue::Opaque(value.string()?.to_owned())),
        _ => Err(value.error("can only stand beside `tuple`")),
    }
}

fn tuple_fields(field: &Field<'_>, len: usize) -> Result<Option<Vec<String>>, FieldError> {
    let Some(fields) = field.optional("fields")? else { return Ok(None) };
    let names = fields.items()?.iter().map(identifier).collect::<Result<Vec<_>, _>>()?;
    if names.len() != len {
        return Err(fields.error(format!("{} names for {len} elements", names.len())));
    }
    Ok(Some(names))
}

/// The text of `{"float": "inf"}`: what JSON's own numbers cannot say.
fn float_text(field: &Field<'_>) -> Result<f64, FieldError> {
    match field.value() {
        serde_json::Value::String(text) => {
            text.parse().map_err(|_| field.expected(r#"a float such as "inf", "-inf", "nan" or "1.5""#))
        }
        serde_json::Value::Number(number) => number.as_f64().ok_or_else(|| field.expected("a float")),
        _ => Err(field.expected(r#"a float such as "inf", "-inf" or "nan""#)),
    }
}

fn identifier(field: &Field<'_>) -> Result<String, FieldError> {
    let text = field.string()?;
    if is_identifier(text) { Ok(text.to_owned()) } else { Err(field.expected("a name of letters, digits and `_`")) }
}

/// Whether the text is a Python identifier; letters of any script count.
pub(crate) fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c == '_' || c.is_alphabetic()) && chars.all(|c| c == '_' || c.is_alphanumeric())
}

/// Reads a compile-time value as SPEC.json writes it.
///
/// # Errors
///
/// [`FieldError`] for a value of another form.
pub fn const_from_json(value: &serde_json::Value) -> Result<ConstValue, FieldError> {
    const_value(&Field::root(value))
}

/// A compile-time value as SPEC.json writes it.
pub fn const_to_json(value: &ConstValue) -> serde_json::Value {
    use serde_json::{Value, json};
    match value {
        ConstValue::Int(v) => match (i64::try_from(*v), u64::try_from(*v)) {
            (Ok(v), _) => json!(v),
            (_, Ok(v)) => json!(v),
            _ => json!(v.to_string()),
        },
        ConstValue::Float(v) if v.is_finite() => json!(v),
        ConstValue::Float(v) if v.is_nan() => json!({"float": "nan"}),
        ConstValue::Float(v) => json!({"float": if *v > 0.0 { "inf" } else { "-inf" }}),
        ConstValue::Bool(v) => json!(v),
        ConstValue::Str(v) => json!(v),
        ConstValue::None => Value::Null,
        ConstValue::Tuple { items, fields: None } => items.iter().map(const_to_json).collect(),
        ConstValue::Tuple { items, fields: Some(names) } => {
            json!({"tuple": items.iter().map(const_to_json).collect::<Vec<_>>(), "fields": names})
        }
        ConstValue::DType(ty) => json!({"dtype": ty.to_string()}),
        ConstValue::Function(name) => json!({"function": name}),
        ConstValue::Opaque(text) => json!({"opaque": text}),
    }
}
