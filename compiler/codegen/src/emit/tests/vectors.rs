//! What undoes itself is not built, and nothing is taken from a block that does not dominate its use.

use super::*;

#[test]
fn packs_unpacks_and_casts_that_undo_themselves_are_not_built() {
    compile("sm_80", |e, out| {
        let access = AccessAttrs { align: 4, ..AccessAttrs::default() };
        let pair = e.vector_type(2, e.ty.f16);
        let word = e.load(out, e.ty.i32, access);
        let halves = e.bitcast(word, pair);
        let [low, high] = e.unpack(halves, 2, e.ty.f16)[..] else { unreachable!("two elements") };
        let before = e.count();
        assert!(e.bitcast(word, pair) == halves && e.bitcast(halves, e.ty.i32) == word);
        assert!(e.unpack(halves, 2, e.ty.f16) == [low, high]);
        assert!(e.pack(&[low, high]) == halves, "the elements of a vector in order");
        assert_eq!(e.count(), before);
        let swapped = e.pack(&[high, low]);
        assert!(swapped != halves && e.unpack(swapped, 2, e.ty.f16) == [high, low]);
        let whole = e.unpack(e.bitcast(word, e.vector_type(4, e.ty.i8)), 4, e.ty.i8);
        assert!(e.pack(&whole[..2]) != e.bitcast(word, e.vector_type(4, e.ty.i8)), "a part of a vector");
        e.store(e.bitcast(swapped, e.ty.i32), out, access);
    });
}

/// MLIR's verifier, which `compile` runs, refuses a use that its definition does not dominate.
#[test]
fn elements_and_casts_of_a_branch_are_not_used_beside_it() {
    let ptx = compile("sm_80", |e, out| {
        let access = AccessAttrs { align: 4, ..AccessAttrs::default() };
        let pair = e.vector_type(2, e.ty.f16);
        let word = e.load(out, e.ty.i32, access);
        let low = || {
            let low = e.unpack(e.bitcast(word, pair), 2, e.ty.f16)[0];
            e.store(low, out, AccessAttrs { align: 2, ..access });
        };
        let odd = e.trunci(word, e.ty.i1);
        let in_both = || -> Result<Vec<Value<'_>>, ()> {
            low();
            Ok(Vec::new())
        };
        e.if_else(odd, &[], in_both, in_both).expect("infallible");
        low();
        e.in_prologue(|| e.bitcast(e.special_register("tid.x"), pair));
    });
    assert!(ptx.contains("st.global"), "{ptx}");
}
