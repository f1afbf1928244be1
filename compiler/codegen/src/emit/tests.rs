//! The emitter builds what MLIR, LLVM and ptxas accept.

use std::time::Instant;

use melior::ir::{Location, Module, operation::OperationLike};

use super::*;
use crate::{
    context::MlirContext,
    ptxas,
    translate::{self, Want},
};
use rtc_abi::Target;

mod asynchronous;
mod vectors;

/// Adds two vectors: each thread handles four elements, with a scalar tail under a mask.
fn vector_add<'c>(context: &'c Context) -> Module<'c> {
    let location = Location::new(context, "vadd.rt", 3, 1);
    let module = Module::new(location);
    let types = Types::new(context);
    let pointer = |extra: &str| Parameter { ty: types.global, attributes: format!("llvm.align = 16 : i64{extra}") };
    let parameters = [
        pointer(", llvm.noalias, llvm.readonly"),
        pointer(", llvm.noalias, llvm.readonly"),
        pointer(""),
        Parameter { ty: types.i32, attributes: String::new() },
    ];
    let shape = KernelShape { threads_per_block: 128, ..KernelShape::default() };
    let scope = crate::debug::function_scope(context, "vadd", "vadd.rt", 3);
    let built: Result<(), std::convert::Infallible> =
        kernel(context, &module, "vadd", &parameters, &shape, scope, |e, arguments| {
            e.set_location(Location::new(context, "vadd.rt", 5, 7));
            let &[x, y, z, n] = arguments else { unreachable!("four parameters") };
            let block = e.muli(e.special_register("ctaid.x"), e.i32(512));
            let first = e.addi(block, e.muli(e.special_register("tid.x"), e.i32(4)));
            let access = AccessAttrs { align: 16, ..AccessAttrs::default() };
            let vector = e.vector_type(4, e.ty.f32);
            let at = |base, index| e.offset(base, index, e.ty.f32);
            let whole = e.cmpi(Cmpi::Sle, e.addi(first, e.i32(4)), n);
            e.if_else::<std::convert::Infallible>(
                whole,
                &[],
                || {
                    let sum = e.addf(e.load(at(x, first), vector, access), e.load(at(y, first), vector, access), false);
                    e.store(sum, at(z, first), access);
                    Ok(vec![])
                },
                || {
                    let range = Loop { lower: first, upper: n, step: e.i32(1), unsigned: false };
                    e.for_loop(range, &[], |i, _| {
                        let access = AccessAttrs { align: 4, ..access };
                        let sum = e.addf(e.load(at(x, i), e.ty.f32, access), e.load(at(y, i), e.ty.f32, access), false);
                        e.store(sum, at(z, i), access);
                        Ok(vec![])
                    })
                },
            )?;
            Ok(())
        });
    let Ok(()) = built;
    module
}

/// Builds a kernel of one warp with one pointer parameter and compiles it.
fn compile(target: &str, build: impl for<'c> FnOnce(&Emitter<'c>, Value<'c>)) -> String {
    compile_with(target, 32, 0, |e, arguments| build(e, arguments[0]))
}

