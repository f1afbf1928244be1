//! Counters as text.

use std::fmt;

use super::{Class, Counters, Machine, Traffic};

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Class::Fp32 => "fp32",
            Class::Half => "half",
            Class::Fp64 => "fp64",
            Class::Special => "special",
            Class::Integer => "integer",
            Class::Convert => "convert",
            Class::Compare => "compare",
            Class::Move => "move",
            Class::Global => "global",
            Class::Shared => "shared",
            Class::Local => "local",
            Class::Atomic => "atomic",
            Class::Copy => "copy",
            Class::Matrix => "matrix",
            Class::Warp => "warp",
            Class::Sync => "sync",
            Class::Control => "control",
            Class::Other => "other",
        })
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "instructions            warps         threads")?;
        for (class, count) in &self.instructions {
            writeln!(f, "  {class:<12} {:>14} {:>15}", count.warps, count.threads)?;
        }
        writeln!(f, "  active lanes   {:>12.1}", self.active_lanes())?;
        writeln!(f, "  branches       {:>12}, {} of them divergent", self.branches, self.divergent_branches)?;
        writeln!(f, "global memory        requests         sectors           bytes  sectors per request")?;
        let rows: [(&str, &Traffic); 5] = [
            ("loads", &self.loads),
            ("stores", &self.stores),
            ("atomics", &self.atomics),
            ("copies in", &self.copies_in),
            ("copies out", &self.copies_out),
        ];
        for (name, traffic) in rows.iter().filter(|(_, traffic)| traffic.requests > 0) {
            let Traffic { requests, sectors, bytes } = traffic;
            let each = traffic.sectors_per_request();
            writeln!(f, "  {name:<12} {requests:>14} {sectors:>15} {bytes:>15} {each:>20.2}")?;
        }
        writeln!(f, "  distinct       {:>12} bytes read, {} written", self.distinct_read, self.distinct_written)?;
        let shared = &self.shared;
        if shared.requests > 0 {
            writeln!(f, "shared memory        requests           turns       conflicts                bytes")?;
            writeln!(
                f,
                "  accesses     {:>14} {:>15} {:>15} {:>20}",
                shared.requests, shared.turns, shared.conflicts, shared.bytes
            )?;
        }
        writeln!(
            f,
            "arithmetic       {:>12} operations of matrices, {} of threads",
            self.matrix_flops, self.thread_flops
        )?;
        let machine = Machine::H200;
        let roofline = self.roofline(&machine);
        let bound = match roofline {
            _ if roofline.is_memory_bound() => "memory",
            _ if roofline.matrix >= roofline.threads => "matrix products",
            _ => "arithmetic of threads",
        };
        writeln!(
            f,
            "roofline         {:>12.3} us at least on an {}, bound by {bound}; {:.2} operations for each byte",
            roofline.seconds() * 1e6,
            machine.name,
            roofline.intensity
        )
    }
}
