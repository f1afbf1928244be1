//! Passes on IR text: each `tests/filetests/passes/**/*.tir` names its pass in the first line (`// pass: coalesce`, or
//! `// pass: all`) and is compared with its snapshot in `snapshots/`. The result must verify and read back.

use rtc_passes::{PASSES, PassContext, PassError, run_through};

fn run(text: &str) -> String {
    let cx = PassContext {
        target: rtc_abi::Target::named("sm_90a").expect("it is in the table"),
        max_instructions: 50_000,
        structure: rtc_abi::Structure::Auto,
        overlap_launches: true,
    };
    let (header, body) = text.split_once('\n').expect("a header line");
    let wanted = header.strip_prefix("// pass: ").expect("`// pass: NAME` in the first line").trim();
    let mut kernel = rtc_ir::text::parse(body).unwrap_or_else(|e| panic!("{e}"));
    rtc_ir::verify(&kernel).unwrap_or_else(|e| panic!("{}", rtc_ir::print_errors(&kernel, &e)));
    if wanted == "all" {
        run_through(&mut kernel, &cx, &mut |name, kernel| {
            if let Err(errors) = rtc_ir::verify(kernel) {
                panic!("after {name}:\n{}", rtc_ir::print_errors(kernel, &errors));
            }
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{e}"));
    } else {
        let pass = PASSES.iter().find(|p| p.name == wanted).unwrap_or_else(|| panic!("there is no pass `{wanted}`"));
        match (pass.run)(&mut kernel, &cx) {
            Ok(()) => {}
            Err(PassError::Diagnostic(d)) => return format!("{:?}[{}]: {}\n", d.severity, d.code, d.message),
            Err(e) => panic!("{e}"),
        }
        kernel.phase = pass.leaves;
        rtc_ir::verify(&kernel).unwrap_or_else(|e| panic!("{}", rtc_ir::print_errors(&kernel, &e)));
    }
    let printed = rtc_ir::text::print(&kernel);
    let again = rtc_ir::text::print(&rtc_ir::text::parse(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}")));
    assert_eq!(printed, again, "the text does not read back");
    printed
}

#[test]
fn passes() {
    insta::glob!("../../../tests/filetests/passes", "**/*.tir", |path| {
        let text = std::fs::read_to_string(path).expect("readable");
        insta::with_settings!({ description => text.clone(), omit_expression => true }, {
            insta::assert_snapshot!(run(&text));
        });
    });
}
