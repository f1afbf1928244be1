//! Records of an instrumented kernel: when each warp came to its copies, waits, dots, barriers and iterations.
//!
//! A kernel that is compiled with [`LaunchOptions::instrument`](crate::spec::LaunchOptions::instrument) has one more
//! parameter, [`PARAM`], behind those of the source: memory of [`bytes`] bytes, filled with zeros. Each warp of its first
//! blocks has [`ENTRIES`] entries there, each of two little-endian numbers of 8 bytes:
//!
//! | entry | first number | second number |
//! | --- | --- | --- |
//! | 0 | events that the warp had, also those for which there was no room | 0 |
//! | 1 | clock at the start | nanoseconds at the start (`%globaltimer`) |
//! | 2 | clock at the end | nanoseconds at the end |
//! | 3 and later | clock of an event | number of the event, plus 1 |
//!
//! The clock is `%clock64`, which the warps of a block share. A comment in the PTX, [`MARKER`] and an [`Event`], gives
//! the meaning of each number.
//!
//! ```
//! use rtc_abi::records::{Event, Kind, Moment};
//! let event: Event = "7 end wait ring 1 of 3".parse().unwrap();
//! assert_eq!((event.number, event.moment, event.kind), (7, Moment::End, Kind::Wait));
//! assert_eq!((event.ring, event.to_string()), (Some((1, 3)), "7 end wait ring 1 of 3".to_owned()));
//! ```
//!
//! ```
//! use rtc_abi::records::{self, Event, Kind, Moment, NotAnEvent};
//! // Two blocks of four warps, and the comment of an event in the PTX.
//! assert_eq!(records::bytes(2, 4), 8 * u64::from(records::ENTRIES * records::ENTRY_BYTES));
//! assert_eq!(records::EVENTS, records::ENTRIES - records::HEADER);
//! assert!(records::MAX_BLOCKS >= 2 && records::PARAM != records::MARKER);
//! let event = Event::new(0, Moment::Begin, Kind::Loop);
//! assert_eq!(event.to_string(), format!("0 {} {}", Moment::Begin.word(), Kind::Loop.word()));
//! let wrong: Result<Event, NotAnEvent> = "0 begin".parse();
//! assert!(wrong.is_err());
//! ```
//!
//! ```
//! use rtc_abi::records::{self, Event, Kind, Moment, NotAnEvent};
//! // Two blocks of four warps, and the comment of an event in the PTX.
//! assert_eq!(records::bytes(2, 4), 8 * u64::from(records::ENTRIES * records::ENTRY_BYTES));
//! assert_eq!(records::EVENTS, records::ENTRIES - records::HEADER);
//! assert!(records::MAX_BLOCKS >= 2 && records::PARAM != records::MARKER);
//! let event = Event::new(0, Moment::Begin, Kind::Loop);
//! assert_eq!(event.to_string(), format!("0 {} {}", Moment::Begin.word(), Kind::Loop.word()));
//! let wrong: Result<Event, NotAnEvent> = "0 begin".parse();
//! assert!(wrong.is_err());
//! ```

use std::fmt;
use std::str::FromStr;

/// The name of the parameter, which no parameter of a source can have.
pub const PARAM: &str = "rtc_records";
/// What comes before the event in a comment of the PTX.
pub const MARKER: &str = "// record ";
/// Bytes of an entry.
pub const ENTRY_BYTES: u32 = 16;
/// Entries of a warp.
pub const ENTRIES: u32 = 4096;
/// Entries of a warp before its events.
pub const HEADER: u32 = 3;
/// Events of a warp that are kept: its first ones.
pub const EVENTS: u32 = ENTRIES - HEADER;
/// The most blocks whose events are recorded.
pub const MAX_BLOCKS: u32 = 256;

/// The bytes of the records of so many blocks, each of so many warps.
pub fn bytes(blocks: u32, warps: u32) -> u64 {
    u64::from(blocks) * u64::from(warps) * u64::from(ENTRIES) * u64::from(ENTRY_BYTES)
}

