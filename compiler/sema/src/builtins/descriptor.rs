//! Tensor descriptors: windows of a fixed block shape into a tensor with known base, sizes and strides.
//!
//! This file has the types and the diagnostics; passes decide how memory is accessed. Elements outside are zero or NaN
//! when read and are dropped when written; the last stride is always 1.

use rtc_ir::{OpKind, Shape, Value};
use rtc_source::{Code, Diagnostic, Span};

use super::atomics::{Action, long_name};
use super::memory::stored_as;
use super::{Args, Row, row};
use crate::cx::Cx;
use crate::emitter::{Fault, R};
use crate::spec::DType;
use crate::types::{ElemTy, dtype_name};
use crate::values::{Arg, Const, Descriptor, Padding, Tensor, Val};

pub(super) const TABLE: &[Row] = &[
    row("make_tensor_descriptor", make_tensor_descriptor),
    row("load_tensor_descriptor", load),
    row("store_tensor_descriptor", store),
];

/// Methods of a descriptor, which is their first argument.
pub(super) const METHODS: &[Row] = &[
    row("load", load),
    row("store", store),
    row("atomic_add", |cx, args| atomic(cx, args, Action::Add)),
    row("atomic_min", |cx, args| atomic(cx, args, Action::Min)),
    row("atomic_max", |cx, args| atomic(cx, args, Action::Max)),
    row("atomic_and", |cx, args| atomic(cx, args, Action::And)),
    row("atomic_or", |cx, args| atomic(cx, args, Action::Or)),
    row("atomic_xor", |cx, args| atomic(cx, args, Action::Xor)),
    row("gather", gather),
    row("scatter", scatter),
];

const PADDINGS: &[(&str, Padding)] = &[("zero", Padding::Zero), ("nan", Padding::Nan)];

/// The most dimensions of a descriptor: those of a tensor map of the machine.
const MAX_DIMENSIONS: usize = 5;
/// The fewest bytes along the last dimension of a block.
const MIN_ROW_BYTES: u32 = 16;
/// The fewest rows that one gather or scatter moves.
const MIN_ROWS: u32 = 8;

fn make_tensor_descriptor<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (base, pointee) = cx.pointer_arg(args, "base")?;
    let base_span = args.arg("base").span;
    if base.shape.rank() > 0 {
        let d = Diagnostic::error(Code::BAD_SHAPE, base_span, "the base of a descriptor must be a scalar pointer")
            .primary(format!("this is {base}"))
            .help("pass the pointer argument itself; offsets are given to `.load` and `.store`");
        return cx.fail(d);
    }
    let shape = cx.sizes(&args.arg("shape"), &args.what("shape"), ElemTy::I32)?;
    let strides_arg = args.arg("strides");
    let strides = cx.sizes(&strides_arg, &args.what("strides"), ElemTy::I64)?;
    let block_arg = args.arg("block_shape");
    let block = cx.shape_of(&block_arg, &args.what("block_shape"))?;
    let rank = block.rank();
    if !(1..=MAX_DIMENSIONS).contains(&rank) {
        let message = format!("a descriptor has 1 to {MAX_DIMENSIONS} dimensions, not {rank}");
        return cx.error(Code::BAD_SHAPE, block_arg.span, message, "reshape the block after loading it");
    }
    for (name, length) in [("shape", shape.len()), ("strides", strides.len())] {
        if length != rank {
            let d = Diagnostic::error(
                Code::BAD_SHAPE,
                args.arg(name).span,
                format!("{} must have one entry per dimension of the block", args.what(name)),
            )
            .primary(format!("{length} entries"))
            .label(block_arg.span, format!("the block has {}", crate::expect::dimensions(rank)));
            return cx.fail(d);
        }
    }
    let last = match &strides_arg.val {
        Val::Tuple(t) => t.items.last().cloned(),
        _ => None,
    };
    if !matches!(last, Some(Val::Const(Const::Int(1)))) {
        let text = last.map(|v| v.describe()).unwrap_or_default();
        let d = Diagnostic::error(
            Code::BAD_VALUE,
            strides_arg.span,
            "the last stride of a descriptor must be the constant 1",
        )
        .primary(format!("the last entry is {text}"))
        .help("write the literal 1, or declare the stride as `tl.constexpr`");
        return cx.fail(d);
    }
    let row_bytes = block[rank - 1] * pointee.bits().div_ceil(8);
    if row_bytes < MIN_ROW_BYTES {
        let wanted = MIN_ROW_BYTES / pointee.bits().div_ceil(8);
        let d = Diagnostic::error(
            Code::BAD_SHAPE,
            block_arg.span,
            format!("the last dimension of a descriptor's block must take {MIN_ROW_BYTES} bytes at least"),
        )
        .primary(format!("{row_bytes} bytes of {pointee}"))
        .help(format!("make it {wanted} or more"));
        return cx.fail(d);
    }
    let padding = cx.word(args, "padding_option", PADDINGS)?;
    if padding == Padding::Nan && !pointee.is_float() {
        let d = Diagnostic::error(
            Code::BAD_VALUE,
            args.arg("padding_option").span,
            format!("{pointee} has no NaN to pad with"),
        )
        .label(base_span, format!("this is {base}"))
        .help("write `padding_option=\"zero\"`");
        return cx.fail(d);
    }
    let nan = match padding {
        Padding::Nan => Some(cx.bool_literal(true)?),
        Padding::Zero | Padding::Run => None,
    };
    Ok(Val::Descriptor(cx.describe(base, &shape, &strides[..rank - 1], block, padding, nan)?))
}

