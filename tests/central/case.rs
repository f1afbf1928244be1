//! A case: a kernel and what it is launched with, as the comments before `kernel` say. The header of `run/` files
//! (`compiler/ir/tests/filetests/run.rs`), and more:
//!
//! ```text
//! // grid 2 1 1                     programs; 1 1 1 if absent
//! // warps 1 4                      run with each of these numbers of warps; that of the kernel if absent
//! // arg x = f32 special 64         a tensor; `data.rs` lists the contents
//! // arg y = f32 uninit 64          an uninitialized one
//! // arg n = 3                      a scalar
//! // arg d = desc x 64 128           a tensor descriptor: the tensor `x` as rows of 128 elements, of which it has 64
//! // tolerance y = 2 ulp            for this tensor in the emulator; `1e-3` alone is relative to its largest number
//! // expect y = f32 [1, 2]          content afterwards, beside the equality of all stages
//! // only sm_90a                    targets
//! // fault: assertion               all stages end in a fault that says so
//! // emulator fault: not ordered    the emulator's, where it says it in other words; ` | ` stands between several
//! // finding: overflow              the interpreter notes something that says so
//! // not interpreted                the interpreter cannot run it; `expect` judges
//! // spills                         the assembler may spill registers
//! // shape x = 4x12 16x1            its rows of 12 elements lie 16 apart: the sanitizer reports accesses in between
//! // reports global-race            the sanitizer reports this, here with reason
//! ```

use rtc_ir::{Literal, Scalar};

use crate::data;
use crate::planted;

/// How far the emulator's result may be from the interpreter's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Steps between neighbouring floats.
    Ulp(u64),
    /// Relative to the largest magnitude of the tensor.
    Relative(f64),
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// An allocation.
    Tensor {
        /// Its elements.
        scalar: Scalar,
        /// Its content.
        bytes: Vec<u8>,
        /// Whether it is initialized.
        written: bool,
    },
    /// A number.
    Number(Literal),
    /// A tensor descriptor.
    Desc {
        /// The tensor that it describes.
        of: String,
        /// Sizes, outermost first.
        shape: Vec<u64>,
    },
}

/// A kernel's text with its launch.
#[derive(Clone, Debug)]
pub struct Case {
    pub text: String,
    pub grid: [u32; 3],
    pub warps: Vec<u32>,
    pub args: Vec<(String, Argument)>,
    pub tolerances: Vec<(String, Tolerance)>,
    pub expects: Vec<(String, Scalar, Vec<u8>)>,
    pub prints: String,
    pub only: Vec<String>,
    pub fault: Option<String>,
    /// The verifier's words about a kernel that is not valid.
    pub refused: Option<String>,
    /// A mistake that is planted after the passes: no operation with this name is left in the kernel.
    pub removed: Option<String>,
    pub emulator_fault: Option<String>,
    pub findings: Vec<String>,
    pub interpreted: bool,
    pub may_spill: bool,
    /// The expected reports of the sanitizer, for a kernel with intended bugs.
    pub reports: Vec<String>,
    /// Tensors whose rows have gaps: sizes, and strides in elements.
    pub shapes: Vec<(String, Vec<u64>, Vec<i64>)>,
    /// Planted mistakes: names of reports, and their lines.
    pub marks: Option<planted::Marks>,
    /// The tolerances hold between `expects` and all stages, not for the emulator only.
    pub values_within: bool,
    /// Other inputs of the same kernel, for which only the first stage and the PTX are compared.
    pub more: Vec<Case>,
    /// Not all structures, but some, selected by this number.
    pub sample: Option<u64>,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            text: String::new(),
            grid: [1; 3],
            warps: Vec::new(),
            args: Vec::new(),
            tolerances: Vec::new(),
            expects: Vec::new(),
            prints: String::new(),
            only: Vec::new(),
            fault: None,
            removed: None,
            refused: None,
            emulator_fault: None,
            findings: Vec::new(),
            interpreted: true,
            may_spill: false,
            reports: Vec::new(),
            shapes: Vec::new(),
            marks: None,
            values_within: false,
            more: Vec::new(),
            sample: None,
        }
    }
}

