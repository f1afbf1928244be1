//! The kernel function: its parameters become run-time values or constants, its body is run.

use std::rc::Rc;

use rtc_abi::{DType, ValueType};
use rtc_ir::{Kernel, KernelOptions, OpKind, Sites, Type};
use rtc_source::{Code, Diagnostic, Diagnostics, Severity, SourceMap, Span};
use rtc_syntax::ast::{Param, Symbol};

use crate::emitter::{Emitter, R, TargetInfo};
use crate::evaluator::Evaluator;
use crate::facts::{Fact, Facts};
use crate::frames::Frame;
use crate::modules::ModuleId;
use crate::spec::{ArgKind, ConstValue, Specialization};
use crate::stmt::Todo;
use crate::suggest::suggest;
use crate::types::{ElemTy, TyVal, scalar_shape};
use crate::values::{Const, Function, FunctionKind, Padding, Tensor, Tuple, Val, is_constexpr};
use crate::world::{ModuleAst, World};

/// A kernel in phase `Tile`, with warnings and output of its analysis.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The kernel.
    pub kernel: Kernel,
    /// Places in the source that lints of the kernel point at.
    pub sites: Sites,
    /// Warnings.
    pub warnings: Diagnostics,
    /// The output of `static_print`, line by line.
    pub prints: Vec<String>,
}

