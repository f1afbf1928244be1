//! Decoded programs: operations with resolved registers, ready to execute.

mod asynchronous;

use std::collections::HashMap;

use rtc_ptx::Modifier;
use rtc_ptx::module::Loc;

use crate::SourceLocation;
use crate::alu::{AluFn, Lanes};
pub use asynchronous::*;

/// A register, relative to the frame of its function.
pub type Reg = u32;

/// A source: a register of the frame, or with [`CONSTANT`] set an index into the constants.
pub type Src = u32;

/// Marks a [`Src`] as a constant.
pub const CONSTANT: u32 = 1 << 31;
/// No guard, no register.
pub const NONE: u32 = u32::MAX;
/// Marks a guard as negated.
pub const NEGATED: u32 = 1 << 30;

/// First generic address of the shared window.
pub const SHARED_WINDOW: u64 = 1 << 48;
/// First generic address of the local window.
pub const LOCAL_WINDOW: u64 = 2 << 48;
/// First generic address of the kernel-parameter window.
pub const PARAM_WINDOW: u64 = 3 << 48;
/// Length of each window.
pub const WINDOW_BYTES: u64 = 1 << 32;

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Told by the address.
    Generic,
    /// Global memory, constants too.
    Global,
    /// The block's shared memory.
    Shared,
    /// The thread's stack; parameters of device functions lie there too.
    Local,
    /// The kernel's parameters.
    Param,
}

/// A special value that an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// `%tid`, by dimension.
    Tid(u8),
    /// `%ntid`
    Ntid(u8),
    /// `%ctaid`
    Ctaid(u8),
    /// `%nctaid`
    Nctaid(u8),
    /// `%clusterid`
    ClusterId(u8),
    /// `%nclusterid`
    NclusterId(u8),
    /// `%cluster_ctaid`
    ClusterCtaid(u8),
    /// `%cluster_nctaid`
    ClusterNctaid(u8),
    /// `%cluster_ctarank`
    ClusterCtarank,
    /// `%cluster_nctarank`
    ClusterNctarank,
    /// `%laneid`
    Laneid,
    /// `%warpid`
    Warpid,
    /// `%nwarpid`
    Nwarpid,
    /// `%lanemask_eq`, `_le`, `_lt`, `_ge`, `_gt`
    LanemaskEq,
    /// Lanes up to this.
    LanemaskLe,
    /// Lanes below this.
    LanemaskLt,
    /// Lanes from this.
    LanemaskGe,
    /// Lanes above this.
    LanemaskGt,
    /// `%clock`: instructions executed so far.
    Clock,
    /// `%clock_hi`
    ClockHi,
    /// `%clock64`, `%globaltimer`
    Clock64,
    /// `%dynamic_smem_size`
    DynamicSmemSize,
    /// `%total_smem_size`
    TotalSmemSize,
    /// Always 0: `%smid`, `%gridid`.
    Zero,
    /// `%nsmid`
    One,
}

/// An address operand.
#[derive(Clone, Copy, Debug)]
pub struct AddressOperand {
    /// The register or constant.
    pub base: Src,
    /// Bytes added.
    pub offset: i64,
    /// The bits that count: a sum with a 32-bit register wraps around at 32 bits.
    pub mask: u64,
    /// Where it goes.
    pub window: Window,
}

/// How an access takes part in the order between threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Not `weak`: races with no other strong access.
    pub strong: bool,
    /// Earlier accesses of the writer are visible after it.
    pub acquire: bool,
    /// Earlier accesses are visible to threads that acquire the value.
    pub release: bool,
    /// Only among threads of the block.
    pub block_only: bool,
}

/// A load of `registers.len()` elements.
#[derive(Clone, Debug)]
pub struct Load {
    /// From where.
    pub address: AddressOperand,
    /// Bytes of one element.
    pub bytes: u32,
    /// Bits to sign-extend from; 0 for zero extension.
    pub sign_bits: u32,
    /// Width of the destination registers in bits.
    pub width: u32,
    /// Its order.
    pub order: Order,
    /// Destinations; [`NONE`] for `_`.
    pub registers: Vec<Reg>,
}

