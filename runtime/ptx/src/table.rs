//! The instruction table: one row per opcode, from which parser, printer and emulator work.
//!
//! A row gives the variant of [`Opcode`], its text, its operands and its modifier patterns. In a pattern each word
//! stands for one modifier: `a|b` is a choice, `?` makes it optional, `@name` is a set of [`SETS`], `;` separates
//! alternatives. The order of the words is PTX's order. In the operands `d` is a destination, `d|p` a destination that
//! may have a predicate as second half, `s` a source, `a` an address, `l` a label or function, `(` a list in
//! parentheses, `t` a tensor map with coordinates (`[map, {x, y}]`); `?` again makes it optional.
//!
//! ```text
//! Add, "add", "d s s", "sat? s32; cc? u32|s32|u64|s64; ..."      add.rn.f32 %r1, %r2, %r3;
//! ```
//!
//! Anything that no row allows is an error, never ignored.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::modifier::Modifier;

/// Named sets of modifiers that several rows share.
const SETS: &[(&str, &str)] = &[
    ("int", "u16|u32|u64|s16|s32|s64"),
    ("rnd", "rn|rz|rm|rp"),
    ("half", "f16|f16x2|bf16|bf16x2"),
    ("bits", "b16|b32|b64"),
    ("cmp", "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan"),
    ("bool", "and|or|xor"),
    ("cmptype", "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64|f16|f16x2|bf16|bf16x2"),
    ("any", "b8|b16|b32|b64|b128|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64|f16|f16x2|bf16|bf16x2|pred"),
    ("cvt", "u8|u16|u32|u64|s8|s16|s32|s64|f16|bf16|f32|f64|tf32|f16x2|bf16x2|e4m3x2|e5m2x2"),
    ("cvtrnd", "rn|rz|rm|rp|rna|rni|rzi|rmi|rpi"),
    ("space", "global|shared|shared::cta|shared::cluster|local|param|param::entry|param::func|const"),
    ("shared", "shared|shared::cta"),
    ("sem", "weak|volatile|relaxed|acquire|release|acq_rel"),
    ("scope", "cta|cluster|gpu|sys"),
    ("cop", "ca|cg|cs|lu|cv|wb|wt"),
    ("l1", "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"),
    ("l2", "L2::evict_normal|L2::evict_first|L2::evict_last"),
    ("pre", "L2::64B|L2::128B|L2::256B"),
    ("vec", "v2|v4|v8"),
    ("red", "b32|u32|u64|s32|s64|b64|f32|f64"),
    ("f16s", "f16|f16x2|bf16|bf16x2"),
    ("near", "cta|cluster"),
    ("dim", "1d|2d|3d|4d|5d"),
    (
        "m64k8",
        "m64n8k8|m64n16k8|m64n24k8|m64n32k8|m64n40k8|m64n48k8|m64n56k8|m64n64k8|m64n72k8|m64n80k8|m64n88k8|m64n96k8|m64n104k8|m64n112k8|m64n120k8|m64n128k8|m64n136k8|m64n144k8|m64n152k8|m64n160k8|m64n168k8|m64n176k8|m64n184k8|m64n192k8|m64n200k8|m64n208k8|m64n216k8|m64n224k8|m64n232k8|m64n240k8|m64n248k8|m64n256k8",
    ),
    (
        "m64k16",
        "m64n8k16|m64n16k16|m64n24k16|m64n32k16|m64n40k16|m64n48k16|m64n56k16|m64n64k16|m64n72k16|m64n80k16|m64n88k16|m64n96k16|m64n104k16|m64n112k16|m64n120k16|m64n128k16|m64n136k16|m64n144k16|m64n152k16|m64n160k16|m64n168k16|m64n176k16|m64n184k16|m64n192k16|m64n200k16|m64n208k16|m64n216k16|m64n224k16|m64n232k16|m64n240k16|m64n248k16|m64n256k16",
    ),
    (
        "m64k32",
        "m64n8k32|m64n16k32|m64n24k32|m64n32k32|m64n40k32|m64n48k32|m64n56k32|m64n64k32|m64n72k32|m64n80k32|m64n88k32|m64n96k32|m64n104k32|m64n112k32|m64n120k32|m64n128k32|m64n136k32|m64n144k32|m64n152k32|m64n160k32|m64n168k32|m64n176k32|m64n184k32|m64n192k32|m64n200k32|m64n208k32|m64n216k32|m64n224k32|m64n232k32|m64n240k32|m64n248k32|m64n256k32",
    ),
];

