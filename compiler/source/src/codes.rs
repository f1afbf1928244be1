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
    ($($name:ident = $text:literal;)*) => {
        impl Code {
            $(#[doc = include_str!(concat!("codes/", $text, ".md"))] pub const $name: Code = Code($text);)*
        }

        /// Every code with its page: a first line that says what the code means, then the cause, an example and a remedy.
        pub const CODES: &[(Code, &str)] = &[$((Code::$name, include_str!(concat!("codes/", $text, ".md"))),)*];
    };
}

// Each code has a page of this name in `codes/`.
codes! {
    SYNTAX = "syntax";
    UNSUPPORTED = "unsupported";
    UNDEFINED_NAME = "undefined-name";
    SHAPE_MISMATCH = "shape-mismatch";
    TYPE_MISMATCH = "type-mismatch";
    INVALID_TILE_IR = "invalid-tile-ir";
    EXPECTED_CONSTEXPR = "expected-constexpr";
    STATIC_ASSERT = "static-assert";
    OUT_OF_RESOURCES = "out-of-resources";
    UNSUPPORTED_TARGET = "unsupported-target";
    ALREADY_DEFINED = "already-defined";
    BAD_CONDITION = "bad-condition";
    BAD_SHAPE = "bad-shape";
    BAD_VALUE = "bad-value";
    CHANGED_TYPE = "changed-type";
    CONSTEXPR_AT_RUN_TIME = "constexpr-at-run-time";
    DEPRECATED = "deprecated";
    PRECEDENCE = "precedence";
    CHANGED_GLOBAL = "changed-global";
    LOST_ASSIGNMENT = "lost-assignment";
    NOT_CALLABLE = "not-callable";
    OUT_OF_RANGE = "out-of-range";
    RECURSION = "recursion";
    RETURN_MISMATCH = "return-mismatch";
    UNKNOWN_ATTRIBUTE = "unknown-attribute";
    UNUSED_RESULT = "unused-result";
    WRONG_ARGUMENTS = "wrong-arguments";
    INDEX_OVERFLOW = "index-overflow";
    INDEX_MAY_OVERFLOW = "index-may-overflow";
    HALF_ACCUMULATOR = "half-accumulator";
    MISSING_MASK = "missing-mask";
    MISSING_OTHER = "missing-other";
    NARROWING_STORE = "narrowing-store";
    COST = "cost";
    INTERNAL = "internal";
    SIGNATURE = "signature";
    SPEC = "spec";
    PLAN = "plan";
    USAGE = "usage";
    IO = "io";
    UNKNOWN_KERNEL = "unknown-kernel";
    LAUNCH_FILE = "launch-file";
    TRACE = "trace";
    TENSORS = "tensors";
    CALL = "call";
    CONTRACT = "contract";
    IMPORT = "import";
    NO_PYTHON = "no-python";
    NO_PACKAGE = "no-package";
    PYTHON = "python";
    CACHE = "cache";
    UNKNOWN_CODE = "unknown-code";
    LIBDEVICE = "libdevice";
    STAGE = "stage";
    LAUNCH = "launch";
    DO_NOT_SPECIALIZE = "do-not-specialize";
    EMBED = "embed";
    ASSEMBLER_DEFECT = "assembler-defect";
    PTX = "ptx";
    NO_DEVICE = "no-device";
    CUDA = "cuda";
    FAULT = "fault";
    SANITIZER = "sanitizer";
    FINDING = "finding";
    RUNTIME = "runtime";
    TUNED_FILE = "tuned-file";
    TUNING = "tuning";
    SHARD_MISSING = "shard-missing";
    SHARD_MISMATCH = "shard-mismatch";
    SHARD_CONFLICT = "shard-conflict";
    CLUSTER = "cluster";
    WRONG_RESULT = "wrong-result";
    GOLDEN = "golden";
    COMPILE = "compile";
    RECORD = "record";
    REFERENCE = "reference";
    NO_VERDICT = "no-verdict";
    OUT_OF_BOUNDS = "out-of-bounds";
    ROW_OVERRUN = "row-overrun";
    MISALIGNED = "misaligned";
    ADDRESS_OVERFLOW = "address-overflow";
    UNINITIALIZED_GLOBAL = "uninitialized-global";
    UNINITIALIZED_SHARED = "uninitialized-shared";
    UNINITIALIZED_REGISTER = "uninitialized-register";
    GLOBAL_RACE = "global-race";
    SHARED_RACE = "shared-race";
    SAME_PLACE = "same-place";
    COPY_NOT_AWAITED = "copy-not-awaited";
    WRITE_UNDER_READ = "write-under-read";
    MISSING_PROXY_FENCE = "missing-proxy-fence";
    MISSING_WGMMA_FENCE = "missing-wgmma-fence";
    REGISTER_IN_USE = "register-in-use";
    MAP_IN_USE = "map-in-use";
    MAP_NOT_ACQUIRED = "map-not-acquired";
    DIVERGENT_BARRIER = "divergent-barrier";
    DEADLOCK = "deadlock";
    ENDLESS_LOOP = "endless-loop";
    INTERRUPTED = "interrupted";
    TIME_LIMIT = "time-limit";
    MISSING_LANES = "missing-lanes";
    SHUFFLE_FROM_MISSING_LANE = "shuffle-from-missing-lane";
    BARRIER_COUNT = "barrier-count";
    BARRIER_INCOMPLETE = "barrier-incomplete";
    MBARRIER_UNINITIALIZED = "mbarrier-uninitialized";
    MBARRIER_INIT_NOT_VISIBLE = "mbarrier-init-not-visible";
    MBARRIER_MISUSE = "mbarrier-misuse";
    NOT_AWAITED_AT_END = "not-awaited-at-end";
    INVALID_INSTRUCTION = "invalid-instruction";
    ASSERTION = "assertion";
    TRAP = "trap";
    FALSE_PROMISE = "false-promise";
    OPEN_RESULT = "open-result";
    HOST_SYNC = "host-sync";
    NEGATIVE_DIVISION = "negative-division";
    SLOW_PRODUCT = "slow-product";
    RESET_TO_ZERO = "reset-to-zero";
}