/// A store.
#[derive(Clone, Debug)]
pub struct Store {
    /// To where.
    pub address: AddressOperand,
    /// Bytes of one element.
    pub bytes: u32,
    /// The stored value.
    pub sources: Vec<Src>,
    /// Its order.
    pub order: Order,
}

/// The operation of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Inc,
    Dec,
    Exch,
    Cas,
}

/// An atomic read-modify-write, or a reduction without destinations.
#[derive(Clone, Debug)]
pub struct Atomic {
    /// Where.
    pub address: AddressOperand,
    /// What.
    pub op: AtomicOp,
    /// Element type.
    pub ty: Modifier,
    /// Bytes of one element.
    pub bytes: u32,
    /// Old values go here; empty for `red`.
    pub registers: Vec<Reg>,
    /// Operands, one per element.
    pub sources: Vec<Src>,
    /// For `cas`: the new value (`sources` holds the compared one).
    pub swap: Option<Src>,
    /// Its order.
    pub order: Order,
}

/// Mode of a shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShuffleMode {
    Up,
    Down,
    Butterfly,
    Index,
}

/// A warp-collective instruction.
#[derive(Clone, Debug)]
pub enum WarpOp {
    /// `bar.warp.sync`
    Barrier,
    /// `shfl.sync`: destination, predicate, a, b, c.
    Shuffle(ShuffleMode, Reg, Reg, [Src; 3]),
    /// `vote.sync`: which, destination, predicate.
    Vote(Modifier, Reg, Src),
    /// `match.any` / `match.all`: true for all, destination, predicate, value, bytes compared in full.
    Match(bool, Reg, Reg, Src),
    /// `redux.sync`
    Reduce(AtomicOp, bool, Reg, Src),
    /// `elect.sync`: destination, predicate.
    Elect(Reg, Reg),
}

/// The operand types of an `mma`.
#[derive(Clone, Debug)]
pub struct Mma {
    /// Rows of A.
    pub m: u32,
    /// Columns of B.
    pub n: u32,
    /// Columns of A.
    pub k: u32,
    /// Element types of D and C, A, B.
    pub d_type: Modifier,
    /// Type of A.
    pub a_type: Modifier,
    /// Type of B.
    pub b_type: Modifier,
    /// Type of C.
    pub c_type: Modifier,
    /// `.satfinite`
    pub saturate: bool,
    /// Destinations.
    pub d: Vec<Reg>,
    /// Registers of A, B, C.
    pub a: Vec<Src>,
    /// Registers of B.
    pub b: Vec<Src>,
    /// Registers of C.
    pub c: Vec<Src>,
}

/// How threads meet at a barrier of the block.
#[derive(Clone, Debug)]
pub struct BlockBarrier {
    /// Which of the 16.
    pub id: Src,
    /// Number of threads, if given.
    pub count: Option<Src>,
    /// True if the threads go on at once.
    pub arrive_only: bool,
    /// True if all threads of a warp must come together.
    pub aligned: bool,
    /// For `red`: what (None `popc`, else and/or), destination, predicate.
    pub reduce: Option<(BarrierReduce, Reg, Src)>,
}

/// The result of `bar.red`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierReduce {
    Count,
    And,
    Or,
}

/// A function called.
#[derive(Clone, Debug)]
pub enum Callee {
    /// A function of this module, by index.
    Function(usize),
    /// `vprintf(format, arguments)`
    Printf,
    /// `__assertfail(message, file, line, function, size)`
    AssertFail,
    /// Not defined here.
    Missing(String),
}

/// A call: parameters lie in the caller's frame.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who.
    pub callee: Callee,
    /// Offset in the caller's frame, offset in the callee's, bytes.
    pub arguments: Vec<(u32, u32, u32)>,
    /// Offset in the caller's frame, offset in the callee's, bytes.
    pub results: Vec<(u32, u32, u32)>,
}