macro_rules! instructions {
    ($($name:ident $text:literal $operands:literal $patterns:literal;)*) => {
        /// An opcode of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each is named as PTX spells it")]
        pub enum Opcode { $($name,)* }

        impl Opcode {
            /// Every opcode.
            pub const ALL: &[Opcode] = &[$(Opcode::$name,)*];

            /// How PTX spells it; may hold dots, as `shfl.sync` does.
            pub fn text(self) -> &'static str {
                match self { $(Opcode::$name => $text,)* }
            }

            /// Its operands and modifier patterns as the table's text.
            fn row(self) -> (&'static str, &'static str) {
                match self { $(Opcode::$name => ($operands, $patterns),)* }
            }
        }
    };
}

instructions! {
    // Integer and floating arithmetic.
    Add "add" "d s s" "@int|u16x2|s16x2; sat s32; cc u32|s32|u64|s64; @rnd? ftz? sat? f32; @rnd? f64; rn? ftz? sat? f16|f16x2; rn? bf16|bf16x2; @rnd? sat? f32 f16|bf16; @rnd? ftz? f32x2";
    Addc "addc" "d s s" "cc? u32|s32|u64|s64";
    Sub "sub" "d s s" "@int; sat s32; cc u32|s32|u64|s64; @rnd? ftz? sat? f32; @rnd? f64; rn? ftz? sat? f16|f16x2; rn? bf16|bf16x2; @rnd? sat? f32 f16|bf16; @rnd? ftz? f32x2";
    Subc "subc" "d s s" "cc? u32|s32|u64|s64";
    Mul "mul" "d s s" "lo|hi|wide @int; @rnd? ftz? sat? f32; @rnd? f64; rn? ftz? sat? f16|f16x2; rn? bf16|bf16x2; @rnd? ftz? f32x2";
    Mul24 "mul24" "d s s" "lo|hi u32|s32";
    Mad "mad" "d s s s" "lo|hi|wide @int; hi sat s32; lo|hi cc u32|s32|u64|s64; @rnd ftz? sat? f32; @rnd f64";
    Madc "madc" "d s s s" "lo|hi cc? u32|s32|u64|s64";
    Fma "fma" "d s s s" "@rnd ftz? sat? f32; @rnd f64; rn ftz? sat? f16|f16x2; rn ftz? relu f16|f16x2; rn relu? bf16|bf16x2; @rnd sat? f32 f16|bf16; @rnd ftz? f32x2";
    Div "div" "d s s" "@int; approx|full ftz? f32; @rnd ftz? f32; @rnd f64";
    Rem "rem" "d s s" "@int";
    Abs "abs" "d s" "s16|s32|s64; ftz? f32|f16|f16x2; f64|bf16|bf16x2";
    Neg "neg" "d s" "s16|s32|s64; ftz? f32|f16|f16x2; f64|bf16|bf16x2";
    Min "min" "d s s s?" "relu? @int|u16x2|s16x2; ftz? NaN? xorsign? abs? f32; f64; ftz? NaN? xorsign? abs? @half";
    Max "max" "d s s s?" "relu? @int|u16x2|s16x2; ftz? NaN? xorsign? abs? f32; f64; ftz? NaN? xorsign? abs? @half";
    Sad "sad" "d s s s" "@int";
    Dp4a "dp4a" "d s s s" "u32|s32 u32|s32";
    Dp2a "dp2a" "d s s s" "lo|hi u32|s32 u32|s32";
    Rcp "rcp" "d s" "approx ftz? f32; @rnd ftz? f32; @rnd f64; approx ftz f64";
    Sqrt "sqrt" "d s" "approx ftz? f32; @rnd ftz? f32; @rnd f64";
    Rsqrt "rsqrt" "d s" "approx ftz? f32|f64";
    Ex2 "ex2" "d s" "approx ftz? f32|f16|f16x2|bf16|bf16x2";
    Lg2 "lg2" "d s" "approx ftz? f32";
    Sin "sin" "d s" "approx ftz? f32";
    Cos "cos" "d s" "approx ftz? f32";
    Tanh "tanh" "d s" "approx f32|f16|f16x2|bf16|bf16x2";
    Copysign "copysign" "d s s" "f32|f64";
    Testp "testp" "d s" "finite|infinite|number|notanumber|normal|subnormal f32|f64";

    // Bits.
    And "and" "d s s" "pred|@bits";
    Or "or" "d s s" "pred|@bits";
    Xor "xor" "d s s" "pred|@bits";
    Not "not" "d s" "pred|@bits";
    Cnot "cnot" "d s" "@bits";
    Shl "shl" "d s s" "@bits";
    Shr "shr" "d s s" "@bits|@int";
    Shf "shf" "d s s s" "l|r clamp|wrap b32";
    Lop3 "lop3" "d s s s s" "b32";
    Prmt "prmt" "d s s s" "b32 f4e|b4e|rc8|ecl|ecr|rc16?";
    Bfe "bfe" "d s s s" "u32|u64|s32|s64";
    Bfi "bfi" "d s s s s" "b32|b64";
    Bfind "bfind" "d s" "shiftamt? u32|u64|s32|s64";
    Brev "brev" "d s" "b32|b64";
    Clz "clz" "d s" "b32|b64";
    Popc "popc" "d s" "b32|b64";

    // Comparison and selection.
    Setp "setp" "d|p s s s?" "@cmp ftz? @cmptype; @cmp @bool ftz? @cmptype";
    Set "set" "d s s s?" "@cmp ftz? u32|s32|f32|u16|s16|f16|bf16|f16x2|bf16x2 @cmptype; @cmp @bool ftz? u32|s32|f32|u16|s16|f16|bf16|f16x2|bf16x2 @cmptype";
    Selp "selp" "d s s s" "@bits|@int|f32|f64";
    Slct "slct" "d s s s" "ftz? @bits|@int|f32|f64 s32|f32";

    // Movement and conversion.
    Mov "mov" "d s" "@any";
    Cvt "cvt" "d s s?" "@cvtrnd? ftz? sat? relu? satfinite? relu? @cvt @cvt";
    CvtPack "cvt.pack" "d s s s?" "sat u16|s16|u8|s8 s32; sat u8|s8 s32 b32";
    Cvta "cvta" "d s" "to? @space u32|u64";
    Isspacep "isspacep" "d s" "@space";
    Mapa "mapa" "d s s" "shared::cluster? u32|u64";
    Getctarank "getctarank" "d s" "shared::cluster? u32|u64";

    // Memory.
    Ld "ld" "d a s?" "@sem? @scope? @space? @cop? nc? @l1? @l2? L2::cache_hint? @pre? @vec? @any";
    Ldu "ldu" "d a" "global? @vec? @any";
    St "st" "a s s?" "@sem? @scope? @space? @cop? @l1? @l2? L2::cache_hint? @vec? @any";
    Prefetch "prefetch" "a" "global|local? L1|L2; global L2::evict_last|L2::evict_normal; param|const? tensormap";
    Prefetchu "prefetchu" "a" "L1";
    Discard "discard" "a s" "global? L2";
    Createpolicy "createpolicy" "d s?" "fractional @l2|L2::evict_unchanged @l2|L2::evict_unchanged? b64";
    Atom "atom" "d a s s? s?" "@sem? @scope? @space? add|min|max noftz? L2::cache_hint? @vec? @red|@f16s; @sem? @scope? @space? and|or|xor|inc|dec L2::cache_hint? b32|b64|u32; @sem? @scope? @space? exch|cas L2::cache_hint? b16|b32|b64|u32|s32|u64|f32; @space @scope? @sem? add|min|max noftz? L2::cache_hint? @vec? @red|@f16s; @space @scope? @sem? and|or|xor|inc|dec L2::cache_hint? b32|b64|u32; @space @scope? @sem? exch|cas L2::cache_hint? b16|b32|b64|u32|s32|u64|f32; @space @sem? @scope? exch|cas L2::cache_hint? b16|b32|b64|u32|s32|u64|f32";
    Red "red" "a s s?" "@sem? @scope? @space? add|min|max noftz? L2::cache_hint? @vec? @red|@f16s; @sem? @scope? @space? and|or|xor|inc|dec L2::cache_hint? b32|b64|u32";
    Membar "membar" "" "cta|gl|sys";
    Fence "fence" "" "sc|acq_rel? @scope; mbarrier_init release cluster";
    FenceProxy "fence.proxy" "" "alias; async; async global|shared::cta|shared::cluster|shared";
    FenceTensormap "fence.proxy.tensormap::generic" "a? s?" "acquire|release @scope";

    // Asynchronous copies.
    CpAsync "cp.async" "a a s s? s?" "ca|cg @shared global L2::cache_hint? @pre?";
    CpAsyncCommitGroup "cp.async.commit_group" "" "";
    CpAsyncWaitGroup "cp.async.wait_group" "s" "";
    CpAsyncWaitAll "cp.async.wait_all" "" "";
    CpAsyncArrive "cp.async.mbarrier.arrive" "a" "noinc? @shared? b64";
    BulkCopy "cp.async.bulk" "a a s a? s? s?" "shared::cluster|shared::cta global mbarrier::complete_tx::bytes multicast::cluster? L2::cache_hint?; shared::cluster shared::cta mbarrier::complete_tx::bytes; global shared::cta bulk_group L2::cache_hint?";
    BulkReduce "cp.reduce.async.bulk" "a a s a? s?" "shared::cluster shared::cta mbarrier::complete_tx::bytes add|min|max|and|or|xor|inc|dec u32|s32|u64|b32; global shared::cta bulk_group L2::cache_hint? add|min|max|and|or|xor|inc|dec noftz? f16|bf16|b32|u32|s32|b64|u64|s64|f32|f64";
    BulkPrefetch "cp.async.bulk.prefetch" "a s s?" "L2 global L2::cache_hint?";
    BulkCommit "cp.async.bulk.commit_group" "" "";
    BulkWait "cp.async.bulk.wait_group" "s" "read?";
    TensorCopy "cp.async.bulk.tensor" "a? t a s? s?" "@dim shared::cluster|shared::cta global tile? mbarrier::complete_tx::bytes multicast::cluster? L2::cache_hint?; @dim global shared::cta tile? bulk_group L2::cache_hint?";
    TensorReduce "cp.reduce.async.bulk.tensor" "t a s?" "@dim global shared::cta add|min|max|and|or|xor|inc|dec tile? bulk_group L2::cache_hint?";
    TensorPrefetch "cp.async.bulk.prefetch.tensor" "t s?" "@dim L2 global tile? L2::cache_hint?";
    TensormapReplace "tensormap.replace" "a s s?" "tile global_address|global_stride shared::cta|global? b1024 b64; tile rank|box_dim|global_dim|element_stride|elemtype|interleave_layout|swizzle_mode|fill_mode shared::cta|global? b1024 b32";
    TensormapCopy "tensormap.cp_fenceproxy" "a a s" "global shared::cta tensormap::generic release @scope sync aligned";

    // Barriers in shared memory.
    MbarrierInit "mbarrier.init" "a s" "@shared? b64";
    MbarrierInval "mbarrier.inval" "a" "@shared? b64";
    MbarrierExpectTx "mbarrier.expect_tx" "a s" "relaxed? @near? @shared|shared::cluster? b64";
    MbarrierCompleteTx "mbarrier.complete_tx" "a s" "relaxed? @near? @shared|shared::cluster? b64";
    MbarrierArrive "mbarrier.arrive" "d? a s?" "expect_tx|noComplete? release|relaxed? @near? @shared|shared::cluster? b64";
    MbarrierArriveDrop "mbarrier.arrive_drop" "d? a s?" "expect_tx|noComplete? release|relaxed? @near? @shared|shared::cluster? b64";
    MbarrierTestWait "mbarrier.test_wait" "d a s" "parity? acquire|relaxed? @near? @shared? b64";
    MbarrierTryWait "mbarrier.try_wait" "d a s s?" "parity? acquire|relaxed? @near? @shared? b64";
    MbarrierPendingCount "mbarrier.pending_count" "d s" "b64";

    // Control.
    Bra "bra" "l" "uni?";
    Brx "brx" "s l" "idx uni?";
    Call "call" "(? l (? l?" "uni?";
    Ret "ret" "" "uni?";
    Exit "exit" "" "";
    Trap "trap" "" "";
    Brkpt "brkpt" "" "";
    Pmevent "pmevent" "s" "";
    Nanosleep "nanosleep" "s" "u32";
    Griddepcontrol "griddepcontrol" "" "launch_dependents|wait";
    Setmaxnreg "setmaxnreg" "s" "inc|dec sync aligned u32";

    // Blocks and warps.
    Bar "bar" "s s?" "sync|arrive";
    BarCta "bar.cta" "s s?" "sync|arrive";
    Barrier "barrier" "s s?" "sync|arrive aligned?";
    BarrierCta "barrier.cta" "s s?" "sync|arrive aligned?";
    BarRed "bar.red" "d s s s?" "popc u32; and|or pred";
    BarrierRed "barrier.red" "d s s s?" "popc aligned? u32; and|or aligned? pred";
    BarrierCluster "barrier.cluster" "" "arrive release|relaxed? aligned?; wait acquire? aligned?";
    BarWarp "bar.warp" "s" "sync";
    Shfl "shfl.sync" "d|p s s s s" "up|down|bfly|idx b32";
    Vote "vote.sync" "d s s" "all|any|uni pred; ballot b32";
    Match "match" "d|p s s" "any|all sync b32|b64";
    Redux "redux.sync" "d s s" "add|min|max u32|s32; and|or|xor b32";
    Activemask "activemask" "d" "b32";
    Elect "elect.sync" "d|p s" "";

    // Matrices.
    Mma "mma.sync" "d s s s" "aligned m16n8k16|m16n8k8|m16n8k4|m8n8k4|m16n8k32|m8n8k16 row col satfinite? f16|f32|f64|s32 f16|bf16|tf32|f64|s8|u8|e4m3|e5m2 f16|bf16|tf32|f64|s8|u8|e4m3|e5m2 f16|f32|f64|s32; aligned m8n8k4 row|col row|col f16|f32 f16 f16 f16|f32";
    Wgmma "wgmma.mma_async" "d s s s s? s? s? s?" "sync aligned @m64k16 f16|f32 f16 f16; sync aligned @m64k16 f32 bf16 bf16; sync aligned @m64k8 f32 tf32 tf32; sync aligned @m64k32 f16|f32 e4m3|e5m2 e4m3|e5m2; sync aligned @m64k32 satfinite? s32 s8|u8 s8|u8";
    WgmmaFence "wgmma.fence" "" "sync aligned";
    WgmmaCommit "wgmma.commit_group" "" "sync aligned";
    WgmmaWait "wgmma.wait_group" "s" "sync aligned";
    Ldmatrix "ldmatrix.sync" "d a" "aligned m8n8 x1|x2|x4 trans? @shared? b16";
    Stmatrix "stmatrix.sync" "a s" "aligned m8n8 x1|x2|x4 trans? @shared? b16";
}

