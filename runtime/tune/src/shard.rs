//! A part of the configurations, for tuning on machines that start one process each, and what came out of it as a file.
//!
//! ```json
//! {"format": "rtc-tune-shard", "version": 1, "shard": 2, "of": 4,
//!  "compiler": "0.1.0 5e0c..", "plan": "91ab..", "configurations": 9,
//!  "entry": {"kernel": "add", "..": "as in tuned.json"},
//!  "dropped": [{"values": {"BLOCK": 100}, "options": {"num_warps": 4}, "why": "does not compile: .."}]}
//! ```

use crate::Error;
use crate::candidate::Candidate;
use crate::report::TuningReport;
use crate::tuned::{Entry, Setting};
use rtc_cache::KeyBuilder;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

/// What the field `format` holds.
const FORMAT: &str = "rtc-tune-shard";
/// The version of the format.
const VERSION: u32 = 1;

/// One of several parts of the configurations, `2/4`. The parts are disjoint and cover all; which configuration is in which
/// depends on the order of the configurations alone.
///
/// ```
/// use rtc_tune::Shard;
/// let shard: Shard = "2/4".parse()?;
/// assert_eq!((shard.index(), shard.count(), shard.to_string().as_str()), (2, 4, "2/4"));
/// assert_eq!((0..9).filter(|number| shard.contains(*number)).collect::<Vec<_>>(), [1, 5]);
/// assert!("5/4".parse::<Shard>().is_err() && "0/4".parse::<Shard>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// Its number, from 1 on.
    pub fn index(self) -> u32 {
        self.index
    }

    /// How many there are.
    pub fn count(self) -> u32 {
        self.count
    }

    /// Whether a configuration is in it, by its number in the order of the source.
    pub fn contains(self, number: usize) -> bool {
        number % self.count as usize == self.index as usize - 1
    }

    /// How many of so many configurations are in it.
    pub(crate) fn size(self, configurations: usize) -> usize {
        (0..configurations).filter(|number| self.contains(*number)).count()
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/').and_then(|(i, n)| Some((i.trim().parse().ok()?, n.trim().parse().ok()?)));
        match numbers {
            Some((index, count)) if (1..=count).contains(&index) => Ok(Shard { index, count }),
            _ => Err(format!("`{text}` is no shard: those are written 1/4 to 4/4 where there are four")),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// What a report knows of the shard that it is about.
#[derive(Clone, Debug)]
pub(crate) struct ShardPlan {
    pub(crate) shard: Shard,
    /// How many configurations all shards have together.
    pub(crate) configurations: usize,
    /// A hash of all configurations and their code: two shards of one tuning have the same.
    pub(crate) plan: String,
}

impl ShardPlan {
    /// The plan of a report with all configurations.
    pub(crate) fn of(shard: Shard, report: &TuningReport) -> ShardPlan {
        let key = serde_json::to_string(&report.key).unwrap_or_default();
        let base = KeyBuilder::new("tuning-plan/1")
            .text("kernel", &report.kernel)
            .text("arch", &report.arch)
            .text("signature", &report.signature())
            .text("key", &key);
        let plan = report.candidates.iter().fold(base, |hash, candidate| {
            let setting = serde_json::to_string(&Setting::of(&candidate.choice)).unwrap_or_default();
            let grid = format!("{:?}", candidate.grid);
            hash.text("setting", &setting).text("grid", &grid).text("code", candidate.code())
        });
        ShardPlan { shard, configurations: report.candidates.len(), plan: plan.finish().to_string() }
    }
}

/// The configurations of a shard. Where those beyond the source are compared with one of the source, and the shard has none that
/// can run, one of another shard comes along as the reference; it is not timed.
pub(crate) fn part(shard: Shard, all: Vec<Candidate>) -> Vec<Candidate> {
    let expected = |candidate: &Candidate| candidate.prediction.map_or(f64::INFINITY, |p| p.milliseconds);
    let written = all.iter().filter(|candidate| candidate.is_written && candidate.dropped.is_none());
    let reference = written.min_by(|a, b| expected(a).total_cmp(&expected(b))).cloned();
    let of_shard = all.into_iter().enumerate().filter(|(number, _)| shard.contains(*number));
    let mut part: Vec<Candidate> = of_shard.map(|(_, candidate)| candidate).collect();
    let can_compare = part.iter().any(|candidate| candidate.is_written && candidate.dropped.is_none());
    if !can_compare && part.iter().any(|candidate| !candidate.is_written) {
        part.extend(reference.map(|reference| Candidate { is_reference: true, ..reference }));
    }
    part
}

/// A configuration that cannot run.
///
/// ```
/// use rtc_tune::{Dropped, Setting};
/// let dropped = Dropped { setting: Setting::default(), why: "it needs too much shared memory".into() };
/// assert!(serde_json::to_string(&dropped)?.contains("shared memory"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dropped {
    /// The configuration.
    #[serde(flatten)]
    pub setting: Setting,
    /// Why.
    pub why: String,
}

/// What came out of one shard, as a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardFile {
    format: String,
    version: u32,
    #[serde(rename = "shard")]
    index: u32,
    #[serde(rename = "of")]
    count: u32,
    /// Version and build of the compiler.
    pub compiler: String,
    /// A hash of all configurations of the tuning and of their code.
    pub plan: String,
    /// How many configurations all shards have together.
    pub configurations: usize,
    /// Device, kernel, key, and the records of this shard.
    pub entry: Entry,
    /// The configurations of this shard that cannot run.
    #[serde(default)]
    pub dropped: Vec<Dropped>,
}