fn load<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let desc = cx.descriptor_arg(args)?;
    let at = cx.coordinates(args, desc)?;
    cx.loaded(OpKind::DescLoad {}, &[desc.value], &at, desc, desc.block)
}

fn store<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let desc = cx.descriptor_arg(args)?;
    cx.writable_through(args, desc.base, &desc.base, args.first().span)?;
    let at = cx.coordinates(args, desc)?;
    let value = cx.value_to_store(args, desc, desc.block)?;
    cx.build(OpKind::DescStore {}, &[desc.value, value.value], &[], &at, &[], &[])?;
    Ok(Val::NONE)
}

/// `desc.atomic_add(offsets, value)` and its like, which give nothing.
fn atomic<'a>(cx: &mut Cx<'a>, args: &Args<'a>, action: Action) -> R<Val<'a>> {
    use DType::{Bf16, Fp16, Fp32, Int32, Int64, UInt32, UInt64};
    let desc = cx.descriptor_arg(args)?;
    let desc_arg = args.first();
    cx.writable_through(args, desc.base, &desc.base, desc_arg.span)?;
    let pointee = desc.pointee();
    let allowed: &[DType] = match action {
        Action::Add => &[UInt32, Int32, UInt64, Fp32, Fp16, Bf16],
        Action::Min | Action::Max => &[UInt32, Int32, UInt64, Int64, Fp16, Bf16],
        Action::And | Action::Or | Action::Xor | Action::Xchg => &[UInt32, Int32, UInt64, Int64],
    };
    if !pointee.num().is_some_and(|d| allowed.contains(&d)) {
        let names: Vec<&str> = allowed.iter().map(|d| dtype_name(*d)).collect();
        let d = Diagnostic::error(
            Code::TYPE_MISMATCH,
            args.span,
            format!("`{}` of a descriptor does not work on {pointee}", args.name),
        )
        .label(desc_arg.span, format!("this is {}", desc_arg.val.describe()))
        .help(format!("use a tensor of one of these types: {}", names.join(", ")));
        return cx.fail(d);
    }
    let at = cx.coordinates(args, desc)?;
    let arg = args.arg("value");
    let value = cx.tensor(&arg, &args.what("value"))?;
    if value.elem != pointee {
        let d = Diagnostic::error(
            Code::TYPE_MISMATCH,
            arg.span,
            format!("`{}` of a descriptor does not convert the value", args.name),
        )
        .primary(format!("this is {value}"))
        .label(desc_arg.span, format!("this is {}", desc_arg.val.describe()))
        .help(format!("cast it: `value.to(tl.{})`", long_name(pointee)));
        return cx.fail(d);
    }
    cx.same_shape(args, value, arg.span, desc.block)?;
    let kind = OpKind::DescReduce { op: action.rmw(value.elem) };
    cx.build(kind, &[desc.value, value.value], &[], &at, &[], &[])?;
    Ok(Val::NONE)
}

fn gather<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let desc = cx.descriptor_arg(args)?;
    let (rows, column, shape) = cx.rows(args, desc)?;
    cx.loaded(OpKind::DescGather {}, &[desc.value, rows, column], &[], desc, shape)
}

fn scatter<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let desc = cx.descriptor_arg(args)?;
    cx.writable_through(args, desc.base, &desc.base, args.first().span)?;
    let (rows, column, shape) = cx.rows(args, desc)?;
    let value = cx.value_to_store(args, desc, shape)?;
    cx.build(OpKind::DescScatter {}, &[desc.value, rows, column, value.value], &[], &[], &[], &[])?;
    Ok(Val::NONE)
}

impl<'a> Cx<'a> {
    fn descriptor_arg(&mut self, args: &Args<'a>) -> R<Descriptor> {
        let arg = args.first();
        match &arg.val {
            Val::Descriptor(d) => Ok(*d),
            Val::Error => Err(Fault),
            other => {
                let text = other.describe();
                let d = Diagnostic::error(
                    Code::TYPE_MISMATCH,
                    arg.span,
                    format!("`{}` works on tensor descriptors", args.name),
                )
                .primary(format!("this is {text}"))
                .help("make one by `tl.make_tensor_descriptor(ptr, shape, strides, block_shape)`");
                self.fail(d)
            }
        }
    }