/// The modifier at one position of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandKind {
    /// A register to write, `_`, or a vector of these.
    Destination,
    /// A destination with an optional second half: `d|p`.
    DestinationPair,
    /// A register, immediate, symbol or a vector of these.
    Source,
    /// `[address]`.
    Address,
    /// A label or a function.
    Label,
    /// A list in parentheses.
    List,
    /// `[map, {coordinates}]`.
    TensorAddress,
}

/// One place of an instruction's operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The modifiers at this position.
    pub kind: OperandKind,
    /// True if it may be left out.
    pub optional: bool,
}

/// One word of a modifier pattern.
#[derive(Clone, Debug)]
struct Slot {
    choice: Vec<Modifier>,
    optional: bool,
}

struct Row {
    places: Vec<Place>,
    patterns: Vec<Vec<Slot>>,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| Opcode::ALL.iter().map(|op| read_row(*op)).collect());

static BY_TEXT: LazyLock<HashMap<&'static str, Opcode>> =
    LazyLock::new(|| Opcode::ALL.iter().map(|op| (op.text(), *op)).collect());

/// Most words of an opcode: `cp.async.bulk.prefetch.tensor`.
const LONGEST: usize = 5;

impl Opcode {
    /// Finds the longest opcode that `words` begin with, and how many words it takes.
    pub fn find(words: &[&str]) -> Option<(Opcode, usize)> {
        (1..=words.len().min(LONGEST)).rev().find_map(|n| BY_TEXT.get(words[..n].join(".").as_str()).map(|op| (*op, n)))
    }

