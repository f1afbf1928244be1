//! `@triton.autotune` and `@triton.heuristics` above a kernel, evaluated for the arguments of a launch.
//!
//! The decorators are plain Python. The evaluator of constants computes values from constants, arguments, dtypes and
//! the target; anything else is an error at its location.

use std::rc::Rc;

use rtc_abi::DType;
use rtc_abi::spec::{ConstValue, LaunchOptions};
use rtc_abi::tuning::{Choice, HostValue, Tuning};
use rtc_ir::{Kernel, KernelOptions};
use rtc_source::{Code, Diagnostic, Diagnostics, FileId, Severity, SourceMap, Span};
use rtc_syntax::ast::{self, ExprKind, Ident, Symbol};

use crate::builtins::CONFIG_FIELDS;
use crate::const_eval::{as_float, as_int};
use crate::emitter::{Emitter, HookEffects, R, TargetInfo};
use crate::evaluator::Evaluator;
use crate::hooks;
use crate::modules::ModuleId;
use crate::suggest::suggest;
use crate::types::{ElemTy, TyVal};
use crate::values::{Arg, CallArgs, Const, Function, Tuple, Val, decorator_name};
use crate::world::{ModuleAst, World};

/// The names of launch options that a configuration or a heuristic sets.
const OPTIONS: &[&str] = &["num_warps", "num_stages", "num_ctas", "maxnreg"];
/// Parameters of other targets, which their configurations name.
const FOREIGN: &[&str] = &["waves_per_eu", "matrix_instr_nonkdim", "kpack"];

/// The configurations in the decorators of a kernel. With `args`, the arguments of a launch by name, configurations are
/// pruned and heuristics computed; without, the configurations are returned as written.
pub fn tuning(
    sources: &SourceMap,
    modules: &[ModuleAst<'_>],
    kernel: &str,
    args: Option<&[(String, HostValue)]>,
    target: TargetInfo,
) -> Result<Tuning, Diagnostics> {
    let world = World::new(modules);
    let launch = LaunchOptions::default();
    let options = KernelOptions {
        num_warps: launch.num_warps,
        given_warps: None,
        num_stages: launch.num_stages,
        num_ctas: launch.num_ctas,
        maxnreg: None,
        fp_fusion: true,
    };
    let emitter = Emitter::new(sources, target, &launch, Kernel::new(kernel, options));
    let mut cx = Evaluator::new(&world, emitter);
    cx.reads_host = true;
    cx.push_host_frame(ModuleId(0), "module".into());
    let result = match world.function(kernel) {
        Some(f) => read(&mut cx, f, args),
        None => Ok(Tuning { choices: vec![Choice::default()], ..Tuning::default() }),
    };
    let errors: Diagnostics =
        std::mem::take(&mut cx.emitter.diagnostics).into_iter().filter(|d| d.severity == Severity::Error).collect();
    match result {
        Ok(tuning) if errors.is_empty() => Ok(tuning),
        _ => Err(errors),
    }
}

/// A configuration while it is worked on.
struct Entry<'a> {
    choice: Choice,
    /// As functions of the source see it.
    val: Val<'a>,
    /// Its constexprs, as values.
    kwargs: Vec<(Val<'a>, Val<'a>)>,
    hook: Option<Arg<'a>>,
}

fn read<'a>(cx: &mut Evaluator<'a>, f: Function<'a>, args: Option<&[(String, HostValue)]>) -> R<Tuning> {
    let mut tuning = Tuning::default();
    let mut entries = vec![Entry { choice: Choice::default(), val: Val::NONE, kwargs: Vec::new(), hook: None }];
    let given = match args {
        Some(args) => Some(host_values(cx, f.module, args)?),
        None => None,
    };
    for decorator in &f.def.decorators {
        let ExprKind::Call { args: written, .. } = &decorator.kind else { continue };
        match decorator_name(decorator) {
            Some("autotune") => {
                entries = autotune(cx, f, written, decorator.span, given.as_deref(), &mut tuning)?;
            }
            Some("heuristics") => {
                if let Some(given) = &given {
                    let values = arguments(cx, written, &["values"], decorator.span)?;
                    let Some(values) = &values[0] else {
                        return cx.error(Code::WRONG_ARGUMENTS, decorator.span, "`heuristics` needs a dictionary", "");
                    };
                    for entry in &mut entries {
                        heuristics(cx, f, values, given, entry)?;
                    }
                }
            }
            _ => {}
        }
    }
    tuning.choices = entries.into_iter().map(|entry| entry.choice).collect();
    Ok(tuning)
}

