//! Results of tuning as a file: `tuned.json`, and what the cache keeps.
//!
//! ```json
//! {"version": 1, "entries": [{
//!     "kernel": "add", "device": "NVIDIA H200", "arch": "sm_90a",
//!     "signature": "x=*fp32:16, n=i32",
//!     "key": {"n": 4096, "x": "fp32"},
//!     "winner": {"values": {"BLOCK": 1024}, "options": {"num_warps": 8}},
//!     "records": [{"values": {"BLOCK": 1024}, "options": {"num_warps": 8}, "milliseconds": 0.0123, "runs": 30,
//!                  "code": "5e0c.."}]
//! }]}
//! ```
//!
//! Every configuration has a record of its own, which counts as long as its code is the same: a configuration that is added
//! to the source is timed alone, and what a change of the kernel or of the compiler touches is timed again. The format
//! changes only by adding.

use crate::Error;
use rtc_compiler::{Choice, ConstValue, const_from_json, const_to_json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of the format.
const VERSION: u32 = 1;

/// A configuration in a file.
///
/// ```
/// use rtc_compiler::Choice;
/// use rtc_tune::Setting;
/// let choice = Choice { options: vec![("num_warps".into(), 8)], ..Choice::default() };
/// let setting = Setting::of(&choice);
/// assert_eq!(setting.options["num_warps"], 8);
/// assert_eq!(setting.choice().map(|choice| choice.options), Some(choice.options));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Values of constexpr parameters.
    pub values: Map<String, Value>,
    /// Launch options.
    pub options: Map<String, Value>,
    /// The blocks of tensor descriptors, where a hook sets them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub blocks: Map<String, Value>,
}

impl Setting {
    /// Of a configuration.
    pub fn of(choice: &Choice) -> Setting {
        Setting {
            values: choice.values.iter().map(|(name, value)| (name.clone(), const_to_json(value))).collect(),
            options: choice.options.iter().map(|(name, value)| (name.clone(), (*value).into())).collect(),
            blocks: choice.blocks.iter().map(|(name, sizes)| (name.clone(), sizes.clone().into())).collect(),
        }
    }

    /// As a configuration; `None` where a value cannot be read.
    pub fn choice(&self) -> Option<Choice> {
        let values = self.values.iter().map(|(name, value)| Some((name.clone(), const_from_json(value).ok()?)));
        let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
        let options = self.options.iter().map(|(name, value)| Some((name.clone(), number(value)?)));
        let sizes = |value: &Value| value.as_array()?.iter().map(number).collect::<Option<Vec<u32>>>();
        let blocks = self.blocks.iter().map(|(name, value)| Some((name.clone(), sizes(value)?)));
        Some(Choice {
            values: values.collect::<Option<_>>()?,
            options: options.collect::<Option<_>>()?,
            blocks: blocks.collect::<Option<_>>()?,
            ..Choice::default()
        })
    }
}

/// What one configuration took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The configuration.
    #[serde(flatten)]
    pub setting: Setting,
    /// The median time.
    pub milliseconds: f64,
    /// Of how many runs.
    pub runs: u32,
    /// A hash of the kernel that was timed.
    #[serde(default)]
    pub code: String,
}

/// The results for one kernel, device and key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Name of the kernel.
    pub kernel: String,
    /// Name of the device that it was timed on; empty where the cost model alone decided.
    pub device: String,
    /// Target.
    pub arch: String,
    /// What the configurations have in common: the types of arguments, and options.
    pub signature: String,
    /// Values of the arguments in `key`, and the element types of tensors.
    pub key: Map<String, Value>,
    /// The fastest configuration.
    pub winner: Setting,
    /// Every configuration that was timed.
    #[serde(default)]
    pub records: Vec<Record>,
}

impl Entry {
    /// Whether the other is about the same.
    fn is_same(&self, other: &Entry) -> bool {
        let of = |e: &Entry| (e.kernel.clone(), e.device.clone(), e.arch.clone(), e.signature.clone(), e.key.clone());
        of(self) == of(other)
    }

    /// Takes over what the other has timed: of two records of one configuration that of more runs, if both are of the same
    /// code. Whose winner is faster, by the records, stays the winner.
    pub fn merge(&mut self, other: &Entry) {
        for record in &other.records {
            match self.records.iter_mut().find(|own| own.setting == record.setting) {
                Some(own) if own.runs < record.runs && own.code == record.code => *own = record.clone(),
                Some(_) => {}
                None => self.records.push(record.clone()),
            }
        }
        let time = |setting: &Setting| {
            self.records.iter().find(|r| r.setting == *setting).map_or(f64::INFINITY, |r| r.milliseconds)
        };
        if time(&other.winner) < time(&self.winner) {
            self.winner = other.winner.clone();
        }
    }
}

