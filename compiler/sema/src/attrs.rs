//! Attributes and methods of values.

use std::rc::Rc;

use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::{StmtKind, Symbol};

use crate::builtins::DICTIONARY_METHODS;
use crate::counterparts;
use crate::declared::{self, Namespace};
use crate::emitter::R;
use crate::evaluator::Evaluator;
use crate::suggest::suggest;
use crate::types::{ElemTy, TyVal, float_format};
use crate::values::{Arg, Const, FunctionKind, Padding, Tensor, Val};

/// Functions that can be called on a block or scalar as a method.
pub(crate) const METHODS: &[&str] = &[
    "to",
    "cast",
    "abs",
    "exp",
    "exp2",
    "log",
    "log2",
    "sin",
    "cos",
    "sqrt",
    "sqrt_rn",
    "rsqrt",
    "erf",
    "floor",
    "ceil",
    "sigmoid",
    "softmax",
    "cdiv",
    "broadcast_to",
    "trans",
    "permute",
    "reshape",
    "view",
    "ravel",
    "expand_dims",
    "split",
    "item",
    "sum",
    "max",
    "min",
    "argmax",
    "argmin",
    "xor_sum",
    "reduce_or",
    "reduce",
    "associative_scan",
    "cumsum",
    "cumprod",
    "flip",
    "gather",
    "histogram",
    "sort",
    "store",
    "advance",
    "atomic_add",
    "atomic_max",
    "atomic_min",
    "atomic_and",
    "atomic_or",
    "atomic_xor",
    "atomic_xchg",
    "atomic_cas",
    "atomic_load",
    "atomic_store",
    "atomic_poll",
    "logical_and",
    "logical_or",
    "tanh",
];

/// Attributes of a type that are called.
const PREDICATES: &[&str] = &[
    "is_fp8",
    "is_fp8e4nv",
    "is_fp8e4b8",
    "is_fp8e4b15",
    "is_fp8e5",
    "is_fp8e5b16",
    "is_fp16",
    "is_bf16",
    "is_fp32",
    "is_fp64",
    "is_floating",
    "is_standard_floating",
    "is_int",
    "is_int_signed",
    "is_int_unsigned",
    "is_bool",
    "is_int1",
    "is_int8",
    "is_int16",
    "is_int32",
    "is_int64",
    "is_uint8",
    "is_uint16",
    "is_uint32",
    "is_uint64",
    "is_ptr",
    "is_block",
    "is_const",
    "is_void",
    "get_block_shapes",
];

