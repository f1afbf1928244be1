//! The formats of `printf`.

/// A piece of a format.
#[derive(Debug, PartialEq)]
pub enum Piece<'a> {
    /// Printed as it is.
    Text(&'a str),
    /// Takes an argument.
    Value(Value),
}

/// A conversion such as `%-8.3f`.
#[derive(Debug, Default, PartialEq)]
pub struct Value {
    /// The letter.
    pub conversion: char,
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    /// `l`, `ll`, `z`, `j`, `t`.
    long: bool,
}

impl Value {
    /// Bytes of the argument.
    pub fn bytes(&self) -> u32 {
        let wide = self.long || matches!(self.conversion, 'f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'a' | 'A' | 's' | 'p');
        if wide { 8 } else { 4 }
    }
}

/// Splits a format.
pub fn pieces(format: &str) -> Vec<Piece<'_>> {
    let mut list = Vec::new();
    let mut rest = format;
    while let Some(start) = rest.find('%') {
        if start > 0 {
            list.push(Piece::Text(&rest[..start]));
        }
        rest = &rest[start..];
        match value(&rest[1..]) {
            Some((_, n)) if rest[1..].starts_with('%') => {
                list.push(Piece::Text("%"));
                rest = &rest[1 + n..];
            }
            Some((value, n)) => {
                list.push(Piece::Value(value));
                rest = &rest[1 + n..];
            }
            None => {
                list.push(Piece::Text(rest));
                return list;
            }
        }
    }
    if !rest.is_empty() {
        list.push(Piece::Text(rest));
    }
    list
}

/// The conversion after a `%`, and its length.
fn value(text: &str) -> Option<(Value, usize)> {
    let mut value = Value::default();
    let mut chars = text.char_indices().peekable();
    let number = |chars: &mut std::iter::Peekable<std::str::CharIndices<'_>>| {
        let mut n = 0usize;
        while let Some((_, c)) = chars.peek()
            && let Some(digit) = c.to_digit(10)
        {
            n = (n * 10 + digit as usize).min(4096);
            chars.next();
        }
        n
    };
    while let Some((_, c)) = chars.peek() {
        match c {
            '-' => value.left = true,
            '0' => value.zero = true,
            '+' => value.plus = true,
            ' ' => value.space = true,
            '#' => value.alternate = true,
            _ => break,
        }
        chars.next();
    }
    value.width = number(&mut chars);
    if chars.peek().is_some_and(|(_, c)| *c == '.') {
        chars.next();
        value.precision = Some(number(&mut chars));
    }
    while let Some((_, c)) = chars.peek() {
        match c {
            'l' | 'z' | 'j' | 't' => value.long = true,
            'h' => {}
            _ => break,
        }
        chars.next();
    }
    let (at, c) = chars.next()?;
    value.conversion = c;
    Some((value, at + c.len_utf8()))
}

/// Prints an argument.
pub fn format(value: &Value, raw: u64, string: &str) -> String {
    let signed = if value.long { raw as i64 } else { i64::from(raw as u32 as i32) };
    let unsigned = if value.long { raw } else { u64::from(raw as u32) };
    let x = f64::from_bits(raw);
    let prefix = |text: &'static str| if value.alternate && unsigned != 0 { text } else { "" };
    let (sign, body) = match value.conversion {
        'd' | 'i' => (sign(value, signed < 0), digits(value, signed.unsigned_abs().to_string())),
        'u' => ("", digits(value, unsigned.to_string())),
        'x' => (prefix("0x"), digits(value, format!("{unsigned:x}"))),
        'X' => (prefix("0X"), digits(value, format!("{unsigned:X}"))),
        'o' => (prefix("0"), digits(value, format!("{unsigned:o}"))),
        'c' => ("", char::from(raw as u8).to_string()),
        's' => ("", string.chars().take(value.precision.unwrap_or(usize::MAX)).collect()),
        'p' => ("0x", format!("{raw:x}")),
        'f' | 'F' | 'e' | 'E' | 'g' | 'G' => (sign(value, x.is_sign_negative() && !x.is_nan()), float(value, x.abs())),
        _ => ("", format!("%{}", value.conversion)),
    };
    let length = sign.len() + body.chars().count();
    let fill = value.width.saturating_sub(length);
    if value.left {
        format!("{sign}{body}{}", " ".repeat(fill))
    } else if value.zero && x_is_number(value, x) {
        format!("{sign}{}{body}", "0".repeat(fill))
    } else {
        format!("{}{sign}{body}", " ".repeat(fill))
    }
}

