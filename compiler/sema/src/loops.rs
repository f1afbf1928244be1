//! Loops: run-time ones carry the names that their body changes, static ones are unrolled.
//!
//! The names that a run-time loop carries are determined before its body is evaluated: those that are live and that the
//! body assigns anywhere. A name that turns out to be unchanged is removed again.

use rtc_ir::{Block, OpKind, Value};
use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::{Expr, ExprKind, Stmt, Symbol};

use crate::emitter::{Fault, R};
use crate::evaluator::Evaluator;
use crate::expect::NO_STEP;
use crate::expr::Condition;
use crate::frames::{Binding, Gone, Scope};
use crate::promote;
use crate::spec::DType;
use crate::stmt::{Flow, Todo, assigned};
use crate::types::{ElemTy, ir_type, scalar_shape};
use crate::values::{Arg, Const, Range, Tensor, Val};

/// A name that a loop carries.
struct Carried<'a> {
    name: Symbol,
    /// Before the loop.
    initial: Val<'a>,
    assigned: Span,
    /// Version of the binding to the block arguments.
    version: u32,
    args: Vec<Value>,
    initial_values: Vec<Value>,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn exec_for(&mut self, target: &'a Expr, iter: &'a Expr, body: &'a [Stmt], span: Span) -> R<Flow<'a>> {
        let over = self.eval(iter)?;
        match over {
            Val::Range(r) if r.is_static || self.host() => {
                let items = self.range_items(&r, iter.span)?;
                self.unroll(target, items, body, iter.span)
            }
            Val::Range(r) => {
                self.run_for(target, &r, body, span)?;
                Ok(Flow::Next)
            }
            Val::Tuple(t) => self.unroll(target, t.items.clone(), body, iter.span),
            Val::Dict(d) => self.unroll(target, d.iter().map(|(key, _)| key.clone()).collect(), body, iter.span),
            other => self.not_iterable(&other, iter.span),
        }
    }

    /// Runs the body once per item.
    fn unroll(&mut self, target: &'a Expr, items: Vec<Val<'a>>, body: &'a [Stmt], at: Span) -> R<Flow<'a>> {
        let branches = std::mem::take(&mut self.frame_mut().branches);
        self.frame_mut().static_loops += 1;
        let mut result = Ok(Flow::Next);
        for item in items {
            if self.fatal {
                result = Err(Fault);
                break;
            }
            if let Err(e) = self.assign_target(target, item, at) {
                result = Err(e);
                break;
            }
            match self.exec(Todo::new(body), false) {
                Flow::Next | Flow::Continue => {}
                Flow::Break => break,
                flow @ Flow::Returned(_) => {
                    result = Ok(flow);
                    break;
                }
                Flow::Maybe(_, ret) => {
                    result = self.error(
                        Code::UNSUPPORTED,
                        ret.span,
                        "`return` under a run-time condition does not work inside of a loop",
                        "collect the result in a variable and return it after the loop",
                    );
                    break;
                }
            }
        }
        self.frame_mut().branches = branches;
        self.frame_mut().static_loops -= 1;
        result
    }

    /// An integer bound or step of a run-time loop.
    fn loop_bound(&mut self, val: &Val<'a>, span: Span, what: &str) -> R<Tensor> {
        self.span = span;
        let t = self.tensor(&Arg::new(val.clone(), span), &format!("the {what} of a range"))?;
        if !t.elem.is_int() || t.shape.rank() > 0 {
            let d = Diagnostic::error(
                Code::TYPE_MISMATCH,
                span,
                format!("the {what} of a range must be an integer scalar, not {t}"),
            )
            .primary(format!("this is {t}"))
            .help(if t.shape.rank() > 0 {
                "reduce the block to a scalar first"
            } else {
                "cast it: `.to(tl.int32)`; a quotient of integers is written `a // b`, rounded up `tl.cdiv(a, b)`"
            });
            return self.fail(d);
        }
        Ok(t)
    }

    fn run_for(&mut self, target: &'a Expr, r: &Range<'a>, body: &'a [Stmt], span: Span) -> R<()> {
        let ExprKind::Name(index_name) = &target.kind else {
            return self.error(Code::UNSUPPORTED, target.span, "a run-time loop has one loop variable", "");
        };
        let mut bounds = [
            self.loop_bound(&r.start, r.spans[0], "start")?,
            self.loop_bound(&r.stop, r.spans[1], "stop")?,
            self.loop_bound(&r.step, r.spans[2], "step")?,
        ];
        let constant_step = match &r.step {
            Val::Const(Const::Int(i)) => Some(*i),
            _ => None,
        };
        if constant_step == Some(0) {
            return self.error(Code::BAD_VALUE, r.spans[2], "the step of a range cannot be 0", NO_STEP);
        }
        let dtypes = bounds.map(|t| t.elem.num().unwrap_or(DType::Int32));
        let dtype = promote::integers(promote::integers(dtypes[0], dtypes[1]), dtypes[2]);
        let elem = ElemTy::Num(dtype);
        self.span = span;
        for t in &mut bounds {
            *t = self.cast(*t, elem)?;
        }
        let down = constant_step.is_some_and(|s| s < 0);
        let [start, stop, step] = bounds;
        let (lower, upper, step) = if down {
            let zero = self.int_literal(0, elem, scalar_shape())?;
            let step = self.each(OpKind::SubI {}, &[zero.value, step.value], step)?;
            (stop, start, step)
        } else {
            (start, stop, step)
        };

        let outer_scope = self.frame().scope.clone();
        let outer_block = self.block;
        let block = self.kernel.new_block();
        let index_type = ir_type(self.ir_elem(elem)?, scalar_shape());
        let name = (!self.in_library()).then(|| index_name.to_string());
        let index = self.kernel.add_arg(block, index_type, name);
        let mut carried = self.carry(body, Some(index_name), block);
        self.block = block;
        let mut index = Tensor { value: index, elem, shape: scalar_shape() };
        if down {
            // Counted upwards: start, start + step, ... is lower + upper - index.
            let built = self
                .each(OpKind::SubI {}, &[upper.value, index.value], index)
                .and_then(|x| self.each(OpKind::AddI {}, &[x.value, lower.value], x));
            index = built.inspect_err(|_| self.block = outer_block)?;
        }
        self.bind(index_name, Val::Tensor(index), target.span);
        self.run_body(body);
        self.span = span;
        let yields = self.finish_body(&mut carried, block, Some(0), span);
        let _ = self.build(OpKind::Yields {}, &[], &[], &yields, &[], &[]);
        self.block = outer_block;

        let inner_scope = std::mem::replace(&mut self.frame_mut().scope, outer_scope);
        let kind = OpKind::ForRange { unsigned: false, hints: r.hints };
        let initial: Vec<Value> = carried.iter().flat_map(|c| c.initial_values.iter().copied()).collect();
        let op = self.build(kind, &[lower.value, upper.value, step.value], &[], &initial, &[block], &[])?;
        let results = self.kernel.op(op).results.to_vec();
        self.after_loop(&inner_scope, carried, results);
        // The name stays bound; what it holds is not defined.
        self.bind(index_name, Val::Tensor(start), target.span);
        Ok(())
    }

    fn run_body(&mut self, body: &'a [Stmt]) {
        let frame = self.frame_mut();
        frame.loops += 1;
        let (static_loops, branches) = (std::mem::take(&mut frame.static_loops), std::mem::take(&mut frame.branches));
        self.exec(Todo::new(body), false);
        let frame = self.frame_mut();
        frame.loops -= 1;
        frame.static_loops = static_loops;
        frame.branches = branches;
    }

    /// Binds the names that the body assigns to arguments of its block.
    fn carry(&mut self, body: &'a [Stmt], except: Option<&Symbol>, block: Block) -> Vec<Carried<'a>> {
        let mut names = Vec::new();
        assigned(body, &mut names);
        let mut carried = Vec::new();
        for (name, _) in names {
            let Some(binding) = self.frame().scope.get(name) else { continue };
            if binding.gone.is_some() || matches!(binding.val, Val::Error) || Some(name) == except {
                continue;
            }
            let (initial, at) = (binding.val.clone(), binding.span);
            let mut initial_values = Vec::new();
            initial.flatten(&mut initial_values);
            let args = self.block_args(block, name, &initial_values);
            self.bind(name, initial.rebuild(&mut args.iter().copied()), at);
            let version = self.frame().scope.get(name).map_or(0, |b| b.version);
            carried.push(Carried { name: name.clone(), initial, assigned: at, version, args, initial_values });
        }
        carried
    }

    fn block_args(&mut self, block: Block, name: &Symbol, values: &[Value]) -> Vec<Value> {
        let named = values.len() == 1 && !self.in_library();
        values
            .iter()
            .map(|v| {
                let ty = self.kernel.value_type(*v);
                self.kernel.add_arg(block, ty, named.then(|| name.to_string()))
            })
            .collect()
    }

    /// Checks that carried names kept their types, takes out those that did not change, and gives what the body yields.
    fn finish_body(
        &mut self,
        carried: &mut Vec<Carried<'a>>,
        block: Block,
        remove_from: Option<usize>,
        span: Span,
    ) -> Vec<Value> {
        let mut yields = Vec::new();
        let mut kept = Vec::new();
        for c in carried.drain(..) {
            let Some(binding) = self.frame().scope.get(&c.name).cloned() else { continue };
            if binding.version == c.version {
                if remove_from.is_some() {
                    for (arg, initial) in c.args.iter().zip(&c.initial_values) {
                        self.kernel.replace_uses(*arg, *initial);
                        // Yields of this body that are not built yet refer to the argument, too.
                        yields.iter_mut().filter(|y| *y == arg).for_each(|y| *y = *initial);
                        if let Some(at) = self.kernel.block(block).args.iter().position(|a| a == arg) {
                            self.kernel.remove_arg(block, at);
                        }
                    }
                    self.replace_in_scope(&c);
                } else {
                    yields.extend(&c.args);
                    kept.push(c);
                }
                continue;
            }
            if matches!(binding.val, Val::Error) || binding.gone.is_some() {
                yields.extend(&c.args);
                kept.push(c);
                continue;
            }
            if !c.initial.same_type(&binding.val) {
                self.changed_type(&c, &binding.val, binding.span, span);
                yields.extend(&c.args);
                kept.push(c);
                continue;
            }
            binding.val.flatten(&mut yields);
            kept.push(c);
        }
        *carried = kept;
        yields
    }

    /// Other names that hold the removed arguments get the initial values.
    fn replace_in_scope(&mut self, c: &Carried<'a>) {
        let replace = |v: Value| match c.args.iter().position(|a| *a == v) {
            Some(i) => c.initial_values[i],
            None => v,
        };
        for (_, binding) in self.frame_mut().scope.iter_mut() {
            let mut values = Vec::new();
            binding.val.flatten(&mut values);
            if values.iter().any(|v| c.args.contains(v)) {
                binding.val = binding.val.rebuild(&mut values.into_iter().map(replace));
            }
        }
    }

    fn changed_type(&mut self, c: &Carried<'a>, now: &Val<'a>, at: Span, span: Span) {
        let name = &c.name;
        let constant = c.initial.is_constant();
        let mut d = Diagnostic::error(
            Code::CHANGED_TYPE,
            at,
            if constant {
                format!("`{name}` is a compile-time constant and cannot change in a run-time loop")
            } else {
                format!("`{name}` changes its type in the loop")
            },
        )
        .primary(format!("here it becomes {}", now.describe()))
        .label(c.assigned, format!("before the loop it is {}", c.initial.describe()));
        let help = match (&c.initial, now) {
            (Val::Tensor(a), Val::Tensor(b)) if a.shape != b.shape => {
                let dims: Vec<String> = b.shape.iter().map(u32::to_string).collect();
                format!(
                    "start with a block of that shape: `{name} = tl.zeros(({},), dtype=tl.{})`",
                    dims.join(", "),
                    long_name(b.elem)
                )
            }
            (Val::Tensor(a), Val::Tensor(b)) => format!(
                "start with {}, or cast back at the end of the body: `{name} = {name}.to(tl.{})`",
                b.elem,
                long_name(a.elem)
            ),
            (Val::Const(Const::None), _) => format!("give `{name}` a value of the final type before the loop"),
            _ if constant => format!("make it a run-time value before the loop: `{name}_ = {name}`"),
            _ => "keep one type through all iterations".into(),
        };
        if !span_contains(span, c.assigned) {
            d = d.note("a run-time loop keeps one type per variable, because its body is compiled once");
        }
        self.report(d.help(help));
    }

    /// Rebinds the carried names to the results of the loop; names of the body end with it.
    fn after_loop(&mut self, inner: &Scope<'a>, carried: Vec<Carried<'a>>, results: Vec<Value>) {
        let mut results = results.into_iter();
        for c in &carried {
            let val = c.initial.rebuild(&mut results);
            let changed = inner.get(&c.name).filter(|b| b.version != c.version);
            let at = changed.map_or(c.assigned, |b| b.span);
            // A change of type was reported; nothing more is reported about it.
            let wrong = |b: &Binding<'a>| matches!(b.val, Val::Error) || !c.initial.same_type(&b.val);
            let val = if changed.is_some_and(wrong) { Val::Error } else { val };
            let name = c.name.clone();
            self.bind(&name, val, at);
        }
        let new: Vec<(Symbol, Span, bool)> = inner
            .iter()
            .filter(|(name, _)| !self.frame().scope.contains_key(*name))
            .map(|(name, b)| (name.clone(), b.span, matches!(b.val, Val::Error) && b.gone.is_none()))
            .collect();
        for (name, at, error) in new {
            if error {
                self.bind(&name, Val::Error, at);
            } else {
                self.bind_gone(&name, at, Gone::LoopBody);
            }
        }
    }

    pub(crate) fn exec_while(&mut self, test: &'a Expr, body: &'a [Stmt], span: Span) -> R<Flow<'a>> {
        if self.host() {
            return self.host_while(test, body, span);
        }
        let outer_scope = self.frame().scope.clone();
        let outer_block = self.block;
        let condition_block = self.kernel.new_block();
        let mut carried = self.carry(body, None, condition_block);
        self.block = condition_block;
        let go_on = self.while_condition(test);
        self.block = outer_block;
        let go_on = match go_on {
            Ok(t) => t,
            Err(e) => {
                self.frame_mut().scope = outer_scope;
                return Err(e);
            }
        };
        let args: Vec<Value> = carried.iter().flat_map(|c| c.args.iter().copied()).collect();
        self.block = condition_block;
        self.span = test.span;
        let _ = self.build(OpKind::Condition {}, &[go_on.value], &[], &args, &[], &[]);

        let block = self.kernel.new_block();
        self.block = block;
        for c in &mut carried {
            let args = self.block_args(block, &c.name, &c.initial_values);
            let val = c.initial.rebuild(&mut args.iter().copied());
            let name = c.name.clone();
            self.bind(&name, val, c.assigned);
            c.version = self.frame().scope.get(&name).map_or(0, |b| b.version);
            c.args = args;
        }
        self.run_body(body);
        self.span = span;
        let yields = self.finish_body(&mut carried, block, None, span);
        let _ = self.build(OpKind::Yields {}, &[], &[], &yields, &[], &[]);
        self.block = outer_block;

        let inner_scope = std::mem::replace(&mut self.frame_mut().scope, outer_scope);
        let initial: Vec<Value> = carried.iter().flat_map(|c| c.initial_values.iter().copied()).collect();
        let op = self.build(OpKind::WhileLoop {}, &[], &[], &initial, &[condition_block, block], &[])?;
        let results = self.kernel.op(op).results.to_vec();
        self.after_loop(&inner_scope, carried, results);
        Ok(Flow::Next)
    }

    fn while_condition(&mut self, test: &'a Expr) -> R<Tensor> {
        let arg = self.eval_arg(test)?;
        self.span = test.span;
        match &arg.val {
            Val::Tensor(t) if t.elem == ElemTy::I1 && t.shape.rank() == 0 => Ok(*t),
            Val::Tensor(t) => {
                let help = if t.shape.rank() > 0 {
                    "reduce the block first: `tl.max(c.to(tl.int32)) != 0`"
                } else {
                    "compare it with zero: `x != 0`"
                };
                let d = Diagnostic::error(
                    Code::BAD_CONDITION,
                    test.span,
                    format!("the condition of `while` must be a truth value, not {t}"),
                )
                .primary(format!("this is {t}"))
                .help(help);
                self.fail(d)
            }
            other => {
                let text = other.describe();
                let d = Diagnostic::error(
                    Code::BAD_CONDITION,
                    test.span,
                    format!("the condition of `while` is {text}, so the loop never ends or never starts"),
                )
                .primary("known while compiling")
                .help("compare run-time values, for example `while i < n:`");
                self.fail(d)
            }
        }
    }

    fn host_while(&mut self, test: &'a Expr, body: &'a [Stmt], span: Span) -> R<Flow<'a>> {
        self.frame_mut().static_loops += 1;
        let result = loop {
            if let Err(e) = self.step(span) {
                break Err(e);
            }
            let condition = match self.eval_arg(test).and_then(|arg| self.condition(&arg, "`while`")) {
                Ok(c) => c,
                Err(e) => break Err(e),
            };
            if !matches!(condition, Condition::Static(true)) {
                break Ok(Flow::Next);
            }
            match self.exec(Todo::new(body), false) {
                Flow::Next | Flow::Continue if self.frame().failed => break Err(Fault),
                Flow::Next | Flow::Continue => {}
                Flow::Break => break Ok(Flow::Next),
                flow => break Ok(flow),
            }
        };
        self.frame_mut().static_loops -= 1;
        result
    }
}

fn span_contains(outer: Span, inner: Span) -> bool {
    outer.file == inner.file && outer.start <= inner.start && inner.end <= outer.end
}

/// The name of a type after `tl.`.
fn long_name(elem: ElemTy) -> String {
    match elem {
        ElemTy::Num(DType::Fp16) => "float16".into(),
        ElemTy::Num(DType::Bf16) => "bfloat16".into(),
        ElemTy::Num(DType::Fp32) => "float32".into(),
        ElemTy::Num(DType::Fp64) => "float64".into(),
        other => other.to_string(),
    }
}
