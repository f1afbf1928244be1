//! An explanation as text and as JSON.

use super::{Basis, Bound, Change, Explanation, Subject};
use serde_json::{Value, json};
use std::fmt;

impl Explanation {
    /// The time that limits compare with: measured, or else by the model.
    pub fn milliseconds(&self) -> f64 {
        self.measured_milliseconds.unwrap_or(self.prediction.milliseconds)
    }

    /// The share of the time that the longest of the limits takes: 1 is as fast as the GPU can be with this kernel.
    pub fn nearness(&self) -> f64 {
        self.limits.first().map_or(0.0, |limit| limit.milliseconds / self.milliseconds())
    }

    /// What bounds the launch, as a sentence.
    pub fn sentence(&self) -> String {
        let share = |part: Bound| {
            let limit = self.limits.iter().find(|limit| limit.part == part);
            100.0 * limit.map_or(0.0, |limit| limit.milliseconds) / self.milliseconds()
        };
        let by = self.limited_by.join(" and ");
        let (resources, occupancy) = (&self.resources, self.prediction.occupancy);
        let blocks: u64 = self.grid.iter().map(|n| u64::from(*n)).product();
        match self.bound {
            Bound::Registers if resources.local_bytes > 0 => {
                format!("spilled registers: {} bytes of each thread go through local memory", resources.local_bytes)
            }
            Bound::Registers => format!(
                "spilled registers: a thread needs about {}, and a block of {} threads leaves it {}",
                resources.registers,
                resources.threads,
                rtc_abi::SmLimits::most_registers(resources.threads)
            ),
            Bound::Occupancy => format!(
                "occupancy: {} of {} threads per SM, limited by {by}, are too few to hide each other's latencies",
                occupancy * resources.threads,
                self.machine.sm.threads
            ),
            Bound::Latency => format!(
                "latency: the operations of a block wait for each other, and {blocks} blocks on {} SMs leave little to overlap \
                 them with",
                self.machine.sm_count
            ),
            Bound::Launch => "the launch itself, which takes longer than the work".to_owned(),
            part => format!("{}: busy for {:.0} % of the time", part.words(), share(part)),
        }
    }

    /// All of it as JSON.
    pub fn to_json(&self) -> Value {
        let limit = |limit: &super::Limit| json!({"part": limit.part.name(), "ms": limit.milliseconds, "share": limit.milliseconds / self.milliseconds()});
        json!({
            "kernel": self.kernel, "arch": self.arch, "grid": self.grid,
            "threads": self.resources.threads, "registers": self.resources.registers,
            "registers_estimated": !self.is_assembled, "spill_bytes": self.resources.local_bytes,
            "shared_bytes": self.resources.shared_bytes, "occupancy": self.prediction.occupancy, "limited_by": self.limited_by,
            "waves": self.prediction.waves, "sms": self.machine.sm_count,
            "counted": self.is_counted, "certain": self.is_certain,
            "model_ms": self.prediction.milliseconds, "measured_ms": self.measured_milliseconds,
            "bound": self.bound.name(), "why": self.sentence(), "nearness": self.nearness(),
            "limits": self.limits.iter().map(limit).collect::<Vec<_>>(),
            "change": self.change.as_ref().map(Change::to_json),
            "others": self.others.iter().map(Change::to_json).collect::<Vec<_>>(),
            "tried": self.tried, "notes": self.notes,
        })
    }
}

impl Change {
    fn to_json(&self) -> Value {
        let subject = match self.subject {
            Subject::Option => "option",
            Subject::Block => "block",
            Subject::Promise => "promise",
            Subject::Source => "source",
        };
        let basis = match self.basis {
            Basis::Counters => "counters",
            Basis::Model => "model",
            Basis::Remark => "remark",
        };
        let (file, line) = self.place.as_ref().map_or((None, None), |(file, line)| (Some(file), Some(line)));
        json!({
            "subject": subject, "what": self.what, "basis": basis, "ms": self.milliseconds, "gain": self.gain,
            "file": file, "line": line, "code": self.code,
        })
    }
}

/// The change, what it would bring, and how that is known.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((file, line)) = &self.place {
            write!(f, "{file}:{line}: ")?;
        }
        f.write_str(&self.what)?;
        let basis = match self.basis {
            Basis::Counters => "by its counts; it writes the same results",
            Basis::Model => "by the model",
            Basis::Remark => "as the compiler remarks",
        };
        match (self.gain, self.milliseconds) {
            (Some(gain), Some(time)) => write!(f, " ({gain:.2}x as fast, {}, {basis})", Time(time)),
            _ => write!(f, " ({basis})"),
        }
    }
}

/// Milliseconds with a unit that fits.
struct Time(f64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ms if ms >= 1.0 => f.pad(&format!("{ms:.2} ms")),
            ms => f.pad(&format!("{:.2} us", ms * 1e3)),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { resources, machine, grid: [x, y, z], .. } = self;
        writeln!(f, "kernel     {} for {}, grid {x} x {y} x {z}", self.kernel, self.arch)?;
        let estimated = if self.is_assembled { "" } else { "about " };
        let spilled = if resources.local_bytes > 0 {
            format!(" ({} bytes spilled)", resources.local_bytes)
        } else {
            String::new()
        };
        writeln!(
            f,
            "block      {} threads, {estimated}{} registers per thread{spilled}, {} bytes of shared memory",
            resources.threads, resources.registers, resources.shared_bytes
        )?;
        writeln!(
            f,
            "occupancy  {} per SM, limited by {}; {:.2} waves on {} SMs",
            self.prediction.occupancy,
            self.limited_by.join(" and "),
            self.prediction.waves,
            machine.sm_count
        )?;
        let work = if self.is_counted { "work counted in the emulator" } else { "work estimated from the code" };
        match self.measured_milliseconds {
            Some(time) => {
                let model = Time(self.prediction.milliseconds);
                writeln!(f, "time       {} measured; {model} by the model ({work})", Time(time))?;
            }
            None => writeln!(f, "time       {} by the model ({work})", Time(self.prediction.milliseconds))?,
        }
        writeln!(f, "bound by   {}", self.sentence())?;
        writeln!(f, "\n  {:<24} {:>12} {:>8}", "least time", "", "share")?;
        for limit in self.limits.iter().filter(|limit| limit.milliseconds > 0.0) {
            let share = 100.0 * limit.milliseconds / self.milliseconds();
            writeln!(f, "  {:<24} {:>12} {share:>6.0} %", limit.part.words(), Time(limit.milliseconds))?;
        }
        writeln!(f)?;
        match &self.change {
            Some(change) => writeln!(f, "change     {change}")?,
            None => writeln!(f, "change     none: of {} that were tried none is faster by 3 %", self.tried)?,
        }
        for note in &self.notes {
            writeln!(f, "note       {note}")?;
        }
        Ok(())
    }
}
