//! Operands of asynchronous operations.

use rtc_ptx::Modifier;

use super::{AddressOperand, AtomicOp, Reg, Src};

/// A `cp.async`.
#[derive(Clone, Copy, Debug)]
pub struct CopyAsync {
    /// To shared memory.
    pub to: AddressOperand,
    /// From global memory.
    pub from: AddressOperand,
    /// Bytes written.
    pub bytes: u32,
    /// Bytes read, if fewer may be; the rest is zero.
    pub size: Option<Src>,
    /// A predicate: true reads nothing.
    pub ignore: Option<Src>,
}

/// The operation on an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MbarrierAction {
    Init,
    Inval,
    ExpectTx,
    CompleteTx,
    Arrive,
    ArriveDrop,
}

/// An operation on mbarriers.
#[derive(Clone, Debug)]
pub struct MbarrierOp {
    /// What.
    pub action: MbarrierAction,
    /// Where.
    pub address: AddressOperand,
    /// Arrivals, 1 by default.
    pub count: Option<Src>,
    /// Bytes announced, or done.
    pub bytes: Option<Src>,
    /// The state goes here, or [`NONE`].
    pub state: Reg,
    /// `.noComplete`
    pub no_complete: bool,
    /// `.relaxed`
    pub relaxed: bool,
}

/// A wait on mbarriers.
#[derive(Clone, Debug)]
pub struct MbarrierTest {
    /// The predicate.
    pub to: Reg,
    /// Where.
    pub address: AddressOperand,
    /// A parity, or a state.
    pub value: Src,
    /// True for a parity.
    pub parity: bool,
    /// `.relaxed`
    pub relaxed: bool,
}

/// Which way a tensor copy goes.
#[derive(Clone, Copy, Debug)]
pub enum Direction {
    /// Into shared memory; with a mask into several blocks.
    In { to: AddressOperand, barrier: AddressOperand, mask: Option<Src> },
    /// Out of shared memory.
    Out { from: AddressOperand, reduce: Option<AtomicOp> },
    /// Nowhere.
    Prefetch,
}

/// A copy of a box of a tensor.
#[derive(Clone, Debug)]
pub struct TensorCopy {
    /// The tensor map.
    pub map: AddressOperand,
    /// Coordinates, innermost first.
    pub at: Vec<Src>,
    /// Which way.
    pub direction: Direction,
}

/// A linear bulk copy.
#[derive(Clone, Debug)]
pub struct BulkCopy {
    /// To where.
    pub to: AddressOperand,
    /// From where.
    pub from: AddressOperand,
    /// How many bytes.
    pub bytes: Src,
    /// The mbarrier of a copy into shared memory; without, it goes to global memory.
    pub barrier: Option<AddressOperand>,
    /// Several blocks.
    pub mask: Option<Src>,
    /// How a reduction combines.
    pub reduce: Option<(AtomicOp, Modifier)>,
}

/// `tensormap.replace`
#[derive(Clone, Debug)]
pub struct TensormapReplace {
    /// The map.
    pub address: AddressOperand,
    /// First byte of the field and its size, see `tensor_map::field`.
    pub field: (usize, usize),
    /// True if the field holds the value less one.
    pub less_one: bool,
    /// The source of the write.
    pub value: Src,
}

/// Where `wgmma` takes A from.
#[derive(Clone, Debug)]
pub enum MatrixA {
    /// Shared memory, by descriptor; true if M is innermost.
    Shared(Src, bool),
    /// Registers.
    Registers(Vec<Reg>),
}

/// `wgmma.mma_async`
#[derive(Clone, Debug)]
pub struct Product {
    /// Columns of B.
    pub n: u32,
    /// Columns of A.
    pub k: u32,
    /// Type of D.
    pub d_type: Modifier,
    /// Type of A.
    pub a_type: Modifier,
    /// Type of B.
    pub b_type: Modifier,
    /// `.satfinite`
    pub saturate: bool,
    /// Accumulators.
    pub d: Vec<Reg>,
    /// A.
    pub a: MatrixA,
    /// Descriptor of B.
    pub b: Src,
    /// True if N is innermost in B.
    pub b_transposed: bool,
    /// False: D is overwritten.
    pub scale_d: Src,
    /// 1 or -1 for A and B, in one.
    pub sign: f64,
}

/// The accesses that a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceKind {
    /// Ordinary accesses.
    Ordinary,
    /// Ordinary with asynchronous accesses.
    Proxy,
    /// The initialisation of mbarriers.
    MbarrierInit,
}
