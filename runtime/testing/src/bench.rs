//! Timing of kernels whose results are right.

use crate::{Case, Error, Reference, Result, Tolerance, verify};
use rtc_runtime::{Kernel, Stream, internal::quantile};
use std::fmt;
use std::time::Duration;

/// How often a kernel is launched to be timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Launches before the first that counts.
    pub warmup: u64,
    /// Launches that count, each timed by itself.
    pub timed: usize,
}

impl Default for Rounds {
    fn default() -> Rounds {
        Rounds { warmup: 10, timed: 40 }
    }
}

/// A kernel that was found right, ready to be timed.
#[derive(Debug)]
pub struct Bench {
    kernel: Kernel,
    case: Case,
    stream: Stream,
}

impl Bench {
    /// Verifies the kernel.
    ///
    /// ```
    /// use rtc_testing::{Bench, Case, Dtype, Rounds, Tensor, Tensors, Times, Tolerance};
    /// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
    /// # let scale = unsafe { rtc_runtime::Device::emulator().load_json(ptx, json)? };
    /// # let case = Case::new("one", [1]).tensor("x", Tensor::of(vec![1], &[2.0f32])?).output("y", Dtype::F32, vec![1])?;
    /// # let case = case.value("a", 3.0).value("n", 1);
    /// let reference = |_: &Tensors| Ok(Tensors::from_iter([("y", Tensor::of(vec![1], &[6.0f32])?)]));
    /// let bench = Bench::new(&scale, case, &reference, Tolerance::ByType)?;
    /// let times: Times = bench.times(Rounds { warmup: 1, timed: 5 })?;
    /// assert!(times.median() <= times.quantile(0.8));
    /// println!("{times}");
    /// // With criterion: `criterion.bench_function("scale", |bencher| bencher.iter_custom(|n| bench.run(n).unwrap()));`
    /// assert!(bench.run(3)? > std::time::Duration::ZERO);
    /// # Ok::<(), rtc_testing::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Case`] for a wrong result; else as for [`verify`].
    pub fn new(
        kernel: &impl AsRef<Kernel>,
        case: Case,
        reference: &dyn Reference,
        tolerance: Tolerance,
    ) -> Result<Bench> {
        let kernel = kernel.as_ref();
        let verified = verify(kernel, std::slice::from_ref(&case), reference, tolerance)?;
        if !verified.is_right() {
            return Err(Error::Case(format!("nothing is timed before the results are right: {verified}")));
        }
        Ok(Bench { kernel: kernel.clone(), case, stream: kernel.device().default_stream().clone() })
    }

    /// The time of so many launches, one after the other on the same memory: what criterion's `iter_custom` asks for. On a GPU
    /// it is the GPU's own time, without that of copies.
    ///
    /// # Errors
    ///
    /// As for [`Case::run`].
    pub fn run(&self, times: u64) -> Result<Duration> {
        self.case.time(&self.kernel, &self.stream, times)
    }

    /// Times of single launches.
    ///
    /// # Errors
    ///
    /// As for [`Case::run`].
    pub fn times(&self, rounds: Rounds) -> Result<Times> {
        if rounds.warmup > 0 {
            self.run(rounds.warmup)?;
        }
        let seconds = (0..rounds.timed.max(1)).map(|_| Ok(self.run(1)?.as_secs_f64()));
        Ok(Times { seconds: seconds.collect::<Result<_>>()? })
    }
}

/// Times of launches.
#[derive(Clone, Debug)]
pub struct Times {
    seconds: Vec<f64>,
}

impl Times {
    /// The time that so large a part of the launches stayed below, by linear interpolation: 0.5 is the median.
    pub fn quantile(&self, part: f64) -> Duration {
        quantile(&self.seconds, part).map_or(Duration::ZERO, Duration::from_secs_f64)
    }

    /// The median.
    pub fn median(&self) -> Duration {
        self.quantile(0.5)
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, high] = [0.2, 0.8].map(|part| self.quantile(part));
        write!(f, "{:?} (20 %: {low:?}, 80 %: {high:?}, of {} launches)", self.median(), self.seconds.len())
    }
}