/// Compiles the kernel that `spec` describes to the tile IR.
///
/// The first of `modules` holds the kernel, the others can be imported. All errors are returned, in the order in which
/// they were found.
pub fn compile_kernel(
    sources: &SourceMap,
    modules: &[ModuleAst<'_>],
    spec: &Specialization,
    target: TargetInfo,
) -> Result<Analysis, Diagnostics> {
    let world = World::new(modules);
    let emitter = Emitter::new(sources, target, &spec.options, empty_kernel(spec));
    let mut cx = Evaluator::new(&world, emitter);
    let outcome = run(&mut cx, spec);
    let Emitter { kernel, lint_sites: sites, diagnostics, prints, .. } = cx.emitter;
    let (errors, warnings): (Diagnostics, Diagnostics) =
        diagnostics.into_iter().partition(|d| d.severity == Severity::Error);
    match outcome {
        Ok(()) if errors.is_empty() => Ok(Analysis { kernel, sites, warnings, prints }),
        _ => Err(errors.into_iter().chain(warnings).collect()),
    }
}

/// The result of [`inspect_kernel`].
#[derive(Clone, Debug)]
pub struct Inspection {
    /// Facts about the expressions that were evaluated, in the order of their places.
    pub facts: Vec<Fact>,
    /// Errors, warnings and remarks, in the order in which they were found.
    pub diagnostics: Diagnostics,
    /// The kernel with the places that lints point at; `None` if there were errors or unknown arguments.
    pub kernel: Option<(Kernel, Sites)>,
    /// The output of `static_print`, line by line.
    pub prints: Vec<String>,
}

/// Analyses a kernel for an editor: as [`compile_kernel`], but with partial results for a kernel with errors. An argument
/// that `spec` does not have is unknown, and expressions that depend on it are left out without a diagnostic.
pub fn inspect_kernel(
    sources: &SourceMap,
    modules: &[ModuleAst<'_>],
    spec: &Specialization,
    target: TargetInfo,
) -> Inspection {
    let world = World::new(modules);
    let mut emitter = Emitter::new(sources, target, &spec.options, empty_kernel(spec));
    emitter.facts = Some(Facts::default());
    let mut cx = Evaluator::new(&world, emitter);
    let outcome = run(&mut cx, spec);
    let Emitter { kernel, lint_sites: sites, diagnostics, prints, facts, .. } = cx.emitter;
    let facts = facts.unwrap_or_default();
    let is_whole = outcome.is_ok() && !facts.unknown && diagnostics.iter().all(|d| d.severity != Severity::Error);
    Inspection { facts: facts.finish(), diagnostics, kernel: is_whole.then_some((kernel, sites)), prints }
}

fn empty_kernel(spec: &Specialization) -> Kernel {
    let options = KernelOptions {
        num_warps: spec.options.num_warps,
        given_warps: None,
        num_stages: spec.options.num_stages,
        num_ctas: spec.options.num_ctas,
        maxnreg: spec.options.maxnreg,
        fp_fusion: spec.options.enable_fp_fusion,
    };
    Kernel::new(spec.kernel.clone(), options)
}

fn run<'a>(cx: &mut Evaluator<'a>, spec: &Specialization) -> R<()> {
    cx.push_host_frame(ModuleId(0), "module".into());
    let Some(f) = cx.world.function(&spec.kernel) else {
        let names = cx.world.kernel_names();
        let mut d =
            Diagnostic::error(Code::UNDEFINED_NAME, Span::default(), format!("there is no kernel `{}`", spec.kernel));
        if let Some(close) = suggest(&spec.kernel, names.iter().copied()) {
            d = d.help(format!("did you mean `{close}`?"));
        } else if !names.is_empty() {
            d = d.help(format!("the file has {}", names.join(", ")));
        }
        return cx.fail(d);
    };
    let name_span = f.def.name.span;
    cx.span = name_span;
    if f.kind != FunctionKind::Jit {
        let d = Diagnostic::error(Code::NOT_CALLABLE, name_span, format!("`{}` is not a kernel", spec.kernel))
            .help("decorate it with `@triton.jit`");
        return cx.fail(d);
    }
    cx.check_decorators(f)?;
    for arg in &spec.args {
        if !f.def.params.iter().any(|p| *p.name.text == arg.name) {
            let names = f.def.params.iter().map(|p| &*p.name.text);
            let help = match suggest(&arg.name, names) {
                Some(close) => format!("did you mean `{close}`?"),
                None => "the signature names an argument that the kernel does not take".into(),
            };
            let message = format!("`{}` has no parameter `{}`", spec.kernel, arg.name);
            return cx.error(Code::WRONG_ARGUMENTS, name_span, message, &help);
        }
    }
    let mut bound = Vec::new();
    for param in &f.def.params {
        let val = match parameter(cx, spec, f, param) {
            Ok(val) => val,
            // The rest of the kernel is still analysed.
            Err(_) if cx.facts.is_some() => Val::Error,
            Err(fault) => return Err(fault),
        };
        if let (Val::Error, Some(facts)) = (&val, &mut cx.emitter.facts) {
            facts.unknown = true;
        }
        cx.note_fact(param.name.span, &val);
        bound.push((param.name.text.clone(), val, param.span));
    }
    cx.frames.push(Frame {
        module: f.module,
        moment: None,
        name: f.def.name.text.clone(),
        def: Some(f.def),
        scope: Default::default(),
        host: false,
        library: None,
        call: None,
        caller: None,
        loops: 0,
        branches: 0,
        static_loops: 0,
        failed: false,
    });
    for (name, val, span) in bound {
        cx.bind(&name, val, span);
    }
    cx.exec(Todo::new(&f.def.body), true);
    if cx.has_errors() {
        return Err(crate::emitter::Fault);
    }
    cx.span = name_span;
    cx.block = cx.kernel.body();
    cx.build(OpKind::Ret {}, &[], &[], &[], &[], &[])?;
    Ok(())
}

fn parameter<'a>(cx: &mut Evaluator<'a>, spec: &Specialization, f: Function<'a>, param: &'a Param) -> R<Val<'a>> {
    let name = &param.name;
    let Some(arg) = spec.arg(&name.text) else {
        return match &param.default {
            Some(default) => {
                let moment = cx.world.moment_of(f.module, f.def);
                Ok(cx.eval_at(f.module, moment, default)?.into_constexpr())
            }
            None if cx.facts.is_some() => Ok(Val::Error),
            None => {
                let message = format!("nothing is known of the argument `{}` of `{}`", name.text, spec.kernel);
                cx.error(
                    Code::WRONG_ARGUMENTS,
                    name.span,
                    message,
                    "name its type or value in the signature, for example `i32` or `1024`",
                )
            }
        };
    };
    let constexpr = param.annotation.as_ref().is_some_and(is_constexpr);
    if constexpr && !matches!(arg.kind, ArgKind::Constexpr(_)) {
        let message = format!("`{}` is a constexpr and needs a value, not the type {}", name.text, arg.kind);
        return cx.error(
            Code::EXPECTED_CONSTEXPR,
            name.span,
            message,
            "give a number, string, bool, None, dtype or function",
        );
    }
    argument(cx, f.module, &name.text, &arg.kind, name.span)
}