/// The content of a `tuned.json`.
///
/// ```
/// use rtc_tune::{Entry, Record, Setting, Tuned};
/// let entry = |warps: u32, milliseconds: f64| {
///     let mut setting = Setting::default();
///     setting.options.insert("num_warps".into(), warps.into());
///     let record = Record { setting: setting.clone(), milliseconds, runs: 30, code: String::new() };
///     Entry { kernel: "add".into(), winner: setting, records: vec![record], ..Entry::default() }
/// };
/// let (mut tuned, mut other) = (Tuned::default(), Tuned::default());
/// tuned.add(&entry(4, 0.3));
/// other.add(&entry(8, 0.2));
/// tuned.merge(&other); // the same kernel, device and key: one entry
/// assert_eq!((tuned.entries.len(), tuned.entries[0].records.len()), (1, 2));
/// assert_eq!(tuned.entries[0].winner.options["num_warps"], 8);
/// assert_eq!(Tuned::parse(&tuned.to_text())?, tuned);
/// # Ok::<(), rtc_tune::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    version: u32,
    /// One entry per kernel, device and key.
    pub entries: Vec<Entry>,
}

impl Default for Tuned {
    fn default() -> Tuned {
        Tuned { version: VERSION, entries: Vec::new() }
    }
}

impl Tuned {
    /// A file with one entry.
    ///
    /// ```
    /// use rtc_tune::{Entry, Tuned};
    /// assert_eq!(Tuned::of(Entry::default()).entries, [Entry::default()]);
    /// ```
    pub fn of(entry: Entry) -> Tuned {
        Tuned { entries: vec![entry], ..Tuned::default() }
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the text has another form or version.
    pub fn parse(text: &str) -> Result<Tuned, Error> {
        let tuned: Tuned = serde_json::from_str(text).map_err(|error| Error::File(error.to_string()))?;
        if tuned.version != VERSION {
            return Err(Error::File(format!("version {} cannot be read; this one is {VERSION}", tuned.version)));
        }
        Ok(tuned)
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }

    /// Adds an entry, or merges it with the one about the same.
    pub fn add(&mut self, entry: &Entry) {
        match self.entries.iter_mut().find(|own| own.is_same(entry)) {
            Some(own) => own.merge(entry),
            None => self.entries.push(entry.clone()),
        }
    }

    /// Adds all entries of another file.
    pub fn merge(&mut self, other: &Tuned) {
        other.entries.iter().for_each(|entry| self.add(entry));
    }
}

/// The value of an argument as keys write it.
pub(crate) fn key_value(value: &ConstValue) -> Value {
    const_to_json(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(block: i128, milliseconds: f64, runs: u32) -> Entry {
        let choice = Choice {
            values: vec![("BLOCK".into(), ConstValue::Int(block)), ("F".into(), ConstValue::Function("relu".into()))],
            options: vec![("num_warps".into(), 4)],
            blocks: vec![("desc".into(), vec![block as u32, 64])],
            ..Choice::default()
        };
        let setting = Setting::of(&choice);
        assert_eq!(setting.choice(), Some(choice));
        let records = vec![Record { setting: setting.clone(), milliseconds, runs, code: "5e".into() }];
        Entry { kernel: "k".into(), arch: "sm_90a".into(), winner: setting, records, ..Entry::default() }
    }

    #[test]
    fn files_round_trip_and_merge() {
        let mut tuned = Tuned::default();
        tuned.add(&entry(64, 2.0, 5));
        let text = tuned.to_text();
        assert_eq!(Tuned::parse(&text).unwrap(), tuned);
        // Another configuration of the same key is a record more; the faster one wins.
        let other = Tuned { entries: vec![entry(128, 1.0, 5)], ..Tuned::default() };
        tuned.merge(&other);
        assert_eq!((tuned.entries.len(), tuned.entries[0].records.len()), (1, 2));
        assert_eq!(tuned.entries[0].winner, other.entries[0].winner);
        // More runs of the same configuration count more than fewer.
        tuned.add(&entry(128, 3.0, 2));
        assert_eq!(tuned.entries[0].records[1].milliseconds, 1.0);
        tuned.add(&entry(128, 3.0, 20));
        assert_eq!(tuned.entries[0].records[1].milliseconds, 3.0);
        let mut elsewhere = entry(64, 2.0, 5);
        elsewhere.key.insert("n".into(), 7.into());
        tuned.add(&elsewhere);
        assert_eq!(tuned.entries.len(), 2);
    }

    #[test]
    fn other_versions_are_refused() {
        let text = Tuned::default().to_text().replace("\"version\": 1", "\"version\": 2");
        assert!(Tuned::parse(&text).unwrap_err().to_string().contains("version 2"));
        assert!(Tuned::parse("{}").is_err());
    }
}
