//! Cases: what one launch of a kernel is given, by the names of its parameters; and where the right results come from.

use crate::{Dtype, Error, LaunchFile, Result, Tensor, Tensors};
use rtc_runtime::{Kernel, Stream};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What one launch is given.
///
/// ```
/// use rtc_testing::{Case, Dtype, Tensor};
/// let case = Case::new("two elements", [1])
///     .tensor("x", Tensor::of(vec![2], &[1.0f32, 2.0])?)
///     .output("y", Dtype::F32, vec![2])?
///     .value("a", 3.0)
///     .value("n", 2);
/// assert_eq!((case.name(), case.inputs().names().len()), ("two elements", 2));
/// # Ok::<(), rtc_testing::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Case {
    name: String,
    grid: Vec<u32>,
    args: Map<String, Value>,
    tensors: Tensors,
    outputs: Vec<String>,
}

impl Case {
    /// A launch of so many programs along one to three axes.
    pub fn new(name: impl Into<String>, grid: impl Into<Vec<u32>>) -> Case {
        let (args, tensors, outputs) = Default::default();
        Case { name: name.into(), grid: grid.into(), args, tensors, outputs }
    }

    /// Gives a pointer parameter a tensor. What the kernel writes into it is not looked at unless the reference tells it.
    pub fn tensor(mut self, param: &str, tensor: Tensor) -> Case {
        self.args.insert(param.to_owned(), json!({ "tensor": param }));
        self.tensors.insert(param, tensor);
        self
    }

    /// Gives a pointer parameter memory for results: filled with NaN, integers with their largest value, so that what is not
    /// written shows.
    ///
    /// # Errors
    ///
    /// [`Error::Tensors`] if the tensor has more bytes than a process can have.
    pub fn output(mut self, param: &str, dtype: Dtype, shape: Vec<usize>) -> Result<Case> {
        let elements: usize = shape.iter().product();
        let bytes = dtype.bitsize().div_ceil(8);
        let one = match dtype {
            Dtype::BOOL => vec![1],
            Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64 => {
                let mut largest = vec![0xff; bytes];
                largest[bytes - 1] = 0x7f;
                largest
            }
            // All ones are the largest number, or NaN.
            _ => vec![0xff; bytes],
        };
        self.outputs.push(param.to_owned());
        Ok(self.tensor(param, Tensor::new(dtype, shape, one.repeat(elements))?))
    }

    /// Gives a parameter a number, a truth value, or what else stands for a value in a LAUNCH.json.
    pub fn value(mut self, param: &str, value: impl Into<Value>) -> Case {
        self.args.insert(param.to_owned(), value.into());
        self
    }

    /// What it is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tensors as they are before the launch.
    pub fn inputs(&self) -> &Tensors {
        &self.tensors
    }

    fn launch_file(&self) -> Result<LaunchFile> {
        let text = json!({ "spec": {}, "grid": self.grid, "args": self.args }).to_string();
        Ok(LaunchFile::parse(&text)?)
    }

    /// Launches the kernel, and gives every tensor as it is afterwards.
    ///
    /// # Errors
    ///
    /// [`Error::LaunchFile`] if the grid or the arguments do not fit the kernel, [`Error::Runtime`] if the launch fails.
    pub fn run(&self, kernel: &impl AsRef<Kernel>) -> Result<Tensors> {
        Ok(self.launch_file()?.run(kernel, &self.tensors)?.outputs)
    }

    /// Launches the kernel `times` times on the same memory and gives the time that they took.
    pub(crate) fn time(&self, kernel: &Kernel, stream: &Stream, times: u64) -> Result<Duration> {
        let launch = self.launch_file()?;
        let grid = launch.grid(kernel.metadata())?;
        launch.with_args(kernel.device(), kernel.metadata(), &self.tensors, |args| {
            let start = stream.record()?;
            for _ in 0..times {
                kernel.launch(stream, grid, args)?;
            }
            let end = stream.record()?;
            stream.synchronize()?;
            Ok(end.elapsed_since(&start)?)
        })?
    }

    /// The results that the reference tells of this case: a result that it leaves out is an error, so is NaN in it.
    pub(crate) fn expected(&self, reference: &dyn Reference) -> Result<Tensors> {
        let expected = reference.expected(self)?;
        let problem = |text: String| Err(Error::Case(format!("case `{}`: {text}", self.name)));
        for output in &self.outputs {
            let Some(tensor) = expected.get(output) else {
                return problem(format!("the reference tells nothing of `{output}`"));
            };
            if let Ok(values) = tensor.to_f64()
                && let Some(at) = values.iter().position(|value| value.is_nan())
            {
                return problem(format!(
                    "the reference has NaN in `{output}`, at {at}: nothing can be compared with that"
                ));
            }
        }
        match expected.names().into_iter().find(|name| self.tensors.get(name).is_none()) {
            Some(name) => problem(format!("the reference tells of `{name}`, which the launch does not have")),
            None => Ok(expected),
        }
    }
}

/// Where right results come from: a closure that computes them from the tensors before the launch, or a [`Golden`].
pub trait Reference {
    /// The tensors of a case that are known after the launch. They may have another float type than the kernel's.
    ///
    /// # Errors
    ///
    /// [`Error::Case`] if the reference knows no results for the case, for example because a file is missing.
    fn expected(&self, case: &Case) -> Result<Tensors>;
}

impl<F: Fn(&Tensors) -> Result<Tensors>> Reference for F {
    fn expected(&self, case: &Case) -> Result<Tensors> {
        self(case.inputs())
    }
}

/// Results that were recorded in safetensors files, one for each case, named after it.
///
/// ```
/// use rtc_testing::{Case, Golden, Reference, Tensor, Tensors};
/// let folder = std::env::temp_dir().join(format!("rtc-golden-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// let mut results = Tensors::default();
/// results.insert("y", Tensor::of(vec![1], &[3.0f32])?);
/// std::fs::write(folder.join("small.safetensors"), results.to_bytes()?)?;
/// assert_eq!(Golden::new(&folder).expected(&Case::new("small", [1]))?, results);
/// assert!(Golden::new(&folder).expected(&Case::new("large", [1])).is_err());
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Golden {
    folder: PathBuf,
}

impl Golden {
    /// The results in this folder.
    pub fn new(folder: impl AsRef<Path>) -> Golden {
        Golden { folder: folder.as_ref().to_owned() }
    }
}

impl Reference for Golden {
    fn expected(&self, case: &Case) -> Result<Tensors> {
        let path = self.folder.join(format!("{}.safetensors", case.name()));
        let bytes = std::fs::read(&path).map_err(|error| Error::Case(format!("{}: {error}", path.display())))?;
        Tensors::from_bytes(&bytes)
    }
}
