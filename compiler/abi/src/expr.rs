//! Expressions over the integer arguments of a launch, which the launcher evaluates: sizes and strides of tensor maps.
//!
//! In a file an expression is a number or a string with `+ - * // %`, `min(a, b)`, `max(a, b)`, `cdiv(a, b)` (the quotient
//! rounded up), parentheses and names of integer parameters (`M`, `desc.shape.0`). Values have 64 bits; `//` and `%` round down as in Python; what leaves 64
//! bits or divides by zero is an error.
//!
//! ```
//! use rtc_abi::Expr;
//! let expr: Expr = "(M + 127) // 128 * min(N, 64)".parse().unwrap();
//! assert_eq!(expr.names(), ["M", "N"]);
//! assert_eq!(expr.eval(|name| Some(if name == "M" { 300 } else { 96 })), Ok(192));
//! ```
//!
//! Invariant: the steps of an [`Expr`] never need more than [`MAX_DEPTH`] values at once, so evaluation allocates nothing.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The most values that an evaluation holds at once, and the deepest nesting.
///
/// ```
/// let nested = |depth| format!("{}n{}", "(".repeat(depth), ")".repeat(depth)).parse::<rtc_abi::Expr>();
/// assert!(nested(5).is_ok() && nested(rtc_abi::expr::MAX_DEPTH + 1).is_err());
/// ```
pub const MAX_DEPTH: usize = 32;
/// The longest text in bytes.
const MAX_LENGTH: usize = 4096;

/// An expression, ready to be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    text: String,
    names: Vec<String>,
    /// In postfix order.
    steps: Vec<ExprStep>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExprStep {
    Const(i64),
    /// Index into `names`.
    Name(usize),
    Negate,
    Binary(Binary),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    FloorDiv,
    Mod,
    Min,
    Max,
    CeilDiv,
}

/// An expression that cannot be read.
///
/// ```
/// use rtc_abi::{Expr, expr::ParseError};
/// let error: ParseError = "n / 2".parse::<Expr>().unwrap_err();
/// assert_eq!((error.text.as_str(), error.at), ("n / 2", 2));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expression `{text}`, at byte {at}: {message}")]
pub struct ParseError {
    /// The whole text.
    pub text: String,
    /// Where in it.
    pub at: usize,
    /// The error.
    pub message: String,
}

/// An expression that has no value for these arguments.
///
/// ```
/// use rtc_abi::{Expr, expr::EvalError};
/// let half: Expr = "n // 0".parse().unwrap();
/// assert_eq!(half.eval_values(&[8]), Err(EvalError::DivisionByZero("n // 0".into())));
/// assert_eq!(half.eval_at(|_| None), Err(EvalError::UnknownName("n".into())));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// A name that is no integer argument.
    #[error("`{0}` is not an integer argument")]
    UnknownName(String),
    /// The value leaves 64 bits.
    #[error("`{0}` leaves 64 bits")]
    Overflow(String),
    /// Division or remainder by zero.
    #[error("`{0}` divides by zero")]
    DivisionByZero(String),
}

impl Expr {
    /// The names that occur in it, each once, in the order of their first occurrence.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Its value, where `value` gives that of each name.
    ///
    /// # Errors
    ///
    /// [`EvalError`] for a name without a value, a result of more than 64 bits, and a division by zero.
    pub fn eval(&self, mut value: impl FnMut(&str) -> Option<i64>) -> Result<i64, EvalError> {
        self.run(|index| value(&self.names[index]))
    }

    /// Its value, where `values` are those of [`Expr::names`].
    ///
    /// # Errors
    ///
    /// [`EvalError`] for a name without a value, a result of more than 64 bits, and a division by zero.
    pub fn eval_values(&self, values: &[i64]) -> Result<i64, EvalError> {
        self.run(|index| values.get(index).copied())
    }

    /// Its value, where `value` gives that of each name by its index in [`Expr::names`].
    ///
    /// # Errors
    ///
    /// [`EvalError`] for a name without a value, a result of more than 64 bits, and a division by zero.
    pub fn eval_at(&self, value: impl FnMut(usize) -> Option<i64>) -> Result<i64, EvalError> {
        self.run(value)
    }

