//! Reading JSON so that every error names the field.
//!
//! SPEC.json and LAUNCH.json are written by people and by other programs; "expected u32 at line 40" helps neither. A
//! [`Field`] is a JSON value with its path, and each reader gives either the value or a [`FieldError`] such as
//! `` `args[2].divisible_by`: expected a positive integer, found "x" ``.
//!
//! ```
//! use rtc_source::json_fields::{Field, parse};
//! let json = parse(r#"{"grid": [1, "x"]}"#).unwrap();
//! let grid = Field::root(&json).required("grid").unwrap().items().unwrap();
//! assert_eq!(grid[0].u32(), Ok(1));
//! assert_eq!(grid[1].u32().unwrap_err().to_string(), "`grid[1]`: expected an integer from 0 to 4294967295, found \"x\"");
//! ```

use serde_json::Value;
use std::fmt;

/// The error of one field of a JSON document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Path of the field, such as `args[2].type`; empty for the document itself.
    pub path: String,
    /// The message, without the path.
    pub message: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "`{}`: {}", self.path, self.message) }
    }
}

impl std::error::Error for FieldError {}

/// Reads a JSON document; a syntax error gives line and column.
pub fn parse(text: &str) -> Result<Value, FieldError> {
    serde_json::from_str(text).map_err(|e| FieldError { path: String::new(), message: format!("not valid JSON: {e}") })
}

/// A JSON value and its path.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    path: String,
    value: &'a Value,
}

impl<'a> Field<'a> {
    /// The document itself.
    pub fn root(value: &'a Value) -> Field<'a> {
        Field { path: String::new(), value }
    }

    /// Its path from the document.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The bare value.
    pub fn value(&self) -> &'a Value {
        self.value
    }

    /// An error about this field.
    pub fn error(&self, message: impl Into<String>) -> FieldError {
        FieldError { path: self.path.clone(), message: message.into() }
    }

    /// The member of that name, if the object has it.
    pub fn get(&self, name: &str) -> Result<Option<Field<'a>>, FieldError> {
        let members = self.value.as_object().ok_or_else(|| self.expected("an object"))?;
        Ok(members.get(name).map(|value| Field { path: self.member_path(name), value }))
    }

    /// The member of that name, absent also when it is `null`.
    pub fn optional(&self, name: &str) -> Result<Option<Field<'a>>, FieldError> {
        Ok(self.get(name)?.filter(|f| !f.value.is_null()))
    }

    /// The member of that name.
    pub fn required(&self, name: &str) -> Result<Field<'a>, FieldError> {
        self.get(name)?.ok_or_else(|| FieldError { path: self.member_path(name), message: "missing".into() })
    }

    /// An error unless every member has one of these names.
    pub fn only(&self, names: &[&str]) -> Result<(), FieldError> {
        for (name, field) in self.members()? {
            if !names.contains(&name) {
                return Err(field.error(format!("unknown field; known are {}", names.join(", "))));
            }
        }
        Ok(())
    }

    /// All members of an object, in order.
    pub fn members(&self) -> Result<Vec<(&'a str, Field<'a>)>, FieldError> {
        let members = self.value.as_object().ok_or_else(|| self.expected("an object"))?;
        Ok(members.iter().map(|(k, value)| (k.as_str(), Field { path: self.member_path(k), value })).collect())
    }

    /// All elements of a list.
    pub fn items(&self) -> Result<Vec<Field<'a>>, FieldError> {
        let items = self.value.as_array().ok_or_else(|| self.expected("a list"))?;
        let path = |i| format!("{}[{i}]", self.path);
        Ok(items.iter().enumerate().map(|(i, value)| Field { path: path(i), value }).collect())
    }

    /// A string.
    pub fn string(&self) -> Result<&'a str, FieldError> {
        self.value.as_str().ok_or_else(|| self.expected("a string"))
    }

    /// A list of strings.
    pub fn strings(&self) -> Result<Vec<String>, FieldError> {
        self.items()?.iter().map(|f| f.string().map(String::from)).collect()
    }

    /// `true` or `false`.
    pub fn boolean(&self) -> Result<bool, FieldError> {
        self.value.as_bool().ok_or_else(|| self.expected("true or false"))
    }

    /// An integer of at most 64 bits, signed or unsigned.
    pub fn integer(&self) -> Result<i128, FieldError> {
        let number = self.value.as_number();
        number.and_then(serde_json::Number::as_i128).ok_or_else(|| self.expected("an integer"))
    }

    /// An integer from 0 to 2^32 - 1.
    pub fn u32(&self) -> Result<u32, FieldError> {
        let in_range = self.integer().ok().and_then(|v| u32::try_from(v).ok());
        in_range.ok_or_else(|| self.expected("an integer from 0 to 4294967295"))
    }

    /// An integer from 1 to 2^32 - 1.
    pub fn positive(&self) -> Result<u32, FieldError> {
        self.u32().ok().filter(|v| *v > 0).ok_or_else(|| self.expected("a positive integer"))
    }

    /// An integer from 0 to 2^64 - 1.
    pub fn u64(&self) -> Result<u64, FieldError> {
        self.value.as_u64().ok_or_else(|| self.expected("a non-negative integer"))
    }

    /// An error with the expected and the actual value.
    pub fn expected(&self, what: &str) -> FieldError {
        self.error(format!("expected {what}, found {}", describe(self.value)))
    }

    fn member_path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

/// A value in an error message: scalars as they are, containers by their kind.
fn describe(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
        Value::String(text) if text.chars().count() > 60 => {
            format!("{:?}...", text.chars().take(60).collect::<String>())
        }
        scalar => scalar.to_string(),
    }
}