/// The kind of an operation.
#[derive(Clone, Debug)]
pub enum Kind {
    /// One destination from up to four sources.
    Alu(AluFn, Reg, [Src; 4]),
    /// A special register.
    Special(Special, Reg),
    /// The address of a variable in the frame.
    FrameAddress(Reg, u32),
    /// A load.
    Load(Box<Load>),
    /// A store.
    Store(Box<Store>),
    /// An atomic.
    Atomic(Box<Atomic>),
    /// A jump.
    Branch(u32),
    /// A jump by table.
    BranchTable(Src, Box<[u32]>),
    /// A call.
    Call(Box<Call>),
    /// Back to the caller; from a kernel, the end of the thread.
    Return,
    /// The end of the thread.
    Exit,
    /// `trap`
    Trap,
    /// A barrier of the block.
    Barrier(Box<BlockBarrier>),
    /// Lanes together, under a member mask.
    Warp(Box<WarpOp>, Src),
    /// `activemask`
    ActiveMask(Reg),
    /// `isspacep`
    IsSpace(Window, Reg, Src),
    /// Matrix multiplication.
    Mma(Box<Mma>),
    /// `ldmatrix`: destinations, address, transposed.
    LoadMatrix(Box<[Reg]>, AddressOperand, bool),
    /// `stmatrix`: sources, address, transposed.
    StoreMatrix(Box<[Src]>, AddressOperand, bool),
    /// `cp.async`
    CopyAsync(Box<CopyAsync>),
    /// `cp.async.commit_group`
    CopyCommit,
    /// `cp.async.wait_group n`; `None` is `wait_all`.
    CopyWait(Option<u32>),
    /// `cp.async.mbarrier.arrive`; true with `.noinc`.
    CopyArrive(AddressOperand, bool),
    /// An operation on mbarriers.
    Mbarrier(Box<MbarrierOp>),
    /// A wait on mbarriers.
    MbarrierTest(Box<MbarrierTest>),
    /// A copy of a box of a tensor.
    Tensor(Box<TensorCopy>),
    /// A linear bulk copy.
    Bulk(Box<BulkCopy>),
    /// `cp.async.bulk.commit_group`
    BulkCommit,
    /// `cp.async.bulk.wait_group n`; true for `.read`.
    BulkWait(u32, bool),
    /// `tensormap.replace`
    TensormapReplace(Box<TensormapReplace>),
    /// `tensormap.cp_fenceproxy`: to, from.
    TensormapCopy(AddressOperand, AddressOperand),
    /// `fence.proxy.tensormap::generic.acquire`
    TensormapAcquire(AddressOperand),
    /// `wgmma.mma_async`
    Product(Box<Product>),
    /// `wgmma.fence`
    ProductFence,
    /// `wgmma.commit_group`
    ProductCommit,
    /// `wgmma.wait_group n`
    ProductWait(u32),
    /// A fence.
    Fence(FenceKind),
    /// `barrier.cluster.arrive`; true if relaxed.
    ClusterArrive(bool),
    /// `barrier.cluster.wait`
    ClusterWait,
    /// `mapa`: destination, address, rank of the block; true for generic addresses.
    MapShared(Reg, Src, Src, bool),
    /// `getctarank`: destination, address; true for generic addresses.
    RankOf(Reg, Src, bool),
    /// `setmaxnreg`: nothing but that the warp comes together.
    MaxRegisters,
    /// Yields to other warps.
    Pause,
    /// No effect here: fences, prefetches, hints.
    Nothing,
}

/// How an operation treats the exact values of its operands on the way to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrapRule {
    /// 32-bit sum.
    Add,
    /// 32-bit difference.
    Sub,
    /// 32-bit negation.
    Neg,
    /// 32-bit product.
    Mul,
    /// 32-bit product and sum.
    Mad,
    /// 32-bit shift to the left.
    Shl,
    /// 32-bit disjunction: a sum where no bit is in both.
    Or,
    /// The same value.
    Move,
    /// The first or the second value.
    Select,
    /// From 32 to 64 bits with sign, perhaps multiplied, perhaps added.
    ExtendSigned,
    /// The same without sign.
    ExtendUnsigned,
    /// Linear in 64 bits.
    Wide,
}

impl WrapRule {
    /// Whether it is arithmetic in 32 bits.
    pub fn can_wrap(self) -> bool {
        use WrapRule::*;
        matches!(self, Add | Sub | Neg | Mul | Mad | Shl | Or)
    }
}

