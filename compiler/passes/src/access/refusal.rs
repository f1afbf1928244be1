//! Why an access is no box of a tensor, why the warps of a kernel are not specialized, or why atomics are no TMA
//! reduction: the refusals that `-v` reports, each with a code, a sentence, and what to change in the source.

/// Makes the enum and its table: variant, code, sentence, what to change.
macro_rules! refusals {
    ($($name:ident $code:literal $message:literal $help:literal;)*) => {
        /// A refusal of warp specialization or TMA.
        ///
        /// ```
        /// use rtc_passes::Refusal;
        /// let refusal = Refusal::ALL.iter().find(|refusal| refusal.code() == "box-start").unwrap();
        /// assert!(refusal.message().contains("16 bytes") && refusal.help().contains("multiple"));
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Refusal {
            $(#[doc = $message] $name,)*
        }

        impl Refusal {
            /// All of them, in the order of `docs/tools/refusals.md`.
            pub const ALL: &'static [Refusal] = &[$(Refusal::$name),*];

            /// Its code, the heading of its section in `docs/tools/refusals.md`.
            pub fn code(self) -> &'static str {
                match self { $(Refusal::$name => $code,)* }
            }

            /// The reason, as a clause.
            pub fn message(self) -> &'static str {
                match self { $(Refusal::$name => $message,)* }
            }

            /// What to change in the source or in the options.
            pub fn help(self) -> &'static str {
                match self { $(Refusal::$name => $help,)* }
            }
        }
    };
}

