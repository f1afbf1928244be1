//! The effects of operations in addition to their results, as data: each row of the table lists its effects.

use crate::{Kernel, Op, Value};

/// The object of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Global memory.
    Global,
    /// A buffer in shared memory.
    Shared,
    /// A barrier in shared memory.
    Barrier,
    /// Everything else: messages, traps, clocks, other kernels, and the order of all these.
    Outside,
}

/// The kind of effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EffectKind {
    /// It is read.
    Read,
    /// It is written.
    Write,
    /// It is written, all threads of the block meet, and it is read: the use of a scratch buffer.
    Exchange,
}

/// When it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// It is done when the operation is.
    Now,
    /// It starts with the operation; a barrier or another operation waits for its completion.
    Async,
}

/// Through what an operation gets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum On {
    /// The operand of this name, which may be an optional one.
    Operand(&'static str),
    /// The memory behind the first result.
    Result,
    /// Nothing that can be named: anything in that space.
    Anything,
}

/// One effect of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Effect {
    /// The object.
    pub space: Space,
    /// The kind.
    pub access: EffectKind,
    /// Through what.
    pub on: On,
    /// When.
    pub when: When,
}

impl Effect {
    /// Reads through an operand.
    pub const fn read(space: Space, operand: &'static str) -> Effect {
        Effect { space, access: EffectKind::Read, on: On::Operand(operand), when: When::Now }
    }

    /// Writes through an operand.
    pub const fn write(space: Space, operand: &'static str) -> Effect {
        Effect { space, access: EffectKind::Write, on: On::Operand(operand), when: When::Now }
    }

    /// Uses the operand `scratch` to pass values from thread to thread.
    pub const SCRATCH: Effect =
        Effect { space: Space::Shared, access: EffectKind::Exchange, on: On::Operand("scratch"), when: When::Now };

    /// Reads or writes something that cannot be named.
    pub const fn any(space: Space, access: EffectKind) -> Effect {
        Effect { space, access, on: On::Anything, when: When::Now }
    }

    /// Initializes the memory behind the result.
    pub const fn init(space: Space) -> Effect {
        Effect { space, access: EffectKind::Write, on: On::Result, when: When::Now }
    }

    /// The same effect, begun by the operation and done later.
    pub const fn later(self) -> Effect {
        Effect { when: When::Async, ..self }
    }

    /// Whether something changes that outlives the operation and its results.
    pub fn lasts(&self) -> bool {
        match self.access {
            EffectKind::Read => self.space == Space::Outside,
            EffectKind::Write => self.on != On::Result,
            // The buffer belongs to the operation; its content is dead afterwards.
            EffectKind::Exchange => false,
        }
    }
}

impl Kernel {
    /// The effects of an operation, without those nested in it, each with the value through which it gets there. Those
    /// of optional operands that are absent are left out, and those on buffers where an operand is a tile.
    pub fn effects(&self, op: Op) -> impl Iterator<Item = (&'static Effect, Option<Value>)> + '_ {
        let spec = self.kind(op).spec();
        spec.effects.iter().filter_map(move |effect| match effect.on {
            On::Operand(name) => match spec.operands.iter().position(|operand| *operand == name) {
                Some(index) => self.through(effect, self.operand(op, index)),
                None => {
                    let index = spec.optional.iter().position(|operand| *operand == name)?;
                    self.through(effect, self.optional(op, index)?)
                }
            },
            On::Result => Some((effect, self.op(op).results.first().copied())),
            On::Anything => Some((effect, None)),
        })
    }

    /// An effect on shared memory through a value, unless the value is not in shared memory: some operands may be tiles
    /// instead.
    fn through(&self, effect: &'static Effect, value: Value) -> Option<(&'static Effect, Option<Value>)> {
        let concerns = effect.space != Space::Shared || self.value_type(value).is_place();
        concerns.then_some((effect, Some(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SPECS, Traits};

    #[test]
    fn effects_name_operands_and_pure_operations_have_none_that_last() {
        for spec in SPECS {
            for effect in spec.effects {
                if let On::Operand(name) = effect.on {
                    let known = spec.operands.contains(&name) || spec.optional.contains(&name);
                    assert!(known, "`{}` has no operand `{name}`", spec.mnemonic);
                }
                let lasts = effect.lasts() || effect.access == EffectKind::Read;
                assert!(!(spec.traits.has(Traits::PURE) && lasts), "`{}` is pure: {effect:?}", spec.mnemonic);
            }
            let scratch = spec.optional.contains(&"scratch");
            assert_eq!(scratch, spec.effects.contains(&Effect::SCRATCH), "`{}`", spec.mnemonic);
        }
    }
}