    /// Sizes or strides, which unlike offsets may be narrowed.
    fn sizes(&mut self, arg: &Arg<'a>, what: &str, elem: ElemTy) -> R<Vec<Tensor>> {
        let items = match &arg.val {
            Val::Tuple(t) => t.items.clone(),
            _ => return self.numbers(arg, what, elem),
        };
        let mut sizes = Vec::with_capacity(items.len());
        for item in &items {
            sizes.push(match item {
                Val::Tensor(t) if t.shape.rank() == 0 && t.elem.is_int() => self.cast(*t, elem)?,
                other => self.number(other, arg.span, what, elem)?,
            });
        }
        Ok(sizes)
    }

    /// Where the block starts that an argument gives the offsets of.
    fn coordinates(&mut self, args: &Args<'a>, desc: Descriptor) -> R<Vec<Value>> {
        let arg = args.arg("offsets");
        let numbers = self.numbers(&arg, &args.what("offsets"), ElemTy::I32)?;
        let rank = desc.block.rank();
        if numbers.len() != rank {
            let d =
                Diagnostic::error(Code::BAD_SHAPE, arg.span, format!("`{}` needs one offset per dimension", args.name))
                    .primary(format!("{} offsets", numbers.len()))
                    .label(args.first().span, format!("this is {}", args.first().val.describe()));
            return self.fail(d);
        }
        Ok(numbers.iter().map(|t| t.value).collect())
    }

    /// Rows picked by a block of numbers, the column that they are read or written from, and the shape that they make.
    fn rows(&mut self, args: &Args<'a>, desc: Descriptor) -> R<(Value, Value, Shape)> {
        let desc_arg = args.first();
        let pointee = desc.pointee();
        let min_columns = 32 / pointee.bits().max(1) * 8;
        if desc.block.rank() != 2 || desc.block[0] != 1 || desc.block[1] < min_columns {
            let d = Diagnostic::error(
                Code::BAD_SHAPE,
                args.span,
                format!("`{}` needs a descriptor with a block of one row", args.name),
            )
            .label(desc_arg.span, format!("this is {}", desc_arg.val.describe()))
            .help(format!("make it with `block_shape=[1, n]`, n at least {min_columns} for {pointee}"));
            return self.fail(d);
        }
        let rows_arg = args.arg("x_offsets");
        let rows = self.tensor(&rows_arg, &args.what("x_offsets"))?;
        if rows.elem != ElemTy::I32 || rows.shape.rank() != 1 || rows.shape[0] < MIN_ROWS {
            let d = Diagnostic::error(
                Code::BAD_SHAPE,
                rows_arg.span,
                format!("{} must be a 1-D block of at least {MIN_ROWS} int32 numbers", args.what("x_offsets")),
            )
            .primary(format!("this is {rows}"))
            .help("write `tl.arange(0, n)` or `x.to(tl.int32)`");
            return self.fail(d);
        }
        let column_arg = args.arg("y_offset");
        let column = self.number(&column_arg.val, column_arg.span, &args.what("y_offset"), ElemTy::I32)?;
        let shape = self.shape(&[rows.shape[0].into(), desc.block[1].into()], args.span)?;
        Ok((rows.value, column.value, shape))
    }

    /// The result of an access.
    fn loaded(&mut self, kind: OpKind, operands: &[Value], at: &[Value], desc: Descriptor, shape: Shape) -> R<Val<'a>> {
        let op = self.build(kind, operands, &[], at, &[], &[])?;
        let pointee = desc.pointee();
        let loaded = Tensor { value: self.kernel.result(op, 0), elem: stored_as(pointee), shape };
        self.cast(loaded, pointee).map(Val::Tensor)
    }

    /// The argument `value`, a block of exactly that shape, cast to what the memory holds.
    fn value_to_store(&mut self, args: &Args<'a>, desc: Descriptor, shape: Shape) -> R<Tensor> {
        let arg = args.arg("value");
        let value = self.tensor(&arg, &args.what("value"))?;
        self.same_shape(args, value, arg.span, shape)?;
        let pointee = desc.pointee();
        match pointee {
            ElemTy::Ptr(_) => self.stored(&arg, pointee, &args.what("value")),
            _ => self.cast(value, stored_as(pointee)),
        }
    }

    fn same_shape(&mut self, args: &Args<'a>, value: Tensor, span: Span, shape: Shape) -> R<()> {
        if value.shape == shape {
            return Ok(());
        }
        let desc = args.first();
        let d = Diagnostic::error(
            Code::SHAPE_MISMATCH,
            span,
            format!("`{}` of a descriptor needs a value of the shape {shape:?}", args.name),
        )
        .primary(format!("this is {value}"))
        .label(desc.span, format!("this is {}", desc.val.describe()))
        .help("nothing is broadcast here: write `tl.broadcast_to(value, shape)` or `tl.full(shape, x, dtype)`");
        self.fail(d)
    }
}