    /// The expression in another language: `number` and `name` write what it is made of, `apply` an operator (`+`, `-`, `*`,
    /// `//`, `%`, `min`, `max`, `cdiv`) with two operands. A negated operand is subtracted from 0.
    ///
    /// ```
    /// let expr: rtc_abi::Expr = "min(M, 64) * -N".parse().unwrap();
    /// let text = expr.written(|number| number.to_string(), str::to_lowercase, |op, a, b| format!("({op} {a} {b})"));
    /// assert_eq!(text, "(* (min m 64) (- 0 n))");
    /// ```
    pub fn written(
        &self,
        number: impl Fn(i64) -> String,
        name: impl Fn(&str) -> String,
        apply: impl Fn(&str, String, String) -> String,
    ) -> String {
        let mut stack: Vec<String> = Vec::new();
        for step in &self.steps {
            let text = match *step {
                ExprStep::Const(value) => number(value),
                ExprStep::Name(index) => name(&self.names[index]),
                ExprStep::Negate => {
                    let of = stack.pop().unwrap_or_default();
                    apply("-", number(0), of)
                }
                ExprStep::Binary(op) => {
                    let (b, a) = (stack.pop().unwrap_or_default(), stack.pop().unwrap_or_default());
                    apply(op.written(), a, b)
                }
            };
            stack.push(text);
        }
        stack.pop().unwrap_or_default()
    }

    /// The operation, in postfix order.
    pub(crate) fn steps(&self) -> &[ExprStep] {
        &self.steps
    }

    fn run(&self, mut value: impl FnMut(usize) -> Option<i64>) -> Result<i64, EvalError> {
        let mut stack = [0i64; MAX_DEPTH];
        let mut top = 0;
        let overflow = || EvalError::Overflow(self.text.clone());
        for step in &self.steps {
            match *step {
                ExprStep::Const(number) => {
                    stack[top] = number;
                    top += 1;
                }
                ExprStep::Name(index) => {
                    let found = value(index);
                    stack[top] = found.ok_or_else(|| EvalError::UnknownName(self.names[index].clone()))?;
                    top += 1;
                }
                ExprStep::Negate => stack[top - 1] = stack[top - 1].checked_neg().ok_or_else(overflow)?,
                ExprStep::Binary(op) => {
                    let (a, b) = (stack[top - 2], stack[top - 1]);
                    if b == 0 && matches!(op, Binary::FloorDiv | Binary::Mod | Binary::CeilDiv) {
                        return Err(EvalError::DivisionByZero(self.text.clone()));
                    }
                    stack[top - 2] = op.apply(a, b).ok_or_else(overflow)?;
                    top -= 1;
                }
            }
        }
        Ok(stack[0])
    }
}

impl Binary {
    fn written(self) -> &'static str {
        match self {
            Binary::Add => "+",
            Binary::Sub => "-",
            Binary::Mul => "*",
            Binary::FloorDiv => "//",
            Binary::Mod => "%",
            Binary::Min => "min",
            Binary::Max => "max",
            Binary::CeilDiv => "cdiv",
        }
    }

    /// `None` where the value leaves 64 bits; the divisor is not zero.
    pub(crate) fn apply(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Binary::Add => a.checked_add(b),
            Binary::Sub => a.checked_sub(b),
            Binary::Mul => a.checked_mul(b),
            // Rust rounds towards zero, Python rounds down.
            Binary::FloorDiv => a.checked_div(b).map(|q| q - i64::from(a.wrapping_rem(b) != 0 && (a < 0) != (b < 0))),
            Binary::Mod => {
                let remainder = a.wrapping_rem(b);
                Some(if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder })
            }
            Binary::Min => Some(a.min(b)),
            Binary::Max => Some(a.max(b)),
            Binary::CeilDiv => a.checked_div(b).map(|q| q + i64::from(a.wrapping_rem(b) != 0 && (a < 0) == (b < 0))),
        }
    }
}

