//! Functions that the host code of autotuning calls: `triton.Config`, products of lists, methods of dictionaries,
//! queries about the target.

use std::rc::Rc;

use rtc_source::Code;

use super::host::items;
use super::{Args, Row, row};
use crate::const_eval::{as_float, as_int};
use crate::cx::Cx;
use crate::emitter::R;
use crate::values::{Arg, Const, Tuple, Val};

/// The fields of a configuration; the last holds its place in the source.
pub(crate) const CONFIG_FIELDS: &[&str] =
    &["kwargs", "num_warps", "num_stages", "num_ctas", "maxnreg", "pre_hook", "<span>"];

/// Methods of dictionaries.
pub(crate) const DICTIONARY_METHODS: &[&str] = &["get", "items", "keys", "values"];

/// The most elements that a product of lists may have.
const MAX_PRODUCT: usize = 100_000;

pub(super) const HOST: &[Row] = &[
    row("filter", |cx, args| {
        let mut kept = Vec::new();
        for item in items(cx, &args.arg("items"))? {
            let answer = apply(cx, args, &item)?;
            if cx.truth(&answer, args.span)? {
                kept.push(item);
            }
        }
        Ok(Val::tuple(kept))
    }),
    row("map", |cx, args| {
        let mut results = Vec::new();
        for item in items(cx, &args.arg("items"))? {
            results.push(apply(cx, args, &item)?);
        }
        Ok(Val::tuple(results))
    }),
];

pub(super) const TABLE: &[Row] = &[
    row("Config", |cx, args| {
        let kwargs = args.arg("kwargs");
        let Val::Dict(entries) = &kwargs.val else {
            let message = format!("{} must be a dictionary of parameters", args.what("kwargs"));
            return cx.error(Code::TYPE_MISMATCH, kwargs.span, message, "write `{\"BLOCK\": 128}`");
        };
        if entries.iter().any(|(key, _)| !matches!(key, Val::Const(Const::Str(_)))) {
            return cx.error(
                Code::TYPE_MISMATCH,
                kwargs.span,
                "the keys of a configuration are names of parameters",
                "write them as strings: `{\"BLOCK\": 128}`",
            );
        }
        if let Some(text) = args.given("ir_override").filter(|arg| !arg.val.is_none()) {
            return cx.error(Code::UNSUPPORTED, text.span, "`ir_override` is not supported", "leave it out");
        }
        let mut fields = vec![kwargs.val.clone()];
        let options = [
            ("num_warps", args.int(cx, "num_warps")?, 1, 32),
            ("num_stages", args.int(cx, "num_stages")?, 0, 64),
            ("num_ctas", args.int(cx, "num_ctas")?, 1, 16),
        ];
        for (name, value, least, most) in options {
            let is_power = name == "num_stages" || value.count_ones() == 1;
            if value < least || value > most || !is_power {
                let what = if name == "num_stages" { "an integer" } else { "a power of two" };
                let message = format!("`{name}` must be {what} from {least} to {most}, not {value}");
                let at = args.given(name).map_or(args.span, |arg| arg.span);
                return cx.error(Code::BAD_VALUE, at, message, "");
            }
            fields.push(Val::int(value));
        }
        let maxnreg = args.arg("maxnreg").val;
        if !maxnreg.is_none()
            && !matches!(&maxnreg, Val::Const(c) if as_int(c).is_some_and(|n| (16..=255).contains(&n)))
        {
            let at = args.arg("maxnreg").span;
            return cx.error(Code::BAD_VALUE, at, "`maxnreg` must be a number of registers from 16 to 255", "");
        }
        fields.push(maxnreg);
        fields.push(args.arg("pre_hook").val);
        let span = args.span;
        fields.push(Val::tuple([span.file.0, span.start, span.end].map(Val::int).to_vec()));
        Ok(record(CONFIG_FIELDS, fields))
    }),
    row("product", |cx, args| {
        let mut rows: Vec<Vec<Val<'_>>> = vec![Vec::new()];
        for arg in args.rest("items") {
            let column = items(cx, arg)?;
            if rows.len().saturating_mul(column.len()) > MAX_PRODUCT {
                let message = format!("the product has more than {MAX_PRODUCT} elements");
                return cx.error(Code::OUT_OF_RESOURCES, args.span, message, "");
            }
            let longer = |row: &Vec<_>| {
                let row = row.clone();
                column.iter().map(move |item| row.iter().cloned().chain([item.clone()]).collect()).collect::<Vec<_>>()
            };
            rows = rows.iter().flat_map(longer).collect();
        }
        Ok(Val::tuple(rows.into_iter().map(Val::tuple).collect()))
    }),
    row("get_current_target", |cx, _| {
        let capability = cx.target.target.capability;
        Ok(record(&["backend", "arch", "warp_size"], vec![Val::str("cuda"), Val::int(capability), Val::int(32)]))
    }),
    row("get_device_capability", |cx, args| {
        args.ignore("device");
        let capability = cx.target.target.capability;
        Ok(Val::tuple(vec![Val::int(capability / 10), Val::int(capability % 10)]))
    }),
    row("is_available", |_, _| Ok(Val::bool(true))),
    row("getenv", |_, args| {
        // The compilation does not depend on the environment.
        args.ignore("name");
        Ok(args.arg("default").val)
    }),
    row("get", |_, args| {
        let key = args.arg("key").val;
        let found = entries(args).iter().find(|(known, _)| known.identical(&key)).map(|(_, value)| value.clone());
        Ok(found.unwrap_or_else(|| args.arg("default").val))
    }),
    row("items", |_, args| {
        let pairs = entries(args);
        Ok(Val::tuple(pairs.iter().map(|(key, value)| Val::tuple(vec![key.clone(), value.clone()])).collect()))
    }),
    row("zero_", |cx, args| zeroed(cx, args)),
    row("fill_", |cx, args| {
        let value = args.arg("value");
        match &value.val {
            Val::Const(c) if as_float(c) == Some(0.0) => zeroed(cx, args),
            _ => cx.error(Code::UNSUPPORTED, value.span, "a hook can only fill a tensor with zeros", "write `zero_()`"),
        }
    }),
    row("TensorDescriptor", |cx, args| {
        args.ignore("base");
        args.ignore("shape");
        args.ignore("strides");
        args.ignore("block_shape");
        args.ignore("padding");
        let message = "descriptors are made by the host code of a launch, which is not executed";
        cx.error(Code::UNSUPPORTED, args.span, message, "")
    }),
    row("keys", |_, args| Ok(Val::tuple(entries(args).iter().map(|(key, _)| key.clone()).collect()))),
    row("values", |_, args| Ok(Val::tuple(entries(args).iter().map(|(_, value)| value.clone()).collect()))),
];