fn x_is_number(value: &Value, x: f64) -> bool {
    match value.conversion {
        'f' | 'F' | 'e' | 'E' | 'g' | 'G' => x.is_finite(),
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => value.precision.is_none(),
        _ => false,
    }
}

fn sign(value: &Value, negative: bool) -> &'static str {
    match (negative, value.plus, value.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

fn digits(value: &Value, text: String) -> String {
    match value.precision {
        Some(n) if text.len() < n => format!("{text:0>n$}"),
        _ => text,
    }
}

fn float(value: &Value, x: f64) -> String {
    let upper = value.conversion.is_ascii_uppercase();
    let text = if x.is_nan() {
        "nan".to_string()
    } else if x.is_infinite() {
        "inf".to_string()
    } else {
        let precision = value.precision.unwrap_or(6);
        match value.conversion.to_ascii_lowercase() {
            'f' => format!("{x:.precision$}"),
            'e' => exponential(x, precision),
            _ => general(x, precision.max(1), value.alternate),
        }
    };
    if upper { text.to_uppercase() } else { text }
}

/// `1.5e+00`: the exponent has a sign and two digits.
fn exponential(x: f64, precision: usize) -> String {
    let text = format!("{x:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

fn general(x: f64, precision: usize, keep_zeros: bool) -> String {
    let exponent = if x == 0.0 {
        0
    } else {
        let text = format!("{x:.*e}", precision - 1);
        text.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0)
    };
    let trim = |text: String| {
        if keep_zeros || !text.contains('.') {
            text
        } else {
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        }
    };
    if exponent < -4 || exponent >= precision as i32 {
        let text = exponential(x, precision - 1);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
        format!("{}e{exponent}", trim(mantissa.to_string()))
    } else {
        trim(format!("{x:.*}", (precision as i32 - 1 - exponent) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str, raw: u64) -> String {
        let pieces = pieces(text);
        let [Piece::Value(value)] = &pieces[..] else { panic!("{pieces:?}") };
        format(value, raw, "text")
    }

    #[test]
    fn conversions_print_as_in_c() {
        assert_eq!(one("%d", -5i32 as u32 as u64), "-5");
        assert_eq!(one("%5d", 42), "   42");
        assert_eq!(one("%-5d", 42), "42   ");
        assert_eq!(one("%05d", -42i32 as u32 as u64), "-0042");
        assert_eq!(one("%+.3d", 7), "+007");
        assert_eq!(one("%lu", u64::MAX), "18446744073709551615");
        assert_eq!(one("%#x", 255), "0xff");
        assert_eq!(one("%08x", 255), "000000ff");
        assert_eq!(one("%f", 1.5f64.to_bits()), "1.500000");
        assert_eq!(one("%.2e", 12345.678f64.to_bits()), "1.23e+04");
        assert_eq!(one("%g", 0.0001f64.to_bits()), "0.0001");
        assert_eq!(one("%g", 1e20f64.to_bits()), "1e+20");
        assert_eq!(one("%8.3f", (-1.0f64).to_bits()), "  -1.000");
        assert_eq!(one("%f", f64::INFINITY.to_bits()), "inf");
        assert_eq!(one("%s", 0), "text");
        assert_eq!(one("%c", 65), "A");
        assert_eq!(pieces("a%%b"), [Piece::Text("a"), Piece::Text("%"), Piece::Text("b")]);
        assert_eq!(pieces("end %"), [Piece::Text("end "), Piece::Text("%")]);
    }
}