    /// The operands that the table gives it.
    pub fn places(self) -> &'static [Place] {
        &ROWS[self as usize].places
    }

    /// Whether these modifiers, in this order, are legal.
    pub fn allows(self, modifiers: &[Modifier]) -> bool {
        ROWS[self as usize].patterns.iter().any(|slots| matches(slots, modifiers))
    }
}

fn matches(slots: &[Slot], modifiers: &[Modifier]) -> bool {
    let Some((slot, rest)) = slots.split_first() else { return modifiers.is_empty() };
    let taken = modifiers.first().is_some_and(|m| slot.choice.contains(m)) && matches(rest, &modifiers[1..]);
    taken || (slot.optional && matches(rest, modifiers))
}

fn read_row(op: Opcode) -> Row {
    let (operands, patterns) = op.row();
    let place = |word: &str| {
        let (word, optional) = strip_optional(word);
        let kind = match word {
            "d" => OperandKind::Destination,
            "d|p" => OperandKind::DestinationPair,
            "s" => OperandKind::Source,
            "a" => OperandKind::Address,
            "l" => OperandKind::Label,
            "(" => OperandKind::List,
            "t" => OperandKind::TensorAddress,
            _ => unreachable!("operand letters of the table are checked by a test"),
        };
        Place { kind, optional }
    };
    let slot = |word: &str| {
        let (word, optional) = strip_optional(word);
        let choice = word.split('|').flat_map(expand).collect();
        Slot { choice, optional }
    };
    Row {
        places: operands.split_whitespace().map(place).collect(),
        patterns: patterns.split(';').map(|p| p.split_whitespace().map(slot).collect()).collect(),
    }
}