/// The arguments of a decorator, in the order of `names`.
fn arguments<'a>(
    cx: &mut Evaluator<'a>,
    written: &'a [ast::Arg],
    names: &[&str],
    span: Span,
) -> R<Vec<Option<Arg<'a>>>> {
    let mut found = vec![None; names.len()];
    for (i, arg) in written.iter().enumerate() {
        let at = match &arg.name {
            Some(name) => names.iter().position(|n| *n == &*name.text),
            None => Some(i).filter(|i| *i < names.len()),
        };
        let Some(at) = at.filter(|_| arg.star == ast::Star::None) else {
            let known = names.join(", ");
            let message = "this argument of the decorator is not known";
            return cx.error(Code::WRONG_ARGUMENTS, arg.span, message, &format!("it takes {known}"));
        };
        cx.span = span;
        found[at] = Some(cx.eval_arg(&arg.value)?);
    }
    Ok(found)
}

fn autotune<'a>(
    cx: &mut Evaluator<'a>,
    f: Function<'a>,
    written: &'a [ast::Arg],
    span: Span,
    given: Option<&[(Symbol, Val<'a>)]>,
    tuning: &mut Tuning,
) -> R<Vec<Entry<'a>>> {
    const NAMES: &[&str] = &[
        "configs",
        "key",
        "prune_configs_by",
        "reset_to_zero",
        "restore_value",
        "pre_hook",
        "post_hook",
        "warmup",
        "rep",
        "use_cuda_graph",
        "do_bench",
        "cache_results",
    ];
    let values = arguments(cx, written, NAMES, span)?;
    let value = |name: &str| {
        let at = NAMES.iter().position(|n| *n == name)?;
        values[at].clone().filter(|arg| !arg.val.is_none())
    };
    let Some(configs) = value("configs") else {
        return cx.error(Code::WRONG_ARGUMENTS, span, "`autotune` needs a list of configurations", "");
    };
    if let Some(hook) = value("post_hook") {
        return cx.error(
            Code::UNSUPPORTED,
            hook.span,
            "`post_hook` is not supported",
            "name tensors in `restore_value` to have them put back after each run",
        );
    }
    tuning.is_tuned = true;
    tuning.key = names(cx, value("key"), "key")?;
    tuning.reset_to_zero = names(cx, value("reset_to_zero"), "reset_to_zero")?;
    tuning.restore_value = names(cx, value("restore_value"), "restore_value")?;
    let hook_of_all = value("pre_hook");
    if let Some(hook) = &hook_of_all {
        hooks::check(cx, hook)?;
    }
    tuning.warmup = milliseconds(cx, value("warmup"))?;
    tuning.rep = milliseconds(cx, value("rep"))?;

    let Val::Tuple(list) = &configs.val else {
        let text = configs.val.describe();
        return cx.error(Code::TYPE_MISMATCH, configs.span, format!("`configs` must be a list, not {text}"), "");
    };
    tuning.written = list.items.len();
    let mut entries = Vec::new();
    for item in &list.items {
        entries.push(entry(cx, f, item, configs.span)?);
    }
    if entries.is_empty() {
        // As in Triton: the defaults.
        let options = [("num_warps".into(), 4), ("num_stages".into(), 3), ("num_ctas".into(), 1)];
        let choice = Choice { options: options.into(), ..Choice::default() };
        entries.push(Entry { choice, val: Val::NONE, kwargs: Vec::new(), hook: None });
    }
    let Some(given) = given else { return Ok(entries) };
    if let Some(prune) = value("prune_configs_by") {
        entries = pruned(cx, f, &prune, given, entries)?;
    }
    for i in 0..entries.len() {
        if let Some(hook) = &hook_of_all {
            let effects = run_hook(cx, f, hook, given, &entries[i])?;
            let new =
                effects.zeroed.into_iter().filter(|name| !tuning.reset_to_zero.contains(name)).collect::<Vec<_>>();
            tuning.reset_to_zero.extend(new);
            entries[i].choice.blocks = effects.blocks;
        }
        if let Some(hook) = entries[i].hook.clone() {
            let effects = run_hook(cx, f, &hook, given, &entries[i])?;
            let choice = &mut entries[i].choice;
            choice.zeroed = effects.zeroed;
            choice.blocks.retain(|(name, _)| effects.blocks.iter().all(|(own, _)| own != name));
            choice.blocks.extend(effects.blocks);
        }
    }
    Ok(entries)
}