refusals! {
    // Loops and options.
    NoWgmma "no-wgmma" "no loop has a `wgmma` dot"
        "use tiles of at least 64 rows and 32 bytes of K, operands of at most half of shared memory, and a multiple of 4 warps, \
         in a `for` loop without loops in it";
    NoCopies "no-copies" "no loop copies operands of a dot to shared memory"
        "load the operands of the dot in the loop, with `num_stages` of at least 2";
    RowsForAllWarps "rows-for-all-warps" "all warps together copy rows that a list selects faster, as the blocks of an SM have many accumulators"
        "set the option `structure=\"specialized\"`, and compare the times";
    AssemblyInCluster "assembly-in-cluster" "inline assembly in a kernel with `num_ctas` > 1"
        "set `num_ctas` to 1: the assembly may use the blocks of the cluster";
    Maxnreg "maxnreg-set" "`maxnreg` is set"
        "remove `maxnreg`: the partitions have registers of their own";
    LoopsWithMaps "loops-with-maps" "there are several loops, and their tensor maps are made in the kernel"
        "pass the base pointers as arguments of the kernel instead of loading them";
    RingTypes "ring-types" "loops copy operands of different types to the same ring"
        "load the operands of all loops in the same order with the same types";
    SideEffects "side-effects" "the kernel has observable side effects whose order matters"
        "remove prints, atomics whose results are used, and operations that order memory accesses";
    Volatile "volatile-access" "an access is volatile"
        "remove `volatile=True`";
    UnknownStore "unknown-store" "a store's target is not known"
        "store through a pointer argument, at offsets from it";
    WrittenInLoop "memory-written" "the kernel writes memory that the loop reads"
        "write results to another argument than those that the loop loads from";
    // Dots and copies.
    ComputedOperand "computed-operand" "an operand of a dot is computed, not loaded"
        "compute only the left operand, element by element from loads or another dot; the right one may be cast";
    SamePointers "same-pointers" "two loads use the same pointers"
        "load the tile once and use the value twice";
    BufferLayout "buffer-layout" "an operand's shared-memory layout is not one that TMA writes"
        "make the contiguous dimension of the tile at least 32 bytes";
    WrapsStored "wraps-stored" "rows taken modulo a size are not masked off when results are stored"
        "mask the store by the same size: `mask=rows < size`";
    // Tiles and addresses.
    NotMatrix "not-matrix" "the tile is not a 2-D numeric tile"
        "use a tile of two dimensions of numbers";
    NotAffine "not-affine" "addresses are not affine in the tile's indices"
        "compute offsets as sums of an index times a stride; no indirect indices, no bit operations";
    ColumnMajorStore "column-major-store" "the stored tile is column-major, or its rows are taken modulo a size"
        "store rows whose elements are contiguous, without a modulus";
    LoopVariantBase "base-in-loop" "the base pointer is loop-variant"
        "compute the base pointer before the loop, and only the offsets in it";
    BaseNotArgument "base-not-argument" "the base pointer is not a kernel argument"
        "use an argument as the base or, in a loop with a dot, promise that a loaded pointer is aligned: `tl.multiple_of(pointer, 16)`";
    BaseUnpromised "base-unpromised" "the base pointer is not promised to be a multiple of 16 bytes"
        "promise it: `tl.multiple_of(pointer, 16)`";
    ArgumentUnpromised "argument-unpromised" "a pointer argument is not promised to be a multiple of 16 bytes"
        "promise it in the signature: `*fp16:16`";
    StrideUnpromised "stride-unpromised" "a stride is not promised to be a multiple of 16 bytes"
        "promise it in the signature, `i32:16`, or by `tl.multiple_of`";
    NoUnitStride "no-unit-stride" "no dimension has a stride of 1"
        "let one dimension be contiguous, and say so: leave its stride out, or pass 1 as a `tl.constexpr`";
    StrideUnknown "stride-unknown" "a stride is 0, or not computed from kernel arguments alone"
        "compute strides from arguments, by sums and products";
    StrideNegative "stride-negative" "a stride is negative"
        "use nonnegative strides";
    SizeUnknown "size-unknown" "a size is not computed from kernel arguments alone"
        "compare indices in masks with arguments";
    SizeInTuple "size-in-tuple" "a size is part of a descriptor or tuple"
        "pass the size as an argument of its own";
    BoxStart "box-start" "a box is not known to start at a multiple of 16 bytes"
        "let the start along the contiguous dimension be a multiple: `tl.multiple_of(start, 16)`";
    StoreStart "store-start" "a store may start before the tensor"
        "let the start of the tile be nonnegative: a program index times a block size, without subtracting";
    NegativeIndex "negative-index" "an index may be negative"
        "let indices begin at 0: a program index times a block size plus `tl.arange`";
    IndexRange "index-range" "an index is not a polynomial that fits 32 bits"
        "use indices below 2^31 that are sums of products";
    Rank "tensor-rank" "a tensor has more than 5 dimensions"
        "combine dimensions, or move the outer ones into the base pointer";
    // Masks.
    MaskForm "mask-form" "a mask is not a conjunction of `index < size` comparisons"
        "combine `index < size` for each dimension by `&`, and nothing else";
    MaskOverflow "mask-overflow" "the index in a mask comparison may overflow"
        "use the plain index in the comparison, or compute it in 64 bits";
    MaskBound "mask-lower-bound" "a mask has a lower bound other than 0"
        "compare only with the size: move a lower bound into the start of the tile";
    MaskOfOther "mask-of-other" "a mask compares indices that the access does not use"
        "compare the indices of the access itself";
    MaskAndModulus "mask-and-modulus" "an index is both masked and taken modulo a size"
        "use one of both: the mask, or the modulus";
    MaskFill "mask-fill" "a masked load fills with something other than zero"
        "load with `other=0`, which adds nothing to a dot";
    FillOfBytes "nan-fill-of-bytes" "TMA cannot fill 8-bit floats with NaN outside of the tensor"
        "use zero padding for 8-bit floats";
    StoreRowEnd "store-row-end" "the stored rows are not known to end at a multiple of 16 bytes"
        "promise the size of a row: `i32:16` in the signature";
    // Reductions.
    AtomicOrder "atomic-order" "the atomic operation has ordering semantics, or its result is used"
        "use `sem=\"relaxed\"`, and do not use the result";
    AtomicType "atomic-type" "TMA has no such reduction for this element type"
        "use add on fp32, fp16, bf16 or integers, or min, max and bit operations on integers";
    AtomicShared "atomic-shared" "the kernel accesses the same memory in another way, or signals other blocks"
        "access the target only by this reduction, and use no other atomics for signals";
    AtomicStart "atomic-start" "an index may be negative, or a row may start at an address that is not a multiple of 16 bytes"
        "let indices begin at 0 and starts of rows be multiples of 16 bytes";
    AtomicSign "atomic-sign" "the tensor's elements differ in signedness"
        "use unsigned elements for sums and bit operations on 64 bits, and for others elements as signed as the operation";
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::Refusal;

    #[test]
    fn codes_and_sentences_differ() {
        let codes: HashSet<&str> = Refusal::ALL.iter().map(|refusal| refusal.code()).collect();
        let messages: HashSet<&str> = Refusal::ALL.iter().map(|refusal| refusal.message()).collect();
        assert_eq!((codes.len(), messages.len()), (Refusal::ALL.len(), Refusal::ALL.len()));
    }
}