/// The value that a parameter, or an element of a tuple parameter, has in the kernel.
fn argument<'a>(cx: &mut Evaluator<'a>, module: ModuleId, name: &str, kind: &ArgKind, span: Span) -> R<Val<'a>> {
    match kind {
        ArgKind::Value { ty, divisible_by } => {
            run_time(cx, name.to_string(), *ty, divisible_by.unwrap_or(1)).map(Val::Tensor)
        }
        ArgKind::Constexpr(value) => constant(cx, module, value, span),
        ArgKind::Tuple { items, fields } => {
            let mut vals = Vec::new();
            for (i, item) in items.iter().enumerate() {
                let part = fields.as_ref().and_then(|f| f.get(i)).cloned().unwrap_or_else(|| i.to_string());
                vals.push(argument(cx, module, &format!("{name}.{part}"), item, span)?);
            }
            Ok(tuple(vals, fields.as_deref()))
        }
        ArgKind::Descriptor { element, block_shape } => descriptor(cx, name, *element, block_shape, span),
    }
}

fn run_time<'a>(cx: &mut Evaluator<'a>, name: String, ty: ValueType, divisible_by: u32) -> R<Tensor> {
    let elem = ElemTy::from(ty);
    let ir = cx.ir_elem(elem)?;
    let value = cx.kernel.add_param(name, Type::Scalar(ir), ty, divisible_by);
    Ok(Tensor { value, elem, shape: scalar_shape() })
}

fn descriptor<'a>(cx: &mut Evaluator<'a>, name: &str, element: DType, block_shape: &[u32], span: Span) -> R<Val<'a>> {
    let dims: Vec<i128> = block_shape.iter().map(|d| i128::from(*d)).collect();
    let block = cx.shape(&dims, span)?;
    let pointer = ValueType::Pointer { pointee: element, is_const: false };
    let base = run_time(cx, format!("{name}.base"), pointer, 16)?;
    let mut shape = Vec::new();
    for i in 0..block.rank() {
        shape.push(run_time(cx, format!("{name}.shape.{i}"), ValueType::Scalar(DType::Int32), 1)?);
    }
    let mut strides = Vec::new();
    // The last stride is 1; the others are multiples of 16 bytes.
    let step = (16 / (element.bits() / 8).max(1)).max(1);
    for i in 0..block.rank() {
        let divisible = if i + 1 == block.rank() { 1 } else { step };
        strides.push(run_time(cx, format!("{name}.strides.{i}"), ValueType::Scalar(DType::Int64), divisible)?);
    }
    let flag = run_time(cx, format!("{name}.padding"), ValueType::Scalar(DType::UInt1), 1)?;
    let (padding, nan) = if element.is_integer() { (Padding::Zero, None) } else { (Padding::Run, Some(flag)) };
    strides.pop();
    let desc = cx.describe(base, &shape, &strides, block, padding, nan)?;
    cx.kernel.name_value(desc.value, name);
    Ok(Val::Descriptor(desc))
}

fn tuple<'a>(items: Vec<Val<'a>>, fields: Option<&[String]>) -> Val<'a> {
    let fields = fields.map(|f| f.iter().map(|s| Symbol::from(s.as_str())).collect());
    Val::Tuple(Rc::new(Tuple { items, fields, class: None }))
}

pub(crate) fn constant<'a>(cx: &mut Evaluator<'a>, module: ModuleId, value: &ConstValue, span: Span) -> R<Val<'a>> {
    Ok(match value {
        ConstValue::Int(i) => Val::int(*i),
        ConstValue::Float(x) => Val::Const(Const::Float(*x)),
        ConstValue::Bool(b) => Val::bool(*b),
        ConstValue::Str(s) => Val::str(s),
        ConstValue::None => Val::NONE,
        ConstValue::DType(ty) => Val::Type(TyVal::Elem((*ty).into())),
        ConstValue::Opaque(text) => Val::Opaque(text.as_str().into()),
        ConstValue::Tuple { items, fields } => {
            let mut vals = Vec::new();
            for item in items {
                vals.push(constant(cx, module, item, span)?);
            }
            tuple(vals, fields.as_deref())
        }
        ConstValue::Function(name) => {
            let name: Symbol = name.as_str().into();
            let language = crate::modules::ModuleRef::Language;
            let found = match cx.global(module, &name)? {
                Some(val) => Some(val),
                None => cx.member_of(&language, &name)?,
            };
            match found {
                Some(val) => val.into_constexpr(),
                None => {
                    let message = format!("there is no function `{name}` to pass as a constexpr");
                    return cx.error(
                        Code::UNDEFINED_NAME,
                        span,
                        message,
                        "functions are looked up in the kernel's file",
                    );
                }
            }
        }
    })
}