impl ShardFile {
    /// Of the report of a [`Tuner`](crate::Tuner) of one shard; nothing for that of another.
    pub fn of(report: &TuningReport) -> Option<ShardFile> {
        let plan = report.shard.as_ref()?;
        let dropped = report
            .candidates
            .iter()
            .filter(|c| !c.is_reference)
            .filter_map(|c| Some(Dropped { setting: Setting::of(&c.choice), why: c.dropped.clone()? }));
        Some(ShardFile {
            format: FORMAT.into(),
            version: VERSION,
            index: plan.shard.index,
            count: plan.shard.count,
            compiler: format!("{} {}", rtc_compiler::COMPILER_VERSION, rtc_compiler::BUILD_ID),
            plan: plan.plan.clone(),
            configurations: plan.configurations,
            entry: report.entry(),
            dropped: dropped.collect(),
        })
    }

    /// Which shard it is.
    pub fn shard(&self) -> Shard {
        Shard { index: self.index, count: self.count }
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the text is damaged, or of another format or version.
    pub fn parse(text: &str) -> Result<ShardFile, Error> {
        let file: ShardFile = serde_json::from_str(text).map_err(|error| Error::File(error.to_string()))?;
        let wrong = |message: String| Err(Error::File(message));
        if file.format != FORMAT {
            return wrong(format!("`{}` is not the format `{FORMAT}`", file.format));
        }
        if file.version != VERSION {
            return wrong(format!("version {} cannot be read; this one is {VERSION}", file.version));
        }
        if !(1..=file.count).contains(&file.index) {
            return wrong(format!("there is no shard {} of {}", file.index, file.count));
        }
        let records = file.entry.records.iter();
        if let Some(record) = records.clone().find(|r| !r.milliseconds.is_finite() || r.milliseconds < 0.0) {
            return wrong(format!("{} is no time", record.milliseconds));
        }
        let settings = records.map(|record| &record.setting).chain(file.dropped.iter().map(|dropped| &dropped.setting));
        let text = |setting: &Setting| serde_json::to_string(setting).unwrap_or_default();
        let all: Vec<String> = settings.map(text).collect();
        if all.iter().collect::<HashSet<_>>().len() < all.len() {
            return wrong("it has a configuration twice".into());
        }
        let most = file.shard().size(file.configurations);
        if all.len() > most {
            return wrong(format!("it has {} configurations, shard {} has {most}", all.len(), file.shard()));
        }
        Ok(file)
    }

    /// The text of the file.
    ///
    /// ```
    /// let text = r#"{"format": "rtc-tune-shard", "version": 1, "shard": 1, "of": 1, "compiler": "1", "plan": "5e",
    ///     "configurations": 1, "entry": {"kernel": "add", "device": "NVIDIA H200", "arch": "sm_90a", "signature": "",
    ///     "key": {}, "winner": {"values": {}, "options": {}}, "records": [
    ///     {"values": {"BLOCK": 64}, "options": {}, "milliseconds": 0.2, "runs": 30}]}}"#;
    /// let file = rtc_tune::ShardFile::parse(text)?;
    /// assert_eq!(rtc_tune::ShardFile::parse(&file.to_text())?, file);
    /// # Ok::<(), rtc_tune::Error>(())
    /// ```
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }

    /// How many configurations of the shard have neither a time nor a reason, as the budget ended the tuning.
    pub(crate) fn untimed(&self) -> usize {
        let known = self.entry.records.len() + self.dropped.len();
        self.shard().size(self.configurations).saturating_sub(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_disjoint_and_cover_all() {
        for count in 1..7u32 {
            for configurations in 0..20usize {
                let shards: Vec<Shard> = (1..=count).map(|index| Shard { index, count }).collect();
                for number in 0..configurations {
                    assert_eq!(shards.iter().filter(|shard| shard.contains(number)).count(), 1);
                }
                let sizes: Vec<usize> = shards.iter().map(|shard| shard.size(configurations)).collect();
                assert_eq!(sizes.iter().sum::<usize>(), configurations);
                assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
            }
        }
    }

    #[test]
    fn a_shard_without_a_written_configuration_gets_one_to_compare_with() {
        let candidate = |is_written, dropped: Option<&str>| Candidate {
            is_written,
            dropped: dropped.map(Into::into),
            ..Candidate::default()
        };
        let all = || {
            vec![
                candidate(true, Some("too large")),
                candidate(true, None),
                candidate(false, None),
                candidate(false, None),
            ]
        };
        let references = |text: &str| {
            let part = part(text.parse().unwrap(), all());
            (part.len(), part.iter().filter(|c| c.is_reference).count())
        };
        // The first shard's own one cannot run; the second has one.
        assert_eq!(references("1/2"), (3, 1));
        assert_eq!(references("2/2"), (2, 0));
        // No configuration beyond the source, and no configuration at all.
        assert_eq!(references("1/4"), (1, 0));
        assert_eq!(references("5/5"), (0, 0));
    }
}
