//! Subscripts: `value[index]`.
//!
//! On a block, `:` and `None` are Triton's own. Numbers and ranges are an extension: a number is picked by a reduction
//! that keeps the one element, as is a range that is one of equal parts of its dimension; any other range is gathered.
//! A note reports which of them it is, since both have a cost.

use rtc_ir::{Block, OpKind, Predicate, Shape, Type};
use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::{Expr, ExprKind};

use crate::emitter::R;
use crate::evaluator::Evaluator;
use crate::expect::dimensions;
use crate::spec::DType;
use crate::types::ElemTy;
use crate::values::{Arg, Const, Tensor, Val};

/// A range of a dimension or a tuple as written; omitted parts are `None`.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    lower: Option<i128>,
    upper: Option<i128>,
    step: i128,
}

impl Bounds {
    fn is_whole(self) -> bool {
        self.lower.is_none() && self.upper.is_none() && self.step == 1
    }

    /// The first index, the step, and how many there are, of `len` elements; as Python counts.
    fn of(self, len: i128) -> (i128, i128, i128) {
        let (low, high) = if self.step > 0 { (0, len) } else { (-1, len - 1) };
        let clamp = |x: i128| (if x < 0 { x + len } else { x }).clamp(low, high);
        let (start, end) = if self.step > 0 {
            (self.lower.map_or(0, clamp), self.upper.map_or(len, clamp))
        } else {
            (self.lower.map_or(len - 1, clamp), self.upper.map_or(-1, clamp))
        };
        let distance = if self.step > 0 { end - start } else { start - end };
        let step = self.step.abs();
        (start, self.step, (distance + step - 1).max(0) / step)
    }
}

/// One entry of a subscript.
#[derive(Clone, Copy, Debug)]
enum Item {
    /// `None`
    New,
    /// `...`
    Rest,
    /// A number that is known.
    At(i128),
    /// A number at run time.
    AtRun(Tensor),
    Range(Bounds),
}

