//! Tensor descriptors: windows of a fixed block shape into a tensor of which base, sizes and strides are known.
//!
//! Every access becomes a block of pointers and a mask that guards all dimensions. Elements outside are zero or NaN when
//! read and are dropped when written; the last stride is always 1.

use std::rc::Rc;

use rtc_ir::{MemScope, MemSemantic, OpKind, Shape};
use rtc_source::{Code, Diagnostic, Span};

use super::atomics::{Action, Order, long_name};
use super::memory::{Caching, stored_as};
use super::{Args, Row, row};
use crate::cx::Cx;
use crate::emitter::{Fault, R};
use crate::spec::DType;
use crate::types::{ElemTy, dtype_name, scalar_shape};
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
    let (base, pointee) = cx.pointer_arg(args, 0)?;
    let base_span = args.arg(0).span;
    if base.shape.rank() > 0 {
        let d = Diagnostic::error(Code::BAD_SHAPE, base_span, "the base of a descriptor must be a scalar pointer")
            .primary(format!("this is {base}"))
            .help("pass the pointer argument itself; offsets are given to `.load` and `.store`");
        return cx.fail(d);
    }
    let shape = cx.sizes(&args.arg(1), &args.what(1), ElemTy::I32)?;
    let strides_arg = args.arg(2);
    let mut strides = cx.sizes(&strides_arg, &args.what(2), ElemTy::I64)?;
    let block_arg = args.arg(3);
    let block = cx.shape_of(&block_arg, &args.what(3))?;
    let rank = block.rank();
    if !(1..=MAX_DIMENSIONS).contains(&rank) {
        let message = format!("a descriptor has 1 to {MAX_DIMENSIONS} dimensions, not {rank}");
        return cx.error(Code::BAD_SHAPE, block_arg.span, message, "reshape the block after loading it");
    }
    for (index, length) in [(1, shape.len()), (2, strides.len())] {
        if length != rank {
            let d = Diagnostic::error(
                Code::BAD_SHAPE,
                args.arg(index).span,
                format!("{} must have one entry per dimension of the block", args.what(index)),
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
    strides[rank - 1] = cx.int_literal(1, ElemTy::I64, scalar_shape())?;
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
    let padding = cx.word(args, 4, PADDINGS)?;
    if padding == Padding::Nan && !pointee.is_float() {
        let d = Diagnostic::error(Code::BAD_VALUE, args.arg(4).span, format!("{pointee} has no NaN to pad with"))
            .label(base_span, format!("this is {base}"))
            .help("write `padding_option=\"zero\"`");
        return cx.fail(d);
    }
    Ok(Val::Descriptor(Rc::new(Descriptor { base, shape, strides, block, padding })))
}

fn load<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let desc = cx.descriptor_arg(args)?;
    let window = cx.window(args, &desc, 1)?;
    cx.read_window(&desc, window)
}

fn store<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let desc = cx.descriptor_arg(args)?;
    cx.writable(args, desc.base, args.arg(0).span)?;
    let window = cx.window(args, &desc, 1)?;
    cx.write_window(args, 2, window)
}

/// `desc.atomic_add(offsets, value)` and its like, which give nothing.
fn atomic<'a>(cx: &mut Cx<'a>, args: &Args<'a>, action: Action) -> R<Val<'a>> {
    use DType::{Bf16, Fp16, Fp32, Int32, Int64, UInt32, UInt64};
    let desc = cx.descriptor_arg(args)?;
    let desc_arg = args.arg(0);
    cx.writable(args, desc.base, desc_arg.span)?;
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
    let window = cx.window(args, &desc, 1)?;
    let arg = args.arg(2);
    let value = cx.tensor(&arg, &args.what(2))?;
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
    cx.same_shape(args, value, arg.span, window.pointer.shape)?;
    let order = Order { sem: MemSemantic::Relaxed, scope: MemScope::Gpu };
    cx.atomic_rmw(action, window.pointer, value, window.mask, order)?;
    Ok(Val::NONE)
}

fn gather<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let desc = cx.descriptor_arg(args)?;
    let window = cx.rows(args, &desc, 1)?;
    cx.read_window(&desc, window)
}

fn scatter<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let desc = cx.descriptor_arg(args)?;
    cx.writable(args, desc.base, args.arg(0).span)?;
    let window = cx.rows(args, &desc, 2)?;
    cx.write_window(args, 1, window)
}

/// The elements of one access: their addresses and which of them exist.
#[derive(Clone, Copy, Debug)]
struct Window {
    pointer: Tensor,
    mask: Option<Tensor>,
}

impl Descriptor {
    fn pointee(&self) -> ElemTy {
        self.base.elem.pointee().unwrap_or(self.base.elem)
    }
}

