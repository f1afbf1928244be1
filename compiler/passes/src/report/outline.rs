//! The schedule of a finished kernel as text: loops, partitions, copies, dots and waits, one line each, without addresses.
//!
//! ```text
//! partition 1: 8 warps, 232 registers
//!   loop %program
//!     loop %k
//!       [barriers 0] dot 128x256x64, f16 to f32, wgmma, in flight
//!       wait until 1 dot is in flight, then arrive at barriers 1
//!     store through desc c.map0, by TMA
//! ```
//!
//! Barriers in brackets are waited for before the operation of the line. Element-wise operations between two others are
//! counted, and so are repetitions of lines. Buffers and barriers without a name have their numbers in program order.

use std::fmt::Write;

use crate::schedule::partition::persistent::described;
use rtc_ir::{
    Block, Hidden, Kernel, Op, OpKind, Traits, Type, Value, constant_bits, place_bytes, regions, trip_count, view,
};

/// The outline of a kernel, as `rtc emit --stage plan` prints it.
///
/// ```
/// let kernel = rtc_ir::text::parse(
///     "kernel @copy(%x: ptr<f32> {sig = \"*fp32\"}, %y: ptr<f32> {sig = \"*fp32\"}) warps 4 phase tile {
///        %i = arange {start = 0, end = 64} : tile<64xi32>
///        %ps = splat %x : tile<64xptr<f32>>
///        %p = addptr %ps, %i : tile<64xptr<f32>>
///        %qs = splat %y : tile<64xptr<f32>>
///        %q = addptr %qs, %i : tile<64xptr<f32>>
///        %v = load %p : tile<64xf32>
///        %w = addf %v, %v : tile<64xf32>
///        store %q, %w
///        ret
///      }",
/// )?;
/// let outline = rtc_passes::outline(&kernel);
/// assert_eq!(outline.lines().count(), 4, "{outline}");
/// assert!(outline.ends_with("load v: 64xf32, then 1 element-wise operation\nstore w: 64xf32\n"), "{outline}");
/// # Ok::<(), rtc_ir::text::ParseError>(())
/// ```
pub fn outline(kernel: &Kernel) -> String {
    let blocks = kernel.persistent.map(|p| described(p.blocks_per_multiprocessor));
    let loops = blocks.map_or(String::new(), |blocks| format!(", {blocks}"));
    let shared = kernel.shared_bytes;
    let title =
        format!("{}: {} warps, {shared} bytes of shared memory{loops}\n", kernel.name, kernel.whole_block().warps);
    let allocates = |op: &Op| matches!(kernel.kind(*op), OpKind::AllocShared { .. } | OpKind::AllocBarriers { .. });
    let made = rtc_ir::walk(kernel).into_iter().filter(allocates).map(|op| kernel.result(op, 0));
    let made: Vec<Value> = made.collect();
    let mut outline = Outline::new(kernel, &made);
    outline.block(kernel.body(), 0);
    title + &without_repetitions(&outline.out)
}

/// The most lines that are repeated together.
const LONGEST: usize = 8;

/// Lines that repeat those before them are counted instead.
fn without_repetitions(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::new();
    let mut at = 0;
    while at < lines.len() {
        let repeats = |width: usize| {
            let group = lines.get(at..at + width)?;
            let times = lines[at..].chunks(width).take_while(|chunk| chunk == &group).count();
            (times > 1).then_some((width, times))
        };
        let (width, times) = (1..=LONGEST).rev().find_map(repeats).unwrap_or((1, 1));
        let (width, times) =
            (1..width).find_map(repeats).filter(|(w, t)| w * t >= width * times).unwrap_or((width, times));
        let count = if times > 1 { format!(" ({times} times)") } else { String::new() };
        if width == 1 {
            let _ = writeln!(out, "{}{count}", lines[at]);
        } else {
            let indent = lines[at].len() - lines[at].trim_start().len();
            lines[at..at + width].iter().for_each(|line| {
                let _ = writeln!(out, "{line}");
            });
            let _ = writeln!(out, "{:indent$}.. these {width} lines{count}", "");
        }
        at += width * times;
    }
    out
}