/// A list of names of arguments.
fn names<'a>(cx: &mut Evaluator<'a>, arg: Option<Arg<'a>>, what: &str) -> R<Vec<String>> {
    let Some(arg) = arg else { return Ok(Vec::new()) };
    let text = |val: &Val<'_>| match val {
        Val::Const(Const::Str(s)) => Some(s.to_string()),
        _ => None,
    };
    let list = match &arg.val {
        Val::Tuple(list) => list.items.iter().map(text).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    match list {
        Some(list) => Ok(list),
        None => {
            let message = format!("`{what}` must be a list of names of arguments");
            cx.error(Code::TYPE_MISMATCH, arg.span, message, "write `[\"n_elements\"]`")
        }
    }
}

fn milliseconds<'a>(cx: &mut Evaluator<'a>, arg: Option<Arg<'a>>) -> R<Option<f64>> {
    let Some(arg) = arg else { return Ok(None) };
    match &arg.val {
        Val::Const(c) if as_float(c).is_some_and(|ms| ms.is_finite() && ms >= 0.0) => Ok(as_float(c)),
        _ => cx.error(Code::TYPE_MISMATCH, arg.span, "this must be a number of milliseconds", ""),
    }
}

/// The value of a field of a configuration.
fn field<'v, 'a>(config: &'v Tuple<'a>, name: &str) -> Option<&'v Val<'a>> {
    let fields = config.fields.as_ref()?;
    if fields.len() != CONFIG_FIELDS.len() || fields.iter().zip(CONFIG_FIELDS).any(|(a, b)| &**a != *b) {
        return None;
    }
    config.items.get(CONFIG_FIELDS.iter().position(|f| *f == name)?)
}

fn int_of(val: &Val<'_>) -> Option<u32> {
    match val {
        Val::Const(c) => as_int(c).and_then(|i| u32::try_from(i).ok()),
        _ => None,
    }
}

/// The location of a configuration.
fn place(config: &Tuple<'_>) -> Option<Span> {
    let Val::Tuple(parts) = field(config, "<span>")? else { return None };
    let [file, start, end] = parts.items.iter().map(int_of).collect::<Option<Vec<_>>>()?[..] else { return None };
    Some(Span { file: FileId(file), start, end })
}

fn entry<'a>(cx: &mut Evaluator<'a>, f: Function<'a>, val: &Val<'a>, list: Span) -> R<Entry<'a>> {
    let config = match val {
        Val::Tuple(config) => Some(config),
        _ => None,
    };
    let kwargs = config.and_then(|c| field(c, "kwargs"));
    let (Some(config), Some(Val::Dict(kwargs))) = (config, kwargs) else {
        let text = val.describe();
        let message = format!("`configs` holds {text}, which is no configuration");
        return cx.error(Code::TYPE_MISMATCH, list, message, "write `triton.Config({...}, num_warps=4)`");
    };
    let span = place(config).unwrap_or(list);
    let mut choice = Choice::default();
    for (key, value) in kwargs.iter() {
        let Val::Const(Const::Str(name)) = key else { continue };
        if FOREIGN.contains(&&**name) {
            continue;
        }
        if OPTIONS.contains(&&**name) {
            let message = format!("`{name}` stands among the parameters of a configuration");
            let help = format!("pass it beside them: `triton.Config({{...}}, {name}=...)`");
            return cx.error(Code::WRONG_ARGUMENTS, span, message, &help);
        }
        choice.values.push((name.to_string(), parameter(cx, f, name, value, span)?));
    }
    for name in OPTIONS {
        if let Some(value) = field(config, name).and_then(int_of) {
            choice.options.push(((*name).into(), value));
        }
    }
    let hook = field(config, "pre_hook").filter(|hook| !hook.is_none()).map(|hook| Arg::new(hook.clone(), span));
    if let Some(hook) = &hook {
        hooks::check(cx, hook)?;
    }
    Ok(Entry { choice, val: val.clone(), kwargs: kwargs.to_vec(), hook })
}

