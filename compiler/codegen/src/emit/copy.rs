//! Asynchronous copies between global and shared memory: `cp.async` by each thread, bulk copies, and those of tiles by
//! tensor maps (TMA).

use super::{Emitter, Value};

/// The start of a statement that waits for copies by the thread; the number of groups that may stay in flight follows.
pub(crate) const COPY_WAIT: &str = "cp.async.wait_group";

/// How a bulk copy combines elements with those in global memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BulkReduction {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

impl BulkReduction {
    fn name(self) -> &'static str {
        match self {
            BulkReduction::Add => "add",
            BulkReduction::Min => "min",
            BulkReduction::Max => "max",
            BulkReduction::And => "and",
            BulkReduction::Or => "or",
            BulkReduction::Xor => "xor",
        }
    }
}

impl<'c> Emitter<'c> {
    /// Starts a copy of 4, 8 or 16 bytes to shared memory, in threads whose `predicate` is true if there is one. With `size`,
    /// only the first `size` bytes are read from the source; the others are zero.
    pub fn copy_async(
        &self,
        predicate: Option<Value<'c>>,
        to: Value<'c>,
        from: Value<'c>,
        bytes: u32,
        size: Option<Value<'c>>,
    ) {
        // Only whole 16 bytes can pass by the first-level cache.
        let cache = if bytes == 16 { "cg" } else { "ca" };
        let operands: Vec<Value<'c>> = [Some(to), Some(from), size, predicate].into_iter().flatten().collect();
        let (rest, constraint) = if size.is_some() { (", $2", ",r") } else { ("", "") };
        let (guard, condition) = match predicate {
            Some(_) => (format!("@${} ", operands.len() - 1), ",b"),
            None => (String::new(), ""),
        };
        let text = format!("{guard}cp.async.{cache}.shared.global [$0], [$1], {bytes}{rest};");
        self.assembly(&text, &format!("r,l{constraint}{condition},~{{memory}}"), &operands, &[], true);
    }

    /// One arrival at a barrier, by each thread once its copies so far are complete.
    pub fn copy_arrive(&self, barrier: Value<'c>) {
        self.assembly("cp.async.mbarrier.arrive.noinc.shared.b64 [$0];", "r,~{memory}", &[barrier], &[], true);
    }

    /// Makes a group of the thread's copies so far.
    pub fn copy_commit(&self) {
        self.assembly("cp.async.commit_group;", "~{memory}", &[], &[], true);
    }

    /// Waits until all but the thread's latest `pending` groups of copies are complete.
    pub fn copy_wait(&self, pending: u32) {
        self.assembly(&format!("{COPY_WAIT} {pending};"), "~{memory}", &[], &[], true);
    }

    /// Starts the copy of `bytes` contiguous bytes to shared memory, which a barrier counts. Only threads whose
    /// `predicate` is true do it.
    pub fn bulk_copy(&self, predicate: Value<'c>, to: Value<'c>, from: Value<'c>, bytes: u32, barrier: Value<'c>) {
        let text =
            format!("@$0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$1], [$2], {bytes}, [$3];");
        self.bulk(&text, "b,r,l,r", &[predicate, to, from, barrier], &[]);
    }

    /// Starts the copy of a box of a tensor, at `at` (innermost coordinate first), to shared memory; a barrier counts
    /// its bytes. Only threads whose `predicate` is true do it.
    pub fn bulk_load(&self, predicate: Value<'c>, to: Value<'c>, map: Value<'c>, at: &[Value<'c>], barrier: Value<'c>) {
        let (rank, places) = (at.len(), coordinates(at.len(), 4));
        let text = format!(
            "@$0 cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes \
             [$1], [$2, {{{places}}}], [$3];"
        );
        self.bulk(&text, "b,r,l,r", &[predicate, to, map, barrier], at);
    }

    /// Starts the copy of a box from shared memory to a tensor, at `at` (innermost coordinate first), or its reduction
    /// into the tensor.
    pub fn bulk_store(&self, map: Value<'c>, at: &[Value<'c>], from: Value<'c>, reduction: Option<BulkReduction>) {
        let (rank, places) = (at.len(), coordinates(at.len(), 2));
        let form = "global.shared::cta";
        let head = match reduction {
            None => format!("cp.async.bulk.tensor.{rank}d.{form}.bulk_group"),
            Some(by) => format!("cp.reduce.async.bulk.tensor.{rank}d.{form}.{}.tile.bulk_group", by.name()),
        };
        self.bulk(&format!("{head} [$0, {{{places}}}], [$1];"), "l,r", &[map, from], at);
    }

    fn bulk(&self, text: &str, constraints: &str, operands: &[Value<'c>], at: &[Value<'c>]) {
        let operands: Vec<_> = operands.iter().chain(at).copied().collect();
        let constraints = format!("{constraints}{},~{{memory}}", ",r".repeat(at.len()));
        self.assembly(text, &constraints, &operands, &[], true);
    }

    /// Makes a group of the thread's bulk copies from shared memory so far.
    pub fn bulk_commit(&self) {
        self.assembly("cp.async.bulk.commit_group;", "~{memory}", &[], &[], true);
    }

    /// Waits until all but the thread's latest `pending` groups of bulk copies are complete, or only have `read` their
    /// sources.
    pub fn bulk_wait(&self, pending: u32, read: bool) {
        let read = if read { ".read" } else { "" };
        self.assembly(&format!("cp.async.bulk.wait_group{read} {pending};"), "~{memory}", &[], &[], true);
    }
}

/// `rank` operands of a statement from number `first` on, as the coordinates of a box.
fn coordinates(rank: usize, first: usize) -> String {
    (first..first + rank).map(|i| format!("${i}")).collect::<Vec<_>>().join(", ")
}