struct Outline<'k> {
    kernel: &'k Kernel,
    /// The buffers and barriers of the kernel, which are numbered.
    made: &'k [Value],
    out: String,
    /// How deep the last line is, if others may be added to it.
    depth: Option<usize>,
    /// The barriers that the next line is to name.
    waits: Vec<String>,
    /// Element-wise operations since the last line.
    computed: usize,
}

impl<'k> Outline<'k> {
    fn new(kernel: &'k Kernel, made: &'k [Value]) -> Outline<'k> {
        Outline { kernel, made, out: String::new(), depth: None, waits: Vec::new(), computed: 0 }
    }

    fn block(&mut self, block: Block, depth: usize) {
        for op in self.kernel.ops(block) {
            self.op(op, depth);
        }
        self.end(depth);
    }

    /// Writes what was gathered.
    fn end(&mut self, depth: usize) {
        if self.computed > 0 {
            let plural = if self.computed == 1 { "" } else { "s" };
            let text = format!("{} element-wise operation{plural}", self.computed);
            self.computed = 0;
            if self.depth == Some(depth) {
                self.out.pop();
                let _ = writeln!(self.out, ", then {text}");
            } else {
                let _ = writeln!(self.out, "{:1$}{text}", "", 2 * depth);
                self.depth = Some(depth);
            }
        }
        if !self.waits.is_empty() {
            let waits = std::mem::take(&mut self.waits).join(", ");
            let _ = writeln!(self.out, "{:1$}[{waits}]", "", 2 * depth);
            self.depth = None;
        }
    }

    fn line(&mut self, depth: usize, text: &str) {
        let waits = std::mem::take(&mut self.waits);
        self.end(depth);
        let waits = if waits.is_empty() { String::new() } else { format!("[{}] ", waits.join(", ")) };
        let _ = writeln!(self.out, "{:1$}{waits}{text}", "", 2 * depth);
        self.depth = Some(depth);
    }

    /// Adds to the last line, or writes a new one if something lies between.
    fn also(&mut self, depth: usize, text: &str) {
        if self.computed == 0 && self.waits.is_empty() && self.depth == Some(depth) {
            self.out.pop();
            let _ = writeln!(self.out, ", then {text}");
        } else {
            self.line(depth, text);
        }
    }

    fn op(&mut self, op: Op, depth: usize) {
        let kernel = self.kernel;
        match kernel.kind(op) {
            OpKind::BarrierWait {} => self.waits.push(self.name(view::BarrierWait::at(kernel, op).barrier())),
            OpKind::BarrierArrive {} => {
                let freed = self.name(view::BarrierArrive::at(kernel, op).barrier());
                self.also(depth, &format!("arrive at {freed}"));
            }
            OpKind::CopyArrive {} => {
                let filled = self.name(view::CopyArrive::at(kernel, op).barrier());
                self.also(depth, &format!("arrive at {filled} with the copies"));
            }
            OpKind::WarpSpecialize { warps, registers } => {
                for (number, block) in kernel.op(op).blocks.iter().enumerate() {
                    let own = registers.as_ref().and_then(|all| all.get(number));
                    let own = own.map_or(String::new(), |own| format!(", {own} registers"));
                    let plural = if warps[number] == 1 { "" } else { "s" };
                    self.line(depth, &format!("partition {number}: {} warp{plural}{own}", warps[number]));
                    self.depth = None;
                    self.block(*block, depth + 1);
                    self.depth = None;
                }
            }
            kind if regions::is_loop(kind) => {
                let count = trip_count(kernel, op).map_or(String::new(), |trips| format!(", {trips} iterations"));
                let index = kernel.op(op).blocks.first().and_then(|block| kernel.block(*block).args.first());
                let index = index.filter(|_| matches!(kernel.kind(op), OpKind::ForRange { .. }));
                let index = index.map_or("while".to_owned(), |index| format!("loop {}", self.value(*index)));
                self.nested(op, &[format!("{index}{count}"), "do".into()], depth);
            }
            OpKind::IfElse {} => self.nested(op, &["if".into(), "else".into()], depth),
            OpKind::Barrier {} => self.also(depth, "barrier"),
            kind => match self.text(op) {
                Some(text) => self.line(depth, &text),
                None => {
                    let tile = kernel.op(op).results.iter().any(|value| kernel.value_type(*value).shape().is_some());
                    let computes = kind.spec().traits.has(Traits::ELEMENTWISE) && tile && self.is_varying(op);
                    self.computed += usize::from(computes);
                }
            },
        }
    }

    /// Blocks in which something happens, each with a line before it.
    fn nested(&mut self, op: Op, titles: &[String], depth: usize) {
        for (number, block) in self.kernel.op(op).blocks.iter().enumerate() {
            let mut inner = Outline::new(self.kernel, self.made);
            inner.block(*block, depth + 1);
            if !inner.out.is_empty() {
                self.line(depth, &titles[number.min(titles.len() - 1)]);
                self.out.push_str(&inner.out);
                self.depth = None;
            }
        }
    }

    /// The line of an operation that moves data, is a dot, or waits.
    fn text(&self, op: Op) -> Option<String> {
        let kernel = self.kernel;
        Some(match kernel.kind(op) {
            OpKind::Load { .. } => format!("load {}{}", self.tile(kernel.result(op, 0))?, self.width(op)),
            OpKind::Store { .. } => {
                format!("store {}{}", self.tile(view::Store::at(kernel, op).value())?, self.width(op))
            }
            OpKind::AtomicRmw { op: by, .. } => format!("atomic {by} of {}", self.tile(kernel.value_operand(op)?)?),
            OpKind::CopyAsync { vector } => {
                let copy = view::CopyAsync::at(kernel, op);
                let elem = kernel.value_type(copy.buffer()).elem().map_or(0, |elem| elem.bytes());
                format!("copy to {}, by threads, {} bytes at a time", self.ring(copy.buffer()), vector * elem)
            }
            OpKind::CopyBulk {} => format!("copy to {}, in bulk", self.ring(kernel.buffer(op)?)),
            OpKind::CopyDesc {} => {
                let desc = kernel.desc(op)?;
                let choice = kernel.def_op(desc).and_then(|made| view::Select::of(kernel, made));
                let maps = choice.map_or(vec![desc], |choice| vec![choice.rhs(), choice.lhs()]);
                let hidden =
                    maps.iter().filter_map(|map| kernel.params.iter().find(|p| p.value == *map)?.hidden.as_ref());
                let shrinks = |hidden: &Hidden| matches!(hidden, Hidden::TensorMap(map) if map.shrinks);
                let rows = if hidden.into_iter().any(shrinks) { ", no more rows than there are" } else { "" };
                let maps: Vec<String> = maps.into_iter().map(|map| self.value(map)).collect();
                format!("copy {} to {}, by TMA{rows}", maps.join(" or "), self.ring(kernel.buffer(op)?))
            }
            OpKind::CopyDescStore {} => format!("store through {}, by TMA", self.value(kernel.desc(op)?)),
            OpKind::CopyDescReduce { op: by } => format!("{by} through {}, by TMA", self.value(kernel.desc(op)?)),
            OpKind::CopyWait { pending } => {
                format!("wait until {}", in_flight(*pending, "group of copies", "groups of copies"))
            }
            OpKind::MmaWait { pending } => format!("wait until {}", in_flight(*pending, "dot", "dots")),
            OpKind::CopyDescWait { pending, .. } => {
                format!("wait until {}", in_flight(*pending, "store by TMA", "stores by TMA"))
            }
            OpKind::Dot { kind, .. } => self.dot(op, &kind.to_string()),
            OpKind::DotBuffers { kind } => self.dot(op, &format!("{kind}, operands in shared memory")),
            OpKind::Mma {} => self.dot(op, "wgmma"),
            OpKind::MmaAsync {} => self.dot(op, "wgmma, in flight"),
            OpKind::LocalStore {} => {
                let store = view::LocalStore::at(kernel, op);
                format!("{} to {}", self.tile(store.value())?, self.ring(store.buffer()))
            }
            OpKind::LocalLoad {} => {
                let from = self.name(view::LocalLoad::at(kernel, op).buffer());
                format!("read {} from {from}", self.tile(kernel.result(op, 0))?)
            }
            OpKind::Reduce { axis } => {
                let shape = kernel.value_type(*kernel.variadic(op).first()?).shape()?;
                format!("reduce {shape} along axis {axis}")
            }
            _ => return None,
        })
    }

    fn dot(&self, op: Op, how: &str) -> String {
        let kernel = self.kernel;
        let Some([lhs, rhs, acc]) = kernel.dot_operands(op) else { return "dot".into() };
        let sizes = |value: Value| match kernel.value_type(value) {
            Type::Shared(buffer) => Some(buffer.shape),
            ty => ty.shape(),
        };
        let elem = |value: Value| kernel.value_type(value).elem().map_or(String::new(), |elem| elem.to_string());
        let [Some(left), Some(result)] = [sizes(lhs), sizes(acc)] else { return "dot".into() };
        let (rank, registers) = (left.rank(), kernel.value_type(lhs).shape().is_some());
        let from = if how.starts_with("wgmma") && registers { ", A in registers" } else { "" };
        format!(
            "dot {}x{}x{}, {} to {}, {how}{from}",
            result[rank - 2],
            result[rank - 1],
            left[rank - 1],
            elem(rhs),
            elem(acc)
        )
    }

    /// A ring, by the name of its allocation.
    fn ring(&self, buffer: Value) -> String {
        let kernel = self.kernel;
        let made = kernel.allocation(buffer).and_then(|op| kernel.op(op).results.first().copied());
        let Some(made) = made else { return self.value(buffer) };
        let Type::Shared(ring) = kernel.value_type(made) else { return self.value(made) };
        let bytes = place_bytes(Type::Shared(rtc_ir::SharedType { slots: 1, ..ring }));
        let slots = if ring.slots == 1 { String::new() } else { format!("{} slots of ", ring.slots) };
        format!("{} ({slots}{bytes} bytes)", self.value(made))
    }

    /// The bytes that a thread loads or stores at a time.
    fn width(&self, op: Op) -> String {
        let kernel = self.kernel;
        let (OpKind::Load { vector, .. } | OpKind::Store { vector, .. }) = kernel.kind(op) else {
            return String::new();
        };
        let elem = kernel.pointer(op).and_then(|p| kernel.value_type(p).elem()).and_then(|elem| elem.pointee());
        match (vector, elem) {
            (Some(vector), Some(elem)) => format!(", {} bytes at a time", vector * elem.bytes()),
            _ => String::new(),
        }
    }

    /// The shape of a tile, its elements and its name, if it has one; `None` for scalars.
    fn tile(&self, value: Value) -> Option<String> {
        let ty = self.kernel.value_type(value);
        let name = self.kernel.value(value).name.as_ref().map_or(String::new(), |name| format!("{name}: "));
        Some(format!("{name}{}x{}", ty.shape()?, ty.elem()?))
    }

    /// The name of a buffer or of barriers, or their number.
    fn name(&self, place: Value) -> String {
        let made = self.kernel.allocation(place).and_then(|op| self.kernel.op(op).results.first().copied());
        self.value(made.unwrap_or(place))
    }

    /// A value as the source calls it, or its number among the buffers or barriers.
    fn value(&self, value: Value) -> String {
        let kernel = self.kernel;
        if let Some(name) = &kernel.value(value).name {
            return name.clone();
        }
        let is_barrier = |value: &Value| matches!(kernel.value_type(*value), Type::Barrier { .. });
        let alike = self.made.iter().filter(|other| is_barrier(other) == is_barrier(&value));
        match (alike.into_iter().position(|other| *other == value), is_barrier(&value)) {
            (Some(number), true) => format!("barriers {number}"),
            (Some(number), false) => format!("buffer {number}"),
            (None, _) => value.to_string(),
        }
    }

    /// Whether an operation is more than a constant or an index known to all.
    fn is_varying(&self, op: Op) -> bool {
        self.kernel.op(op).results.iter().all(|value| constant_bits(self.kernel, *value).is_none())
    }
}

fn in_flight(count: u32, one: &str, several: &str) -> String {
    match count {
        0 => format!("no {one} is in flight"),
        1 => format!("1 {one} is in flight"),
        more => format!("{more} {several} are in flight"),
    }
}