/// Checks that a configuration or heuristic sets a parameter of the kernel.
fn parameter<'a>(cx: &mut Evaluator<'a>, f: Function<'a>, name: &str, value: &Val<'a>, span: Span) -> R<ConstValue> {
    if !f.def.params.iter().any(|p| &*p.name.text == name) {
        let kernel = &f.def.name;
        let known = f.def.params.iter().map(|p| &*p.name.text);
        let help = match suggest(name, known) {
            Some(close) => format!("did you mean `{close}`?"),
            None => "leave it out".into(),
        };
        let d = Diagnostic::error(Code::WRONG_ARGUMENTS, span, format!("`{}` has no parameter `{name}`", kernel.text))
            .label(kernel.span, "the kernel")
            .help(help);
        return cx.fail(d);
    }
    match constant(value) {
        Some(value) => Ok(value),
        None => {
            let text = value.describe();
            let message = format!("the parameter `{name}` gets {text}, which is no constant for a kernel");
            cx.error(Code::EXPECTED_CONSTEXPR, span, message, "")
        }
    }
}

fn constant(val: &Val<'_>) -> Option<ConstValue> {
    Some(match val {
        Val::Const(Const::Int(i)) => ConstValue::Int(*i),
        Val::Const(Const::Float(x)) => ConstValue::Float(*x),
        Val::Const(Const::Bool(b)) => ConstValue::Bool(*b),
        Val::Const(Const::Str(s)) => ConstValue::Str(s.to_string()),
        Val::Const(Const::None) => ConstValue::None,
        Val::Type(TyVal::Elem(ElemTy::Num(dtype))) => ConstValue::DType(rtc_abi::ValueType::Scalar(*dtype)),
        Val::Function(f) => ConstValue::Function(f.def.name.text.to_string()),
        Val::Tuple(t) => ConstValue::Tuple {
            items: t.items.iter().map(constant).collect::<Option<_>>()?,
            fields: t.fields.as_ref().map(|f| f.iter().map(ToString::to_string).collect()),
        },
        _ => return None,
    })
}