fn strip_optional(word: &str) -> (&str, bool) {
    match word.strip_suffix('?') {
        Some(word) => (word, true),
        None => (word, false),
    }
}

fn expand(word: &str) -> Vec<Modifier> {
    let words = match word.strip_prefix('@') {
        Some(set) => SETS.iter().find(|(name, _)| *name == set).map_or("", |(_, words)| words),
        None => word,
    };
    words.split('|').filter_map(Modifier::from_text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_table_is_a_modifier() {
        for op in Opcode::ALL {
            let (operands, patterns) = op.row();
            assert_eq!(op.places().len(), operands.split_whitespace().count());
            for word in patterns.split([' ', ';']).filter(|w| !w.is_empty()) {
                for word in strip_optional(word).0.split('|') {
                    assert!(!expand(word).is_empty(), "{}: `{word}`", op.text());
                }
            }
        }
        for modifier in Modifier::ALL {
            assert_eq!(Modifier::from_text(modifier.text()), Some(*modifier));
        }
    }

    #[test]
    fn patterns_tell_legal_from_illegal() {
        let allows = |text: &str| {
            let words: Vec<&str> = text.split('.').collect();
            let (op, n) = Opcode::find(&words).unwrap();
            let modifiers: Option<Vec<Modifier>> = words[n..].iter().map(|w| Modifier::from_text(w)).collect();
            modifiers.is_some_and(|m| op.allows(&m))
        };
        for text in [
            "add.rn.ftz.f32",
            "ld.global.nc.L1::evict_last.v4.b32",
            "setp.lt.and.s32",
            "cp.async.wait_group",
            "cp.async.bulk.prefetch.tensor.2d.L2.global",
            "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16",
        ] {
            assert!(allows(text), "{text}");
        }
        for text in ["add.ftz.rn.f32", "add.f8", "add.sat.u32", "ld.global", "bar.sync.aligned"] {
            assert!(!allows(text), "{text}");
        }
    }
}