/// A place of the kernel at which warps record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number in the kernel.
    pub number: u32,
    /// Whether its operation begins or ends there.
    pub moment: Moment,
    /// The kind of its operation.
    pub kind: Kind,
    /// Of a copy that a barrier counts, and of a wait for one: the number of the ring of barriers, and the barriers in it.
    pub ring: Option<(u32, u32)>,
    /// Of a wait for all groups but the latest ones: how many may be pending.
    pub pending: u32,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$each])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// Its word in the text of an event.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }

            fn of_word(word: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|each| each.word() == word)
            }
        }
    };
}

words! {
    /// Before or after an operation.
    Moment {
        /// Before it.
        Begin = "begin",
        /// After it.
        End = "end",
        /// An event without length.
        At = "at",
    }
}

words! {
    /// The kind of an event's operation.
    Kind {
        /// The start of the kernel.
        Start = "start",
        /// Its end.
        Finish = "finish",
        /// A loop.
        Loop = "loop",
        /// The start of an iteration of the innermost loop.
        Iteration = "iteration",
        /// A load.
        Load = "load",
        /// A store.
        Store = "store",
        /// An atomic operation.
        Atomic = "atomic",
        /// The issue of an asynchronous copy into shared memory.
        Copy = "copy",
        /// An arrival at a barrier that then counts the bytes of copies: a phase of it begins.
        Expect = "expect",
        /// The end of a group of copies that the warp counts itself.
        Commit = "commit",
        /// The issue of an asynchronous copy out of shared memory.
        CopyOut = "copy-out",
        /// A dot whose result is there at its end.
        Dot = "dot",
        /// The issue of an asynchronous MMA.
        Mma = "mma",
        /// A wait for a barrier in shared memory.
        Wait = "wait",
        /// A wait for groups of copies into shared memory.
        WaitCopies = "wait-copies",
        /// A wait for copies out of shared memory.
        WaitStores = "wait-stores",
        /// A wait for MMAs.
        WaitMma = "wait-mma",
        /// A barrier of the block or of a partition.
        Barrier = "barrier",
    }
}

impl Event {
    /// An event without a ring.
    pub fn new(number: u32, moment: Moment, kind: Kind) -> Event {
        Event { number, moment, kind, ring: None, pending: 0 }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.number, self.moment.word(), self.kind.word())?;
        if let Some((number, slots)) = self.ring {
            write!(f, " ring {number} of {slots}")?;
        }
        if self.pending > 0 {
            write!(f, " pending {}", self.pending)?;
        }
        Ok(())
    }
}

/// A text that is no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no event: a number, {moments} and a kind are expected", moments = "`begin`, `end` or `at`")]
pub struct NotAnEvent(String);

impl FromStr for Event {
    type Err = NotAnEvent;

    fn from_str(text: &str) -> Result<Event, NotAnEvent> {
        read(text).ok_or_else(|| NotAnEvent(text.to_owned()))
    }
}

fn read(text: &str) -> Option<Event> {
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let moment = Moment::of_word(words.next()?)?;
    let mut event = Event::new(number, moment, Kind::of_word(words.next()?)?);
    while let Some(word) = words.next() {
        let value = words.next()?.parse().ok()?;
        match word {
            "ring" if words.next()? == "of" => event.ring = Some((value, words.next()?.parse().ok()?)),
            "pending" => event.pending = value,
            _ => return None,
        }
    }
    Some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_they_are_written() {
        for (number, kind) in Kind::ALL.iter().enumerate() {
            for moment in Moment::ALL {
                for (ring, pending) in [(None, 0), (Some((2, 3)), 0), (None, 4), (Some((0, 1)), 1)] {
                    let event = Event { ring, pending, ..Event::new(number as u32, *moment, *kind) };
                    assert_eq!(event.to_string().parse(), Ok(event));
                }
            }
        }
        for wrong in ["", "1", "1 begin", "x begin copy", "1 begin fly", "1 end wait ring 2", "1 end wait rings 2 of 3"]
        {
            assert!(wrong.parse::<Event>().is_err(), "{wrong}");
        }
    }
}
