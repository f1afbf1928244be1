//! Whether a page shows what a command prints.

/// Words whose number changes with each small change of the compiler, and need not be right to the unit on a page.
const NEAR: [&str; 2] = ["PTX line ", "about "];

/// Whether both are the same but for such numbers, the names of registers and addresses. With `is_timed` no number counts,
/// nor how far columns are apart.
pub fn is_same(shown: &str, printed: &str, is_timed: bool) -> bool {
    let masked = |text: &str| if is_timed { without_numbers(text) } else { without_details(text) };
    masked(shown) == masked(printed)
}

fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        let digits = word.trim_matches(|c: char| !c.is_ascii_digit());
        let is_number = !digits.is_empty() && digits.parse::<f64>().is_ok();
        out += &if is_number { word.replacen(digits, "#", 1) } else { word.to_owned() };
        out.push(' ');
    }
    out
}

fn without_details(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = |length: usize| rest.get(length..).unwrap_or_default();
        let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_hexdigit()).len();
        let before = NEAR.iter().find(|near| rest.starts_with(**near)).map(|near| near.len());
        // `%r12`, `%rd3`: registers of PTX.
        let register = c == '%' && after(1).starts_with(['r', 'p', 'f', 'h']);
        let letters = after(1).len() - after(1).trim_start_matches(|c: char| c.is_ascii_lowercase()).len();
        let start = match before {
            Some(length) => length,
            None if rest.starts_with("0x") => 2,
            None if register => 1 + letters,
            None => 0,
        };
        let count = digits(after(start));
        if start > 0 && count > 0 {
            out += &rest[..start];
            out.push('#');
            rest = after(start + count);
        } else {
            out.push(c);
            rest = after(c.len_utf8());
        }
    }
    out
}

#[test]
fn only_details_may_differ() {
    assert!(is_same("PTX line 12 `%rd5` at 0x70f: 3 times", "PTX line 345 `%rd17` at 0x800: 3 times", false));
    assert!(!is_same("PTX line 12: 3 times", "PTX line 12: 4 times", false));
    assert!(!is_same("%row = program_id {axis = 0}", "%row = program_id {axis = 1}", false));
    assert!(is_same("kernel   0.123   (2)", "kernel 45.6 (7)", true));
    assert!(!is_same("kernel 0.123", "reference 0.123", true));
}
