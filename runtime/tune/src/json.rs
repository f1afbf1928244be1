//! The report of a tuning as JSON, for programs that choose the next step by it.

use crate::candidate::Candidate;
use crate::report::{Decision, TuningReport};
use crate::tuned::Setting;
use serde_json::{Value, json};

impl TuningReport {
    /// The report as JSON: the winner, how it was found, how sure that is, and all configurations, the fastest first.
    /// `docs/tools/tune.md` describes the fields.
    ///
    /// ```
    /// use rtc_compiler::{Program, Signature, Source, Spec};
    /// use rtc_tune::{GridFn, Tuner};
    /// let text = "@triton.autotune([triton.Config({'B': b}) for b in (64, 1024)], key=['n'])\n\
    ///             @triton.jit\ndef fill(x, n, B: tl.constexpr):\n    i = tl.program_id(0) * B + tl.arange(0, B)\n    \
    ///             tl.store(x + i, 1.0, mask=i < n)\n";
    /// let program = Program::parse(&[Source::new("fill.rt", text)]);
    /// let spec = Spec { args: Signature::parse("*fp32:16, i32:16")?.bind(&["x", "n"])?, ..Spec::default() };
    /// let tuner = Tuner::new(&program, spec).integer("n", 1 << 20).grid(GridFn::new(["cdiv(n, B)".parse()?, 1.into(), 1.into()]));
    /// let json = tuner.predict("sm_90a")?.to_json();
    /// assert_eq!((&json["decided_by"], &json["winner"]["values"]["B"]), (&"model".into(), &1024.into()));
    /// assert_eq!(json["candidates"][0]["config"], json["winner"]);
    /// assert!(json["candidates"][0]["model_ms"].as_f64() < json["candidates"][1]["model_ms"].as_f64());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_json(&self) -> Value {
        let ranked = self.ranked();
        let refused = (0..self.candidates.len()).filter(|number| self.candidates[*number].dropped.is_some());
        let candidates: Vec<Value> =
            ranked.iter().copied().chain(refused).map(|number| self.candidate(number)).collect();
        let phases = self.phases;
        json!({
            "kernel": self.kernel,
            "device": self.device,
            "arch": self.arch,
            "key": self.key,
            "winner": self.winner().map(|winner| Setting::of(&winner.choice)),
            "decided_by": match self.decision {
                Decision::Model => "model",
                Decision::Stored => "stored",
                Decision::Timed => "timed",
            },
            "uncertainty": self.uncertainty(&ranked),
            "candidates": candidates,
            "timed": self.candidates.iter().filter(|c| !c.times.milliseconds.is_empty()).count(),
            "devices": self.devices,
            "budget_ended": self.is_cut,
            "assembled": self.is_assembled,
            "seconds": self.elapsed.as_secs_f64(),
            "phases": {
                "estimating": phases.estimating.as_secs_f64(),
                "compiling": phases.compiling.as_secs_f64(),
                "preparing": phases.preparing.as_secs_f64(),
                "timing": phases.timing.as_secs_f64(),
                "comparing": phases.comparing.as_secs_f64(),
            },
            "notes": self.notes,
        })
    }

    /// A configuration; the times of one with the same code are its own.
    fn candidate(&self, number: usize) -> Value {
        let candidate = &self.candidates[number];
        let timed = self.timed(number);
        let runs = &timed.times;
        let (resources, prediction) = (candidate.resources, candidate.prediction);
        json!({
            "config": Setting::of(&candidate.choice),
            "written": candidate.is_written,
            "grid": candidate.grid,
            "timed": !runs.milliseconds.is_empty(),
            "ms": self.milliseconds(number),
            "ms_quartiles": [runs.quantile(0.25), runs.quantile(0.75)],
            "runs": runs.milliseconds.len(),
            "model_ms": prediction.map(|p| p.milliseconds),
            "model_place": self.expected_place(number),
            "occupancy": prediction.map(|p| p.occupancy),
            "waves": prediction.map(|p| p.waves),
            "mma_share": prediction.map(|p| p.mma_share),
            "memory_share": prediction.map(|p| p.memory_share),
            "threads": resources.map(|r| r.threads),
            "registers": resources.map(|r| r.registers),
            // Registers are an estimate and spilled ones unknown where the configuration was not assembled.
            "spill_bytes": resources.filter(|_| !runs.milliseconds.is_empty()).map(|r| r.local_bytes),
            "shared_bytes": resources.map(|r| r.shared_bytes),
            "same_as": candidate.same_as.map(|other| Setting::of(&self.candidates[other].choice)),
            "dropped": candidate.dropped,
        })
    }

    /// The configuration whose times count for this one.
    fn timed(&self, number: usize) -> &Candidate {
        let candidate = &self.candidates[number];
        candidate.same_as.map_or(candidate, |other| &self.candidates[other])
    }

    /// How far the winner lies before the next configuration with other code, compared with how far its runs are apart.
    fn uncertainty(&self, ranked: &[usize]) -> Value {
        let Some(winner) = ranked.first().copied() else { return Value::Null };
        let code = |number: usize| self.candidates[number].same_as.unwrap_or(number);
        let next = ranked.iter().copied().find(|number| code(*number) != code(winner));
        let model = |number: usize| self.candidates[number].prediction.map(|p| p.milliseconds);
        let ratio = |of: &dyn Fn(usize) -> Option<f64>| Some(of(next?)? / of(winner)?);
        let is_by_time = self.decision != Decision::Model;
        let lead = if is_by_time { ratio(&|number| self.milliseconds(number)) } else { ratio(&model) };
        let times = &self.timed(winner).times;
        let median = times.median().filter(|median| *median > 0.0);
        let spread = median.and_then(|median| Some((times.quantile(0.75)? - times.quantile(0.25)?) / median));
        json!({
            "next": next.map(|number| Setting::of(&self.candidates[number].choice)),
            "next_ratio": lead,
            "spread": spread,
            "is_clear": lead.zip(spread).map(|(lead, spread)| lead - 1.0 > spread),
        })
    }
}
