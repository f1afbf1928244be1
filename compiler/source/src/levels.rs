//! Which warnings are shown, and which are errors.
//!
//! Every warning code has a level: [`Level::Allow`], [`Level::Warn`] or [`Level::Deny`]. [`WARNINGS`] holds the defaults;
//! a [`Levels`] holds what the user said, the last word counting:
//!
//! ```
//! use rtc_source::{Code, Level, Levels};
//! let mut levels = Levels::default();
//! assert_eq!(levels.of(Code::NARROWING_STORE), Level::Allow);
//! levels.set("narrowing-store", Level::Warn)?;
//! levels.set("warnings", Level::Deny)?;
//! assert_eq!(levels.of(Code::NARROWING_STORE), Level::Deny);
//! assert_eq!(levels.of(Code::INDEX_MAY_OVERFLOW), Level::Allow);
//! # Ok::<(), rtc_source::UnknownCode>(())
//! ```

use crate::{CODES, Code, Diagnostic, Severity};

/// The treatment of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// It is not shown.
    Allow,
    /// It is shown.
    Warn,
    /// It is an error.
    Deny,
}

/// The codes that warnings have, with their levels where the user says nothing.
pub const WARNINGS: &[(Code, Level)] = &[
    (Code::BAD_CONDITION, Level::Warn),
    (Code::CONSTEXPR_AT_RUN_TIME, Level::Warn),
    (Code::DEPRECATED, Level::Warn),
    (Code::LOST_ASSIGNMENT, Level::Warn),
    (Code::OUT_OF_RANGE, Level::Warn),
    (Code::PRECEDENCE, Level::Warn),
    (Code::UNUSED_RESULT, Level::Warn),
    (Code::HALF_ACCUMULATOR, Level::Warn),
    (Code::INDEX_OVERFLOW, Level::Warn),
    (Code::INDEX_MAY_OVERFLOW, Level::Allow),
    (Code::MISSING_MASK, Level::Warn),
    (Code::MISSING_OTHER, Level::Warn),
    (Code::NARROWING_STORE, Level::Allow),
    (Code::ASSEMBLER_DEFECT, Level::Warn),
];

/// The group of all codes that would be shown: `--deny warnings` lets no warning pass.
const SHOWN: &str = "warnings";
/// The group of all codes of [`WARNINGS`]: `--warn all` also enables those that are off by default.
const ALL: &str = "all";

/// The levels of all warnings. The default is that of [`WARNINGS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// Levels by code; the last entry of a code counts.
    codes: Vec<(Code, Level)>,
    /// The levels of all codes.
    shown: Option<Level>,
}

/// No warning has this code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCode(String);

impl std::fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = &self.0;
        if CODES.iter().any(|(code, _)| code.0 == name) {
            write!(f, "`{name}` is never a warning; warnings are ")?;
        } else {
            write!(f, "there is no warning `{name}`; warnings are ")?;
        }
        WARNINGS.iter().try_for_each(|(code, _)| write!(f, "{code}, "))?;
        write!(f, "and the groups {SHOWN} (those that are on) and {ALL}")
    }
}

impl std::error::Error for UnknownCode {}

impl Levels {
    /// Sets the level of a code, or of a group: `warnings` for all that are on, `all` for all.
    pub fn set(&mut self, name: &str, level: Level) -> Result<(), UnknownCode> {
        match name {
            SHOWN => self.shown = Some(level),
            ALL => self.codes.extend(WARNINGS.iter().map(|(code, _)| (*code, level))),
            _ => {
                let known = WARNINGS.iter().find(|(code, _)| code.0 == name);
                let (code, _) = known.ok_or_else(|| UnknownCode(name.to_owned()))?;
                self.codes.push((*code, level));
            }
        }
        Ok(())
    }

    /// The level of a code.
    pub fn of(&self, code: Code) -> Level {
        let mut entries = WARNINGS.iter().chain(&self.codes).rev();
        let level = entries.find(|(c, _)| *c == code).map_or(Level::Warn, |(_, level)| *level);
        match (level, self.shown) {
            (Level::Warn, Some(level)) => level,
            (level, _) => level,
        }
    }

    /// The diagnostics after applying the levels: allowed warnings are removed, denied ones are errors.
    pub fn apply(&self, diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let judge = |mut diagnostic: Diagnostic| {
            if diagnostic.severity == Severity::Warning {
                match self.of(diagnostic.code) {
                    Level::Allow => return None,
                    Level::Warn => {}
                    Level::Deny => {
                        diagnostic.severity = Severity::Error;
                        diagnostic.notes.push(format!("a warning that is denied; `--allow {}`", diagnostic.code));
                    }
                }
            }
            Some(diagnostic)
        };
        diagnostics.into_iter().filter_map(judge).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;

    #[test]
    fn the_last_word_counts() {
        let mut levels = Levels::default();
        for (name, level, expected) in [
            ("missing-mask", Level::Deny, Level::Deny),
            ("missing-mask", Level::Allow, Level::Allow),
            ("all", Level::Warn, Level::Warn),
            ("warnings", Level::Deny, Level::Deny),
            ("missing-mask", Level::Allow, Level::Allow),
        ] {
            levels.set(name, level).unwrap();
            assert_eq!(levels.of(Code::MISSING_MASK), expected, "{name}");
        }
    }

    #[test]
    fn codes_that_are_no_warnings_are_refused() {
        let mut levels = Levels::default();
        let text = levels.set("shape-mismatch", Level::Allow).unwrap_err().to_string();
        assert!(text.starts_with("`shape-mismatch` is never a warning"), "{text}");
        let text = levels.set("mising-mask", Level::Allow).unwrap_err().to_string();
        assert!(text.starts_with("there is no warning `mising-mask`"), "{text}");
        assert!(text.contains("missing-mask"), "{text}");
    }

    #[test]
    fn errors_stay_and_warnings_follow_their_levels() {
        let mut levels = Levels::default();
        levels.set("deprecated", Level::Deny).unwrap();
        let span = Span::default();
        let all = vec![
            Diagnostic::error(Code::OUT_OF_RANGE, span, "an error"),
            Diagnostic::warning(Code::DEPRECATED, span, "denied"),
            Diagnostic::warning(Code::NARROWING_STORE, span, "off"),
            Diagnostic::warning(Code::MISSING_MASK, span, "on"),
        ];
        let left: Vec<(Severity, String)> = levels.apply(all).into_iter().map(|d| (d.severity, d.message)).collect();
        let expected = [(Severity::Error, "an error"), (Severity::Error, "denied"), (Severity::Warning, "on")];
        assert_eq!(left, expected.map(|(severity, text)| (severity, text.to_owned())));
    }
}
