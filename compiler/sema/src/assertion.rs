//! Assertions at run time.

use rtc_ir::{OpKind, Text};

use crate::emitter::{Emitter, R};
use crate::values::{Arg, Tensor};

impl<'a> Emitter<'a> {
    /// `assert` and `device_assert`; nothing unless the launch debugs.
    pub(crate) fn assert_on_device(&mut self, condition: &Arg<'a>, message: &str, mask: Option<&Arg<'a>>) -> R<()> {
        if !self.options.debug {
            return Ok(());
        }
        let t = self.tensor(condition, "the condition of an assertion")?;
        let mut holds = self.is_not_zero(t)?;
        let mask = match mask {
            Some(arg) => {
                let t = self.tensor(arg, "the mask of an assertion")?;
                let t = self.is_not_zero(t)?;
                let (a, b) = self.broadcast_pair(
                    (holds, condition.span),
                    (t, arg.span),
                    "as condition and mask of an assertion",
                )?;
                holds = a;
                Some(b)
            }
            None => None,
        };
        self.device_assertion(holds, message, mask)
    }

    /// Stops the kernel where the condition is false and the mask, of the same shape, true.
    pub(crate) fn device_assertion(&mut self, condition: Tensor, message: &str, mask: Option<Tensor>) -> R<()> {
        let span = self.visible(self.span);
        let (file, line) = match self.sources.get(span.file) {
            Some(file) => (file.name.clone(), self.sources.position(span).line),
            None => (String::new(), 0),
        };
        let kind = OpKind::Assertion { message: Text::from(message), file: Text::from(file.as_str()), line };
        self.build(kind, &[condition.value], &[mask.map(|m| m.value)], &[], &[], &[])?;
        Ok(())
    }
}
