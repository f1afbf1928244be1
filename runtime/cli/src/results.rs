//! The output of `rtc run` on standard output: lines for people, or one JSON object with `--json`.

use crate::counters;
use crate::output::outln;
use crate::problem::Problem;
use rtc_runtime::counters::Counters;
use rtc_testing::Comparison;
use serde_json::{Map, Value, json};

/// The results of a launch, printed as they come, or at the end as one object.
pub(crate) struct Results {
    object: Option<Map<String, Value>>,
}

impl Results {
    pub(crate) fn new(is_json: bool) -> Results {
        Results { object: is_json.then(Map::new) }
    }

    /// The object, instead of printing it; nothing where lines were printed.
    pub(crate) fn into_object(self) -> Option<Map<String, Value>> {
        self.object
    }

    /// A line, and the fields that say the same.
    pub(crate) fn add(&mut self, label: &str, text: &str, fields: Value) -> Result<(), Problem> {
        match (&mut self.object, fields) {
            (Some(object), Value::Object(fields)) => {
                object.extend(fields);
                Ok(())
            }
            (Some(_), _) => Ok(()),
            (None, _) => outln!("{label:10} {text}"),
        }
    }

    /// The counts of `--counters`.
    pub(crate) fn counters(&mut self, counters: &Counters) -> Result<(), Problem> {
        match &mut self.object {
            Some(object) => {
                object.insert("counters".into(), counters::to_json(counters));
                Ok(())
            }
            None => outln!("{}", counters.to_string().trim_end()),
        }
    }

    /// A tensor compared with the expected one.
    pub(crate) fn compared(&mut self, name: &str, comparison: &Comparison) -> Result<(), Problem> {
        let Some(object) = &mut self.object else { return outln!("check      {name}: {comparison}") };
        let Comparison { elements, wrong, worst_absolute, worst_relative, worst_ulp, .. } = comparison;
        let found = json!({
            "tensor": name, "elements": elements, "wrong": wrong, "worst_absolute": worst_absolute,
            "worst_relative": worst_relative, "worst_ulp": worst_ulp,
        });
        if let Value::Array(list) = object.entry("check").or_insert_with(|| json!([])) {
            list.push(found);
        }
        Ok(())
    }

    /// Ends the report.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        match self.object {
            Some(object) => outln!("{}", Value::Object(object)),
            None => Ok(()),
        }
    }
}
