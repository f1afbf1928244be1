//! The words after an opcode: types, roundings, spaces, scopes, shapes. One list; everything else is derived.

macro_rules! modifiers {
    ($($name:ident = $text:literal,)*) => {
        /// One `.word` of an instruction, type words included.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each is named as PTX spells it")]
        pub enum Modifier { $($name,)* }

        impl Modifier {
            /// Every modifier.
            pub const ALL: &[Modifier] = &[$(Modifier::$name,)*];

            /// The modifier that `word` (without the dot) spells.
            pub fn from_text(word: &str) -> Option<Modifier> {
                match word { $($text => Some(Modifier::$name),)* _ => None }
            }

            /// How PTX spells it, without the dot.
            pub fn text(self) -> &'static str {
                match self { $(Modifier::$name => $text,)* }
            }
        }
    };
}

modifiers! {
    // Types.
    U8 = "u8", U16 = "u16", U32 = "u32", U64 = "u64", S8 = "s8", S16 = "s16", S32 = "s32", S64 = "s64",
    B8 = "b8", B16 = "b16", B32 = "b32", B64 = "b64", B128 = "b128", F16 = "f16", F16x2 = "f16x2", Bf16 = "bf16",
    Bf16x2 = "bf16x2", F32 = "f32", F64 = "f64", Pred = "pred", Tf32 = "tf32", E4m3 = "e4m3",
    E5m2 = "e5m2", E4m3x2 = "e4m3x2", E5m2x2 = "e5m2x2", U16x2 = "u16x2", S16x2 = "s16x2",
    // Rounding and number handling.
    Rn = "rn", Rz = "rz", Rm = "rm", Rp = "rp", Rna = "rna", Rni = "rni", Rzi = "rzi", Rmi = "rmi", Rpi = "rpi",
    Ftz = "ftz", Noftz = "noftz", Sat = "sat", Satfinite = "satfinite", Relu = "relu", Approx = "approx",
    Full = "full", Nan = "NaN", Xorsign = "xorsign", Abs = "abs",
    // Integer forms.
    Cc = "cc", Wide = "wide", Lo = "lo", Hi = "hi", Shiftamt = "shiftamt", Clamp = "clamp", Wrap = "wrap",
    L = "l", R = "r", F4e = "f4e", B4e = "b4e", Rc8 = "rc8", Ecl = "ecl", Ecr = "ecr", Rc16 = "rc16",
    // Comparisons and what combines them.
    Eq = "eq", Ne = "ne", Lt = "lt", Le = "le", Gt = "gt", Ge = "ge", Ls = "ls", Hs = "hs", Equ = "equ", Neu = "neu",
    Ltu = "ltu", Leu = "leu", Gtu = "gtu", Geu = "geu", Num = "num", IsNan = "nan",
    And = "and", Or = "or", Xor = "xor", Popc = "popc",
    Finite = "finite", Infinite = "infinite", Number = "number", Notanumber = "notanumber", Normal = "normal",
    Subnormal = "subnormal",
    // State spaces.
    Param = "param", ParamEntry = "param::entry", ParamFunc = "param::func", Global = "global", Shared = "shared",
    SharedCta = "shared::cta", SharedCluster = "shared::cluster", Local = "local", Const = "const", To = "to",
    // Memory order.
    Weak = "weak", Relaxed = "relaxed", Acquire = "acquire", Release = "release", AcqRel = "acq_rel", Sc = "sc",
    Volatile = "volatile", Cta = "cta", Cluster = "cluster", Gpu = "gpu", Sys = "sys",
    // Caches.
    Ca = "ca", Cg = "cg", Cs = "cs", Lu = "lu", Cv = "cv", Wb = "wb", Wt = "wt", Nc = "nc",
    L1 = "L1", L2 = "L2", L1EvictNormal = "L1::evict_normal", L1EvictUnchanged = "L1::evict_unchanged",
    L1EvictFirst = "L1::evict_first", L1EvictLast = "L1::evict_last", L1NoAllocate = "L1::no_allocate",
    L2EvictNormal = "L2::evict_normal", L2EvictFirst = "L2::evict_first", L2EvictLast = "L2::evict_last",
    L2EvictUnchanged = "L2::evict_unchanged", L2CacheHint = "L2::cache_hint", L264B = "L2::64B",
    L2128B = "L2::128B", L2256B = "L2::256B", Fractional = "fractional", Range = "range",
    EvictLast = "evict_last", EvictNormal = "evict_normal", EvictFirst = "evict_first",
    // Vectors.
    V2 = "v2", V4 = "v4", V8 = "v8",
    // Warps.
    Uni = "uni", Sync = "sync", Up = "up", Down = "down", Bfly = "bfly", Idx = "idx", All = "all", Any = "any",
    Ballot = "ballot", Aligned = "aligned", Arrive = "arrive", Red = "red",
    // Atomics.
    Add = "add", Inc = "inc", Dec = "dec", Min = "min", Max = "max", Exch = "exch", Cas = "cas",
    // Matrices.
    M8n8 = "m8n8", X1 = "x1", X2 = "x2", X4 = "x4", Trans = "trans", Row = "row", Col = "col",
    M16n8k4 = "m16n8k4", M16n8k8 = "m16n8k8", M16n8k16 = "m16n8k16", M16n8k32 = "m16n8k32", M8n8k4 = "m8n8k4",
    M8n8k16 = "m8n8k16",
    // Asynchronous copies and fences.
    Noinc = "noinc", Async = "async", Alias = "alias",
    MbarrierInit = "mbarrier_init", Gl = "gl", Wait = "wait", LaunchDependents = "launch_dependents",
}
