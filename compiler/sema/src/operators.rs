//! Operators on run-time values: promotion, broadcasting, and the operation that each type needs.

use rtc_ir::{Literal, OpKind, Predicate};
use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::{CmpOp, Operator, UnaryOp};

use crate::const_eval;
use crate::cx::Cx;
use crate::emitter::{MAX_TUPLE, R};
use crate::promote::{self, Clash, const_kind, int_range};
use crate::spec::DType;
use crate::types::ElemTy;
use crate::values::{Arg, Const, Tensor, Val};

impl<'a> Cx<'a> {
    /// `l op r`.
    pub(crate) fn binary(&mut self, op: Operator, l: &Arg<'a>, r: &Arg<'a>) -> R<Val<'a>> {
        match (&l.val, &r.val) {
            (Val::Const(a), Val::Const(b)) => match const_eval::binary(op, a, b) {
                Ok(c) => Ok(Val::Const(c)),
                Err(why) => {
                    let mut d =
                        Diagnostic::error(Code::BAD_VALUE, self.span, format!("`{a} {} {b}`: {why}", op.symbol()));
                    for (side, value) in [(l, a), (r, b)] {
                        if self.source_text(side.span).is_some_and(|text| text != value.to_string()) {
                            d = d.label(side.span, format!("this is {}", side.val.describe()));
                        }
                    }
                    if why.contains("divide by zero") {
                        d = d.help("choose another way for 0 while compiling: `x // N if N != 0 else 0`");
                    } else if let Some((side, _)) = [(l, a), (r, b)].iter().find(|(_, c)| matches!(c, Const::None)) {
                        d = self.explain_none(d, side.span);
                    } else if [a, b].iter().any(|c| matches!(c, Const::Str(_))) {
                        d = d.help("write the text with `f\"...{value}\"`");
                    }
                    self.fail(d)
                }
            },
            (Val::Tuple(a), Val::Tuple(b)) if op == Operator::Add => {
                self.tuple_fits(a.items.len() + b.items.len())?;
                Ok(Val::tuple(a.items.iter().chain(&b.items).cloned().collect()))
            }
            (Val::Tuple(t), Val::Const(Const::Int(n))) | (Val::Const(Const::Int(n)), Val::Tuple(t))
                if op == Operator::Mult =>
            {
                let count = usize::try_from(*n).unwrap_or(0);
                self.tuple_fits(count.saturating_mul(t.items.len()))?;
                Ok(Val::tuple(t.items.iter().cycle().take(count * t.items.len()).cloned().collect()))
            }
            _ => self.binary_tensors(op, l, r).map(Val::Tensor),
        }
    }

    /// Refuses a tuple that would be too long.
    fn tuple_fits(&mut self, length: usize) -> R<()> {
        if length <= MAX_TUPLE {
            return Ok(());
        }
        let span = self.span;
        self.error(
            Code::OUT_OF_RESOURCES,
            span,
            format!("the tuple gets too long: {length} elements, more than the {MAX_TUPLE} that are allowed"),
            "",
        )
    }

    fn binary_tensors(&mut self, op: Operator, l: &Arg<'a>, r: &Arg<'a>) -> R<Tensor> {
        self.need_numbers(op.symbol(), l, r)?;
        match op {
            Operator::MatMult => {
                let span = self.span;
                self.error(Code::UNSUPPORTED, span, "blocks have no operator `@`", "write `tl.dot(a, b)`")
            }
            Operator::Pow => self.power(l, r),
            Operator::Add | Operator::Sub if is_pointer(&l.val) || is_pointer(&r.val) => self.move_pointer(op, l, r),
            Operator::Add => self.arithmetic(op, l, r, OpKind::AddI {}, OpKind::AddI {}, Some(OpKind::AddF {})),
            Operator::Sub => self.arithmetic(op, l, r, OpKind::SubI {}, OpKind::SubI {}, Some(OpKind::SubF {})),
            Operator::Mult => self.arithmetic(op, l, r, OpKind::MulI {}, OpKind::MulI {}, Some(OpKind::MulF {})),
            Operator::FloorDiv => self.arithmetic(op, l, r, OpKind::DivSI {}, OpKind::DivUI {}, None),
            Operator::BitAnd => self.arithmetic(op, l, r, OpKind::AndI {}, OpKind::AndI {}, None),
            Operator::BitOr => self.arithmetic(op, l, r, OpKind::OrI {}, OpKind::OrI {}, None),
            Operator::BitXor => self.arithmetic(op, l, r, OpKind::XorI {}, OpKind::XorI {}, None),
            Operator::LShift => self.arithmetic(op, l, r, OpKind::ShlI {}, OpKind::ShlI {}, None),
            Operator::RShift => {
                // The left operand decides, before promotion.
                let signed = match &l.val {
                    Val::Tensor(t) => t.elem.is_signed(),
                    Val::Const(c) => promote::const_dtype(c).is_some_and(DType::is_signed),
                    _ => false,
                };
                let kind = if signed { OpKind::ShrSI {} } else { OpKind::ShrUI {} };
                self.arithmetic(op, l, r, kind.clone(), kind, None)
            }
            Operator::Div => self.true_division(l, r),
            Operator::Mod => self.remainder(l, r),
        }
    }

    /// Both operands must be numbers or run-time values.
    fn need_numbers(&mut self, symbol: &str, l: &Arg<'a>, r: &Arg<'a>) -> R<()> {
        for (arg, other) in [(l, r), (r, l)] {
            let fits = match &arg.val {
                Val::Tensor(_) => true,
                Val::Const(c) => const_kind(c).is_some(),
                _ => false,
            };
            if fits {
                continue;
            }
            let help = match &arg.val {
                Val::BlockPtr(_) => "move a block pointer with `tl.advance(ptr, offsets)`",
                Val::Tuple(_) => {
                    "lists and tuples are no blocks: take an element with `[i]`, or make a block by `tl.arange` or `tl.full`"
                }
                Val::Function(_) | Val::Builtin(_) | Val::Method(_) => "call it with `(...)`",
                Val::Const(Const::Str(_)) => "strings can be compared and passed on, not computed with",
                Val::Type(_) => "call the type to cast: `tl.float32(x)`, or `x.to(tl.float32)`",
                Val::Descriptor(_) => "read a block first: `desc.load(offsets)`",
                _ => "",
            };
            let text = arg.val.describe();
            let mut d =
                Diagnostic::error(Code::TYPE_MISMATCH, self.span, format!("`{symbol}` does not work on {text}"))
                    .label(arg.span, format!("this is {text}"))
                    .label(other.span, format!("this is {}", other.val.describe()));
            if let Val::Const(Const::None) = &arg.val {
                d = self.explain_none(d, arg.span);
            } else if !help.is_empty() {
                d = d.help(help);
            }
            return self.fail(d);
        }
        Ok(())
    }

    /// Promoted and broadcast operands of an operator that sees constants as scalars.
    fn operands(&mut self, symbol: &str, l: &Arg<'a>, r: &Arg<'a>, div_mod: bool) -> R<(Tensor, Tensor)> {
        for (arg, other) in [(l, r), (r, l)] {
            if is_pointer(&arg.val) {
                return self.pointer_operand(symbol, arg, other);
            }
        }
        let dtype = self.common_dtype(symbol, l, r, div_mod)?;
        let a = self.operand_as(l, r, dtype)?;
        let b = self.operand_as(r, l, dtype)?;
        self.broadcast_pair((a, l.span), (b, r.span), &format!("in `{symbol}`"))
    }

    fn pointer_operand<T>(&mut self, symbol: &str, pointer: &Arg<'a>, other: &Arg<'a>) -> R<T> {
        let both = is_pointer(&other.val);
        let message = match (symbol, both) {
            ("-", true) => "pointers cannot be subtracted from each other".into(),
            ("+", true) => "pointers cannot be added to each other".into(),
            ("==" | "!=" | "<" | "<=" | ">" | ">=", _) => "pointers cannot be compared".into(),
            _ => format!("`{symbol}` does not work on pointers"),
        };
        let help = match symbol {
            "==" | "!=" | "<" | "<=" | ">" | ">=" | "-" => "cast the pointers to integers first: `p.to(tl.int64)`",
            _ => "a pointer can be moved by an integer: `ptr + offset`",
        };
        let d = Diagnostic::error(Code::TYPE_MISMATCH, self.span, message)
            .label(pointer.span, format!("this is {}", pointer.val.describe()))
            .label(other.span, format!("this is {}", other.val.describe()))
            .help(help);
        self.fail(d)
    }

    /// The promoted type of two operands, where constants count as scalars.
    pub(crate) fn common_dtype(&mut self, symbol: &str, l: &Arg<'a>, r: &Arg<'a>, div_mod: bool) -> R<DType> {
        let result = match (&l.val, &r.val) {
            (Val::Tensor(a), Val::Tensor(b)) => match (a.elem.num(), b.elem.num()) {
                (Some(x), Some(y)) => Some(promote::tensors(x, y, div_mod)),
                _ => None,
            },
            (Val::Tensor(t), Val::Const(c)) | (Val::Const(c), Val::Tensor(t)) => {
                t.elem.num().and_then(|d| promote::with_constant(d, c, div_mod))
            }
            (Val::Const(a), Val::Const(b)) => match (promote::const_dtype(a), promote::const_dtype(b)) {
                (Some(x), Some(y)) => Some(promote::tensors(x, y, div_mod)),
                _ => None,
            },
            _ => None,
        };
        match result {
            Some(Ok(dtype)) => Ok(dtype),
            Some(Err(clash)) => self.clash(symbol, l, r, clash),
            None => {
                for arg in [l, r] {
                    if let Val::Const(c) = &arg.val {
                        self.const_tensor(c, arg.span)?;
                    }
                }
                self.need_numbers(symbol, l, r)?;
                self.pointer_operand(symbol, l, r)
            }
        }
    }

    fn clash<T>(&mut self, symbol: &str, l: &Arg<'a>, r: &Arg<'a>, clash: Clash) -> R<T> {
        let (message, help) = match clash {
            Clash::Signedness => (
                format!("Cannot use `{symbol}` on these integers because they have different signedness"),
                "cast one of them, for example `x.to(tl.int32)`",
            ),
            Clash::Fp8WithInteger => (
                format!("`{symbol}` does not mix 8-bit floats with integers"),
                "cast the 8-bit float first, for example `x.to(tl.float16)`",
            ),
        };
        let d = Diagnostic::error(Code::TYPE_MISMATCH, self.span, message)
            .label(l.span, format!("this is {}", l.val.describe()))
            .label(r.span, format!("this is {}", r.val.describe()))
            .help(help);
        self.fail(d)
    }

    /// `arg` as a value of type `dtype`; a constant must be in its range.
    pub(crate) fn operand_as(&mut self, arg: &Arg<'a>, other: &Arg<'a>, dtype: DType) -> R<Tensor> {
        match &arg.val {
            Val::Const(c) => {
                if let (Const::Int(i), true) = (c, dtype.is_integer()) {
                    let (low, high) = int_range(dtype);
                    if *i < low || *i > high {
                        let elem = ElemTy::Num(dtype);
                        let mut d = Diagnostic::error(
                            Code::OUT_OF_RANGE,
                            self.span,
                            format!("the constant {i} is out of range for {elem}, {low} to {high}"),
                        )
                        .label(arg.span, format!("does not fit in {elem}"));
                        if !matches!(other.val, Val::Const(_)) {
                            d = d.label(other.span, format!("this is {}", other.val.describe()));
                        }
                        return self
                            .fail(d.help("cast the other operand to a wider type first, for example `.to(tl.int64)`"));
                    }
                }
                let elem = ElemTy::Num(dtype);
                self.const_as(c, elem, crate::types::scalar_shape())
            }
            _ => {
                let t = self.tensor(arg, "an operand")?;
                self.cast(t, ElemTy::Num(dtype))
            }
        }
    }

    fn arithmetic(
        &mut self,
        op: Operator,
        l: &Arg<'a>,
        r: &Arg<'a>,
        signed: OpKind,
        unsigned: OpKind,
        float: Option<OpKind>,
    ) -> R<Tensor> {
        let symbol = op.symbol();
        if float.is_none() {
            self.need_integers(op, l, r)?;
        }
        let (a, b) = self.operands(symbol, l, r, op == Operator::FloorDiv)?;
        let kind = match float {
            Some(kind) if a.elem.is_float() => {
                self.no_fp8(symbol, a, l.span)?;
                kind
            }
            _ if a.elem.is_signed() => signed,
            _ => unsigned,
        };
        if let (OpKind::ShlI {} | OpKind::ShrSI {} | OpKind::ShrUI {}, Val::Const(Const::Int(n))) = (&kind, &r.val)
            && *n >= i128::from(a.elem.bits())
        {
            let message = format!("shifting {} by {n} bits has no defined result", a.elem);
            self.warn(Code::OUT_OF_RANGE, r.span, message, "");
        }
        let result = self.each(kind, &[a.value, b.value], a)?;
        if op == Operator::Mult
            && a.elem.is_int()
            && !self.in_library()
            && let Some(product) = self.kernel.def_op(result.value)
        {
            self.lint_sites.products.insert(product, [l.site(), r.site()]);
        }
        self.check_overflow(op, a, b, result)?;
        Ok(result)
    }

    /// In debug mode: a device assertion that a narrow integer operation did not wrap.
    fn check_overflow(&mut self, op: Operator, a: Tensor, b: Tensor, _result: Tensor) -> R<()> {
        let narrow = a.elem.is_int() && a.elem.bits() < 64 && a.elem != ElemTy::I1;
        let watched = matches!(op, Operator::Add | Operator::Sub | Operator::Mult);
        if !self.options.debug || !self.options.sanitize_overflow || !narrow || !watched || self.in_library() {
            return Ok(());
        }
        let Some(dtype) = a.elem.num() else { return Ok(()) };
        let (x, y) = (self.cast(a, ElemTy::I64)?, self.cast(b, ElemTy::I64)?);
        let kind = match op {
            Operator::Add => OpKind::AddI {},
            Operator::Sub => OpKind::SubI {},
            _ => OpKind::MulI {},
        };
        let wide = self.each(kind, &[x.value, y.value], x)?;
        let (low, high) = int_range(dtype);
        let mut bound = |limit: i128, predicate| -> R<Tensor> {
            let limit = self.int_literal(limit as i64, ElemTy::I64, wide.shape)?;
            let value = self.emit(OpKind::CmpI { predicate }, &[wide.value, limit.value])?;
            Ok(Tensor { value, elem: ElemTy::I1, ..wide })
        };
        let (above, below) = (bound(low, Predicate::Ge)?, bound(high, Predicate::Le)?);
        let fits = self.each(OpKind::AndI {}, &[above.value, below.value], above)?;
        let name = dtype.name();
        self.device_assertion(fits, &format!("{name} overflow in `{}`", op.symbol()), None)
    }

    fn need_integers(&mut self, op: Operator, l: &Arg<'a>, r: &Arg<'a>) -> R<()> {
        for (arg, other) in [(l, r), (r, l)] {
            let float = match &arg.val {
                Val::Tensor(t) => t.elem.is_float(),
                Val::Const(c) => matches!(c, Const::Float(_)),
                _ => false,
            };
            if float {
                let help = match op {
                    Operator::FloorDiv => "write `tl.floor(x / y)`, or cast to an integer type",
                    _ => "cast to an integer type first, or take the bits with `x.to(tl.int32, bitcast=True)`",
                };
                let d = Diagnostic::error(
                    Code::TYPE_MISMATCH,
                    self.span,
                    format!(
                        "invalid operands of type {} and {}: `{}` works on integers only",
                        l.val.describe(),
                        r.val.describe(),
                        op.symbol()
                    ),
                )
                .label(arg.span, format!("this is {}", arg.val.describe()))
                .label(other.span, format!("this is {}", other.val.describe()))
                .help(help);
                return self.fail(d);
            }
        }
        Ok(())
    }

    /// Reports arithmetic on 8-bit floats.
    pub(crate) fn no_fp8(&mut self, symbol: &str, t: Tensor, span: Span) -> R<()> {
        if !t.elem.is_fp8() {
            return Ok(());
        }
        let d = Diagnostic::error(Code::TYPE_MISMATCH, self.span, format!("`{symbol}` does not work on {}", t.elem))
            .label(span, format!("this is {t}"))
            .help("8-bit floats can be loaded, stored and multiplied by `tl.dot`; cast them first: `x.to(tl.float16)`");
        self.fail(d)
    }

    fn true_division(&mut self, l: &Arg<'a>, r: &Arg<'a>) -> R<Tensor> {
        let (a, b) = self.operands("/", l, r, true)?;
        self.no_fp8("/", a, l.span)?;
        let (a, b) = if a.elem.is_int() { (self.cast(a, ElemTy::F32)?, self.cast(b, ElemTy::F32)?) } else { (a, b) };
        self.each(OpKind::DivF {}, &[a.value, b.value], a)
    }

    fn remainder(&mut self, l: &Arg<'a>, r: &Arg<'a>) -> R<Tensor> {
        let (a, b) = self.operands("%", l, r, true)?;
        self.no_fp8("%", a, l.span)?;
        if a.elem.is_int() {
            let kind = if a.elem.is_signed() { OpKind::RemSI {} } else { OpKind::RemUI {} };
            return self.each(kind, &[a.value, b.value], a);
        }
        // x - trunc(x / y) * y, and x itself where y is infinite.
        let q = self.each(OpKind::DivFRn {}, &[a.value, b.value], a)?;
        let q = self.each(OpKind::Truncate {}, &[q.value], a)?;
        let minus = self.each(OpKind::NegF {}, &[q.value], a)?;
        let rest = self.each(OpKind::Fma {}, &[minus.value, b.value, a.value], a)?;
        let size = self.each(OpKind::AbsF {}, &[b.value], b)?;
        let infinity = self.literal(Literal::float(f64::INFINITY), b.elem, b.shape)?;
        let infinite = self.emit(OpKind::CmpF { predicate: Predicate::Eq }, &[size.value, infinity.value])?;
        self.each(OpKind::Select {}, &[infinite, a.value, rest.value], a)
    }

    /// `pointer + integer`, `integer + pointer`, `pointer - integer`.
    fn move_pointer(&mut self, op: Operator, l: &Arg<'a>, r: &Arg<'a>) -> R<Tensor> {
        let symbol = op.symbol();
        let (pointer, offset) = match (is_pointer(&l.val), is_pointer(&r.val)) {
            (true, false) => (l, r),
            (false, true) if op == Operator::Add => (r, l),
            _ => return self.pointer_operand(symbol, l, r),
        };
        let p = self.tensor(pointer, "a pointer")?;
        let o = self.tensor(offset, "an offset")?;
        if !o.elem.is_int() {
            let d = Diagnostic::error(Code::TYPE_MISMATCH, self.span, "a pointer can be moved by integers only")
                .label(pointer.span, format!("this is {p}"))
                .label(offset.span, format!("this is {}", offset.val.describe()))
                .help("cast the offset to an integer type: `.to(tl.int32)`");
            return self.fail(d);
        }
        let o = self.signed_offset(o)?;
        let (p, mut o) = self.broadcast_pair((p, pointer.span), (o, offset.span), &format!("in `{symbol}`"))?;
        if op == Operator::Sub {
            let zero = self.int_literal(0, o.elem, o.shape)?;
            o = self.each(OpKind::SubI {}, &[zero.value, o.value], o)?;
        }
        self.each(OpKind::AddPtr {}, &[p.value, o.value], p)
    }

    /// An integer as `addptr` takes it: signed, 32 or 64 bits.
    pub(crate) fn signed_offset(&mut self, o: Tensor) -> R<Tensor> {
        match o.elem {
            ElemTy::Num(d) if d.bits() == 64 => Ok(o),
            ElemTy::Num(d) if d.is_signed() && d.bits() == 32 => Ok(o),
            ElemTy::Num(d) if d.is_signed() || d.bits() < 32 => self.cast(o, ElemTy::I32),
            _ => self.cast(o, ElemTy::I64),
        }
    }

    /// `x ** n`: by multiplications for small whole powers, else by the library's `pow`.
    fn power(&mut self, l: &Arg<'a>, r: &Arg<'a>) -> R<Tensor> {
        let exponent = match &r.val {
            Val::Const(Const::Int(n)) => Some(*n),
            Val::Const(Const::Float(x)) if x.fract() == 0.0 && x.abs() <= 64.0 => Some(*x as i128),
            _ => None,
        };
        let base = self.tensor(l, "the base of `**`")?;
        let float = base.elem.is_float();
        if let Some(n) = exponent
            && (0..=64).contains(&n)
            && base.elem.num().is_some()
            && (float || matches!(r.val, Val::Const(Const::Int(_))))
        {
            self.no_fp8("**", base, l.span)?;
            let kind = if float { OpKind::MulF {} } else { OpKind::MulI {} };
            let mut result = self.const_as(&Const::Int(1), base.elem, base.shape)?;
            let (mut power, mut left, mut first) = (base, n, true);
            while left > 0 {
                if left & 1 == 1 {
                    result = if first { power } else { self.each(kind.clone(), &[result.value, power.value], base)? };
                    first = false;
                }
                left >>= 1;
                if left > 0 {
                    power = self.each(kind.clone(), &[power.value, power.value], base)?;
                }
            }
            return Ok(result);
        }
        let dtype = if base.elem == ElemTy::Num(DType::Fp64) { ElemTy::Num(DType::Fp64) } else { ElemTy::F32 };
        let exponent = self.tensor(r, "the exponent of `**`")?;
        let args = [base, exponent].map(|t| self.cast(t, dtype));
        let [x, y] = args;
        let (x, y) = self.broadcast_pair((x?, l.span), (y?, r.span), "in `**`")?;
        let Some(pow) = self.library_function("pow") else {
            let span = self.span;
            return self.error(
                Code::UNSUPPORTED,
                span,
                "blocks have no operator `**` for this exponent",
                "write `tl.exp2(y * tl.log2(x))`",
            );
        };
        let args = vec![Arg::new(Val::Tensor(x), l.span), Arg::new(Val::Tensor(y), r.span)];
        let span = self.span;
        match self.call_positional(&Val::Function(pow), args, span)? {
            Val::Tensor(t) => Ok(t),
            _ => Err(crate::emitter::Fault),
        }
    }

    /// `op operand`.
    pub(crate) fn unary(&mut self, op: UnaryOp, operand: &Arg<'a>) -> R<Val<'a>> {
        match &operand.val {
            Val::Const(c) => match const_eval::unary(op, c) {
                Ok(c) => return Ok(Val::Const(c)),
                Err(why) => {
                    let span = self.span;
                    return self.error(Code::TYPE_MISMATCH, span, why, "");
                }
            },
            Val::Tensor(_) => {}
            other if op == UnaryOp::Not && self.host() => {
                let truth = self.truth(&other.clone(), operand.span)?;
                return Ok(Val::bool(!truth));
            }
            _ => {}
        }
        let t = self.tensor(operand, &format!("the operand of `{}`", op.symbol()))?;
        let refuse = |cx: &mut Cx<'a>, message: String, help: &str| {
            let d = Diagnostic::error(Code::TYPE_MISMATCH, cx.span, message)
                .label(operand.span, format!("this is {t}"))
                .help(help);
            cx.fail(d)
        };
        if t.elem.ptr().is_some() {
            let help = "pointers can be moved, loaded from and stored to; `.to(tl.int64)` gives the address";
            return refuse(self, format!("`{}` does not work on pointers", op.symbol()), help);
        }
        Ok(Val::Tensor(match op {
            UnaryOp::UAdd => t,
            UnaryOp::USub => {
                self.no_fp8("-", t, operand.span)?;
                let zero = self.const_as(&Const::Int(0), t.elem, t.shape)?;
                let kind = if t.elem.is_float() { OpKind::SubF {} } else { OpKind::SubI {} };
                self.each(kind, &[zero.value, t.value], t)?
            }
            UnaryOp::Invert => {
                if !t.elem.is_int() {
                    return refuse(self, "`~` works on integers only".into(), "cast to an integer type first");
                }
                let ones = self.int_literal(-1, t.elem, t.shape)?;
                self.each(OpKind::XorI {}, &[t.value, ones.value], t)?
            }
            UnaryOp::Not => {
                if t.elem != ElemTy::I1 {
                    return refuse(
                        self,
                        format!("`not` works on truth values only, not on {t}"),
                        "compare with zero: `x == 0`",
                    );
                }
                let ones = self.int_literal(1, t.elem, t.shape)?;
                self.each(OpKind::XorI {}, &[t.value, ones.value], t)?
            }
        }))
    }

    /// `l op r` for the six orderings; constants take their own type here.
    pub(crate) fn compare(&mut self, op: CmpOp, l: &Arg<'a>, r: &Arg<'a>) -> R<Val<'a>> {
        self.need_numbers(op.symbol(), l, r)?;
        for (arg, other) in [(l, r), (r, l)] {
            if is_pointer(&arg.val) {
                return self.pointer_operand(op.symbol(), arg, other);
            }
        }
        let (a, b) = (self.tensor(l, "an operand")?, self.tensor(r, "an operand")?);
        let (x, y) = (Arg::new(Val::Tensor(a), l.span), Arg::new(Val::Tensor(b), r.span));
        let dtype = self.common_dtype(op.symbol(), &x, &y, false)?;
        let (a, b) = (self.cast(a, ElemTy::Num(dtype))?, self.cast(b, ElemTy::Num(dtype))?);
        self.no_fp8(op.symbol(), a, l.span)?;
        let (a, b) = self.broadcast_pair((a, l.span), (b, r.span), &format!("in `{}`", op.symbol()))?;
        let predicate = predicate(op, a.elem.is_float() || a.elem.is_signed());
        let kind = if a.elem.is_float() { OpKind::CmpF { predicate } } else { OpKind::CmpI { predicate } };
        let value = self.emit(kind, &[a.value, b.value])?;
        Ok(Val::Tensor(Tensor { value, elem: ElemTy::I1, shape: a.shape }))
    }

    /// `l and r`, `l or r` on booleans at run time; both operands are evaluated.
    pub(crate) fn logical(&mut self, and: bool, l: &Arg<'a>, r: &Arg<'a>) -> R<Val<'a>> {
        let word = if and { "and" } else { "or" };
        let mut pair = Vec::with_capacity(2);
        for arg in [l, r] {
            let t = self.tensor(arg, &format!("an operand of `{word}`"))?;
            if t.elem != ElemTy::I1 {
                let d = Diagnostic::error(
                    Code::TYPE_MISMATCH,
                    self.span,
                    format!("`{word}` works on truth values only, not on {t}"),
                )
                .label(arg.span, format!("this is {t}"))
                .help("compare with zero first: `(x != 0) and ...`");
                return self.fail(d);
            }
            if t.shape.rank() > 0 {
                let symbol = if and { "&" } else { "|" };
                self.warn(
                    Code::DEPRECATED,
                    arg.span,
                    format!("`{word}` on blocks is deprecated"),
                    &format!("write `a {symbol} b`"),
                );
            }
            pair.push(t);
        }
        let (a, b) = self.broadcast_pair((pair[0], l.span), (pair[1], r.span), &format!("in `{word}`"))?;
        let kind = if and { OpKind::AndI {} } else { OpKind::OrI {} };
        Ok(Val::Tensor(self.each(kind, &[a.value, b.value], a)?))
    }
}

fn is_pointer(val: &Val<'_>) -> bool {
    matches!(val, Val::Tensor(t) if t.elem.ptr().is_some())
}

/// The predicate of a comparison; floats and signed integers share names.
pub(crate) fn predicate(op: CmpOp, signed: bool) -> Predicate {
    match (op, signed) {
        (CmpOp::NotEq, _) => Predicate::Ne,
        (CmpOp::Lt, true) => Predicate::Lt,
        (CmpOp::LtE, true) => Predicate::Le,
        (CmpOp::Gt, true) => Predicate::Gt,
        (CmpOp::GtE, true) => Predicate::Ge,
        (CmpOp::Lt, false) => Predicate::Ult,
        (CmpOp::LtE, false) => Predicate::Ule,
        (CmpOp::Gt, false) => Predicate::Ugt,
        (CmpOp::GtE, false) => Predicate::Uge,
        _ => Predicate::Eq,
    }
}
