//! The codes of all diagnostics, each declared once with its documentation.

/// A diagnostic code such as `shape-mismatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub &'static str);

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal;)*) => {
        impl Code {
            $($(#[doc = $doc])+ pub const $name: Code = Code($text);)*
        }

        /// Every code with its documentation.
        pub const CODES: &[(Code, &str)] = &[$((Code::$name, concat!($($doc, "\n"),+)),)*];
    };
}

codes! {
    /// The text is not valid syntax.
    SYNTAX = "syntax";
    /// A construct of Python that kernels cannot use.
    UNSUPPORTED = "unsupported";
    /// A name that is not defined where it is used.
    UNDEFINED_NAME = "undefined-name";
    /// Shapes that do not broadcast or do not fit the operation.
    SHAPE_MISMATCH = "shape-mismatch";
    /// Element types that the operation does not accept together.
    TYPE_MISMATCH = "type-mismatch";
    /// A compile-time constant is needed.
    EXPECTED_CONSTEXPR = "expected-constexpr";
    /// A `static_assert` whose condition is false.
    STATIC_ASSERT = "static-assert";
    /// The kernel needs more of a resource than the target has.
    OUT_OF_RESOURCES = "out-of-resources";
    /// The target lacks what the kernel needs.
    UNSUPPORTED_TARGET = "unsupported-target";
    /// A name that is already defined where a constexpr is declared.
    ALREADY_DEFINED = "already-defined";
    /// A condition that is neither a scalar nor known while compiling.
    BAD_CONDITION = "bad-condition";
    /// Sizes that no block can have, or a block of the wrong rank.
    BAD_SHAPE = "bad-shape";
    /// A value that the operation does not take.
    BAD_VALUE = "bad-value";
    /// A variable that a loop or branch would give another type.
    CHANGED_TYPE = "changed-type";
    /// Something that still works and has a better form.
    DEPRECATED = "deprecated";
    /// An assignment in one branch that has no effect after it.
    LOST_ASSIGNMENT = "lost-assignment";
    /// A value that cannot be called.
    NOT_CALLABLE = "not-callable";
    /// A number outside of what the type or the operation holds.
    OUT_OF_RANGE = "out-of-range";
    /// A function that calls itself.
    RECURSION = "recursion";
    /// Returns of one function that differ in type.
    RETURN_MISMATCH = "return-mismatch";
    /// An attribute that the value does not have.
    UNKNOWN_ATTRIBUTE = "unknown-attribute";
    /// A result that is thrown away although nothing else was done.
    UNUSED_RESULT = "unused-result";
    /// Arguments that do not fit the parameters.
    WRONG_ARGUMENTS = "wrong-arguments";
    /// A bug of the compiler.
    INTERNAL = "internal";
}
