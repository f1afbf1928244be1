//! Line information: the debug scopes that make LLVM write `.file` and `.loc` lines.
//!
//! Only directives are emitted unless variables are wanted, no debug sections: the PTX stays small, and tools still map
//! instructions to source lines. With debug sections NVIDIA's assembler does not optimize. Inlined code keeps its own line,
//! under a scope of its own per file, with the call as its inlining location.

mod variables;

pub(crate) use variables::DebugVariable;

use std::{cell::RefCell, collections::HashMap};

use melior::{
    Context,
    ir::{Attribute, Location, attribute::ArrayAttribute, attribute::StringAttribute},
};
use rtc_ir::{Kernel, Loc, Op, Value, walk};
use rtc_source::{FileId, SourceMap};

use crate::emit::parsed;

/// The MLIR locations of a kernel.
pub(crate) struct Lines<'c> {
    context: &'c Context,
    function: Location<'c>,
    /// The scope of code inlined from a file.
    inlined: HashMap<FileId, Attribute<'c>>,
    places: HashMap<Loc, SourceLine>,
    cache: RefCell<HashMap<Loc, Location<'c>>>,
    variables: HashMap<Value, DebugVariable<'c>>,
}

/// A location of the tile IR with its line looked up.
struct SourceLine {
    /// File, line, column.
    at: Option<(FileId, String, usize, usize)>,
    caller: Option<Loc>,
}

impl<'c> Lines<'c> {
    /// Looks up the lines of all operations; and where they are wanted, the variables.
    pub fn new(context: &'c Context, kernel: &Kernel, sources: &SourceMap, with_variables: bool) -> Self {
        let mut places = HashMap::new();
        let mut files: Vec<FileId> = Vec::new();
        let mut start: Option<(String, usize)> = None;
        for op in walk(kernel) {
            let mut next = Some(kernel.op(op).loc);
            while let Some(loc) = next.filter(|loc| !places.contains_key(loc)) {
                let data = kernel.loc(loc);
                // A kernel that was read from tile IR text may name files that do not exist.
                let at = data.span.and_then(|span| {
                    let name = sources.get(span.file)?.name.clone();
                    let position = sources.position(span);
                    Some((span.file, name, position.line as usize, position.column as usize))
                });
                if let Some((file, name, line, _)) = &at {
                    if data.caller.is_some() && !files.contains(file) {
                        files.push(*file);
                    }
                    if data.caller.is_none() && start.as_ref().is_none_or(|(_, first)| line < first) {
                        start = Some((name.clone(), *line));
                    }
                }
                places.insert(loc, SourceLine { at, caller: data.caller });
                next = data.caller;
            }
        }
        let Some((file, line)) = start else {
            let function = Location::unknown(context);
            return Lines {
                context,
                function,
                inlined: HashMap::new(),
                places: HashMap::new(),
                cache: RefCell::default(),
                variables: HashMap::new(),
            };
        };
        let names: Vec<&str> = files.iter().map(|file| sources.file(*file).name.as_str()).collect();
        let found = with_variables.then(|| variables::collect(kernel));
        let line_of = |op: &Op| Some(places.get(&kernel.op(*op).loc)?.at.as_ref()?.2);
        let declared = found.iter().flatten().map(|variable| {
            let (_, op) = variable.values[0];
            Declared { name: &variable.name, ty: &variable.ty, line: op.as_ref().and_then(line_of).unwrap_or(line) }
        });
        let declared = with_variables.then(|| declared.collect::<Vec<_>>());
        let scopes = scopes(context, &kernel.name, &file, line, &names, declared.as_deref());
        let mut lines = Lines {
            context,
            function: Location::fused(context, &[Location::new(context, &file, line, 1)], scopes[0]),
            inlined: files.into_iter().zip(scopes[1..].iter().copied()).collect(),
            places,
            cache: RefCell::default(),
            variables: HashMap::new(),
        };
        for (variable, attribute) in found.into_iter().flatten().zip(&scopes[1 + names.len()..]) {
            let piece = (variable.elements > 1).then_some(variable.bits);
            for (value, op) in variable.values {
                let location = op.map_or(lines.function, |op| lines.at(kernel.op(op).loc));
                lines.variables.insert(value, DebugVariable { attribute: *attribute, location, piece });
            }
        }
        lines
    }

