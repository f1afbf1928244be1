//! What can go wrong at run time.
//!
//! Three kinds: the driver refuses (call, code and text), the launch does not fit the kernel (found before anything
//! runs; the text names the argument or the resource), or the kernel itself did wrong (the emulator's and the
//! interpreter's findings carry source lines).

use rtc_abi::{DType, MetadataError, ParamType};

/// A run-time failure.
///
/// ```
/// use rtc_runtime::{Device, Error, args};
/// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
/// let device = Device::auto();
/// // SAFETY: the files were made together.
/// let (kernel, x) = (unsafe { device.load_json(ptx, json)? }, device.zeros::<f32>(2)?);
/// match kernel.launch(device.default_stream(), 1, &args![&x, 1.0f32]) {
///     Err(Error::ArgumentCount { expected, given, .. }) => assert_eq!((expected, given), (4, 2)),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), Error>(())
/// ```
///
/// [`Debug`](std::fmt::Debug) gives the same text as [`Display`](std::fmt::Display): it is what `unwrap` and a `main` that
/// returns a `Result` print.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such device.
    #[error("{0}")]
    NoDevice(String),
    /// A call of the CUDA driver failed.
    #[error("CUDA: {call} failed: {name} ({code}): {text}{detail}")]
    Cuda {
        /// The driver function.
        call: &'static str,
        /// Its status code.
        code: u32,
        /// Name of the status code.
        name: String,
        /// The driver's explanation.
        text: String,
        /// What else is known, such as the log of the PTX compiler; starts with a separator or is empty.
        detail: String,
    },
    /// The launch gives more or fewer arguments than the kernel takes.
    #[error("kernel `{kernel}` takes {expected} arguments ({names}), the launch gives {given}")]
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// How many it takes.
        expected: usize,
        /// How many were given.
        given: usize,
        /// The names of its parameters.
        names: String,
    },
    /// The grid of a launch has a negative size.
    #[error("kernel `{kernel}`: the grid has {size} programs along {axis}; give 0 to 2147483647")]
    NegativeGrid {
        /// The kernel.
        kernel: String,
        /// `x`, `y` or `z`.
        axis: &'static str,
        /// The size.
        size: i64,
    },
    /// An argument does not fit its parameter.
    #[error("kernel `{kernel}`, argument `{name}` ({ty}): {message}")]
    Argument {
        /// The kernel.
        kernel: String,
        /// The parameter.
        name: String,
        /// Its type.
        ty: ParamType,
        /// What is wrong.
        message: String,
    },
    /// The kernel may access memory that no pointer argument stands for, so that a safe launch cannot check it.
    #[error(
        "kernel `{kernel}` may access memory other than that of its arguments: {why}; where you know what it accesses, \
         call the unsafe function `launch_unchecked`"
    )]
    Unproved {
        /// The kernel.
        kernel: String,
        /// Why that is not ruled out.
        why: String,
    },
    /// The type of a parameter does not hold the number that it is given.
    #[error("kernel `{kernel}`, argument `{name}` ({ty}): {message}")]
    OutOfRange {
        /// The kernel.
        kernel: String,
        /// The parameter.
        name: String,
        /// Its type.
        ty: ParamType,
        /// The number, and what fits.
        message: String,
    },
    /// The types of a handle are not those of the kernel.
    #[error("kernel `{kernel}` cannot be launched with {given}: {message}; write `Kernel<{needed}>`")]
    Signature {
        /// The kernel.
        kernel: String,
        /// The types of the handle.
        given: String,
        /// What is wrong with them.
        message: String,
        /// The types of the kernel.
        needed: String,
    },
    /// A module has no such kernel.
    #[error("there is no kernel `{name}` in the module; it has {known}")]
    NoKernel {
        /// The name that was asked for.
        name: String,
        /// The names of its kernels.
        known: String,
    },
    /// A kernel has no such constexpr with a number.
    #[error("kernel `{kernel}` has no constexpr `{name}` that is a number; it has {known}")]
    NoConstexpr {
        /// The kernel.
        kernel: String,
        /// The name that was asked for.
        name: String,
        /// The names of its constexprs.
        known: String,
    },
    /// The kernel or the launch needs more of a resource than the device has.
    #[error("kernel `{kernel}` is out of resources: {resource}: needed {needed}, available {available}. {hint}")]
    OutOfResources {
        /// The kernel.
        kernel: String,
        /// The resource, such as `shared memory (bytes)`.
        resource: &'static str,
        /// How much the kernel needs.
        needed: u64,
        /// How much there is.
        available: u64,
        /// What helps.
        hint: &'static str,
    },
    /// The kernel cannot run on this device.
    #[error("kernel `{kernel}` cannot run on {device}: {message}")]
    WrongDevice {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
        /// Why.
        message: String,
    },
    /// A range that does not lie within a buffer or a slice.
    #[error("range {start}..{end} of a slice of {len} elements ({ty})")]
    SliceRange {
        /// The first element.
        start: u64,
        /// The one after the last.
        end: u64,
        /// How many there are.
        len: u64,
        /// Their type.
        ty: DType,
    },
    /// Memory that cannot hold elements of that type.
    #[error("{}", cast(*.address, *.bytes, *.ty))]
    Cast {
        /// Where the memory begins.
        address: u64,
        /// How much it is.
        bytes: u64,
        /// The type that was asked for.
        ty: DType,
    },
    /// A buffer that no device can hold.
    #[error("a buffer of {len} elements ({ty}) is larger than any memory")]
    BufferSize {
        /// How many elements were asked for.
        len: u64,
        /// Their type.
        ty: DType,
    },
    /// A shape with another number of elements.
    #[error("the shape {shape:?} has {} elements, the buffer {len}", shape_elements(.shape))]
    Shape {
        /// The sizes.
        shape: Vec<usize>,
        /// How many elements there are.
        len: usize,
    },
    /// A tensor of DLPack that cannot be used here, with the feature `dlpack`.
    #[error("tensor of DLPack: {0}")]
    Dlpack(String),
    /// A copy between places of different lengths.
    #[error("a copy of {from} elements to {to}; the lengths must be equal: copy a slice")]
    CopyLength {
        /// How many elements there are.
        from: u64,
        /// How many there is room for.
        to: u64,
    },
    /// Memory or a graph on another device than the stream.
    #[error("the memory lies on {memory}, the stream belongs to {stream}; copy through the host")]
    Elsewhere {
        /// Where the memory lies.
        memory: String,
        /// Where the stream belongs.
        stream: String,
    },
    /// An event of another device than the stream or event that it is used with.
    #[error("the event was recorded on {event}, it is used with one of {other}; wait for it by `Event::synchronize`")]
    EventElsewhere {
        /// Where the event was recorded.
        event: String,
        /// The device of the stream or of the other event.
        other: String,
    },
    /// What cannot be part of recorded work.
    #[error("while work is recorded, {what} cannot be part of it; do that before or after the recording")]
    Recording {
        /// What was tried.
        what: &'static str,
    },
    /// An access of the host to memory that is not there.
    #[error("{0}")]
    BufferAccess(String),
    /// Metadata that cannot be used.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// PTX and metadata do not belong together, or the PTX cannot be read.
    #[error("PTX of kernel `{kernel}`: {message}")]
    Ptx {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        message: String,
    },
    /// The emulator found a fault of the kernel.
    #[cfg(feature = "emulator")]
    #[error("emulator: {}{}", .0, remedy(.0))]
    Fault(Box<rtc_emulator::Fault>),
    /// The sanitizer found something; in the order in which it happened.
    #[cfg(feature = "emulator")]
    #[error("sanitizer: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Sanitizer(Box<[rtc_emulator::sanitize::Report]>),
    /// The interpreter found a fault of the kernel.
    #[error("interpreter: {message}{}", source_of(.location))]
    Interpreter {
        /// What it found.
        message: String,
        /// Where in the source, as `file:line:column`; empty if it is not known.
        location: String,
    },
    /// A launch on the CPU was ended by an [`Interrupt`](crate::Interrupt).
    #[cfg(feature = "emulator")]
    #[error("the launch was interrupted")]
    Interrupted,
    /// An environment variable that cannot be used.
    #[error("{name}: {message}")]
    Environment {
        /// The variable.
        name: &'static str,
        /// What is wrong with its value.
        message: String,
    },
}

impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// The error of a call of the driver with the kernel that was to be launched.
    #[cold]
    #[cfg(feature = "cuda")]
    pub(crate) fn launching(self, kernel: &str) -> Error {
        match self {
            Error::Cuda { call, code, name, text, detail } => {
                Error::Cuda { call, code, name, text, detail: format!("; kernel `{kernel}`{detail}") }
            }
            other => other,
        }
    }

    /// Whether the process has lost the GPU: a kernel made an illegal access, or the GPU failed. Every later call on the device
    /// fails in the same way; only a new process can use it again.
    ///
    /// ```
    /// let error = rtc_runtime::Error::NoDevice("no CUDA driver was found".into());
    /// assert!(!error.is_sticky());
    /// ```
    pub fn is_sticky(&self) -> bool {
        matches!(self, Error::Cuda { code, .. } if is_sticky(*code))
    }
}

/// Status codes of the driver after which a context is of no use: failed memory, a failed assertion, a destroyed context,
/// illegal addresses and instructions, time-outs, a launch that failed otherwise.
pub(crate) fn is_sticky(code: u32) -> bool {
    matches!(code, 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719)
}

/// The result of a run-time call.
pub type Result<T> = std::result::Result<T, Error>;

/// What to do about [`rtc_emulator::FaultKind::BlockBudgetExceeded`] and its like.
#[cfg(feature = "emulator")]
pub(crate) const RAISE: &str =
    "; if the kernel does end, allow more by the environment variable RTC_STEPS=N, where 0 is no limit";

/// What helps against a fault, if it is not the kernel that must be corrected.
#[cfg(feature = "emulator")]
fn remedy(fault: &rtc_emulator::Fault) -> &'static str {
    match fault.kind {
        rtc_emulator::FaultKind::BlockBudgetExceeded { .. } => RAISE,
        _ => "",
    }
}

/// The place of a fault in the source, as the emulator gives it.
fn source_of(location: &str) -> String {
    if location.is_empty() { String::new() } else { format!(", source {location}") }
}

fn shape_elements(shape: &[usize]) -> u128 {
    shape.iter().fold(1, |product: u128, size| product.saturating_mul(*size as u128))
}

fn cast(address: u64, bytes: u64, ty: DType) -> String {
    let size = ty.bytes();
    if bytes.is_multiple_of(size.into()) {
        return format!("the address {address:#x} is not a multiple of {size}, as {ty} elements need");
    }
    format!("{bytes} bytes are not a whole number of {ty} elements ({size} bytes each)")
}
