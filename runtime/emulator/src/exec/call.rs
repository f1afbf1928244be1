//! Calls of device functions, `vprintf` and `__assertfail`.

use super::access::from_bytes;
use super::print::{Piece, format, pieces};
use super::step::Step;
use super::warp::{Frame, Group, Next, Wait};
use crate::code::{Call, Callee, Kind, Window};
use crate::fault::FaultKind;

/// Deepest nesting of calls.
const MAX_DEPTH: usize = 512;
/// Longest text that is read for a message.
const MAX_TEXT: usize = 4096;

impl Step<'_, '_> {
    pub(super) fn call(&mut self, call: &Call) -> Result<Next, (FaultKind, u32)> {
        match &call.callee {
            Callee::Function(index) => {
                let function = &self.launch.code.functions[*index];
                if self.group.frames.len() >= MAX_DEPTH {
                    let text = format!("calls nested deeper than {MAX_DEPTH}");
                    return Err((FaultKind::Unsupported(text), self.active.trailing_zeros()));
                }
                let caller = self.group.frames.len() - 1;
                let caller_function = self.registers_end(caller);
                let local = self.frame.top;
                let callee =
                    Frame { registers: caller_function, local, top: local + function.frame_bytes, call: self.group.pc };
                let end = (callee.registers + function.registers) as usize;
                if self.warp.registers.len() < end {
                    self.warp.registers.resize(end, [0; 32]);
                }
                for lane in (0..32).filter(|lane| self.active >> lane & 1 == 1) {
                    let memory = &mut self.warp.local[lane];
                    if memory.len() < callee.top as usize {
                        memory.resize(callee.top as usize, 0);
                    }
                    for (mine, theirs, bytes) in &call.arguments {
                        let start = (self.frame.local + mine) as usize;
                        memory.copy_within(start..start + *bytes as usize, (local + theirs) as usize);
                    }
                }
                let mut frames = self.group.frames.clone();
                frames.push(callee);
                if self.active == self.group.mask {
                    self.group.frames = frames;
                    self.group.pc = function.start;
                } else {
                    self.group.mask &= !self.active;
                    self.group.pc += 1;
                    self.warp.push_group(Group { pc: function.start, mask: self.active, frames, wait: Wait::No });
                }
                Ok(Next::Choose)
            }
            Callee::Printf => {
                for lane in self.lanes() {
                    self.print(call, lane)?;
                }
                Ok(Next::Step)
            }
            Callee::AssertFail => {
                let lane = self.active.trailing_zeros();
                let mut text = |n| self.text(self.argument(call, n, lane), lane);
                let (message, file, function) = (text(0)?, text(1)?, text(3)?);
                let line = self.argument(call, 2, lane) as u32;
                Err((FaultKind::Assertion { message, file, line, function }, lane))
            }
            Callee::Missing(name) => {
                let text = format!("call of `{name}`, which the PTX does not define");
                Err((FaultKind::Unsupported(text), self.active.trailing_zeros()))
            }
        }
    }

    /// First register behind those of an activation.
    fn registers_end(&self, depth: usize) -> u32 {
        let frame = self.group.frames[depth];
        let function = if depth == 0 {
            self.launch.kernel
        } else {
            match &self.launch.code.ops[frame.call as usize].kind {
                Kind::Call(call) => match call.callee {
                    Callee::Function(index) => index,
                    _ => self.launch.kernel,
                },
                _ => self.launch.kernel,
            }
        };
        frame.registers + self.launch.code.functions[function].registers
    }

    /// Returns the active lanes to their caller.
    pub(super) fn return_from(&mut self) -> Next {
        let mut frames = self.group.frames.clone();
        let Some(callee) = frames.pop() else { return Next::Choose };
        let Some(caller) = frames.last().copied() else { return Next::Choose };
        if let Kind::Call(call) = &self.launch.code.ops[callee.call as usize].kind {
            for lane in (0..32).filter(|lane| self.active >> lane & 1 == 1) {
                for (mine, theirs, bytes) in &call.results {
                    let start = (callee.local + theirs) as usize;
                    self.warp.local[lane].copy_within(start..start + *bytes as usize, (caller.local + mine) as usize);
                }
            }
        }
        self.group.mask &= !self.active;
        self.group.pc += 1;
        self.warp.push_group(Group { pc: callee.call + 1, mask: self.active, frames, wait: Wait::No });
        Next::Choose
    }

    /// Argument `n` of a call of a built-in function.
    fn argument(&self, call: &Call, n: usize, lane: u32) -> u64 {
        let (at, _, bytes) = call.arguments[n];
        let start = (self.frame.local + at) as usize;
        from_bytes(&self.warp.local[lane as usize][start..start + bytes as usize])
    }

    /// The text that ends with a zero byte at an address.
    fn text(&mut self, address: u64, lane: u32) -> Result<String, (FaultKind, u32)> {
        let mut bytes = Vec::new();
        while bytes.len() < MAX_TEXT {
            let at = address + bytes.len() as u64;
            let byte = self.read((Window::Generic, at), 1, lane)?[0];
            if byte == 0 {
                break;
            }
            bytes.push(byte);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn print(&mut self, call: &Call, lane: u32) -> Result<(), (FaultKind, u32)> {
        let format_address = self.argument(call, 0, lane);
        let mut at = self.argument(call, 1, lane);
        let text = self.text(format_address, lane)?;
        let mut out = String::new();
        for piece in pieces(&text) {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Value(value) => {
                    let bytes = value.bytes();
                    at = at.next_multiple_of(u64::from(bytes));
                    let raw = from_bytes(self.read((Window::Generic, at), bytes, lane)?);
                    at += u64::from(bytes);
                    let string = if value.conversion == 's' { self.text(raw, lane)? } else { String::new() };
                    out.push_str(&format(&value, raw, &string));
                }
            }
        }
        self.state.printed.push_str(&out);
        Ok(())
    }
}
