//! Files of tile IR on the command line.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::{Scratch, safetensors, tensors};

/// `y[i] = x[i] + programs` for the 300 elements that a persistent kernel's programs cover, 64 each.
const PERSISTENT: &str = "\
kernel @add_count(%x: ptr<f32>, %y: ptr<f32>, %n: i32, %programs: i32 {name = \"grid.0\", grid = 0}) warps 2 persistent 1 phase tile {
  %size = constant {value = 64} : i32
  %first = program_id {axis = 0} : i32
  %blocks = num_programs {axis = 0} : i32
  for_range %first, %programs, %blocks ^(%p: i32) {
    %start = muli %p, %size : i32
    %starts = splat %start : tile<64xi32>
    %lane = arange {start = 0, end = 64} : tile<64xi32>
    %at = addi %starts, %lane : tile<64xi32>
    %ns = splat %n : tile<64xi32>
    %mask = cmpi %at, %ns {predicate = lt} : tile<64xi1>
    %xs = splat %x : tile<64xptr<f32>>
    %from = addptr %xs, %at : tile<64xptr<f32>>
    %v = load %from, mask = %mask : tile<64xf32>
    %count = sitofp %programs {to = f32} : f32
    %counts = splat %count : tile<64xf32>
    %w = addf %v, %counts : tile<64xf32>
    %ys = splat %y : tile<64xptr<f32>>
    %to = addptr %ys, %at : tile<64xptr<f32>>
    store %to, %w, mask = %mask
    yields
  }
  ret
}
";

