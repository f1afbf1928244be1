//! The constants in the body of a class: `Settings.SCALE`.

use rtc_source::Span;
use rtc_syntax::ast::{ClassDef, Expr, StmtKind, Symbol};

use crate::bound_names::bound_names;
use crate::changes::Change;
use crate::emitter::{Fault, R};
use crate::evaluator::Evaluator;
use crate::modules::ModuleId;
use crate::values::Val;

impl<'a> Evaluator<'a> {
    /// The value of `NAME = expr` in the body of a class.
    pub(crate) fn class_constant(
        &mut self,
        class: &'a ClassDef,
        module: ModuleId,
        name: &Symbol,
        span: Span,
    ) -> R<Option<Val<'a>>> {
        let mut values = class.body.iter().filter_map(|stmt| match &stmt.kind {
            StmtKind::Assign { targets, value } => Some((targets.as_slice(), value)),
            StmtKind::AnnAssign { target, value: Some(value), .. } => Some((std::slice::from_ref(target), value)),
            _ => None,
        });
        let found = values.rfind(|(targets, _)| targets.iter().any(|t| t.as_name() == Some(name)));
        let mut bound = Vec::new();
        bound_names(&class.body, &mut bound);
        let places: Vec<Span> = bound.iter().filter(|(n, _)| *n == &**name).map(|(_, span)| *span).collect();
        let changes = self.world.user_file(module).map(|file| &file.changes);
        let path = format!("{}.{name}", class.name.text);
        let assigned = changes.and_then(|c| c.rebound.get(&path).or_else(|| c.mutated.get(&path))).copied();
        self.span = span;
        match (places.as_slice(), found) {
            ([], _) => Ok(None),
            ([first, .., last], _) => {
                let change = Change { span: *last, how: "is bound again here", is_certain: true };
                self.changed_global(&path, Some(*first), change).map(Some)
            }
            ([place], _) if assigned.is_some() => {
                let change = assigned.ok_or(Fault)?;
                self.changed_global(&path, Some(*place), change).map(Some)
            }
            ([place], None) => {
                let change = Change { span: *place, how: "gets its value only when the module runs", is_certain: true };
                self.changed_global(&path, None, change).map(Some)
            }
            ([_], Some((_, value))) => {
                let moment = self.world.moment_of_class(module, class);
                self.push_host_frame(module, class.name.text.clone());
                self.frame_mut().moment = moment;
                let result = self.in_class_body(class, module, value);
                self.frames.pop();
                self.span = span;
                result.map(Some)
            }
        }
    }

    /// Evaluates an expression in the body of a class, whose names hide those of the module.
    fn in_class_body(&mut self, class: &'a ClassDef, module: ModuleId, value: &'a Expr) -> R<Val<'a>> {
        let mut read = Vec::new();
        names_in(value, &mut read);
        for name in read {
            if let Some(val) = self.deeper(value.span, |cx| cx.class_constant(class, module, name, value.span))? {
                self.bind(name, val, value.span);
            }
        }
        self.eval(value)
    }
}

fn names_in<'a>(expr: &'a Expr, found: &mut Vec<&'a Symbol>) {
    found.extend(expr.as_name());
    rtc_syntax::ast::walk_children(expr, &mut |child| names_in(child, found));
}
