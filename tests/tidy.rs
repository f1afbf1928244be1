//! House rules as tests.
#[test]
fn workspace_has_a_readme() {
    assert!(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml").exists());
}
