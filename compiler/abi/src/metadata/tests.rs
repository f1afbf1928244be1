//! Metadata as text and back, and what it refuses.

use super::*;

fn sample() -> Metadata {
    let map =
        TensorMap { dtype: DType::Fp16, block_shape: vec![128, 64], swizzle: 128, l2_promotion: 128, interleave: 0 };
    let param = |name: &str, ty: &str| Param::new(name, ty.parse::<ParamType>().unwrap());
    let descriptor = Param { tensor_map: Some(map), ..param("d", "tensordesc<fp16[128,64]>") };
    let pointer = Param { divisible_by: 16, ..param("x", "*fp16") };
    let params = vec![pointer, descriptor, param("n", "i32")];
    Metadata {
        kernel: "add".into(),
        shared_bytes: 512,
        launch_pdl: true,
        constexprs: Map::from_iter([("Z".to_string(), Value::from(2)), ("A".to_string(), Value::Null)]),
        source_hash: "00".into(),
        compiler_version: "0.1.0".into(),
        ..Metadata::new("add_0", "sm_90a", 83, 128, params)
    }
}

#[test]
fn reads_what_it_writes_and_keeps_the_order_of_constexprs() {
    let metadata = sample();
    let back = Metadata::from_json(&metadata.to_json()).unwrap();
    assert_eq!(back, metadata);
    assert_eq!(back.constexprs.keys().collect::<Vec<_>>(), ["Z", "A"]);
    assert_eq!(back.params_size(), 196);
}

#[test]
fn files_of_older_compilers_are_read() {
    let lines = |text: &str| text.lines().filter(|l| !l.contains("launch_")).collect::<Vec<_>>().join("\n");
    let old = Metadata::from_json(&lines(&sample().to_json().replace("\"128B\"", "128"))).unwrap();
    assert_eq!(old, Metadata { launch_pdl: false, ..sample() });
}

#[test]
fn errors_name_the_field() {
    let text = sample().to_json();
    let cases = [
        ("\"num_warps\": 4", "\"num_warps\": -4", "num_warps"),
        ("\"offset\": 64", "\"offset\": 4", "params[1].offset"),
        ("\"swizzle\": 128", "\"swizzle\": \"128\"", "params[1].tensor_map.swizzle"),
        ("\"128B\"", "\"100B\"", "params[1].tensor_map.l2_promotion"),
        ("\"launch_pdl\": true", "\"launch_pdl\": 1", "launch_pdl"),
        ("\"symbol\"", "\"symbols\"", "symbol"),
        ("\"sm_90a\"", "\"90a\"", "arch"),
        ("\"i32\"", "\"i33\"", "params[2].type"),
        ("\"size\": 4", "\"size\": 8", "params[2].size"),
        ("\"offset\": 192", "\"offset\": 194", "params[2].offset"),
        ("\"divisible_by\": 16", "\"divisible_by\": 0", "params[0].divisible_by"),
        ("\"threads_per_block\": 128", "\"threads_per_block\": 2048", "threads_per_block"),
    ];
    for (from, to, name) in cases {
        assert!(text.contains(from));
        let error = Metadata::from_json(&text.replace(from, to)).unwrap_err();
        assert_eq!(error.field, name, "{error}");
    }
    assert!(Metadata::from_json("[1]").is_err());
}

#[test]
fn parameters_lie_at_multiples_of_their_alignment() {
    let types = ["u1", "*fp32", "fp16", "i32", "i64", "tensormap", "u8"];
    let params = types.map(|ty| Param::new("p", ty.parse::<ParamType>().unwrap())).into();
    let places: Vec<(u32, u32)> = lay_out(params).iter().map(|p| (p.offset, p.size)).collect();
    assert_eq!(places, [(0, 1), (8, 8), (16, 2), (20, 4), (24, 8), (64, 128), (192, 1)]);
}

#[test]
fn what_promises_nothing_leaves_no_trace() {
    let metadata = Metadata { params: lay_out(vec![Param::new("n", DType::Int32)]), ..sample() };
    let text = metadata.to_json();
    for key in ["divisible_by", "hidden", "persistent", "tensor_map"] {
        assert!(!text.contains(key), "{text}");
    }
}

const HIDDEN: &str = r#"[{"name": "a", "type": "*fp16", "offset": 0, "size": 8},
    {"name": "grid.0", "type": "i32", "offset": 8, "size": 4, "hidden": {"grid": 0}},
    {"name": "map.0", "type": "tensormap", "offset": 64, "size": 128, "hidden": {"tensor_map": {"base": "a",
     "start": 0, "dtype": "fp16", "shape": ["M // 2", 64], "strides": ["K", 1], "box": [64, 64], "swizzle": 128,
     "padding": "zero"}}}]"#;

fn with_params(params: &str) -> Result<Metadata, MetadataError> {
    let mut json: Value = serde_json::from_str(&sample().to_json()).unwrap();
    json["params"] = serde_json::from_str(params).unwrap();
    json["persistent"] = serde_json::json!({"blocks_per_multiprocessor": 2});
    Metadata::from_json(&json.to_string())
}

#[test]
fn hidden_parameters_and_persistent_grids() {
    let metadata = with_params(HIDDEN).unwrap();
    assert_eq!(metadata.visible_params().len(), 1);
    assert_eq!(metadata.params[1].hidden, Some(Hidden::Grid(0)));
    let Some(Hidden::TensorMap(map)) = &metadata.params[2].hidden else { panic!("{:?}", metadata.params[2]) };
    assert_eq!(map.shape[0].eval_values(&[7]), Ok(3));
    assert_eq!(Metadata::from_json(&metadata.to_json()), Ok(metadata.clone()));
    for (from, to, name) in [
        ("\"grid\": 0", "\"grid\": 3", "params[1].hidden"),
        ("\"grid\": 0", "\"gird\": 0", "params[1].hidden"),
        ("\"M // 2\", 64", "64", "params[2].hidden"),
        ("M // 2", "M / 2", "params[2].hidden"),
        ("\"type\": \"i32\"", "\"type\": \"fp32\"", "params[1].hidden"),
    ] {
        assert_eq!(with_params(&HIDDEN.replace(from, to)).expect_err(to).field, name);
    }
    let late = r#"{"name": "z", "type": "i32", "offset": 192, "size": 4}]"#;
    let late = HIDDEN.trim_end_matches(']').to_string() + ", " + late;
    assert_eq!(with_params(&late).expect_err("after a hidden one").field, "params[3].hidden");
}

#[test]
fn persistent_grids_are_as_small_as_their_rounds_allow() {
    let blocks = |n, programs| Persistent { blocks_per_multiprocessor: n, uneven: false }.blocks(programs, 132);
    for (n, programs, expected) in
        [(1, 0, 0), (1, 1, 1), (1, 132, 132), (1, 133, 67), (2, 264, 264), (2, 265, 133), (1, 1000, 125)]
    {
        assert_eq!(blocks(n, programs), expected, "{n} an SM, {programs} programs");
    }
}