impl<'a> Evaluator<'a> {
    /// `value[index]`.
    pub(crate) fn subscript(&mut self, value: &Arg<'a>, index: &'a Expr, span: Span) -> R<Val<'a>> {
        match &value.val {
            Val::Tensor(t) => {
                let items = self.subscript_items((*t, value.span), index)?;
                self.span = span;
                self.block_subscript((*t, value.span), &items, span).map(Val::Tensor)
            }
            Val::Tuple(t) => {
                let t = t.clone();
                self.tuple_subscript(&t.items, value, index, span)
            }
            Val::Dict(entries) => self.dictionary_entry(&entries.clone(), index, span),
            Val::Const(Const::Str(s)) => {
                let items: Vec<Val<'a>> = s.chars().map(|c| Val::str(&c.to_string())).collect();
                match self.tuple_subscript(&items, value, index, span)? {
                    Val::Tuple(t) => {
                        let text: String = t.items.iter().map(|v| v.to_string()).collect();
                        Ok(Val::str(&text))
                    }
                    other => Ok(other),
                }
            }
            other => {
                let text = other.describe();
                let d = Diagnostic::error(Code::TYPE_MISMATCH, span, format!("{text} cannot be indexed"))
                    .primary(format!("this is {text}"))
                    .help(match other {
                        Val::Function(f) => format!(
                            "a kernel is launched by the host; here call it as a function: `{}(...)`",
                            f.def.name.text
                        ),
                        Val::Module(_) => {
                            "a kernel has no objects of the host: read it there, and pass the value as an argument"
                                .into()
                        }
                        _ => "blocks, tuples, dictionaries and strings can be indexed".into(),
                    });
                self.fail(d)
            }
        }
    }

    fn tuple_subscript(&mut self, items: &[Val<'a>], value: &Arg<'a>, index: &'a Expr, span: Span) -> R<Val<'a>> {
        let len = items.len() as i128;
        if let ExprKind::Slice { .. } = &index.kind {
            let (start, step, count) = self.bounds(index)?.of(len);
            let picked = (0..count).map(|k| items[(start + k * step) as usize].clone());
            return Ok(Val::tuple(picked.collect()));
        }
        let arg = self.eval_arg(index)?;
        let i = self.int_of(&arg, "the index of a tuple")?;
        let at = if i < 0 { i + len } else { i };
        match usize::try_from(at).ok().and_then(|at| items.get(at)) {
            Some(item) => Ok(item.clone()),
            None => {
                let d =
                    Diagnostic::error(Code::BAD_VALUE, span, format!("the index {i} is outside of a tuple of {len}"))
                        .label(value.span, format!("this is {}", value.val.describe()))
                        .help(match len {
                            0 => "an empty tuple has no elements, and neither has the `.shape` of a scalar or a pointer: pass the sizes \
                                  of a tensor to the kernel as arguments"
                                .into(),
                            _ => format!("its elements are 0 to {}, or -1 to -{len} from the end", len - 1),
                        });
                self.fail(d)
            }
        }
    }

    /// `lower:upper:step`, of constants.
    fn bounds(&mut self, slice: &'a Expr) -> R<Bounds> {
        let ExprKind::Slice { lower, upper, step } = &slice.kind else {
            return Ok(Bounds { lower: None, upper: None, step: 1 });
        };
        let mut bound = |e: &'a Option<Box<Expr>>| -> R<Option<i128>> {
            let Some(e) = e else { return Ok(None) };
            let arg = self.eval_arg(e)?;
            match arg.val {
                Val::Const(Const::None) => Ok(None),
                _ => self.int_of(&arg, "a bound of a slice").map(Some),
            }
        };
        let (lower, upper, step) = (bound(lower)?, bound(upper)?, bound(step)?.unwrap_or(1));
        if step == 0 {
            return self.error(Code::BAD_VALUE, slice.span, "the step of a slice cannot be 0", "");
        }
        Ok(Bounds { lower, upper, step })
    }

    /// The items of a subscript of a block, each with its place.
    fn subscript_items(&mut self, value: (Tensor, Span), index: &'a Expr) -> R<Vec<(Item, Span)>> {
        let exprs: &[Expr] = match &index.kind {
            ExprKind::Tuple(items) => items,
            _ => std::slice::from_ref(index),
        };
        let mut items = Vec::with_capacity(exprs.len());
        for expr in exprs {
            if let ExprKind::Slice { .. } = &expr.kind {
                items.push((Item::Range(self.bounds(expr)?), expr.span));
                continue;
            }
            let arg = self.eval_arg(expr)?;
            match &arg.val {
                // The items under a name.
                Val::Tuple(t) if exprs.len() == 1 => {
                    for val in &t.items {
                        let item = Arg::new(val.clone(), arg.span);
                        items.push((self.subscript_item(value, &item)?, arg.span));
                    }
                }
                _ => items.push((self.subscript_item(value, &arg)?, arg.span)),
            }
        }
        Ok(items)
    }

    fn subscript_item(&mut self, value: (Tensor, Span), item: &Arg<'a>) -> R<Item> {
        Ok(match &item.val {
            Val::Const(Const::None) => Item::New,
            Val::Const(Const::Ellipsis) => Item::Rest,
            Val::Const(Const::Int(i)) => Item::At(*i),
            Val::Tensor(t) if t.shape.rank() == 0 && t.elem.is_int() && t.elem != ElemTy::I1 => Item::AtRun(*t),
            other => {
                let text = other.describe();
                let block = matches!(other, Val::Tensor(t) if t.shape.rank() > 0);
                let pointer = value.0.shape.rank() == 0 && value.0.elem.ptr().is_some();
                let help = match block {
                    true if pointer => "read memory with `tl.load(pointer + offsets, mask=mask)`",
                    true => "to pick elements by a block of numbers write `tl.gather(x, index, axis)`",
                    false => "an index is `:`, `None`, `...`, a whole number, or a slice with constexpr bounds",
                };
                let indexed = if pointer { "pointer" } else { "block" };
                let message = format!("a {indexed} cannot be indexed by {text}");
                let d = Diagnostic::error(Code::TYPE_MISMATCH, item.span, message)
                    .primary(format!("this is {text}"))
                    .label(value.1, format!("this is {}", value.0))
                    .help(help);
                return self.fail(d);
            }
        })
    }

    fn block_subscript(&mut self, value: (Tensor, Span), items: &[(Item, Span)], span: Span) -> R<Tensor> {
        let (t, value_span) = value;
        let rank = t.shape.rank();
        let taken = items.iter().filter(|(i, _)| !matches!(i, Item::New | Item::Rest)).count();
        let plain = items.iter().all(|(i, _)| match i {
            Item::New => true,
            Item::Range(bounds) => bounds.is_whole(),
            Item::Rest | Item::At(_) | Item::AtRun(_) => false,
        });
        if taken > rank {
            let over = items.iter().filter(|(i, _)| !matches!(i, Item::New | Item::Rest)).nth(rank);
            let place = over.map_or(span, |(_, at)| *at);
            let message = match rank {
                0 => format!("{t} is a scalar and has no dimensions"),
                _ => format!("{t} has only {}", dimensions(rank)),
            };
            let new = "write `None` where a new dimension is meant: `x[:, None]`".to_string();
            let help = if t.elem.ptr().is_some() && rank == 0 {
                let name = self.source_text(value_span).unwrap_or("x");
                match items {
                    [(Item::Range(_), _)] => format!(
                        "read a block of memory: `tl.load({name} + start + tl.arange(0, SIZE))`, with a mask where it can end early"
                    ),
                    [(_, at)] => {
                        let index = self.source_text(*at).unwrap_or("i");
                        format!("read memory with `tl.load({name} + {index})`")
                    }
                    _ => format!("read memory with `tl.load({name} + offset)`"),
                }
            } else {
                new
            };
            let mut news = items.iter().enumerate().filter(|(_, (i, _))| matches!(i, Item::New)).map(|(at, _)| at);
            if plain && (rank == 0 || news.by_ref().enumerate().all(|(before, at)| at <= rank + before)) {
                // The reference takes a `:` behind the last dimension, too, and any of a scalar.
                let d = Diagnostic::warning(Code::DEPRECATED, span, message)
                    .label(value_span, format!("this is {t}"))
                    .label(place, "this `:` stands for nothing");
                self.report(d.help(help));
            } else {
                let d = Diagnostic::error(Code::BAD_SHAPE, span, message)
                    .label(value_span, format!("this is {t}"))
                    .label(place, "one index too many");
                return self.fail(d.help(help));
            }
        }
        let rests: Vec<Span> = items.iter().filter(|(i, _)| matches!(i, Item::Rest)).map(|(_, at)| *at).collect();
        if let [first, second, ..] = rests[..] {
            let d = Diagnostic::error(Code::BAD_VALUE, second, "`...` can stand in a subscript once")
                .primary("again here")
                .label(first, "first here");
            return self.fail(d);
        }
        // Which dimension each item is about.
        let mut axes = Vec::with_capacity(items.len());
        let mut axis = 0;
        for (item, _) in items {
            axes.push(axis);
            axis += match item {
                Item::New => 0,
                Item::Rest => rank.saturating_sub(taken),
                Item::At(_) | Item::AtRun(_) | Item::Range(_) => 1,
            };
        }
        let places: Vec<(usize, Item, Span)> =
            items.iter().zip(&axes).filter(|(_, axis)| **axis < rank).map(|((i, at), axis)| (*axis, *i, *at)).collect();
        let mut result = t;
        // Numbers first: they make the block smaller. From the last dimension on, so that the others keep their number.
        for (axis, item, at) in places.iter().rev() {
            result = match item {
                Item::At(i) => self.known_element(result, *axis, *i, (value, *at))?,
                Item::AtRun(i) => self.element_at_run_time(result, *axis, *i, *at)?,
                Item::New | Item::Rest | Item::Range(_) => result,
            };
        }
        let mut gone = 0;
        for (axis, item, at) in &places {
            match item {
                Item::At(_) | Item::AtRun(_) => gone += 1,
                Item::Range(bounds) => result = self.slice(result, *axis - gone, *bounds, (value, *at))?,
                Item::New | Item::Rest => {}
            }
        }
        let mut at = 0;
        for ((item, _), axis) in items.iter().zip(&axes) {
            match item {
                Item::New => {
                    result = self.insert_axis(result, at, span)?;
                    at += 1;
                }
                Item::Rest => at += rank.saturating_sub(taken),
                Item::Range(_) => at += usize::from(*axis < rank),
                Item::At(_) | Item::AtRun(_) => {}
            }
        }
        Ok(result)
    }

    /// The part of `t` at a known number of a dimension, which goes away.
    fn known_element(&mut self, t: Tensor, axis: usize, i: i128, place: ((Tensor, Span), Span)) -> R<Tensor> {
        let ((whole, value_span), at) = place;
        let size = i128::from(t.shape[axis]);
        let index = if i < 0 { i + size } else { i };
        if !(0..size).contains(&index) {
            let message = format!("the index {i} is outside of a dimension of {size}");
            let d = Diagnostic::error(Code::OUT_OF_RANGE, at, message)
                .primary(format!("it goes from {} to {}", -size, size - 1))
                .label(value_span, format!("this is {whole}"));
            return self.fail(d);
        }
        let index = self.int_literal(index as i64, ElemTy::I32, crate::types::scalar_shape())?;
        self.pick(t, axis, index, at)
    }

    /// The same for a number at run time. A negative one counts from the end; one out of range picks zeros.
    fn element_at_run_time(&mut self, t: Tensor, axis: usize, index: Tensor, at: Span) -> R<Tensor> {
        let wide = if index.elem.bits() > 32 { ElemTy::I64 } else { ElemTy::I32 };
        let signed = index.elem.is_signed();
        let mut index = self.cast(index, wide)?;
        if signed {
            let size = self.int_literal(i64::from(t.shape[axis]), wide, index.shape)?;
            let zero = self.int_literal(0, wide, index.shape)?;
            let from_end = self.each(OpKind::AddI {}, &[index.value, size.value], index)?;
            let boolean = Tensor { elem: ElemTy::I1, ..index };
            let negative = self.each(OpKind::CmpI { predicate: Predicate::Lt }, &[index.value, zero.value], boolean)?;
            index = self.each(OpKind::Select {}, &[negative.value, from_end.value, index.value], index)?;
        }
        self.pick(t, axis, index, at)
    }

    /// The part of `t` whose coordinate along `axis` is `index`: all other elements become zeros, and the bits of all are
    /// joined along the axis.
    fn pick(&mut self, t: Tensor, axis: usize, index: Tensor, at: Span) -> R<Tensor> {
        let size = t.shape[axis];
        let rest = t.shape.without(axis);
        if size == 1 {
            return self.reshape(t, rest, false);
        }
        let elements = match axis {
            _ if t.shape.rank() == 1 => format!("{size} elements"),
            _ => format!("dimension {axis} of {t}"),
        };
        self.cost(at, format!("this index costs a reduction over {elements}"));
        let line = self.numbers_along(t.shape, axis, 0, 1, size)?;
        let line = self.cast(line, index.elem)?;
        let wanted = self.broadcast_to(index, line.shape)?;
        let boolean = Tensor { elem: ElemTy::I1, ..line };
        let chosen = self.each(OpKind::CmpI { predicate: Predicate::Eq }, &[line.value, wanted.value], boolean)?;
        let chosen = self.broadcast_to(chosen, t.shape)?;
        let bits = self.as_bits(t)?;
        let zeros = self.int_literal(0, bits.elem, t.shape)?;
        let kept = self.each(OpKind::Select {}, &[chosen.value, bits.value, zeros.value], bits)?;
        let joined = self.or_along(kept, axis)?;
        self.from_bits(Tensor { value: joined, shape: rest, ..bits }, t.elem)
    }

    /// The elements of a block as integers of their width.
    fn as_bits(&mut self, t: Tensor) -> R<Tensor> {
        if t.elem.is_int() {
            return Ok(t);
        }
        let to = match t.elem.bits() {
            8 => DType::Int8,
            16 => DType::Int16,
            32 => DType::Int32,
            _ => return if t.elem.ptr().is_some() { self.cast(t, ElemTy::I64) } else { self.bitcast(t, ElemTy::I64) },
        };
        self.bitcast(t, ElemTy::Num(to))
    }

    fn from_bits(&mut self, bits: Tensor, elem: ElemTy) -> R<Tensor> {
        match elem {
            ElemTy::Ptr(_) => self.cast(bits, elem),
            ElemTy::Num(_) if bits.elem == elem => Ok(bits),
            ElemTy::Num(_) => self.bitcast(bits, elem),
        }
    }

    fn or_along(&mut self, t: Tensor, axis: usize) -> R<rtc_ir::Value> {
        let elem = self.ir_elem(t.elem)?;
        let block: Block = self.kernel.new_block();
        let [a, b] = [0, 1].map(|_| self.kernel.add_arg(block, Type::Scalar(elem), None));
        let outer = std::mem::replace(&mut self.block, block);
        let joined = self.emit(OpKind::OrI {}, &[a, b]);
        let ended = joined.and_then(|value| self.build(OpKind::Yields {}, &[], &[], &[value], &[], &[]));
        self.block = outer;
        ended?;
        let op = self.build(OpKind::Reduce { axis: axis as u32 }, &[], &[], &[t.value], &[block], &[])?;
        Ok(self.kernel.result(op, 0))
    }

    /// `start + step * i` for `count` numbers `i`, as a block that is `count` long along `axis` and 1 along the others.
    fn numbers_along(&mut self, shape: Shape, axis: usize, start: i64, step: i64, count: u32) -> R<Tensor> {
        let span = self.span;
        let line = self.shape(&[i128::from(count)], span)?;
        let value = self.emit(OpKind::Arange { start: 0, end: i64::from(count) }, &[])?;
        let mut numbers = Tensor { value, elem: ElemTy::I32, shape: line };
        for (kind, neutral, by) in [(OpKind::MulI {}, 1, step), (OpKind::AddI {}, 0, start)] {
            if by != neutral {
                let by = self.int_literal(by, ElemTy::I32, line)?;
                numbers = self.each(kind, &[numbers.value, by.value], numbers)?;
            }
        }
        self.along(numbers, axis, shape.rank())
    }

    /// A range of a dimension.
    fn slice(&mut self, t: Tensor, axis: usize, bounds: Bounds, place: ((Tensor, Span), Span)) -> R<Tensor> {
        let ((whole, value_span), at) = place;
        let size = i128::from(t.shape[axis]);
        let (start, step, count) = bounds.of(size);
        if count == size && step == 1 {
            return Ok(t);
        }
        if count <= 0 || count & (count - 1) != 0 {
            let (message, help) = match count {
                ..=0 => ("this slice is empty, and no block is".to_string(), "check its bounds".to_string()),
                _ => {
                    let power = crate::const_eval::next_power_of_2(count);
                    (
                        format!("this slice has {count} elements, which is not a power of two"),
                        format!("take {power} elements, or keep the whole block and mask the rest"),
                    )
                }
            };
            let d = Diagnostic::error(Code::BAD_SHAPE, at, message)
                .primary(format!("of a dimension of {size}"))
                .label(value_span, format!("this is {whole}"))
                .help(help);
            return self.fail(d);
        }
        // One of equal parts, or every n-th from one on: a dimension becomes two, one of which is picked from.
        let split = match step {
            1 if start % count == 0 => Some(([size / count, count], 0, start / count)),
            2.. if step * count == size && start < step => Some(([count, step], 1, start)),
            _ => None,
        };
        let room = t.shape.rank() < rtc_ir::MAX_RANK;
        if let Some((parts, offset, index)) = split.filter(|_| room) {
            let mut dims: Vec<i128> = t.shape.iter().map(|d| i128::from(*d)).collect();
            dims.splice(axis..=axis, parts);
            let shape = self.shape(&dims, at)?;
            let parted = self.reshape(t, shape, false)?;
            let index = self.int_literal(index as i64, ElemTy::I32, crate::types::scalar_shape())?;
            return self.pick(parted, axis + offset, index, at);
        }
        self.cost(at, format!("this slice costs a gather: {t} goes through shared memory"));
        let mut dims = t.shape.to_vec();
        dims[axis] = count as u32;
        let shape = Shape::new(&dims).unwrap_or(t.shape);
        let index = self.numbers_along(t.shape, axis, start as i64, step as i64, count as u32)?;
        let index = self.broadcast_to(index, shape)?;
        let value = self.emit(OpKind::Gather { axis: axis as u32 }, &[t.value, index.value])?;
        Ok(Tensor { value, shape, ..t })
    }
}
