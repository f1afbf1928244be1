//! Calls of device functions, `vprintf` and `__assertfail`.

use super::access::from_bytes;
use super::print::{Piece, format, pieces};
use super::shared::Shared;
use super::warp::{Frame, Group, Next, Wait, Warp};
use super::{Launch, State};
use crate::code::{Call, Callee, Kind, Window};
use crate::fault::FaultKind;

/// Deepest nesting of calls.
const MAX_DEPTH: usize = 512;
/// Longest text that is read for a message.
const MAX_TEXT: usize = 4096;

impl Warp {
    pub(super) fn call(
        &mut self,
        launch: &Launch<'_>,
        state: &mut State<'_>,
        shared: &mut Shared,
        group: &mut Group,
        active: u32,
        call: &Call,
    ) -> Result<Next, (FaultKind, u32)> {
        let frame = group.frame();
        match &call.callee {
            Callee::Function(index) => {
                let function = &launch.code.functions[*index];
                if group.frames.len() >= MAX_DEPTH {
                    let text = format!("calls nested deeper than {MAX_DEPTH}");
                    return Err((FaultKind::Unsupported(text), active.trailing_zeros()));
                }
                let caller = group.frames.len() - 1;
                let caller_function = self.registers_end(launch, group, caller);
                let local = frame.top;
                let callee =
                    Frame { registers: caller_function, local, top: local + function.frame_bytes, call: group.pc };
                let end = (callee.registers + function.registers) as usize;
                if self.registers.len() < end {
                    self.registers.resize(end, [0; 32]);
                }
                for lane in (0..32).filter(|lane| active >> lane & 1 == 1) {
                    let memory = &mut self.local[lane];
                    if memory.len() < callee.top as usize {
                        memory.resize(callee.top as usize, 0);
                    }
                    for (mine, theirs, bytes) in &call.arguments {
                        let start = (frame.local + mine) as usize;
                        memory.copy_within(start..start + *bytes as usize, (local + theirs) as usize);
                    }
                }
                let mut frames = group.frames.clone();
                frames.push(callee);
                if active == group.mask {
                    group.frames = frames;
                    group.pc = function.start;
                } else {
                    group.mask &= !active;
                    group.pc += 1;
                    self.push_group(Group { pc: function.start, mask: active, frames, wait: Wait::No });
                }
                Ok(Next::Choose)
            }
            Callee::Printf => {
                for lane in (0..32u32).filter(|lane| active >> lane & 1 == 1) {
                    self.print(launch, state, shared, frame, call, lane)?;
                }
                Ok(Next::Step)
            }
            Callee::AssertFail => {
                let lane = active.trailing_zeros();
                let mut text = |warp: &mut Warp, n| {
                    let address = warp.argument(frame, call, n, lane);
                    warp.text(launch, state, shared, frame, address, lane)
                };
                let (message, file, function) = (text(self, 0)?, text(self, 1)?, text(self, 3)?);
                let line = self.argument(frame, call, 2, lane) as u32;
                Err((FaultKind::Assertion { message, file, line, function }, lane))
            }
            Callee::Missing(name) => {
                let text = format!("call of `{name}`, which the PTX does not define");
                Err((FaultKind::Unsupported(text), active.trailing_zeros()))
            }
        }
    }

    /// First register behind those of an activation.
    fn registers_end(&self, launch: &Launch<'_>, group: &Group, depth: usize) -> u32 {
        let frame = group.frames[depth];
        let function = if depth == 0 {
            launch.kernel
        } else {
            match &launch.code.ops[frame.call as usize].kind {
                Kind::Call(call) => match call.callee {
                    Callee::Function(index) => index,
                    _ => launch.kernel,
                },
                _ => launch.kernel,
            }
        };
        frame.registers + launch.code.functions[function].registers
    }

    /// Returns the active lanes to their caller.
    pub(super) fn return_from(&mut self, launch: &Launch<'_>, group: &mut Group, active: u32) -> Next {
        let mut frames = group.frames.clone();
        let Some(callee) = frames.pop() else { return Next::Choose };
        let Some(caller) = frames.last().copied() else { return Next::Choose };
        if let Kind::Call(call) = &launch.code.ops[callee.call as usize].kind {
            for lane in (0..32).filter(|lane| active >> lane & 1 == 1) {
                for (mine, theirs, bytes) in &call.results {
                    let start = (callee.local + theirs) as usize;
                    self.local[lane].copy_within(start..start + *bytes as usize, (caller.local + mine) as usize);
                }
            }
        }
        group.mask &= !active;
        group.pc += 1;
        self.push_group(Group { pc: callee.call + 1, mask: active, frames, wait: Wait::No });
        Next::Choose
    }

    /// Argument `n` of a call of a built-in function.
    fn argument(&self, frame: Frame, call: &Call, n: usize, lane: u32) -> u64 {
        let (at, _, bytes) = call.arguments[n];
        let start = (frame.local + at) as usize;
        from_bytes(&self.local[lane as usize][start..start + bytes as usize])
    }

    /// The text that ends with a zero byte at an address.
    fn text(
        &mut self,
        launch: &Launch<'_>,
        state: &mut State<'_>,
        shared: &mut Shared,
        frame: Frame,
        address: u64,
        lane: u32,
    ) -> Result<String, (FaultKind, u32)> {
        let mut bytes = Vec::new();
        while bytes.len() < MAX_TEXT {
            let at = address + bytes.len() as u64;
            let byte = self.read(launch, state, shared, frame, (Window::Generic, at), 1, lane)?[0];
            if byte == 0 {
                break;
            }
            bytes.push(byte);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn print(
        &mut self,
        launch: &Launch<'_>,
        state: &mut State<'_>,
        shared: &mut Shared,
        frame: Frame,
        call: &Call,
        lane: u32,
    ) -> Result<(), (FaultKind, u32)> {
        let format_address = self.argument(frame, call, 0, lane);
        let mut at = self.argument(frame, call, 1, lane);
        let text = self.text(launch, state, shared, frame, format_address, lane)?;
        let mut out = String::new();
        for piece in pieces(&text) {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Value(value) => {
                    let bytes = value.bytes();
                    at = at.next_multiple_of(u64::from(bytes));
                    let raw =
                        from_bytes(self.read(launch, state, shared, frame, (Window::Generic, at), bytes, lane)?);
                    at += u64::from(bytes);
                    let string = if value.conversion == 's' {
                        self.text(launch, state, shared, frame, raw, lane)?
                    } else {
                        String::new()
                    };
                    out.push_str(&format(&value, raw, &string));
                }
            }
        }
        state.printed.push_str(&out);
        Ok(())
    }
}