/// Copies a box of a tensor, whose map the launch makes, to `y`.
const BOX: &str = "\
#l0 = linear(shape [8, 32], reg [[0, 1]], lane [[0, 2], [0, 4], [0, 8], [0, 16], [1, 0]], warp [[2, 0], [4, 0]])
kernel @box(%x: ptr<f32>, %y: ptr<f32>, %rows: i32, %map: desc<8x32xf32, 128> {base = \"x\", start = 4, shape = [\"rows\", 24], strides = [\"rows * 4\", 1]}, %out: desc<8x32xf32, 128> {base = \"y\", shape = [8, 32], strides = [32, 1]}) warps 4 phase laid {
  %b = alloc_shared {align = 1024} : shared<8x32xf32, #s0>
  %c = alloc_shared {align = 1024} : shared<8x32xf32, #s0>
  %full = alloc_barriers {count = 1} : barrier<1>
  barrier
  %zero = constant {value = 0} : i32
  barrier_expect %full {bytes = 1024}
  copy_desc %map, %b, %full, (%zero, %zero)
  barrier_wait %full, %zero
  %v = local_load %b : tile<8x32xf32, #l0>
  local_store %v, %c
  fence_async
  barrier
  copy_desc_store %out, %c, (%zero, %zero)
  copy_desc_wait {pending = 0}
  ret
}
";

fn boxes() -> String {
    format!("#s0 = nvmma(shape [8, 32], bits 32, swizzle 128, order [1, 0])\n{BOX}")
}

fn values(file: &[u8], name: &str) -> Vec<f32> {
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&file[8..8 + length]).unwrap();
    let at = |i: usize| 8 + length + header[name]["data_offsets"][i].as_u64().unwrap() as usize;
    file[at(0)..at(1)].chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn kernels_run_on_every_device() {
    let scratch = Scratch::new("tile_ir_run");
    scratch.write("p.tir", PERSISTENT).write("b.tir", boxes()).write("in.safetensors", tensors(300));
    scratch.write(
        "p.json",
        r#"{"spec": {}, "grid": [5], "args": {"x": {"tensor": "x"}, "y": {"tensor": "y"}, "n": 300}, "tensors": "in.safetensors"}"#,
    );
    let args = r#"{"x": {"tensor": "x"}, "y": {"tensor": "y"}, "rows": 5}"#;
    scratch.write("b.json", format!(r#"{{"spec": {{}}, "grid": [1], "args": {args}, "tensors": "in.safetensors"}}"#));
    for device in ["interpreter", "emulator", "auto"] {
        for (kernel, expected) in [
            ("p", &(|i: usize| i as f32 * 0.5 + 5.0) as &dyn Fn(usize) -> f32),
            ("b", &|i| {
                let (row, column) = (i / 32, i % 32);
                if i < 256 && row < 5 && column < 24 { (4 + row * 20 + column) as f32 * 0.5 } else { 0.0 }
            }),
        ] {
            let (file, launch) = (format!("{kernel}.tir"), format!("{kernel}.json"));
            if device == "auto" && kernel == "b" && !rtc_is_hopper(&scratch) {
                continue;
            }
            let output = scratch.rtc(&["run", &file, "--launch", &launch, "--device", device, "-o", "out.safetensors"]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{device}, {kernel}: {said}");
            let found = values(&std::fs::read(scratch.0.join("out.safetensors")).unwrap(), "y");
            let wanted: Vec<f32> = (0..300).map(expected).collect();
            assert_eq!(found, wanted, "{device}, {kernel}");
        }
    }
}

/// The emulator, or a GPU that has copies of tiles.
fn rtc_is_hopper(scratch: &Scratch) -> bool {
    scratch.rtc(&["build", "b.tir", "--arch", "sm_90a", "-o", "hopper"]);
    let output = scratch.rtc(&["run", "b.tir", "--launch", "b.json"]);
    !String::from_utf8_lossy(&output.stderr).contains("unsupported-target")
}

#[test]
fn every_command_takes_them() {
    let scratch = Scratch::new("tile_ir_build");
    scratch.write("p.tir", PERSISTENT).write("b.tir", boxes());
    let output = scratch.rtc(&["build", "p.tir", "--arch", "sm_80,sm_90a", "-o", "out"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "out/add_count.sm_80.ptx\nout/add_count.sm_90a.ptx\n");
    let metadata = std::fs::read_to_string(scratch.0.join("out/add_count.sm_80.json")).unwrap();
    assert!(metadata.contains("\"blocks_per_multiprocessor\": 1") && metadata.contains("\"grid\": 0"), "{metadata}");
    let text = |args: &[&str]| String::from_utf8(scratch.rtc(args).stdout).unwrap();
    assert!(text(&["emit", "p.tir", "--stage", "laid"]).contains("phase laid"));
    assert!(text(&["emit", "p.tir", "--print-after", "licm"]).starts_with("// after licm\n"));
    assert!(text(&["emit", "b.tir", "--arch", "sm_90a", "--stage", "scheduled"]).contains("phase scheduled"));
    assert!(text(&["emit", "b.tir", "--arch", "sm_90a"]).contains("cp.async.bulk.tensor.2d"));
}

#[test]
fn mistakes_in_tile_ir() {
    let scratch = Scratch::new("tile_ir_mistakes");
    scratch.write("p.tir", PERSISTENT).write("b.tir", boxes()).write("in.safetensors", safetensors("{}", &[]));
    scratch.write("syntax.tir", PERSISTENT.replace("splat %x", "splatter %x"));
    scratch.write("types.tir", PERSISTENT.replace("addi %starts, %lane", "addi %starts, %p"));
    scratch.write("param.tir", PERSISTENT.replace("%programs: i32 {", "%programs: i64 {"));
    insta::assert_snapshot!(scratch.fails(1, &["build", "syntax.tir"]), @r#"
    error[syntax]: there is no operation `splatter`
      --> syntax.tir:12:11
       |
    12 |     %xs = splatter %x : tile<64xptr<f32>>
       |           ^
    "#);
    insta::assert_snapshot!(scratch.fails(1, &["build", "types.tir"]), @r#"
    error[invalid-tile-ir]: `addi`: operands differ: tile<64xi32> and i32
     --> types.tir:9:5
      |
    9 |     %at = addi %starts, %p : tile<64xi32>
      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(scratch.fails(1, &["build", "param.tir"]), @r#"
    error[invalid-tile-ir]: `kernel`: parameter `grid.0` is no `i32` for axis 0, 1 or 2 of the grid
     --> param.tir:1:1
      |
    1 | kernel @add_count(%x: ptr<f32>, %y: ptr<f32>, %n: i32, %programs: i64 {name = "grid.0", grid = 0}) warps 2 persistent 1 phase tile {
      | ^
    error[invalid-tile-ir]: `for_range`: bounds and step differ in type
     --> param.tir:5:3
      |
    5 |   for_range %first, %programs, %blocks ^(%p: i32) {
      |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    2 errors
    "#);
    insta::assert_snapshot!(scratch.fails(1, &["build", "b.tir"]), @r#"
    error[unsupported-target]: a barrier that counts bytes is not available on sm_80
     --> b.tir:6:3
      |
    6 |   %full = alloc_barriers {count = 1} : barrier<1>
      |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(scratch.fails(1, &["emit", "b.tir", "--stage", "tile", "--arch", "sm_90a"]), @"error[stage]: the kernel is in phase Laid, past the stage `tile`");
    insta::assert_snapshot!(scratch.fails(1, &["emit", "p.tir", "--stage", "ast"]), @"error[stage]: tile IR has no syntax tree");
    insta::assert_snapshot!(scratch.fails(1, &["build", "p.tir", "--kernel", "other"]), @"error[unknown-kernel]: the file has the kernel `add_count`");
    insta::assert_snapshot!(scratch.fails(2, &["build", "p.tir", "--num-warps", "8"]), @r#"
    error[usage]: leave out --num-warps: a .tir file says by itself what its kernel is compiled for
     = note: For help, try `--help`.
    "#);
    let launch = |spec: &str, args: &str| {
        let text = format!(r#"{{"spec": {spec}, "grid": [5], "args": {args}, "tensors": "in.safetensors"}}"#);
        scratch.write("l.json", text);
        scratch.fails(1, &["run", "p.tir", "--launch", "l.json", "--device", "interpreter"])
    };
    insta::assert_snapshot!(launch(r#"{"args": [{"name": "x", "type": "*fp32"}]}"#, "{}"), @r#"
    error[launch-file]: `spec.args`: leave it out; a .tir file says the types of its parameters by itself
     --> l.json
    "#);
    insta::assert_snapshot!(launch(r#"{"options": {"num_warps": 2}}"#, "{}"), @r#"
    error[launch-file]: `spec.options`: a .tir file says these by itself, but for launch_pdl, overlap_launches, launch_cooperative_grid, warp_specialize, structure, plan, debug_info and max_instructions
     --> l.json
    "#);
    insta::assert_snapshot!(launch("{}", r#"{"grid.0": 4}"#), @r#"
    error[launch-file]: `args.grid.0`: kernel `add_count` has no such parameter; it has x, y, n
     --> l.json
    "#);
}

#[test]
fn kernels_are_kept_in_the_cache() {
    let scratch = Scratch::new("tile_ir_cache");
    scratch.write("p.tir", PERSISTENT);
    let said = |args: &[&str]| {
        let output = scratch.rtc(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stderr).unwrap()
    };
    let build = ["-v", "build", "p.tir", "--arch", "sm_80", "-o", "out"];
    assert!(said(&build).contains("cache: add_count: miss"));
    let first = std::fs::read(scratch.0.join("out/add_count.ptx")).unwrap();
    assert!(said(&build).contains("cache: add_count: hit"));
    assert_eq!(std::fs::read(scratch.0.join("out/add_count.ptx")).unwrap(), first);
    // Another target, another limit, another text.
    assert!(said(&["-v", "build", "p.tir", "--arch", "sm_90a", "-o", "out"]).contains("miss"));
    assert!(
        said(&["-v", "build", "p.tir", "--arch", "sm_80", "--max-instructions", "9999", "-o", "out"]).contains("miss")
    );
    scratch.write("p.tir", PERSISTENT.replace("value = 64", "value = 32"));
    assert!(said(&build).contains("miss"));
    assert!(said(&["-v", "build", "p.tir", "--arch", "sm_80", "--no-cache", "-o", "out"]).contains("without a cache"));
}