/// Notes that a hook zeroes a tensor.
fn zeroed<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let name = args.arg("self").val;
    match (&mut cx.hook, &name) {
        (Some(effects), Val::Const(Const::Str(name))) => {
            if !effects.zeroed.iter().any(|known| **known == **name) {
                effects.zeroed.push(name.to_string());
            }
            Ok(Val::NONE)
        }
        _ => cx.error(Code::UNSUPPORTED, args.span, "only a hook can zero tensors", "name it in `reset_to_zero`"),
    }
}

/// Calls the function on an item; `None` means the item itself.
fn apply<'a>(cx: &mut Cx<'a>, args: &Args<'a>, item: &Val<'a>) -> R<Val<'a>> {
    let function = args.arg("function");
    if function.val.is_none() {
        return Ok(item.clone());
    }
    cx.call_positional(&function.val, vec![Arg::new(item.clone(), args.span)], args.span)
}

/// The entries of the dictionary that a method is called on.
fn entries<'a>(args: &Args<'a>) -> Rc<Vec<(Val<'a>, Val<'a>)>> {
    match args.arg("self").val {
        Val::Dict(entries) => entries,
        _ => Rc::default(),
    }
}

/// A value with named fields.
fn record<'a>(fields: &[&str], items: Vec<Val<'a>>) -> Val<'a> {
    let fields = fields.iter().map(|name| (*name).into()).collect();
    Val::Tuple(Rc::new(Tuple { items, fields: Some(fields), class: None }))
}
