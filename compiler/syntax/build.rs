//! Generates the parser from `src/grammar.lalrpop`.

fn main() {
    if let Err(error) = lalrpop::Configuration::new().use_cargo_dir_conventions().process_file("src/grammar.lalrpop") {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
