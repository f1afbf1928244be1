//! Line information: the debug scope that makes LLVM write `.loc` lines.
//!
//! Only directives are emitted (`.file`, `.loc`), no debug sections: the PTX
//! stays small, and tools still map instructions to source lines.

use melior::{
    Context,
    ir::{Location, attribute::StringAttribute},
};

use crate::emit::parsed;

/// The location of a function that starts at `line` of `file`, fused with its debug scope.
pub(crate) fn function_location<'c>(context: &'c Context, name: &str, file: &str, line: usize) -> Location<'c> {
    // Attributes print their own escapes, so quoting goes through MLIR.
    let quoted = |text: &str| StringAttribute::new(context, text).to_string();
    let (directory, base) = file.rsplit_once('/').unwrap_or(("", file));
    let source = format!("#llvm.di_file<{} in {}>", quoted(base), quoted(directory));
    let unit = format!(
        "#llvm.di_compile_unit<id = distinct[0]<>, sourceLanguage = DW_LANG_C, file = {source}, \
         producer = \"rtc\", isOptimized = true, emissionKind = DebugDirectivesOnly>"
    );
    let scope = format!(
        "#llvm.di_subprogram<id = distinct[1]<>, compileUnit = {unit}, scope = {source}, name = {}, file = {source}, \
         line = {line}, scopeLine = {line}, subprogramFlags = \"Definition|Optimized\", \
         type = <callingConvention = DW_CC_normal>>",
        quoted(name)
    );
    Location::fused(context, &[Location::new(context, file, line, 1)], parsed(context, &scope))
}
