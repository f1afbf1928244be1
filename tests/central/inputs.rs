//! Many inputs for one kernel: compiled once, decoded once.
//!
//! The first inputs go through the interpreter after every pass (`judge.rs`). The others are interpreted from the
//! source and executed by the emulator, the first few in every form of the kernel (a target and a structure), the rest
//! in one form each, alternately, with another order of warps for each.

use rtc_abi::Target;
use rtc_emulator::Program;
use rtc_ir::interp::Storage;
use rtc_ir::{Kernel, print_errors, verify};

use crate::case::Case;
use crate::judge::{compare, emulate, interpret};

/// Gives the next inputs, after those that the case has.
pub type Further<'f> = &'f mut dyn FnMut() -> Option<Result<Case, String>>;

/// Inputs that every form gets.
const EVERYWHERE: usize = 3;

/// A kernel as the source says, and all that was made of it.
#[derive(Default)]
pub struct Inputs {
    sources: Vec<Kernel>,
    forms: Vec<Form>,
}

struct Form {
    /// Index of the kernel that it was made of.
    source: usize,
    kernel: Kernel,
    target: &'static Target,
    program: Program,
}

impl Inputs {
    /// The forms that follow are made of this kernel.
    pub fn source(&mut self, kernel: &Kernel) {
        self.sources.push(kernel.clone());
    }

    /// Keeps a form.
    pub fn form(&mut self, kernel: Kernel, target: &'static Target, program: Program) {
        self.forms.push(Form { source: self.sources.len() - 1, kernel, target, program });
    }

    /// Runs all further inputs of a case, and then those that `further` gives.
    pub fn check(&self, case: &Case, further: Further<'_>) -> Result<(), String> {
        for (number, other) in case.more.iter().enumerate() {
            self.one(number, other)?;
        }
        for number in case.more.len().. {
            let Some(other) = further() else { break };
            self.one(number, &other?)?;
        }
        Ok(())
    }

    fn one(&self, number: usize, other: &Case) -> Result<(), String> {
        let forms = self.forms.len().max(1);
        let chosen = self.forms.iter().enumerate().filter(|(i, _)| number < EVERYWHERE || number % forms == *i);
        let mut reference = None;
        for (_, form) in chosen {
            let source = &self.sources[form.source];
            if reference.as_ref().is_none_or(|(of, _)| *of != form.source) {
                let verified = verify(source).map_err(|e| print_errors(source, &e))?;
                let outcome = interpret(other, verified, Storage::Tiles, None);
                if let Err(fault) = &outcome {
                    return Err(format!("the interpreter, inputs {}: {fault}", number + 1));
                }
                reference = Some((form.source, outcome));
            }
            let Some((_, outcome)) = &reference else { continue };
            let seed = Some(number as u64 + 1);
            let (found, _) = emulate(other, &form.kernel, form.target, &form.program, seed)?;
            let name = form.target.name;
            compare(other, outcome, &found, false)
                .map_err(|e| format!("{name}, the emulator, inputs {}: {e}", number + 1))?;
        }
        Ok(())
    }
}
