//! The checks that can be enabled.

use std::fmt;
use std::str::FromStr;

/// A kind of check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Check {
    /// Accesses outside allocations or outside the shape of a tensor, and misaligned ones.
    Memory,
    /// Reads of uninitialized memory or registers.
    Init,
    /// Conflicting accesses that no barrier, fence or atomic orders.
    Race,
    /// Barriers, shuffles, matrix instructions and asynchronous copies that are used wrongly; deadlocks and endless loops.
    Sync,
    /// Promises of the source that do not hold.
    Promise,
    /// Results that the language leaves open and that something depends on.
    Open,
}

impl Check {
    /// Every check.
    pub const ALL: [Check; 6] = [Check::Memory, Check::Init, Check::Race, Check::Sync, Check::Promise, Check::Open];

    /// As the command line writes it.
    pub fn name(self) -> &'static str {
        match self {
            Check::Memory => "memory",
            Check::Init => "init",
            Check::Race => "race",
            Check::Sync => "sync",
            Check::Promise => "promise",
            Check::Open => "open",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of checks.
///
/// ```
/// use rtc_emulator::sanitize::{Check, Checks};
/// let checks: Checks = "memory,race".parse()?;
/// assert!(checks.has(Check::Race) && !checks.has(Check::Init));
/// assert_eq!("all".parse(), Ok(Checks::ALL));
/// assert!("races".parse::<Checks>().is_err());
/// assert!(!Checks::ALL.has(Check::Open) && "all,open".parse::<Checks>()?.has(Check::Open));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checks(u8);

impl Checks {
    /// No check.
    pub const NONE: Checks = Checks(0);
    /// Every check for errors that are independent of the device: all but [`Check::Open`], which reports results that
    /// other compilers may compute differently.
    /// give another result.
    pub const ALL: Checks = Checks((1 << Check::Open as u8) - 1);

    /// Whether a check is in the set.
    pub fn has(self, check: Check) -> bool {
        self.0 >> check as u8 & 1 == 1
    }

    /// The set with one more check.
    #[must_use]
    pub fn with(self, check: Check) -> Checks {
        Checks(self.0 | 1 << check as u8)
    }

    /// Whether there is no check in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The checks in the set.
    pub fn iter(self) -> impl Iterator<Item = Check> {
        Check::ALL.into_iter().filter(move |check| self.has(*check))
    }
}

impl FromIterator<Check> for Checks {
    fn from_iter<I: IntoIterator<Item = Check>>(checks: I) -> Checks {
        checks.into_iter().fold(Checks::NONE, Checks::with)
    }
}

impl FromStr for Checks {
    type Err = String;

    /// Names separated by commas; `all` means all but `open`.
    fn from_str(text: &str) -> Result<Checks, String> {
        let mut checks = Checks::NONE;
        for name in text.split(',').map(str::trim) {
            match Check::ALL.into_iter().find(|check| check.name() == name) {
                Some(check) => checks = checks.with(check),
                None if name == "all" => checks = Checks::ALL.iter().fold(checks, Checks::with),
                None => {
                    let names = Check::ALL.map(Check::name).join(", ");
                    return Err(format!("`{name}` is not a check; checks are {names} and all"));
                }
            }
        }
        Ok(checks)
    }
}
