//! The codes of all diagnostics, each declared once with its documentation.

/// A diagnostic code such as `shape-mismatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub &'static str);

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

/// Reads the name of a code of [`CODES`].
impl<'de> serde::Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Code, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known = CODES.iter().find(|(code, _)| code.0 == name);
        known.map(|(code, _)| *code).ok_or_else(|| serde::de::Error::custom(format!("there is no code `{name}`")))
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
    /// Tile IR that was read and breaks a rule of its operations or of its phase.
    ///
    /// A `.tir` file is verified before anything is done with it. The rules are listed under each operation of the
    /// reference of the tile IR; those of the whole at the top of `compiler/ir/src/verify.rs`.
    INVALID_TILE_IR = "invalid-tile-ir";
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
    /// A variable that is declared as a constexpr and whose value is known only at run time.
    ///
    /// It stays a run-time value: it can be loaded from, added or be the bound of a loop, but it is no shape and selects
    /// no code. Leave out the annotation, or compute it from constexprs only:
    ///
    /// ```text
    /// width: tl.constexpr = n * 2                             # n is an argument: a warning
    /// width: tl.constexpr = tl.cdiv(BLOCK_M, BLOCK_N) * 2     # of constexprs: a constexpr
    /// ```
    CONSTEXPR_AT_RUN_TIME = "constexpr-at-run-time";
    /// Something that still works and has a better form.
    DEPRECATED = "deprecated";
    /// A global that other code may change, used in a kernel.
    ///
    /// A kernel is compiled with the values of its globals, so each must be a constant. Assignments that module code runs
    /// one after the other are evaluated: after `S = 2.0` and `S *= 10`, `S` is 20. A value that depends on a loop, on a
    /// condition that is not known while compiling, on a function that declares the name `global`, or on a list or
    /// dictionary that is changed in place or handed to other code, is not:
    ///
    /// ```text
    /// SIZES = [16, 32]
    /// SIZES.append(64)          # may run before a launch or after it
    /// SIZES = (16, 32, 64)      # a tuple cannot change
    /// ```
    CHANGED_GLOBAL = "changed-global";
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
    /// An index that does not fit in 32 bits.
    ///
    /// All factors are bounded by constants, and their product is not: the index wraps around, and the kernel reads or
    /// writes elsewhere without a word. Compute it in 64 bits:
    ///
    /// ```text
    /// row = tl.arange(0, 1024)[:, None]
    /// tl.load(x + row * 4194304)                  # 1023 * 4194304 is more than 2147483647
    /// tl.load(x + row.to(tl.int64) * 4194304)
    /// ```
    INDEX_OVERFLOW = "index-overflow";
    /// A product of run-time numbers in 32 bits that becomes an index.
    ///
    /// `row * stride` is computed in the type of its operands. In int32 it wraps around once the tensor has more than
    /// 2147483647 elements, which no test with a small tensor shows. Widen one factor, or promise a bound:
    ///
    /// ```text
    /// tl.load(x + row * stride)
    /// tl.load(x + row.to(tl.int64) * stride)
    /// tl.assume(row < 4096); tl.assume(stride < 65536)
    /// ```
    ///
    /// Sums, and products with one run-time factor and a small constant such as `pid * BLOCK`, are not reported, nor is
    /// what is bounded by `%`, `&` or `//` before it is an index. Off unless asked for by `--warn index-may-overflow`,
    /// as half of the published kernels have such products. The interpreter and the emulator report what really wraps.
    INDEX_MAY_OVERFLOW = "index-may-overflow";
    /// A sum over many steps that is kept in 16 bits.
    ///
    /// A loop that adds products of blocks to an fp16 or bf16 accumulator rounds after every step. Keep the sum in fp32
    /// and cast it once, after the loop:
    ///
    /// ```text
    /// acc = tl.zeros((M, N), dtype=tl.float32)
    /// for k in range(0, K, BLOCK_K):
    ///     acc = tl.dot(a, b, acc)
    /// c = acc.to(tl.float16)
    /// ```
    HALF_ACCUMULATOR = "half-accumulator";
    /// An access without a mask that can pass the bound.
    ///
    /// Either another access masks the same offsets, or a loop goes over a bound that is not a multiple of its step.
    /// Pass the comparison as `mask`:
    ///
    /// ```text
    /// tl.load(x + offs, mask=offs < n, other=0.0)
    /// ```
    MISSING_MASK = "missing-mask";
    /// Lanes that were masked off take part in a result.
    ///
    /// A `load` with a mask and without `other` leaves lanes that nobody wrote; this compiler makes them 0, other
    /// compilers leave them open. That is fine as long as they are stored under the same mask, summed, or multiplied by
    /// `dot`. A maximum, or a sum after `exp` or after a subtraction, counts them. Pass the neutral element, or choose:
    ///
    /// ```text
    /// x = tl.load(p, mask=mask, other=-float("inf"))
    /// tl.max(x, axis=0)
    /// d = tl.where(mask, x - mean, 0.0)
    /// tl.sum(d * d, axis=0)
    /// ```
    MISSING_OTHER = "missing-other";
    /// A store of a float into memory of a narrower float type.
    ///
    /// The value is rounded on the way. Off unless asked for by `--warn narrowing-store`, as a quarter of the published
    /// kernels store this way; a cast says that it is meant:
    ///
    /// ```text
    /// tl.store(y, acc.to(y.dtype.element_ty))
    /// ```
    NARROWING_STORE = "narrowing-store";
    /// What a construct costs at run time; shown with `-v`.
    COST = "cost";
    /// A bug of the compiler.
    INTERNAL = "internal";
}