impl From<i64> for Expr {
    fn from(number: i64) -> Expr {
        Expr { text: number.to_string(), names: Vec::new(), steps: vec![ExprStep::Const(number)] }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Expr {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Expr, ParseError> {
        if let Ok(number) = text.parse::<i64>() {
            return Ok(Expr::from(number));
        }
        let mut parser = Parser { text, at: 0, names: Vec::new(), steps: Vec::new(), values: 0, nesting: 0 };
        if text.len() > MAX_LENGTH {
            let text: String = text.chars().take(32).chain("..".chars()).collect();
            return Err(ParseError { text, at: MAX_LENGTH, message: format!("longer than {MAX_LENGTH} bytes") });
        }
        parser.sum()?;
        if parser.at < text.len() {
            return Err(parser.error("an operator or the end is expected"));
        }
        Ok(Expr { text: text.to_owned(), names: parser.names, steps: parser.steps })
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    names: Vec<String>,
    steps: Vec<ExprStep>,
    /// Values on the stack after the steps so far.
    values: usize,
    nesting: usize,
}

impl<'t> Parser<'t> {
    fn error(&self, message: &str) -> ParseError {
        ParseError { text: self.text.to_owned(), at: self.at, message: message.to_owned() }
    }

    /// The rest after white space.
    fn rest(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        &self.text[self.at..]
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
            self.rest();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), ParseError> {
        if self.eat(token) { Ok(()) } else { Err(self.error(&format!("`{token}` is expected"))) }
    }

    fn push(&mut self, step: ExprStep) -> Result<(), ParseError> {
        match step {
            ExprStep::Const(_) | ExprStep::Name(_) => self.values += 1,
            ExprStep::Negate => {}
            ExprStep::Binary(_) => self.values -= 1,
        }
        if self.values > MAX_DEPTH {
            return Err(self.error("too deeply nested"));
        }
        self.steps.push(step);
        Ok(())
    }

    fn sum(&mut self) -> Result<(), ParseError> {
        self.nesting += 1;
        if self.nesting > MAX_DEPTH {
            return Err(self.error("too deeply nested"));
        }
        self.product()?;
        loop {
            let op = if self.eat("+") {
                Binary::Add
            } else if self.eat("-") {
                Binary::Sub
            } else {
                break;
            };
            self.product()?;
            self.push(ExprStep::Binary(op))?;
        }
        self.nesting -= 1;
        Ok(())
    }

    fn product(&mut self) -> Result<(), ParseError> {
        self.factor()?;
        loop {
            let op = if self.eat("*") {
                Binary::Mul
            } else if self.eat("//") {
                Binary::FloorDiv
            } else if self.eat("%") {
                Binary::Mod
            } else {
                break;
            };
            self.factor()?;
            self.push(ExprStep::Binary(op))?;
        }
        Ok(())
    }

    fn factor(&mut self) -> Result<(), ParseError> {
        let mut negations = 0;
        while self.eat("-") {
            negations += 1;
        }
        self.atom()?;
        for _ in 0..negations {
            self.push(ExprStep::Negate)?;
        }
        Ok(())
    }

    fn atom(&mut self) -> Result<(), ParseError> {
        if self.eat("(") {
            self.sum()?;
            return self.expect(")");
        }
        let rest = self.rest();
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let word = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        if word.is_empty() {
            return Err(self.error("a number, a name or `(` is expected"));
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let number = word.parse().map_err(|_| self.error("not a number of 64 bits"))?;
            return self.push_word(word.len(), ExprStep::Const(number));
        }
        let word = word.to_owned();
        let op = match word.as_str() {
            "min" => Binary::Min,
            "max" => Binary::Max,
            "cdiv" => Binary::CeilDiv,
            name => {
                let known = self.names.iter().position(|n| n == name);
                let index = known.unwrap_or_else(|| {
                    self.names.push(name.to_owned());
                    self.names.len() - 1
                });
                return self.push_word(word.len(), ExprStep::Name(index));
            }
        };
        self.at += word.len();
        self.expect("(")?;
        self.sum()?;
        self.expect(",")?;
        self.sum()?;
        self.expect(")")?;
        self.push(ExprStep::Binary(op))
    }

    fn push_word(&mut self, length: usize, step: ExprStep) -> Result<(), ParseError> {
        self.push(step)?;
        self.at += length;
        self.rest();
        Ok(())
    }
}

impl Serialize for Expr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.steps[..] {
            [ExprStep::Const(number)] => serializer.serialize_i64(number),
            _ => serializer.serialize_str(&self.text),
        }
    }
}

impl<'de> Deserialize<'de> for Expr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Expr, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a number or a string with an expression")]
        enum NumberOrText {
            Number(i64),
            Text(String),
        }
        match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(number) => Ok(Expr::from(number)),
            NumberOrText::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<i64, EvalError> {
        let args = [("M", 300), ("N", -7), ("desc.shape.0", 64), ("big", i64::MAX), ("low", i64::MIN), ("zero", 0)];
        let expr: Expr = text.parse().unwrap_or_else(|e| panic!("{e}"));
        let by_name = |name: &str| args.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
        let found = expr.eval(by_name);
        let values: Option<Vec<i64>> = expr.names().iter().map(|name| by_name(name)).collect();
        if let Some(values) = values {
            assert_eq!(expr.eval_values(&values), found);
        }
        found
    }