impl<'a> Evaluator<'a> {
    /// `value.name`.
    pub(crate) fn attribute_of(&mut self, value: &Arg<'a>, name: &Symbol, span: Span) -> R<Val<'a>> {
        let found = match &value.val {
            Val::Module(m) => {
                let m = m.clone();
                return match self.member_of(&m, name)? {
                    Some(val) => Ok(val),
                    None => self.no_member(&m, name, span),
                };
            }
            Val::Tensor(t) => return self.tensor_attribute(*t, value, name, span),
            // Constants come bare or as constexprs; both are the same here.
            Val::Type(_) | Val::Function(_) | Val::Builtin(_) | Val::Lambda(_) if &**name == "value" => {
                Some(value.val.clone())
            }
            Val::Type(t) => self.type_attribute(*t, value, name),
            Val::Tuple(t) => {
                let index = t.fields.as_ref().and_then(|f| f.iter().position(|x| x == name));
                match (index, t.class) {
                    (Some(i), _) => t.items.get(i).cloned(),
                    (None, None) if &**name == "type" && value.val.is_constant() => Some(Val::Type(TyVal::Constexpr)),
                    (None, _) if &**name == "value" && value.val.is_constant() => Some(value.val.clone()),
                    (None, Some((class, module))) => return self.class_method(value, class, module, name, span),
                    _ => None,
                }
            }
            Val::Const(c) => match &**name {
                "value" => Some(value.val.clone()),
                "to" | "cast" => self.method(value, name)?,
                // The value of a Python number's attribute, as a constant of the front end.
                "type" => Some(Val::Type(TyVal::Constexpr)),
                "dtype" => {
                    let dtype = crate::promote::const_dtype(c);
                    dtype.map(|d| Val::Type(TyVal::Elem(ElemTy::Num(d))))
                }
                "bit_length" => declared::find(Namespace::Constant, name).map(|b| bound(value, Val::Builtin(b))),
                "shape" => Some(Val::tuple(Vec::new())),
                _ => None,
            },
            Val::Dict(_) if self.host() && DICTIONARY_METHODS.contains(&&**name) => {
                declared::find(Namespace::Tuning, name).map(|b| bound(value, Val::Builtin(b)))
            }
            Val::BlockPtr(p) => match &**name {
                "dtype" | "type" => Some(Val::Type(TyVal::Block(p.pointee(), p.block))),
                "shape" | "block_shape" => Some(Val::sizes(p.block)),
                "advance" | "store" => self.method(value, name)?,
                _ => None,
            },
            Val::Descriptor(d) => match &**name {
                "dtype" => Some(Val::Type(TyVal::Elem(d.pointee()))),
                "type" | "block_type" => Some(Val::Type(TyVal::Block(d.pointee(), d.block))),
                "shape" => Some(self.descriptor_shape(*d)?),
                "strides" => Some(self.descriptor_strides(*d)?),
                "block_shape" => Some(Val::sizes(d.block)),
                "padding" => Some(Val::str(if d.padding == Padding::Nan { "nan" } else { "zero" })),
                _ => declared::find(Namespace::Descriptor, name).map(|b| bound(value, Val::Builtin(b))),
            },
            Val::Function(_) | Val::Builtin(_) | Val::Lambda(_) if &**name == "type" => {
                Some(Val::Type(TyVal::Constexpr))
            }
            Val::Function(f) if matches!(&**name, "fn" | "__name__") => Some(match &**name {
                "fn" => value.val.clone(),
                _ => Val::str(&f.def.name.text),
            }),
            Val::Class(class, module) => return self.class_attribute(class, *module, name, span),
            Val::Opaque(text) => Some(Val::Opaque(format!("{text}.{name}").into())),
            _ => None,
        };
        match found {
            Some(val) => Ok(val),
            None => self.no_attribute(value, name, span),
        }
    }

    fn no_attribute(&mut self, value: &Arg<'a>, name: &str, span: Span) -> R<Val<'a>> {
        let text = value.val.describe();
        let known: Vec<&str> = match &value.val {
            Val::Tensor(_) => METHODS.iter().chain(&["dtype", "type", "shape", "numel", "T"]).copied().collect(),
            Val::Type(_) => {
                let names =
                    ["element_ty", "scalar", "primitive_bitwidth", "itemsize", "int_bitwidth", "int_signedness"];
                PREDICATES.iter().copied().chain(names).collect()
            }
            Val::Tuple(t) => t.fields.iter().flat_map(|f| f.iter().map(|s| &**s)).collect(),
            Val::Descriptor(_) => {
                vec!["load", "store", "shape", "strides", "block_shape", "dtype", "gather", "scatter"]
            }
            _ => Vec::new(),
        };
        if self.emitter.hook.is_some() && crate::hooks::name_of(&value.val).is_some() {
            let message = format!("a hook cannot use `{name}` of an argument");
            let help = "a hook can zero tensors, `args[\"name\"].zero_()`, and set `block_shape` of descriptors";
            return self.error(Code::UNSUPPORTED, span, message, help);
        }
        let mut d = Diagnostic::error(Code::UNKNOWN_ATTRIBUTE, span, format!("{text} has no attribute `{name}`"))
            .primary("not found")
            .label(value.span, format!("this is {text}"));
        let free = self.member_of(&crate::modules::ModuleRef::Language, &name.into())?;
        if let (Val::Tensor(_), Some(instead)) = (&value.val, counterparts::of_method(name)) {
            d = d.help(instead);
        } else if let Some(close) = suggest(name, known) {
            d = d.help(format!("did you mean `.{close}`?"));
            if self.source_text(span) == Some(name) {
                d = d.edit(span, close);
            }
        } else if matches!((&value.val, &free), (Val::Tensor(_), Some(Val::Builtin(_) | Val::Function(_)))) {
            d = d.help(format!("it is a function, not a method: write `tl.{name}(x, ...)`"));
        } else if let (Val::Const(Const::Int(_) | Const::Float(_) | Const::Bool(_)), Val::Const(_)) =
            (&value.val, &value.val)
        {
            d = d.help("this number is known while compiling; `.to(dtype)` makes it a run-time value");
        } else if let (Val::Builtin(b), "x" | "y" | "z") = (&value.val, name) {
            d = d.help(format!(
                "call it with the axis: `tl.{}({})`",
                b.name,
                if name == "x" { 0 } else { 1 + usize::from(name == "z") }
            ));
        } else if let Val::Const(Const::Str(_)) = &value.val {
            d = d.help("strings have no methods in kernels: compare them with `==`, or prepare them in the host code");
        } else if let (Val::Tuple(_), "append" | "extend" | "insert" | "pop" | "remove") = (&value.val, name) {
            d = d.help("tuples and lists do not change in kernels: write `t = t + (x,)`");
        } else if let Val::Tensor(_) = &value.val {
            d = d.help("`docs/language/functions` lists the functions; those of blocks can be called as methods");
        }
        self.fail(d)
    }

    /// The function called `name` of the language with `value` as its first argument.
    fn method(&mut self, value: &Arg<'a>, name: &Symbol) -> R<Option<Val<'a>>> {
        let callee: Symbol = if &**name == "to" { "cast".into() } else { name.clone() };
        let callee = self.member_of(&crate::modules::ModuleRef::Language, &callee)?;
        Ok(callee.map(|f| bound(value, f)))
    }

    fn tensor_attribute(&mut self, t: Tensor, value: &Arg<'a>, name: &Symbol, span: Span) -> R<Val<'a>> {
        let ty = if t.shape.rank() == 0 { TyVal::Elem(t.elem) } else { TyVal::Block(t.elem, t.shape) };
        Ok(match &**name {
            "dtype" => Val::Type(TyVal::Elem(t.elem)),
            "type" => Val::Type(ty),
            "value" if self.declared.contains(&t.value) => Val::Tensor(t),
            "shape" => Val::sizes(t.shape),
            "numel" => Val::int(i128::from(t.shape.numel())),
            "T" => {
                if t.shape.rank() != 2 {
                    let d = Diagnostic::error(
                        Code::BAD_SHAPE,
                        span,
                        format!("`.T` works on blocks with two dimensions, not on {t}"),
                    )
                    .label(value.span, format!("this is {t}"))
                    .help("write `tl.permute(x, dims)` to reorder dimensions");
                    return self.fail(d);
                }
                Val::Tensor(self.permute(t, &[1, 0])?)
            }
            // The front end's conversion hook, called by code that may get either.
            "__class__" | "handle" => return self.no_attribute(value, name, span),
            n if METHODS.contains(&n) => match self.method(value, name)? {
                Some(method) => method,
                None => return self.no_attribute(value, name, span),
            },
            _ => return self.no_attribute(value, name, span),
        })
    }

    fn type_attribute(&mut self, t: TyVal, value: &Arg<'a>, name: &str) -> Option<Val<'a>> {
        let elem = t.scalar();
        let num = elem.and_then(ElemTy::num);
        let int = |x: u32| Some(Val::int(x));
        match name {
            "scalar" => elem.map(|e| Val::Type(TyVal::Elem(e))),
            "element_ty" => match t {
                TyVal::Block(e, _) => Some(Val::Type(TyVal::Elem(e))),
                TyVal::Elem(e) => e.pointee().map(|e| Val::Type(TyVal::Elem(e))),
                _ => None,
            },
            "shape" => match t {
                TyVal::Block(_, s) => Some(Val::sizes(s)),
                TyVal::Elem(_) => Some(Val::tuple(Vec::new())),
                _ => None,
            },
            "numel" => match t {
                TyVal::Block(_, s) => Some(Val::int(i128::from(s.numel()))),
                _ => None,
            },
            "name" => elem.map(|e| Val::str(&e.to_string())),
            "primitive_bitwidth" => elem.and_then(|e| int(e.bits())),
            "itemsize" => elem.and_then(|e| int(e.bits().div_ceil(8))),
            "int_bitwidth" => num.filter(|d| d.is_integer()).and_then(|d| int(d.bits())),
            "int_signedness" => {
                num.filter(|d| d.is_integer()).map(|d| Val::str(if d.is_signed() { "SIGNED" } else { "UNSIGNED" }))
            }
            "fp_mantissa_width" => num.and_then(float_format).and_then(|(bits, _)| int(bits)),
            "exponent_bias" => num.and_then(float_format).and_then(|(_, bias)| int(bias)),
            "type" => Some(Val::Type(TyVal::Constexpr)),
            "const" => elem.and_then(ElemTy::ptr).map(|p| Val::bool(p.is_const)),
            "address_space" => elem.and_then(ElemTy::ptr).map(|_| Val::int(1)),
            n if PREDICATES.contains(&n) => declared::find(Namespace::Type, n).map(|b| bound(value, Val::Builtin(b))),
            _ => None,
        }
    }

    /// A function in the body of a class, called on one of its values.
    fn class_method(
        &mut self,
        value: &Arg<'a>,
        class: &'a rtc_syntax::ast::ClassDef,
        module: crate::modules::ModuleId,
        name: &Symbol,
        span: Span,
    ) -> R<Val<'a>> {
        match self.class_function(class, module, name) {
            Some(f) => Ok(bound(value, f)),
            None => self.no_attribute(value, name, span),
        }
    }

    fn class_attribute(
        &mut self,
        class: &'a rtc_syntax::ast::ClassDef,
        module: crate::modules::ModuleId,
        name: &Symbol,
        span: Span,
    ) -> R<Val<'a>> {
        if let Some(f) = self.class_function(class, module, name) {
            return Ok(f);
        }
        if let Some(val) = self.class_constant(class, module, name, span)? {
            return Ok(val);
        }
        let val = Arg::new(Val::Class(class, module), span);
        self.no_attribute(&val, name, span)
    }

    fn class_function(
        &mut self,
        class: &'a rtc_syntax::ast::ClassDef,
        module: crate::modules::ModuleId,
        name: &str,
    ) -> Option<Val<'a>> {
        class.body.iter().find_map(|stmt| match &stmt.kind {
            StmtKind::FunctionDef(def) if &*def.name.text == name => {
                let kind = if def.is_jit() { FunctionKind::Jit } else { FunctionKind::Constexpr };
                Some(Val::Function(crate::values::Function { def, module, kind, noinline: false }))
            }
            _ => None,
        })
    }
}

fn bound<'a>(value: &Arg<'a>, callee: Val<'a>) -> Val<'a> {
    Val::Method(Rc::new((value.val.clone(), callee)))
}
