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
    Bf16x2 = "bf16x2", F32 = "f32", F32x2 = "f32x2", F64 = "f64", Pred = "pred", Tf32 = "tf32", E4m3 = "e4m3",
    E5m2 = "e5m2", E4m3x2 = "e4m3x2", E5m2x2 = "e5m2x2", U16x2 = "u16x2", S16x2 = "s16x2",
    // Rounding and number handling.
    Rn = "rn", Rz = "rz", Rm = "rm", Rp = "rp", Rna = "rna", Rni = "rni", Rzi = "rzi", Rmi = "rmi", Rpi = "rpi",
    Ftz = "ftz", Noftz = "noftz", Sat = "sat", Satfinite = "satfinite", Relu = "relu", Approx = "approx",
    Full = "full", Nan = "NaN", Xorsign = "xorsign", Abs = "abs",
    // Integer forms.
    Cc = "cc", Wide = "wide", Lo = "lo", Hi = "hi", Shiftamt = "shiftamt", Clamp = "clamp", Wrap = "wrap",
    L = "l", R = "r", F4e = "f4e", B4e = "b4e", Rc8 = "rc8", Ecl = "ecl", Ecr = "ecr", Rc16 = "rc16",
    // Comparisons and their combinations.
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
    // Bulk copies and barriers in shared memory.
    D1 = "1d", D2 = "2d", D3 = "3d", D4 = "4d", D5 = "5d", Tile = "tile", BulkGroup = "bulk_group", Read = "read",
    CompleteTxBytes = "mbarrier::complete_tx::bytes", Multicast = "multicast::cluster", ExpectTx = "expect_tx",
    NoComplete = "noComplete", Parity = "parity",
    // Tensor maps.
    Tensormap = "tensormap", TensormapGeneric = "tensormap::generic", B1024 = "b1024",
    GlobalAddress = "global_address", Rank = "rank", BoxDim = "box_dim", GlobalDim = "global_dim",
    GlobalStride = "global_stride", ElementStride = "element_stride", Elemtype = "elemtype",
    InterleaveLayout = "interleave_layout", SwizzleMode = "swizzle_mode", FillMode = "fill_mode",
    // `wgmma` with k = 8.
    M64n8k8 = "m64n8k8", M64n16k8 = "m64n16k8", M64n24k8 = "m64n24k8", M64n32k8 = "m64n32k8", M64n40k8 = "m64n40k8",
    M64n48k8 = "m64n48k8", M64n56k8 = "m64n56k8", M64n64k8 = "m64n64k8", M64n72k8 = "m64n72k8", M64n80k8 = "m64n80k8",
    M64n88k8 = "m64n88k8", M64n96k8 = "m64n96k8", M64n104k8 = "m64n104k8", M64n112k8 = "m64n112k8",
    M64n120k8 = "m64n120k8", M64n128k8 = "m64n128k8", M64n136k8 = "m64n136k8", M64n144k8 = "m64n144k8",
    M64n152k8 = "m64n152k8", M64n160k8 = "m64n160k8", M64n168k8 = "m64n168k8", M64n176k8 = "m64n176k8",
    M64n184k8 = "m64n184k8", M64n192k8 = "m64n192k8", M64n200k8 = "m64n200k8", M64n208k8 = "m64n208k8",
    M64n216k8 = "m64n216k8", M64n224k8 = "m64n224k8", M64n232k8 = "m64n232k8", M64n240k8 = "m64n240k8",
    M64n248k8 = "m64n248k8", M64n256k8 = "m64n256k8",
    // `wgmma` with k = 16.
    M64n8k16 = "m64n8k16", M64n16k16 = "m64n16k16", M64n24k16 = "m64n24k16", M64n32k16 = "m64n32k16",
    M64n40k16 = "m64n40k16", M64n48k16 = "m64n48k16", M64n56k16 = "m64n56k16", M64n64k16 = "m64n64k16",
    M64n72k16 = "m64n72k16", M64n80k16 = "m64n80k16", M64n88k16 = "m64n88k16", M64n96k16 = "m64n96k16",
    M64n104k16 = "m64n104k16", M64n112k16 = "m64n112k16", M64n120k16 = "m64n120k16", M64n128k16 = "m64n128k16",
    M64n136k16 = "m64n136k16", M64n144k16 = "m64n144k16", M64n152k16 = "m64n152k16", M64n160k16 = "m64n160k16",
    M64n168k16 = "m64n168k16", M64n176k16 = "m64n176k16", M64n184k16 = "m64n184k16", M64n192k16 = "m64n192k16",
    M64n200k16 = "m64n200k16", M64n208k16 = "m64n208k16", M64n216k16 = "m64n216k16", M64n224k16 = "m64n224k16",
    M64n232k16 = "m64n232k16", M64n240k16 = "m64n240k16", M64n248k16 = "m64n248k16", M64n256k16 = "m64n256k16",
    // `wgmma` with k = 32.
    M64n8k32 = "m64n8k32", M64n16k32 = "m64n16k32", M64n24k32 = "m64n24k32", M64n32k32 = "m64n32k32",
    M64n40k32 = "m64n40k32", M64n48k32 = "m64n48k32", M64n56k32 = "m64n56k32", M64n64k32 = "m64n64k32",
    M64n72k32 = "m64n72k32", M64n80k32 = "m64n80k32", M64n88k32 = "m64n88k32", M64n96k32 = "m64n96k32",
    M64n104k32 = "m64n104k32", M64n112k32 = "m64n112k32", M64n120k32 = "m64n120k32", M64n128k32 = "m64n128k32",
    M64n136k32 = "m64n136k32", M64n144k32 = "m64n144k32", M64n152k32 = "m64n152k32", M64n160k32 = "m64n160k32",
    M64n168k32 = "m64n168k32", M64n176k32 = "m64n176k32", M64n184k32 = "m64n184k32", M64n192k32 = "m64n192k32",
    M64n200k32 = "m64n200k32", M64n208k32 = "m64n208k32", M64n216k32 = "m64n216k32", M64n224k32 = "m64n224k32",
    M64n232k32 = "m64n232k32", M64n240k32 = "m64n240k32", M64n248k32 = "m64n248k32", M64n256k32 = "m64n256k32",
}
