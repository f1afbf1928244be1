//! Layouts of values, for hover: the kernel is taken through the passes that assign layouts when a layout is first asked for.

use rtc_ir::{Kernel, Type, ValueDef, walk};
use rtc_layout::Layout;
use rtc_passes::{PassContext, PassError};
use rtc_sema::{ModuleAst, TargetInfo, inspect_kernel};
use rtc_source::{FileId, Span};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::picture::picture;
use crate::session::Session;
use crate::specialize::Choice;

/// The number of kernels whose layouts are kept.
const MAX_KEPT: usize = 16;
/// The number of layouts of one name that are shown.
const MAX_SHOWN: usize = 2;

/// The values of a kernel that have layouts.
#[derive(Debug, Default)]
pub(crate) struct Laid {
    values: Vec<LaidValue>,
}

#[derive(Debug)]
struct LaidValue {
    /// The variable, and a place in the function that it belongs to.
    name: String,
    place: Span,
    /// Its type in tile IR.
    ty: String,
    layout: Layout,
}

impl Laid {
    /// The layouts of a variable of the function at these bytes, whose values have one of these types, if they are known.
    fn of(&self, name: &str, function: Span, types: Option<&[&str]>) -> Vec<(&str, &Layout)> {
        let mut found: Vec<(&str, &Layout)> = Vec::new();
        let inside =
            |place: Span| place.file == function.file && function.start <= place.start && place.end <= function.end;
        for value in self.values.iter().filter(|value| value.name == name && inside(value.place)) {
            let is_new = found.iter().all(|(_, layout)| **layout != value.layout);
            if is_new && types.is_none_or(|types| types.contains(&value.ty.as_str())) {
                found.push((&value.ty, &value.layout));
            }
        }
        found
    }
}

impl Session {
    /// The layouts of a variable as Markdown, in the kernels that it is a part of. `fact` is the place with its types.
    pub(crate) fn layouts(&mut self, id: FileId, fact: Span, name: &str, types: Option<&[&str]>) -> Option<String> {
        let analysis = self.analysis(id);
        let tree = self.file(id).tree.clone();
        let inside = |outer: Span| outer.start <= fact.start && fact.end <= outer.end;
        let function = tree.body.iter().find(|statement| inside(statement.span))?.span;
        for (at, (_, choice)) in analysis.choices.iter().enumerate() {
            let Some(unit) = self.file(id).units.get(at) else { continue };
            if !unit.has(fact) {
                continue;
            }
            let laid = self.laid_kernel(id, unit.key(), choice);
            let found = laid.of(name, function, types);
            if !found.is_empty() {
                let shown: Vec<String> = found
                    .iter()
                    .take(MAX_SHOWN)
                    .map(|(ty, layout)| format!("`{ty}`: {}\n\n```text\n{}\n```", layout.describe(), picture(layout)))
                    .collect();
                let more = if found.len() > MAX_SHOWN { "\n\nand further layouts in other places" } else { "" };
                return Some(format!("layout for `{}`: {}{more}", choice.target.name, shown.join("\n\n")));
            }
        }
        None
    }

    /// The layouts of a kernel. The key stands for all that it depends on.
    fn laid_kernel(&mut self, id: FileId, key: u64, choice: &Choice) -> Rc<Laid> {
        if let Some((_, known)) = self.laid.iter().find(|(known, _)| *known == (id, key)) {
            return known.clone();
        }
        self.laid_out += 1;
        let found = self.with_imports(id);
        let modules: Vec<_> = found.iter().map(|(name, id)| (name.clone(), self.file(*id).tree.clone())).collect();
        let modules: Vec<ModuleAst<'_>> = modules.iter().map(|(name, ast)| ModuleAst { name, ast }).collect();
        let sources = self.sources();
        let target = TargetInfo { target: choice.target, external_libdevice: false };
        // A pass that panics must not take the rest of the answer with it.
        let laid = catch_unwind(AssertUnwindSafe(|| {
            let (kernel, _) = inspect_kernel(&sources, &modules, &choice.spec, target).kernel?;
            lay(kernel, choice)
        }));
        let laid = Rc::new(laid.ok().flatten().unwrap_or_default());
        if self.laid.len() >= MAX_KEPT {
            self.laid.remove(0);
        }
        self.laid.push(((id, key), laid.clone()));
        laid
    }
}

impl Session {
    /// How many kernels were taken through the passes since the session began: those for which a layout was asked, once for
    /// each version of the text.
    pub fn laid(&self) -> usize {
        self.laid_out
    }
}

/// Takes a kernel through the passes that work on layouts.
fn lay(mut kernel: Kernel, choice: &Choice) -> Option<Laid> {
    let options = &choice.spec.options;
    let cx = PassContext {
        target: choice.target,
        max_instructions: options.max_instructions,
        structure: options.structure,
        overlap_launches: options.overlap_launches,
        plan: Default::default(),
        instrument: 0,
    };
    let mut last = None;
    // The passes after the last one of the phase move operations into loops of their own.
    let outcome = rtc_passes::run_through(&mut kernel, &cx, &mut |_, kernel| match kernel.phase {
        rtc_ir::Phase::Tile => Ok(()),
        rtc_ir::Phase::Laid => {
            last = Some(kernel.clone());
            Ok(())
        }
        _ => Err(PassError::Internal("the layouts are known".into())),
    });
    drop(outcome);
    Some(values(&last?))
}

fn values(kernel: &Kernel) -> Laid {
    let mut laid = Laid::default();
    for op in walk(kernel) {
        let data = kernel.op(op);
        let args = data.blocks.iter().flat_map(|block| kernel.block(*block).args.iter());
        for value in data.results.iter().chain(args) {
            let (Type::Tile(tile), Some(name)) = (kernel.value_type(*value), &kernel.value(*value).name) else {
                continue;
            };
            let (Some(layout), Some(place)) = (tile.layout, kernel.loc(data.loc).span) else { continue };
            debug_assert!(matches!(kernel.value(*value).def, ValueDef::Arg(..) | ValueDef::Result(..)));
            laid.values.push(LaidValue {
                name: name.clone(),
                place,
                ty: Type::Tile(tile).without_layout().to_string(),
                layout: kernel.layout(layout).clone(),
            });
        }
    }
    laid
}