impl<'a> Cx<'a> {
    fn descriptor_arg(&mut self, args: &Args<'a>) -> R<Rc<Descriptor>> {
        let arg = args.arg(0);
        match &arg.val {
            Val::Descriptor(d) => Ok(d.clone()),
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

    /// The block at the offsets that an argument gives.
    fn window(&mut self, args: &Args<'a>, desc: &Descriptor, offsets: usize) -> R<Window> {
        let arg = args.arg(offsets);
        let numbers = self.numbers(&arg, &args.what(offsets), ElemTy::I32)?;
        let rank = desc.block.rank();
        if numbers.len() != rank {
            let d =
                Diagnostic::error(Code::BAD_SHAPE, arg.span, format!("`{}` needs one offset per dimension", args.name))
                    .primary(format!("{} offsets", numbers.len()))
                    .label(args.arg(0).span, format!("this is {}", args.arg(0).val.describe()));
            return self.fail(d);
        }
        let mut indices = Vec::with_capacity(rank);
        for (axis, offset) in numbers.iter().enumerate() {
            indices.push(self.axis_index(*offset, desc.block[axis], axis, rank)?);
        }
        self.window_at(desc, &indices, desc.block)
    }

    /// Rows picked by a block of numbers, from one column on; the row numbers are argument `first`, the column follows.
    fn rows(&mut self, args: &Args<'a>, desc: &Descriptor, first: usize) -> R<Window> {
        let desc_arg = args.arg(0);
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
        let rows_arg = args.arg(first);
        let rows = self.tensor(&rows_arg, &args.what(first))?;
        if rows.elem != ElemTy::I32 || rows.shape.rank() != 1 || rows.shape[0] < MIN_ROWS {
            let d = Diagnostic::error(
                Code::BAD_SHAPE,
                rows_arg.span,
                format!("{} must be a 1-D block of at least {MIN_ROWS} int32 numbers", args.what(first)),
            )
            .primary(format!("this is {rows}"))
            .help("write `tl.arange(0, n)` or `x.to(tl.int32)`");
            return self.fail(d);
        }
        let column_arg = args.arg(first + 1);
        let column = self.number(&column_arg.val, column_arg.span, &args.what(first + 1), ElemTy::I32)?;
        let shape = self.shape(&[rows.shape[0].into(), desc.block[1].into()], args.span)?;
        let wide = self.cast(rows, ElemTy::I64)?;
        let row_index = self.along(wide, 0, 2)?;
        let column_index = self.axis_index(column, desc.block[1], 1, 2)?;
        self.window_at(desc, &[row_index, column_index], shape)
    }

    fn window_at(&mut self, desc: &Descriptor, indices: &[Tensor], shape: Shape) -> R<Window> {
        let mut strides = desc.strides.clone();
        if let Some(last) = strides.last_mut() {
            // Always 1, also where the launch passes it.
            *last = self.int_literal(1, ElemTy::I64, scalar_shape())?;
        }
        let pointer = self.addresses(desc.base, indices, &strides, shape)?;
        let checked: Vec<(Tensor, Tensor)> = indices.iter().copied().zip(desc.shape.iter().copied()).collect();
        let mask = self.inside(&checked, shape)?;
        Ok(Window { pointer, mask })
    }

    fn read_window(&mut self, desc: &Descriptor, window: Window) -> R<Val<'a>> {
        let pointee = desc.pointee();
        let shape = window.pointer.shape;
        let other = match desc.padding {
            Padding::Run(is_nan) if pointee.is_float() => {
                let condition = self.is_not_zero(is_nan)?;
                let nan = self.fill(pointee, scalar_shape(), true)?;
                let zero = self.fill(pointee, scalar_shape(), false)?;
                let padding = self.each(OpKind::Select {}, &[condition.value, nan.value, zero.value], nan)?;
                self.broadcast_to(padding, shape)?
            }
            Padding::Nan => self.fill(pointee, shape, true)?,
            Padding::Zero | Padding::Run(_) => self.fill(pointee, shape, false)?,
        };
        self.read(window.pointer, window.mask, Some(other), Caching::NONE).map(Val::Tensor)
    }

    /// Stores argument `index`, a block of exactly the shape of the window, cast to what the memory holds.
    fn write_window(&mut self, args: &Args<'a>, index: usize, window: Window) -> R<Val<'a>> {
        let arg = args.arg(index);
        let value = self.tensor(&arg, &args.what(index))?;
        self.same_shape(args, value, arg.span, window.pointer.shape)?;
        let pointee = window.pointer.elem.pointee().unwrap_or(window.pointer.elem);
        let value = match pointee {
            ElemTy::Ptr(_) => self.stored(&arg, pointee, &args.what(index))?,
            _ => self.cast(value, stored_as(pointee))?,
        };
        self.write(window.pointer, value, window.mask, Caching::NONE)?;
        Ok(Val::NONE)
    }

    fn same_shape(&mut self, args: &Args<'a>, value: Tensor, span: Span, shape: Shape) -> R<()> {
        if value.shape == shape {
            return Ok(());
        }
        let desc = args.arg(0);
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
