//! The signature string: the types and values of a kernel's arguments in one line.
//!
//! Comma-separated, one entry per parameter, as in Triton's ahead-of-time tool:
//!
//! | entry | meaning |
//! | --- | --- |
//! | `*fp32`, `i32`, `tensordesc<fp16[128,64]>` | a run-time argument of that type |
//! | `*fp32:16`, `i32:16` | the address or the integer is divisible by 16 |
//! | `i32:1` | the integer is the constant 1 |
//! | `1024`, `-0.5`, `True`, `None`, `"gelu"`, `tl.float16`, `float("inf")` | a compile-time constant |
//! | `leaky_relu` | a function of the source file |
//! | `(i32, *fp32:16, 4)` | a tuple |
//! | `BLOCK=1024` | the same for the parameter of that name |
//!
//! Entries without a name come first and bind in order; parameters without an entry take their default.
//!
//! ```
//! let signature = rtc_program::Signature::parse(r#"*fp32:16, i32:1, BLOCK=1024"#).unwrap();
//! let args = signature.bind(&["x", "n", "BLOCK"]).unwrap();
//! assert_eq!(args[1].kind.to_string(), "1");
//! ```

use crate::spec::{is_identifier, run_time_type, takes_divisibility};
use rtc_abi::ValueType;
use rtc_abi::spec::{ArgKind, ArgSpec, ConstValue};
use std::fmt;

/// A signature string, read but not yet bound to the parameters of a kernel.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Signature {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    name: Option<String>,
    kind: ArgKind,
    text: String,
}

/// The error of a signature string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureError {
    /// Number of the entry, from 1; 0 for the signature as a whole.
    pub entry: usize,
    /// Text of the entry.
    pub text: String,
    /// The message.
    pub message: String,
}

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.entry == 0 {
            return write!(f, "signature: {}", self.message);
        }
        write!(f, "signature, entry {} `{}`: {}", self.entry, self.text, self.message)
    }
}

impl std::error::Error for SignatureError {}

impl Signature {
    /// Reads a signature string.
    ///
    /// # Errors
    ///
    /// [`SignatureError`] with the first entry that is no type, constant or promise, or whose name is not allowed there.
    pub fn parse(text: &str) -> Result<Signature, SignatureError> {
        if text.trim().is_empty() {
            return Ok(Signature::default());
        }
        let whole = |message: String| SignatureError { entry: 0, text: text.to_owned(), message };
        let mut pieces = split(text).map_err(whole)?;
        if pieces.len() > 1 && pieces.last().is_some_and(|p| p.trim().is_empty()) {
            pieces.pop();
        }
        let mut entries: Vec<Entry> = Vec::new();
        for (index, piece) in pieces.into_iter().enumerate() {
            let piece = piece.trim();
            let fail = |message: String| SignatureError { entry: index + 1, text: piece.to_owned(), message };
            let (name, value) = split_name(piece);
            if name.is_none() && entries.iter().any(|e| e.name.is_some()) {
                return Err(fail("an entry without a name cannot follow one with a name".into()));
            }
            let kind = read_kind(value, 0).map_err(fail)?;
            if name.is_some() && entries.iter().any(|e| e.name.as_deref() == name) {
                return Err(fail("this name appears twice".into()));
            }
            entries.push(Entry { name: name.map(String::from), kind, text: piece.to_owned() });
        }
        Ok(Signature { entries })
    }