/// One operation.
#[derive(Clone, Debug)]
pub struct Op {
    /// What.
    pub kind: Kind,
    /// How it takes part in the computation of an address, if it does.
    pub wrap: Option<WrapRule>,
    /// A predicate register, perhaps with [`NEGATED`]; [`NONE`] without guard.
    pub guard: u32,
    /// 1 on the last operation of an instruction, 0 on the others.
    pub weight: u32,
}

/// Where an operation comes from.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// PTX line.
    pub line: u32,
    /// Index into [`Code::instructions`].
    pub instruction: u32,
    /// Index into [`Code::locations`], or [`NONE`].
    pub location: u32,
}

/// A decoded function.
#[derive(Clone, Debug)]
pub struct FunctionCode {
    /// Name.
    pub name: String,
    /// True for a kernel.
    pub entry: bool,
    /// First operation.
    pub start: u32,
    /// Registers of its frame.
    pub registers: u32,
    /// Bytes of its frame in local memory.
    pub frame_bytes: u32,
    /// For kernels: bytes of the parameter buffer.
    pub param_bytes: u32,
    /// For device functions: offset and size of each parameter, of each result.
    pub params: Vec<(u32, u32)>,
    /// Offset and size of each result.
    pub results: Vec<(u32, u32)>,
    /// `.reqntid`
    pub required_threads: Option<[u32; 3]>,
    /// `.maxntid`, as a product.
    pub max_threads: Option<u32>,
    /// `.reqnctapercluster`
    pub required_cluster: Option<[u32; 3]>,
    /// Registers by name; with a count for the `<n>` form: name, first, count.
    pub names: Vec<(String, Reg, Option<u32>)>,
}

/// A module-level variable in global or constant memory.
#[derive(Clone, Debug)]
pub struct GlobalImage {
    /// Name.
    pub name: String,
    /// Alignment.
    pub align: u32,
    /// Initial bytes.
    pub bytes: Vec<u8>,
    /// Offset in `bytes` and bits of the pointer to another variable, by index, plus offset.
    pub pointers: Vec<(usize, usize, i64)>,
    /// Constant memory.
    pub constant: bool,
}

/// A decoded module.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// All functions' operations.
    pub ops: Vec<Op>,
    /// Where each comes from.
    pub origins: Vec<Origin>,
    /// Text of instructions.
    pub instructions: Vec<String>,
    /// Distinct `.loc`s.
    pub locations: Vec<Loc>,
    /// Names of files.
    pub files: HashMap<u32, String>,
    /// Functions.
    pub functions: Vec<FunctionCode>,
    /// Broadcast constants.
    pub constants: Vec<Lanes>,
    /// Constants that hold the address of a global variable: constant, variable, offset.
    pub relocations: Vec<(usize, usize, i64)>,
    /// Global variables.
    pub globals: Vec<GlobalImage>,
    /// Bytes of static shared memory, before the dynamic part.
    pub static_shared: u32,
    /// Target.
    pub target: String,
    /// Whether the module has asynchronous instructions: then their use is checked.
    pub asynchronous: bool,
    /// Width of the narrowest access of shared memory.
    pub granule: u32,
    /// Width of the narrowest access of global memory.
    pub global_granule: u32,
    /// Whether the module has `wgmma`: then the use of registers is checked.
    pub products: bool,
}

impl Code {
    /// The text of an operation's instruction.
    pub fn instruction(&self, origin: Origin) -> String {
        self.instructions.get(origin.instruction as usize).cloned().unwrap_or_default()
    }

    /// The source position of a `.loc`; line 0 is none.
    pub fn location(&self, index: u32) -> Option<SourceLocation> {
        let loc: &Loc = self.locations.get(index as usize).filter(|_| index != NONE)?;
        let file = |index: u32| self.files.get(&index).cloned().unwrap_or_else(|| format!("file {index}"));
        let inlined_at = loc.inlined.iter().map(|i| (file(i.at.0), i.at.1, i.at.2)).collect();
        (loc.line > 0).then(|| SourceLocation { file: file(loc.file), line: loc.line, column: loc.column, inlined_at })
    }
}
