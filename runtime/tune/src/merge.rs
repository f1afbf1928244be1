//! The results of all shards of a tuning as one, each GPU by itself.

use crate::shard::{Shard, ShardFile};
use crate::store::Store;
use crate::tuned::{Entry, Record, Setting, Tuned};
use crate::{Error, report};
use rtc_cache::Cache;

/// Two times of one configuration that differ by more are a conflict.
const CONFLICT: f64 = 1.1;
/// What is within this factor of the fastest may be faster on one and the same GPU.
const CLOSE: f64 = 1.04;

/// The merged results.
///
/// ```
/// use rtc_tune::{Entry, Error, Merged, ShardFile};
/// let text = |shard: u32, block: u32, milliseconds: f64| {
///     format!(
///         r#"{{"format": "rtc-tune-shard", "version": 1, "shard": {shard}, "of": 2, "compiler": "1", "plan": "5e",
///             "configurations": 2, "entry": {{"kernel": "add", "device": "NVIDIA H200", "arch": "sm_90a", "signature": "",
///             "key": {{}}, "winner": {{"values": {{}}, "options": {{}}}}, "records": [
///             {{"values": {{"BLOCK": {block}}}, "options": {{}}, "milliseconds": {milliseconds}, "runs": 30}}]}}}}"#
///     )
/// };
/// let first = ("1.json".to_owned(), ShardFile::parse(&text(1, 64, 0.2))?);
/// let second = ("2.json".to_owned(), ShardFile::parse(&text(2, 128, 0.1))?);
/// assert!(matches!(Merged::of(&[first.clone()]), Err(Error::ShardMissing(_))));
/// let merged = Merged::of(&[first, second])?;
/// assert_eq!(merged.tuned.entries[0].winner.values["BLOCK"], 128);
/// assert!(merged.conflicts.is_empty() && merged.notes.is_empty());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// One entry per GPU.
    pub tuned: Tuned,
    /// Configurations that two files have with different times.
    pub conflicts: Vec<String>,
    /// What else is to be said.
    pub notes: Vec<String>,
}

/// A file and its name.
type Named = (String, ShardFile);

impl Merged {
    /// Merges files, each with its name. All must be of one tuning: the same kernel, arguments and compiler. A GPU counts if all
    /// of its shards are there. A shard may be there twice; of two times of a configuration that of more runs counts.
    ///
    /// # Errors
    ///
    /// [`Error::ShardMismatch`] for files of different tunings, [`Error::ShardMissing`] where shards are missing.
    pub fn of(files: &[Named]) -> Result<Merged, Error> {
        let mut groups: Vec<Vec<&Named>> = Vec::new();
        let Some(first) = files.first() else { return Err(Error::ShardMissing("there is no file to merge".into())) };
        for file in files {
            is_one_tuning(first, file)?;
            match groups.iter_mut().find(|group| device(&group[0].1) == device(&file.1)) {
                Some(group) => group.push(file),
                None => groups.push(vec![file]),
            }
        }
        let mut merged = Merged::default();
        groups.iter().try_for_each(|group| is_one_list(group))?;
        let missing: Vec<String> = groups.iter().filter_map(|group| missing(group)).collect();
        if !missing.is_empty() {
            return Err(Error::ShardMissing(missing.join("; ")));
        }
        for group in groups {
            merged.add(&group)?;
        }
        Ok(merged)
    }