/// Drops configurations as `prune_configs_by` says.
fn pruned<'a>(
    cx: &mut Evaluator<'a>,
    f: Function<'a>,
    prune: &Arg<'a>,
    given: &[(Symbol, Val<'a>)],
    mut entries: Vec<Entry<'a>>,
) -> R<Vec<Entry<'a>>> {
    let Val::Dict(how) = &prune.val else {
        return cx.error(Code::TYPE_MISMATCH, prune.span, "`prune_configs_by` must be a dictionary", "");
    };
    let part = |name: &str| {
        how.iter()
            .find(|(key, _)| matches!(key, Val::Const(Const::Str(s)) if **s == *name))
            .map(|(_, value)| Arg::new(value.clone(), prune.span))
            .filter(|arg| !arg.val.is_none())
    };
    let written = entries.len();
    if let Some(early) = part("early_config_prune") {
        let list = Val::tuple(entries.iter().map(|e| e.val.clone()).collect());
        let mut call = CallArgs { positional: vec![Arg::new(list, prune.span)], ..CallArgs::default() };
        call.positional.push(Arg::new(dictionary(given, &[]), prune.span));
        call.named = keywords(given.iter().filter(|(name, _)| is_constexpr_parameter(f, name)), prune.span);
        let Val::Tuple(kept) = cx.call_value(&early.val, early.span, call, prune.span)? else {
            return cx.error(Code::TYPE_MISMATCH, prune.span, "`early_config_prune` must give a list", "");
        };
        if kept.items.is_empty() {
            let message = "`early_config_prune` leaves no configuration for these arguments";
            return cx.error(Code::BAD_VALUE, prune.span, message, "keep at least one");
        }
        let mut left = Vec::new();
        for item in &kept.items {
            left.push(entry(cx, f, item, prune.span)?);
        }
        entries = left;
    }
    let Some(model) = part("perf_model") else { return Ok(entries) };
    let top_k = match part("top_k").map(|arg| arg.val) {
        None => written,
        Some(Val::Const(Const::Int(k))) if k > 0 => usize::try_from(k).unwrap_or(written),
        Some(Val::Const(Const::Float(share))) if share > 0.0 && share <= 1.0 => (written as f64 * share) as usize,
        Some(other) => {
            let text = other.describe();
            let message = format!("`top_k` must be a number of configurations or a share of at most 1.0, not {text}");
            return cx.error(Code::BAD_VALUE, prune.span, message, "");
        }
    };
    for entry in &mut entries {
        let options = entry.choice.options.iter().map(|(name, value)| (name.as_str().into(), Val::int(*value)));
        let options: Vec<(Symbol, Val<'a>)> = options.collect();
        let own = entry.kwargs.iter().filter_map(|(key, value)| match key {
            Val::Const(Const::Str(name)) => Some((name.clone(), value.clone())),
            _ => None,
        });
        let mut all: Vec<(Symbol, Val<'a>)> = given.to_vec();
        for (name, value) in own.chain(options) {
            match all.iter_mut().find(|(n, _)| *n == name) {
                Some(known) => known.1 = value,
                None => all.push((name, value)),
            }
        }
        let call = CallArgs { named: keywords(all.iter(), prune.span), ..CallArgs::default() };
        let time = cx.call_value(&model.val, model.span, call, prune.span)?;
        let time = match &time {
            Val::Const(c) => as_float(c),
            _ => None,
        };
        let Some(time) = time else {
            return cx.error(Code::TYPE_MISMATCH, prune.span, "`perf_model` must give a number", "");
        };
        entry.choice.expected = Some(time);
    }
    if entries.len() > top_k {
        entries.sort_by(|a, b| a.choice.expected.partial_cmp(&b.choice.expected).unwrap_or(std::cmp::Ordering::Equal));
        entries.truncate(top_k.max(1));
    }
    Ok(entries)
}

/// Computes what `heuristics` says, in order; later functions see earlier values.
fn heuristics<'a>(
    cx: &mut Evaluator<'a>,
    f: Function<'a>,
    values: &Arg<'a>,
    given: &[(Symbol, Val<'a>)],
    entry: &mut Entry<'a>,
) -> R<()> {
    let Val::Dict(functions) = &values.val else {
        let message = "`heuristics` takes a dictionary of functions";
        return cx.error(Code::TYPE_MISMATCH, values.span, message, "write `{\"EVEN\": lambda args: ...}`");
    };
    for (key, function) in functions.iter() {
        let Val::Const(Const::Str(name)) = key else {
            return cx.error(Code::TYPE_MISMATCH, values.span, "the keys of `heuristics` are names of parameters", "");
        };
        let options = entry.choice.options.iter();
        let mut known = entry.kwargs.clone();
        known.extend(options.map(|(name, value)| (Val::str(name), Val::int(*value))));
        let args = Arg::new(dictionary(given, &known), values.span);
        let call = CallArgs { positional: vec![args], ..CallArgs::default() };
        let val = cx.call_value(function, values.span, call, values.span)?;
        if OPTIONS.contains(&&**name) {
            let Some(value) = int_of(&val) else {
                return cx.error(Code::TYPE_MISMATCH, values.span, format!("`{name}` must be a number"), "");
            };
            entry.choice.options.retain(|(n, _)| **n != **name);
            entry.choice.options.push((name.to_string(), value));
            continue;
        }
        let value = parameter(cx, f, name, &val, values.span)?;
        entry.choice.values.retain(|(n, _)| **n != **name);
        entry.choice.values.push((name.to_string(), value));
        entry.kwargs.retain(|(k, _)| !k.identical(key));
        entry.kwargs.push((key.clone(), val));
    }
    Ok(())
}

/// Arguments as a dictionary; `more` counts more.
fn dictionary<'a>(given: &[(Symbol, Val<'a>)], more: &[(Val<'a>, Val<'a>)]) -> Val<'a> {
    let mut entries: Vec<(Val<'a>, Val<'a>)> =
        given.iter().map(|(name, val)| (Val::Const(Const::Str(name.clone())), val.clone())).collect();
    entries.retain(|(key, _)| more.iter().all(|(k, _)| !k.identical(key)));
    entries.extend(more.iter().cloned());
    Val::Dict(Rc::new(entries))
}