    #[test]
    fn values() {
        for (text, expected) in [
            ("7", 7),
            ("-9223372036854775808", i64::MIN),
            (" M * 2 + 1 ", 601),
            ("1 + 2 * 3 - 4", 3),
            ("(1 + 2) * 3", 9),
            ("10 - 4 - 3", 3),
            ("100 // 7 // 2", 7),
            ("--3", 3),
            ("-M + 1", -299),
            ("2 * -N", 14),
            ("min(M, desc.shape.0) + max(-1, N)", 63),
            ("max(min(1, 2), min(4, 3))", 3),
            ("(M + 127) // 128", 3),
            ("M - M % desc.shape.0", 256),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn division_rounds_down_as_in_python() {
        for (a, b, quotient, remainder) in
            [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (-6, 2, -3, 0), (6, -2, -3, 0)]
        {
            assert_eq!(value(&format!("({a}) // ({b})")), Ok(quotient), "{a} // {b}");
            assert_eq!(value(&format!("({a}) % ({b})")), Ok(remainder), "{a} % {b}");
            let up = quotient + i64::from(remainder != 0);
            assert_eq!(value(&format!("cdiv({a}, {b})")), Ok(up), "cdiv({a}, {b})");
        }
        assert_eq!(value("low % -1"), Ok(0));
    }

    #[test]
    fn what_has_no_value() {
        for text in ["big + 1", "low - 1", "big * 2", "-low", "low // -1"] {
            assert_eq!(value(text), Err(EvalError::Overflow(text.into())));
        }
        for text in ["1 // 0", "M % zero", "1 // (M - 300)", "cdiv(M, zero)"] {
            assert_eq!(value(text), Err(EvalError::DivisionByZero(text.into())));
        }
        assert_eq!(value("K + 1"), Err(EvalError::UnknownName("K".into())));
    }

    #[test]
    fn what_cannot_be_read() {
        for (text, at) in [
            ("", 0),
            ("1 +", 3),
            ("1 / 2", 2),
            ("(1", 2),
            ("1)", 1),
            ("min(1)", 5),
            ("min 1", 4),
            ("1 2", 2),
            ("9223372036854775808", 0),
            ("3x", 0),
            ("a & b", 2),
            ("größe +  ", 11),
        ] {
            let error = text.parse::<Expr>().expect_err(text);
            assert_eq!(error.at, at, "{error}");
        }
        let deep = |n: usize| format!("{}1{}", "(".repeat(n), ")".repeat(n));
        assert_eq!(value(&deep(MAX_DEPTH - 1)), Ok(1));
        assert!(deep(MAX_DEPTH).parse::<Expr>().is_err());
        let right = |n: usize| format!("{}1{}", "1 + (".repeat(n), ")".repeat(n));
        assert_eq!(value(&right(MAX_DEPTH - 1)), Ok(MAX_DEPTH as i64));
        assert!(right(MAX_DEPTH).parse::<Expr>().is_err());
        assert!("1+".repeat(3000).parse::<Expr>().is_err());
    }

    #[test]
    fn numbers_and_strings_in_files() {
        let read = |text: &str| serde_json::from_str::<Expr>(text);
        for text in ["5", "-1", "\"M + 1\""] {
            assert_eq!(serde_json::to_string(&read(text).unwrap()).unwrap(), text);
        }
        assert!(read("1.5").unwrap_err().to_string().contains("a number or a string"));
        assert!(read("\"M +\"").is_err());
    }
}