    /// The variable that a value belongs to.
    pub fn variable(&self, value: Value) -> Option<DebugVariable<'c>> {
        self.variables.get(&value).copied()
    }

    /// The location of the function, which carries its scope.
    pub fn function(&self) -> Location<'c> {
        self.function
    }

    /// The MLIR location of an operation.
    pub fn at(&self, loc: Loc) -> Location<'c> {
        if let Some(known) = self.cache.borrow().get(&loc) {
            return *known;
        }
        let location = self.make(loc);
        self.cache.borrow_mut().insert(loc, location);
        location
    }

    fn make(&self, loc: Loc) -> Location<'c> {
        let Some(place) = self.places.get(&loc) else { return self.function };
        let caller = place.caller.map(|caller| self.at(caller));
        let Some((file, name, line, column)) = &place.at else { return caller.unwrap_or(self.function) };
        let own = Location::new(self.context, name, *line, *column);
        match (caller, self.inlined.get(file)) {
            (Some(caller), Some(scope)) => Location::call_site(Location::fused(self.context, &[own], *scope), caller),
            (_, _) => own,
        }
    }
}

/// A hand-made location of a function, for tests of the layers above.
#[cfg(test)]
pub(crate) fn function_scope<'c>(context: &'c Context, name: &str, file: &str, line: usize) -> Location<'c> {
    Location::fused(context, &[Location::new(context, file, line, 1)], scopes(context, name, file, line, &[], None)[0])
}

/// A variable of the kernel and its first line.
struct Declared<'a> {
    name: &'a str,
    ty: &'a str,
    line: usize,
}

/// The scope of the kernel, which starts at `line` of `file`, one for code inlined from each of `files`, and the variables of the
/// kernel. Without `variables` there are no debug sections.
fn scopes<'c>(
    context: &'c Context,
    name: &str,
    file: &str,
    line: usize,
    files: &[&str],
    variables: Option<&[Declared<'_>]>,
) -> Vec<Attribute<'c>> {
    let kind = if variables.is_some() { "Full" } else { "DebugDirectivesOnly" };
    let unit = format!(
        "#llvm.di_compile_unit<id = distinct[0]<>, sourceLanguage = DW_LANG_C, file = {}, producer = \"rtc\", \
         isOptimized = true, emissionKind = {kind}>",
        file_text(context, file)
    );
    let scope = |id: usize, name: &str, file: &str, line: usize| {
        let file = file_text(context, file);
        format!(
            "#llvm.di_subprogram<id = distinct[{id}]<>, compileUnit = {unit}, scope = {file}, name = {}, \
             file = {file}, line = {line}, scopeLine = {line}, subprogramFlags = \"Definition|Optimized\", \
             type = <callingConvention = DW_CC_normal>>",
            quoted(context, name)
        )
    };
    // One text, so that all scopes share the compile unit: a distinct attribute is new in each parse.
    let kernel = scope(1, name, file, line);
    let variable = |Declared { name, ty, line }: &Declared<'_>| {
        let (name, file) = (quoted(context, name), file_text(context, file));
        format!("#llvm.di_local_variable<scope = {kernel}, name = {name}, file = {file}, line = {line}, type = {ty}>")
    };
    let variables: Vec<String> = variables.unwrap_or_default().iter().map(variable).collect();
    let mut all = vec![kernel];
    all.extend(files.iter().enumerate().map(|(index, file)| scope(index + 2, "inlined", file, 1)));
    all.extend(variables);
    let array = ArrayAttribute::try_from(parsed(context, &format!("[{}]", all.join(", "))));
    let array = array.expect("a text in brackets is an array");
    (0..array.len()).map(|index| array.element(index).expect("index below the length")).collect()
}

/// A file's attribute; the name is split, since PTX's `.file` joins directory and name.
fn file_text(context: &Context, file: &str) -> String {
    let (directory, base) = file.rsplit_once('/').unwrap_or(("", file));
    format!("#llvm.di_file<{} in {}>", quoted(context, base), quoted(context, directory))
}

/// Text in quotes with MLIR's own escapes.
fn quoted(context: &Context, text: &str) -> String {
    StringAttribute::new(context, text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::MlirContext;

    #[test]
    fn scopes_share_a_compile_unit_and_survive_odd_names() {
        let cx = MlirContext::new();
        let scopes = scopes(cx.get(), "k", "a \"b\"\\c/d.rt", 3, &["stdlib/math.rt"], None);
        assert_eq!(scopes.len(), 2);
        assert!(cx.take_diagnostics().is_empty());
    }
}
