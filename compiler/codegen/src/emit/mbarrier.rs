//! Barriers in shared memory (`mbarrier`), named barriers, fences, and what else warps do to wait for each other.

use super::{Emitter, Value};

impl<'c> Emitter<'c> {
    /// Appends assembly with side effects and without results.
    fn act(&self, text: &str, constraints: &str, operands: &[Value<'c>]) {
        self.assembly(text, constraints, operands, &[], true);
    }

    /// Makes initialized barriers visible to bulk copies; the thread that initialized them calls it.
    pub fn fence_barrier_init(&self) {
        self.act("fence.mbarrier_init.release.cluster;", "~{memory}", &[]);
    }

    /// One arrival at a barrier by each thread whose `predicate` holds.
    pub fn barrier_arrive(&self, predicate: Value<'c>, barrier: Value<'c>) {
        self.act("@$0 mbarrier.arrive.shared::cta.b64 _, [$1];", "b,r,~{memory}", &[predicate, barrier]);
    }

    /// The same, where each arrival also announces that many bytes.
    pub fn barrier_expect(&self, predicate: Value<'c>, barrier: Value<'c>, bytes: Value<'c>) {
        let text = "@$0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$1], $2;";
        self.act(text, "b,r,rn,~{memory}", &[predicate, barrier, bytes]);
    }

    /// Waits until the phase of a barrier with this parity is complete.
    ///
    /// The loop is in the assembly, so that LLVM sees no loop; its labels are local to the braces.
    pub fn barrier_wait(&self, barrier: Value<'c>, parity: Value<'c>) {
        let text = "{ .reg .pred done; \
                    AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; \
                    @done bra DONE; bra AGAIN; DONE: }";
        self.act(text, "r,r,~{memory}", &[barrier, parity]);
    }

    /// Makes earlier writes to shared memory visible to later bulk copies and `wgmma`.
    pub fn fence_async(&self) {
        self.act("fence.proxy.async.shared::cta;", "~{memory}", &[]);
    }
}

impl<'c> Emitter<'c> {
    /// Comes to the barrier numbered `id`, which takes `threads` threads, without waiting there.
    // No operation uses it yet: it is for partitions in turns.
    #[cfg_attr(not(test), expect(dead_code, reason = "operations for consumers in turns do not exist yet"))]
    pub fn named_barrier_arrive(&self, id: Value<'c>, threads: Value<'c>) {
        self.act("bar.arrive $0, $1;", "r,r,~{memory}", &[id, threads]);
    }

    /// True in one lane of the warp, always the same.
    pub fn elected(&self) -> Value<'c> {
        let text = "{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 $0, 1, 0, p; }";
        let chosen = self.assembly(text, "=r", &[], &[self.ty.i32], true);
        self.cmpi(super::Cmpi::Ne, chosen[0], self.i32(0))
    }
}