    /// Gives each entry the name of its parameter; `params` are the kernel's parameters in order.
    ///
    /// # Errors
    ///
    /// [`SignatureError`] with the first entry that names no parameter, names one twice, or is one too many.
    pub fn bind(&self, params: &[&str]) -> Result<Vec<ArgSpec>, SignatureError> {
        let mut args: Vec<ArgSpec> = Vec::with_capacity(self.entries.len());
        for (index, entry) in self.entries.iter().enumerate() {
            let fail = |message: String| SignatureError { entry: index + 1, text: entry.text.clone(), message };
            let name = match &entry.name {
                Some(name) if params.contains(&name.as_str()) => name.clone(),
                Some(name) => {
                    return Err(fail(format!("the kernel has no parameter `{name}`; it has {}", params.join(", "))));
                }
                None => match params.get(index) {
                    Some(name) => (*name).to_owned(),
                    None => {
                        let message = format!("the kernel has only {} parameters: {}", params.len(), params.join(", "));
                        return Err(fail(message));
                    }
                },
            };
            if args.iter().any(|a| a.name == name) {
                return Err(fail(format!("parameter `{name}` already has an entry")));
            }
            args.push(ArgSpec { name, kind: entry.kind.clone() });
        }
        Ok(args)
    }
}

/// Splits at commas outside of brackets and strings.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut pieces, mut start, mut closers, mut quote) = (Vec::new(), 0, Vec::new(), None);
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => drop(chars.next()),
            (Some(q), _) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(') => closers.push(')'),
            (None, '[') => closers.push(']'),
            (None, '<') => closers.push('>'),
            (None, ')' | ']' | '>') => {
                let expected = closers.pop();
                if expected != Some(c) {
                    return Err(format!("`{c}` at column {} closes nothing", at + 1));
                }
            }
            (None, ',') if closers.is_empty() => {
                pieces.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if quote.is_some() {
        return Err("a string is not closed".into());
    }
    if let Some(closer) = closers.pop() {
        return Err(format!("`{closer}` is missing at the end"));
    }
    pieces.push(&text[start..]);
    Ok(pieces)
}

/// `name=value`; a `=` inside a string or bracket does not count, as a name must come before it.
fn split_name(piece: &str) -> (Option<&str>, &str) {
    match piece.split_once('=') {
        Some((name, value)) if is_identifier(name.trim()) => (Some(name.trim()), value.trim()),
        _ => (None, piece),
    }
}

/// Deeper tuples than this are refused; no kernel has them, and reading is recursive.
const MAX_DEPTH: usize = 16;

fn read_kind(text: &str, depth: usize) -> Result<ArgKind, String> {
    if text.is_empty() {
        return Err("the entry is empty".into());
    }
    if let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
        return read_tuple(inner, depth);
    }
    if let Some(value) = read_constant(text)? {
        return Ok(ArgKind::Constexpr(value));
    }
    let (ty, factor) = match text.rsplit_once(':') {
        Some((ty, factor)) => (ty.trim(), Some(factor.trim())),
        None => (text, None),
    };
    let kind = match run_time_type(ty) {
        Ok(kind) => kind,
        // A bare name that is no type is a function of the source file, unless it looks like a mistyped type.
        Err(_) if factor.is_none() && is_identifier(text) && !looks_like_a_type(text) => {
            return Ok(ArgKind::Constexpr(ConstValue::Function(text.to_owned())));
        }
        Err(message) => return Err(message),
    };
    let Some(factor) = factor else { return Ok(kind) };
    let factor: u32 = match factor.parse() {
        Ok(factor) if factor > 0 => factor,
        _ => return Err(format!("after `:` stands a positive number, found `{factor}`")),
    };
    match kind {
        ArgKind::Value { ty: ValueType::Scalar(dtype), .. }
            if factor == 1 && takes_divisibility(ValueType::Scalar(dtype)) =>
        {
            Ok(ArgKind::Constexpr(ConstValue::Int(1)))
        }
        ArgKind::Value { ty, .. } if takes_divisibility(ty) => Ok(ArgKind::Value { ty, divisible_by: Some(factor) }),
        kind => Err(format!("`{kind}` has no divisibility; only integers and pointers do")),
    }
}