fn keywords<'v, 'a: 'v>(values: impl Iterator<Item = &'v (Symbol, Val<'a>)>, span: Span) -> Vec<(Ident, Arg<'a>)> {
    values.map(|(name, val)| (Ident { span, text: name.clone() }, Arg::new(val.clone(), span))).collect()
}

fn is_constexpr_parameter(f: Function<'_>, name: &str) -> bool {
    let param = f.def.params.iter().find(|p| *p.name.text == *name);
    param.and_then(|p| p.annotation.as_ref()).is_some_and(crate::values::is_constexpr)
}

/// The arguments of the launch as functions of the source see them. Those that are not known are left out.
fn host_values<'a>(
    cx: &mut Evaluator<'a>,
    module: ModuleId,
    args: &[(String, HostValue)],
) -> R<Vec<(Symbol, Val<'a>)>> {
    let mut out = Vec::new();
    for (name, value) in args {
        let val = match value {
            HostValue::Value(value) => crate::entry::constant(cx, module, value, Span::default())?,
            HostValue::Tensor { dtype, shape } => tensor(name, *dtype, shape.as_deref()),
            HostValue::Descriptor { dtype, shape, block_shape } => {
                descriptor(name, *dtype, shape.as_deref(), block_shape)
            }
            HostValue::Unknown => continue,
        };
        out.push((Symbol::from(name.as_str()), val));
    }
    Ok(out)
}

/// A tensor: its attributes, and methods that give a number.
fn tensor<'a>(name: &str, dtype: DType, shape: Option<&[u64]>) -> Val<'a> {
    let ty = Val::Type(TyVal::Elem(ElemTy::Num(dtype)));
    let number = |value: i128| {
        let int = crate::declared::find(crate::declared::Namespace::Python, "int");
        int.map_or(Val::NONE, |int| Val::Method(Rc::new((Val::int(value), Val::Builtin(int)))))
    };
    let bytes = i128::from(dtype.bytes());
    let mut fields = hooks::fields(name);
    fields.extend([("dtype", ty), ("itemsize", Val::int(bytes)), ("element_size", number(bytes))]);
    if let Some(shape) = shape {
        fields.push(("shape", Val::tuple(shape.iter().map(|n| Val::int(*n)).collect())));
        fields.push(("ndim", Val::int(shape.len() as i128)));
        fields.push(("dim", number(shape.len() as i128)));
        fields.push(("numel", number(shape.iter().map(|n| i128::from(*n)).product())));
    }
    hooks::record(fields)
}

/// A tensor descriptor.
fn descriptor<'a>(name: &str, dtype: DType, shape: Option<&[u64]>, block: &[u32]) -> Val<'a> {
    let numbers = |list: &mut dyn Iterator<Item = i128>| Val::tuple(list.map(Val::int).collect());
    let mut fields = hooks::fields(name);
    fields.push(("base", tensor(name, dtype, shape)));
    fields.push(("block_shape", numbers(&mut block.iter().map(|n| i128::from(*n)))));
    fields.extend(shape.map(|shape| ("shape", numbers(&mut shape.iter().map(|n| i128::from(*n))))));
    hooks::record(fields)
}

/// The effects of a configuration's hooks for these arguments; of unknown arguments only the names are used.
fn run_hook<'a>(
    cx: &mut Evaluator<'a>,
    f: Function<'a>,
    hook: &Arg<'a>,
    given: &[(Symbol, Val<'a>)],
    entry: &Entry<'a>,
) -> R<HookEffects> {
    let mut more = entry.kwargs.clone();
    more.extend(entry.choice.options.iter().map(|(name, value)| (Val::str(name), Val::int(*value))));
    let is_known = |name: &Symbol| {
        given.iter().any(|(known, _)| known == name) || more.iter().any(|(key, _)| key.identical(&Val::str(name)))
    };
    let params = f.def.params.iter().map(|p| &p.name.text);
    let unknown = params.filter(|name| !is_known(name) && !is_constexpr_parameter(f, name));
    let unknown: Vec<(Symbol, Val<'a>)> = unknown.map(|name| (name.clone(), hooks::unknown(name))).collect();
    let all: Vec<(Symbol, Val<'a>)> = given.iter().cloned().chain(unknown).collect();
    hooks::effects(cx, hook, dictionary(&all, &more))
}