/// Builds a kernel with a pointer parameter and some tensor maps, and compiles it.
fn compile_with(
    target: &str,
    threads_per_block: u32,
    maps: usize,
    build: impl for<'c> FnOnce(&Emitter<'c>, &[Value<'c>]),
) -> String {
    let cx = MlirContext::new();
    let context = cx.get();
    let mut module = Module::new(Location::unknown(context));
    let mut parameters = vec![Parameter { ty: Types::new(context).global, attributes: String::new() }];
    parameters.extend((0..maps).map(|_| Parameter::tensor_map(&Types::new(context))));
    let shape = KernelShape { threads_per_block, max_registers: Some(232), ..KernelShape::default() };
    dynamic_shared_memory(context, &module, "shared", 1024);
    let location = Location::unknown(context);
    let built: Result<(), std::convert::Infallible> =
        kernel(context, &module, "k", &parameters, &shape, location, |e, arguments| {
            build(e, arguments);
            Ok(())
        });
    let Ok(()) = built;
    assert!(module.as_operation().verify(), "{:?}\n{}", cx.take_diagnostics(), module.as_operation());
    translate::to_llvm_dialect(&cx, &mut module).expect("conversion");
    let llvm = translate::to_llvm(&cx, &module).expect("translation");
    let target = Target::named(target).expect("known");
    let ptx = translate::emit(llvm, target, Want::Ptx, None).expect("code generation").ptx;
    ptxas::check(&ptx, target);
    ptx
}

#[test]
fn vector_add_is_vectorised_and_carries_lines() {
    for name in ["sm_80", "sm_90a"] {
        let target = Target::named(name).expect("known");
        let cx = MlirContext::new();
        let mut module = vector_add(cx.get());
        assert!(module.as_operation().verify(), "{:?}", cx.take_diagnostics());
        translate::to_llvm_dialect(&cx, &mut module).expect("conversion");
        let llvm = translate::to_llvm(&cx, &module).expect("translation");
        let ptx = translate::emit(llvm, target, Want::Ptx, None).expect("code generation").ptx;
        for needle in [
            &format!(".target {name}"),
            ".version 8.3",
            ".visible .entry vadd(",
            ".reqntid 128",
            "ld.global.nc.v4",
            "st.global.v4",
            ".file\t1 \"vadd.rt\"",
            ".loc\t1 5 7",
        ] {
            assert!(ptx.contains(needle), "{needle} is missing from\n{ptx}");
        }
        assert!(!ptx.contains(".debug_info"), "line numbers only, no debug information:\n{ptx}");
        ptxas::check(&ptx, target);
    }
}

#[test]
fn carried_values_pass_through_loops_and_branches() {
    let ptx = compile("sm_80", |e, out| {
        let range = Loop { lower: e.i32(0), upper: e.special_register("nctaid.x"), step: e.i32(1), unsigned: false };
        let start = [e.i32(0), e.i32(1)];
        let results: Result<_, ()> = e.for_loop(range, &start, |_, values| {
            let (a, b) = (values[0], values[1]);
            let odd = e.trunci(a, e.ty.i1);
            let next = e.if_else(odd, &[e.ty.i32], || Ok(vec![e.addi(a, b)]), || Ok(vec![e.xori(a, b)]))?;
            Ok(vec![b, next[0]])
        });
        let results = results.expect("infallible");
        let counted: Result<_, ()> = e.while_loop(
            &results,
            |values| Ok((e.cmpi(Cmpi::Slt, values[0], e.i32(1000)), values.to_vec())),
            |values| Ok(vec![e.addi(values[0], values[1]), values[1]]),
        );
        e.store(counted.expect("infallible")[0], out, AccessAttrs { align: 4, ..AccessAttrs::default() });
    });
    assert!(ptx.contains("st.global") && ptx.contains("bra"), "{ptx}");
}

#[test]
fn shuffles_move_every_width() {
    let ptx = compile("sm_80", |e, out| {
        let lane = e.special_register("laneid");
        let mut place = out;
        let types = [e.ty.i8, e.ty.i16, e.ty.i32, e.ty.i64];
        for ty in types {
            let value = if ty == e.ty.i64 { e.extsi(lane, ty) } else { e.trunci(lane, ty) };
            let moved = e.shuffle(ShuffleKind::Butterfly, value, e.i32(16));
            e.store(moved, place, AccessAttrs { align: 1, kind: LoadKind::Volatile });
            place = e.constant_offset(place, 8);
        }
        for ty in [e.ty.f16, e.ty.bf16, e.ty.f32, e.ty.f64] {
            let moved = e.shuffle(ShuffleKind::Index, e.sitofp(lane, ty), e.i32(1));
            e.store(moved, place, AccessAttrs { align: 8, kind: LoadKind::Volatile });
            place = e.constant_offset(place, 8);
        }
    });
    assert_eq!(ptx.matches("shfl.sync.bfly").count(), 5, "{ptx}");
    assert_eq!(ptx.matches("shfl.sync.idx").count(), 5, "{ptx}");
}

#[test]
fn shared_memory_barriers_intrinsics_and_assembly() {
    let ptx = compile("sm_90a", |e, out| {
        let shared = e.address_of("shared", Space::Shared);
        let lane = e.special_register("tid.x");
        let place = e.byte_offset(shared, e.muli(lane, e.i32(4)));
        let access = AccessAttrs { align: 4, ..AccessAttrs::default() };
        let x = e.intrinsic("llvm.nvvm.ex2.approx.ftz.f32", &[e.sitofp(lane, e.ty.f32)], e.ty.f32);
        e.store(e.fma(x, x, e.float(e.ty.f32, 0.5)), place, access);
        e.barrier();
        e.named_barrier(e.i32(1), e.i32(32));
        e.warp_barrier();
        let pair =
            e.assembly("add.u32 $0, $2, 1; add.u32 $1, $2, 2;", "=r,=r,r", &[lane], &[e.ty.i32, e.ty.i32], false);
        let sum = e.addi(pair[0], pair[1]);
        e.store(sum, out, access);
        let back = e.load(e.constant_offset(place, 4), e.ty.f32, access);
        e.store(back, e.constant_offset(out, 4), access);
    });
    for needle in ["ex2.approx.ftz.f32", "fma.rn.f32", "bar.sync", "bar.warp.sync", "ld.shared", ".extern .shared"] {
        assert!(ptx.contains(needle), "{needle} is missing from\n{ptx}");
    }
}

#[test]
fn constants_are_pooled_and_exact() {
    let ptx = compile("sm_80", |e, out| {
        assert!(e.i32(7) == e.int(e.ty.i32, 7));
        assert!(e.i32(7) != e.i64(7));
        assert!(e.int(e.ty.i8, 255) == e.int(e.ty.i8, -1), "equal bits are one constant");
        assert!(e.float(e.ty.f32, 0.0) != e.float(e.ty.f32, -0.0));
        let access = AccessAttrs { align: 8, kind: LoadKind::Volatile };
        e.store(e.float(e.ty.f32, f64::NEG_INFINITY), out, access);
        e.store(e.float_constant(e.ty.f32, 0x7fff_ffff), out, access);
        e.store(e.float_constant(e.ty.bf16, 0x7fc0), out, access);
        e.store(e.float(e.ty.f64, 0.1), out, access);
    });
    for needle in ["0xFF800000", "0x7FFFFFFF", "0x3FB999999999999A"] {
        let decimal = i64::from_str_radix(needle.trim_start_matches("0x"), 16).expect("hexadecimal");
        let signed = decimal as u32 as i32;
        let found = ptx.to_uppercase().contains(&needle.to_uppercase()[2..])
            || ptx.contains(&decimal.to_string())
            || ptx.contains(&signed.to_string());
        assert!(found, "{needle} is missing from\n{ptx}");
    }
}

/// Prints where the time goes. Debug builds are several times slower, so the bound holds for release only.
#[test]
fn a_small_kernel_compiles_in_milliseconds() {
    let target = Target::named("sm_90a").expect("known");
    let mut best = f64::INFINITY;
    for round in 0..5 {
        let mut laps = Vec::new();
        let mut last = Instant::now();
        let mut lap = |name: &'static str| {
            laps.push((name, last.elapsed().as_secs_f64() * 1e3));
            last = Instant::now();
        };
        let cx = MlirContext::new();
        lap("context");
        let mut module = vector_add(cx.get());
        lap("build");
        assert!(module.as_operation().verify());
        lap("verify");
        translate::to_llvm_dialect(&cx, &mut module).expect("conversion");
        lap("convert");
        let llvm = translate::to_llvm(&cx, &module).expect("translation");
        lap("translate");
        translate::emit(llvm, target, Want::Ptx, None).expect("code generation");
        lap("llvm");
        let total: f64 = laps.iter().map(|(_, time)| time).sum();
        best = best.min(total);
        let list: Vec<_> = laps.iter().map(|(name, time)| format!("{name} {time:.2}")).collect();
        println!("round {round}: total {total:.2} ms ({})", list.join(", "));
    }
    if !cfg!(debug_assertions) {
        assert!(best < 15.0, "{best:.2} ms");
    }
}
