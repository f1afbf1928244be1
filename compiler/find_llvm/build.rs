//! Says what to install where there is no LLVM.

#[path = "src/lib.rs"]
mod find_llvm;

fn main() {
    println!("cargo::rerun-if-changed=src/lib.rs");
    find_llvm::VARIABLES.iter().for_each(|name| println!("cargo::rerun-if-env-changed={name}"));
    if let Some(lines) = find_llvm::problem(|name| std::env::var_os(name)) {
        lines.iter().for_each(|line| println!("cargo::error={line}"));
    }
}