    /// Keeps the results in a cache, where launches and later tunings find them; returns what went wrong.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// use rtc_cache::{Cache, CacheConfig};
    /// let cache = Cache::open(CacheConfig::new(directory.path()))?;
    /// assert!(rtc_tune::Merged::default().keep(&cache).is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep(&self, cache: &Cache) -> Vec<String> {
        self.tuned.entries.iter().filter_map(|entry| Store::of(cache, entry).put(entry)).collect()
    }

    /// Adds the files of one GPU.
    fn add(&mut self, group: &[&Named]) -> Result<(), Error> {
        let first = &group[0].1;
        // Each record with the file that it comes from.
        let mut records: Vec<(&Record, &Named)> = Vec::new();
        for file in group {
            for record in &file.1.entry.records {
                let Some(place) = records.iter().position(|(known, _)| known.setting == record.setting) else {
                    records.push((record, file));
                    continue;
                };
                let (known, from) = records[place];
                if from.1.shard() != file.1.shard() || known.code != record.code {
                    let setting = shown(&record.setting);
                    let message = format!("{} and {} have different configurations {setting}", from.0, file.0);
                    return Err(Error::ShardMismatch(message));
                }
                let (low, high) =
                    (known.milliseconds.min(record.milliseconds), known.milliseconds.max(record.milliseconds));
                if high > low * CONFLICT {
                    let (setting, device) = (shown(&record.setting), &first.entry.device);
                    self.conflicts.push(format!(
                        "{setting} took {:.4} ms in {} and {:.4} ms in {}, both on {device}; the time of more runs counts",
                        known.milliseconds, from.0, record.milliseconds, file.0
                    ));
                }
                if record.runs > known.runs {
                    records[place] = (record, file);
                }
            }
        }
        let untimed: usize = first_of_each(group).map(|file| file.untimed()).sum();
        if untimed > 0 {
            self.notes.push(format!("the budget left {untimed} configurations without a time on {}", of(first)));
        }
        let Some((fastest, of_fastest)) = records.iter().min_by(|a, b| a.0.milliseconds.total_cmp(&b.0.milliseconds))
        else {
            let dropped = group.iter().find_map(|file| file.1.dropped.first());
            let why = dropped.map_or("nothing was timed", |dropped| dropped.why.as_str());
            self.notes.push(format!("no configuration has a time on {}: {why}", of(first)));
            return Ok(());
        };
        let is_close = |(record, file): &&(&Record, &Named)| {
            file.1.shard() != of_fastest.1.shard() && record.milliseconds <= fastest.milliseconds * CLOSE
        };
        let close: Vec<String> = records.iter().filter(is_close).map(|(record, _)| shown(&record.setting)).collect();
        if !close.is_empty() {
            self.notes.push(format!(
                "within {:.0} % of the fastest on {}, timed by other shards and perhaps on another GPU: {}; `rtc tune --fresh` on \
                 one GPU compares them",
                (CLOSE - 1.0) * 100.0,
                of(first),
                close.join(", ")
            ));
        }
        let winner = fastest.setting.clone();
        let records = records.into_iter().map(|(record, _)| record.clone()).collect();
        self.tuned.add(&Entry { winner, records, ..first.entry.clone() });
        Ok(())
    }
}

/// One file of each shard.
fn first_of_each<'f>(group: &[&'f Named]) -> impl Iterator<Item = &'f ShardFile> {
    let mut seen: Vec<Shard> = Vec::new();
    group
        .iter()
        .map(|file| &file.1)
        .filter(move |file| {
            let is_new = !seen.contains(&file.shard());
            seen.push(file.shard());
            is_new
        })
        .collect::<Vec<_>>()
        .into_iter()
}

fn shown(setting: &Setting) -> String {
    setting.choice().map_or_else(|| "a configuration".into(), |choice| format!("`{choice}`"))
}

fn device(file: &ShardFile) -> (&str, &str) {
    (&file.entry.device, &file.entry.arch)
}

fn of(file: &ShardFile) -> String {
    report::place(&file.entry)
}

/// Refuses files of different tunings.
fn is_one_tuning(first: &Named, file: &Named) -> Result<(), Error> {
    let (a, b) = (&first.1, &file.1);
    let pairs = [
        ("kernel", &a.entry.kernel, &b.entry.kernel),
        ("compiler", &a.compiler, &b.compiler),
        ("signature", &a.entry.signature, &b.entry.signature),
    ];
    let wrong = pairs.into_iter().find(|(_, one, other)| one != other);
    let wrong = wrong.map(|(what, one, other)| (what, one.clone(), other.clone()));
    let key = |file: &ShardFile| serde_json::to_string(&file.entry.key).unwrap_or_default();
    let wrong = wrong.or_else(|| (a.entry.key != b.entry.key).then(|| ("key", key(a), key(b))));
    match wrong {
        None => Ok(()),
        Some((what, one, other)) => Err(Error::ShardMismatch(format!(
            "{} and {} are of different tunings: their {what} is `{one}` and `{other}`",
            first.0, file.0
        ))),
    }
}

/// Refuses files of one GPU that divide different lists of configurations, or divide one differently.
fn is_one_list(group: &[&Named]) -> Result<(), Error> {
    let (name, first) = group[0];
    for (other, file) in group.iter().map(|file| (&file.0, &file.1)) {
        let what = if file.shard().count() != first.shard().count() {
            format!("{name} is shard {} and {other} is shard {}", first.shard(), file.shard())
        } else if (&file.plan, file.configurations) != (&first.plan, first.configurations) {
            format!("the configurations or the code of the kernel are not the same in {name} and {other}")
        } else {
            continue;
        };
        return Err(Error::ShardMismatch(format!("{what}, both on {}", of(first))));
    }
    Ok(())
}

/// The missing shards of one GPU.
fn missing(group: &[&Named]) -> Option<String> {
    let first = &group[0].1;
    let is_there = |index: &u32| group.iter().any(|file| file.1.shard().index() == *index);
    let missing = (1..=first.shard().count()).filter(|index| !is_there(index));
    let missing: Vec<String> = missing.map(|index| format!("{index}/{}", first.shard().count())).collect();
    (!missing.is_empty())
        .then(|| format!("of {} on {} the shards {} are missing", first.entry.kernel, of(first), missing.join(", ")))
}