impl Case {
    /// Reads the header.
    pub fn parse(text: &str) -> Result<Case, String> {
        let mut case = Case { text: text.to_string(), ..Case::default() };
        for line in text.lines().map_while(|l| l.strip_prefix("// ")) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            case.line(word, rest).map_err(|e| format!("`{line}`: {e}"))?;
        }
        Ok(case)
    }

    /// The tolerance of a tensor.
    pub fn tolerance(&self, name: &str) -> Option<Tolerance> {
        self.tolerances.iter().find(|(n, _)| n == name).map(|(_, t)| *t)
    }

    /// Reads one line of the header.
    pub fn line(&mut self, word: &str, rest: &str) -> Result<(), String> {
        match word {
            "grid" => {
                let sizes: Vec<u32> = rest.split(' ').filter_map(|s| s.parse().ok()).collect();
                self.grid = sizes.try_into().map_err(|_| "three sizes")?;
            }
            "warps" => self.warps = rest.split(' ').filter_map(|s| s.parse().ok()).collect(),
            "arg" => {
                let (name, value) = rest.split_once(" = ").ok_or("name = value")?;
                let arg = match value.split_once(' ') {
                    None => Argument::Number(data::literal(value)?),
                    Some(("desc", rest)) => {
                        let mut words = rest.split(' ');
                        let of = words.next().unwrap_or_default().to_string();
                        let shape = words.map(str::parse).collect::<Result<_, _>>().map_err(|_| "sizes of a tensor")?;
                        Argument::Desc { of, shape }
                    }
                    Some((scalar, content)) => {
                        let scalar: Scalar = scalar.parse().map_err(|()| format!("`{scalar}` is no type"))?;
                        match content.strip_prefix("uninit ") {
                            Some(count) => {
                                let count: usize = count.trim().parse().map_err(|_| "a count")?;
                                let bytes = vec![POISON; count * scalar.bytes() as usize];
                                Argument::Tensor { scalar, bytes, written: false }
                            }
                            None => {
                                let bytes = data::content(scalar, content, name)?;
                                Argument::Tensor { scalar, bytes, written: true }
                            }
                        }
                    }
                };
                self.args.push((name.to_string(), arg));
            }
            "tolerance" => {
                let (name, value) = rest.split_once(" = ").ok_or("name = value")?;
                let tolerance = match value.strip_suffix(" ulp") {
                    Some(n) => Tolerance::Ulp(n.parse().map_err(|_| "a number of ulp")?),
                    None => Tolerance::Relative(value.parse().map_err(|_| "a bound")?),
                };
                self.tolerances.push((name.to_string(), tolerance));
            }
            "expect" => {
                let (name, value) = rest.split_once(" = ").ok_or("name = value")?;
                let (scalar, content) = value.split_once(' ').ok_or("type and values")?;
                let scalar: Scalar = scalar.parse().map_err(|()| format!("`{scalar}` is no type"))?;
                self.expects.push((name.to_string(), scalar, data::content(scalar, content, name)?));
            }
            "print" => self.prints.push_str(&format!("{rest}\n")),
            "only" => self.only = rest.split(' ').map(str::to_string).collect(),
            "removed:" => (self.removed, self.interpreted) = (Some(rest.to_string()), false),
            "refused:" => self.refused = Some(rest.to_string()),
            "fault:" => self.fault = Some(rest.to_string()),
            "emulator" => self.emulator_fault = rest.strip_prefix("fault: ").map(str::to_string),
            "finding:" => self.findings.push(rest.to_string()),
            "not" if rest == "interpreted" => self.interpreted = false,
            "shape" => {
                let (name, shape) = rest.split_once(" = ").ok_or("name = sizes strides")?;
                let (sizes, strides) = shape.split_once(' ').ok_or("sizes strides, such as 4x12 16x1")?;
                let sizes = sizes.split('x').map(str::parse).collect::<Result<_, _>>().map_err(|_| "sizes")?;
                let strides = strides.split('x').map(str::parse).collect::<Result<_, _>>().map_err(|_| "strides")?;
                self.shapes.push((name.to_string(), sizes, strides));
            }
            "spills" => self.may_spill = true,
            "reports" => self.reports.extend(rest.split(' ').map(str::to_string)),
            // Anything else is prose.
            _ => {}
        }
        Ok(())
    }
}

/// The content of uninitialized bytes, as in the interpreter's memory.
pub const POISON: u8 = 0xcb;