fn read_tuple(inner: &str, depth: usize) -> Result<ArgKind, String> {
    if depth == MAX_DEPTH {
        return Err(format!("tuples are nested more than {MAX_DEPTH} deep"));
    }
    let mut pieces = split(inner)?;
    if pieces.last().is_some_and(|p| p.trim().is_empty()) {
        pieces.pop();
    }
    let items = pieces.iter().map(|p| read_kind(p.trim(), depth + 1)).collect::<Result<Vec<_>, _>>()?;
    // A tuple of constants only is a constant.
    let constants: Option<Vec<ConstValue>> = items
        .iter()
        .map(|kind| match kind {
            ArgKind::Constexpr(value) => Some(value.clone()),
            _ => None,
        })
        .collect();
    Ok(match constants {
        Some(items) => ArgKind::Constexpr(ConstValue::Tuple { items, fields: None }),
        None => ArgKind::Tuple { items, fields: None },
    })
}

fn read_constant(text: &str) -> Result<Option<ConstValue>, String> {
    Ok(Some(match text {
        "True" => ConstValue::Bool(true),
        "False" => ConstValue::Bool(false),
        "None" => ConstValue::None,
        _ => {
            if text.starts_with(['"', '\'']) {
                return read_string(text).map(|s| Some(ConstValue::Str(s)));
            }
            if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
                return read_number(text).map(Some);
            }
            if let Some(inner) = text.strip_prefix("float(").and_then(|t| t.strip_suffix(')')) {
                let value = read_string(inner.trim())?;
                let value = value.parse().map_err(|_| format!("`{value}` is not a float"))?;
                return Ok(Some(ConstValue::Float(value)));
            }
            let dtype = text.strip_prefix("tl.").or_else(|| text.strip_prefix("triton.language."));
            match dtype {
                Some(name) => match ValueType::parse(name) {
                    Some(ty @ ValueType::Scalar(_)) => ConstValue::DType(ty),
                    _ => return Err(format!("`{text}` is not a dtype; write for example `tl.float16`")),
                },
                None => return Ok(None),
            }
        }
    }))
}

fn read_number(text: &str) -> Result<ConstValue, String> {
    let digits = text.replace('_', "");
    let (sign, magnitude) = match digits.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, digits.strip_prefix('+').unwrap_or(&digits)),
    };
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find_map(|(p, r)| Some((magnitude.strip_prefix(p)?, r)));
    let (magnitude, radix) = radix.unwrap_or((magnitude, 10));
    if let Ok(value) = i128::from_str_radix(magnitude, radix)
        && !magnitude.starts_with(['+', '-'])
    {
        return Ok(ConstValue::Int(sign * value));
    }
    match digits.parse::<f64>() {
        Ok(value) if radix == 10 && !digits.ends_with(|c: char| c.is_ascii_alphabetic()) => {
            Ok(ConstValue::Float(value))
        }
        Ok(value) if !value.is_finite() => Err(format!("not a number; write `float(\"{digits}\")`")),
        _ => Err("not a number".into()),
    }
}

fn read_string(text: &str) -> Result<String, String> {
    let mut chars = text.chars();
    let quote = chars.next().filter(|c| matches!(c, '"' | '\'')).ok_or("expected a string in quotes")?;
    let mut value = String::new();
    loop {
        match chars.next() {
            None => return Err("a string is not closed".into()),
            Some(c) if c == quote => break,
            Some('\\') => match chars.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some(c @ ('\\' | '"' | '\'')) => value.push(c),
                other => return Err(format!("unknown escape `\\{}`", other.map(String::from).unwrap_or_default())),
            },
            Some(c) => value.push(c),
        }
    }
    if chars.as_str().is_empty() { Ok(value) } else { Err(format!("`{}` after the string", chars.as_str())) }
}

/// `i33`, `fp31`, `float99`: letters of a type name, then a number.
fn looks_like_a_type(text: &str) -> bool {
    let stem = text.trim_end_matches(|c: char| c.is_ascii_digit());
    stem.len() < text.len() && matches!(stem, "i" | "u" | "int" | "uint" | "fp" | "f" | "bf" | "float" | "bfloat")
}
