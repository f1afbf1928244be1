//! Structured control flow: `scf.for`, `scf.while`, `scf.if`, each built by
//! closures that append to the region and return what it yields.

use melior::ir::{Block, BlockRef, Region, RegionLike, operation::OperationLike};

use super::{Cursor, Emitter, Type, Value, block_arguments, type_of};

/// The range of a counted loop. The bounds and the step have one integer type; the step is positive.
#[derive(Clone, Copy)]
pub(crate) struct Loop<'c> {
    pub lower: Value<'c>,
    pub upper: Value<'c>,
    pub step: Value<'c>,
    /// Compare the counter without sign.
    pub unsigned: bool,
}

impl<'c> Emitter<'c> {
    /// `for counter in lower..upper step s` carrying `initial`; returns the carried values at the end.
    pub fn for_loop<E>(
        &self,
        range: Loop<'c>,
        initial: &[Value<'c>],
        body: impl FnOnce(Value<'c>, &[Value<'c>]) -> Result<Vec<Value<'c>>, E>,
    ) -> Result<Vec<Value<'c>>, E> {
        let types: Vec<_> = initial.iter().map(|value| type_of(*value)).collect();
        let mut arguments = vec![type_of(range.lower)];
        arguments.extend_from_slice(&types);
        let region = self.region(&arguments, |values| {
            let yielded = body(values[0], &values[1..])?;
            self.effect("scf.yield", &yielded, &[]);
            Ok(())
        })?;
        let mut operands = vec![range.lower, range.upper, range.step];
        operands.extend_from_slice(initial);
        let flags = if range.unsigned { vec![("unsignedCmp", self.unit())] } else { Vec::new() };
        let operation = self.operation_with_regions("scf.for", &operands, &types, &flags, vec![region]);
        Ok(operation.results().map(Value::from).collect())
    }

    /// `while condition(carried) { carried = body(forwarded) }`; `condition` returns the truth value and the
    /// values that go on to the body, or out of the loop.
    pub fn while_loop<E>(
        &self,
        initial: &[Value<'c>],
        condition: impl FnOnce(&[Value<'c>]) -> Result<(Value<'c>, Vec<Value<'c>>), E>,
        body: impl FnOnce(&[Value<'c>]) -> Result<Vec<Value<'c>>, E>,
    ) -> Result<Vec<Value<'c>>, E> {
        let types: Vec<_> = initial.iter().map(|value| type_of(*value)).collect();
        let mut forwarded_types = Vec::new();
        let before = self.region(&types, |values| {
            let (truth, forwarded) = condition(values)?;
            forwarded_types = forwarded.iter().map(|value| type_of(*value)).collect();
            let mut operands = vec![truth];
            operands.extend(forwarded);
            self.effect("scf.condition", &operands, &[]);
            Ok(())
        })?;
        let after = self.region(&forwarded_types, |values| {
            let yielded = body(values)?;
            self.effect("scf.yield", &yielded, &[]);
            Ok(())
        })?;
        let operation = self.operation_with_regions("scf.while", initial, &forwarded_types, &[], vec![before, after]);
        Ok(operation.results().map(Value::from).collect())
    }

    /// `if condition { then } else { otherwise }`, both yielding values of the result types.
    pub fn if_else<E>(
        &self,
        condition: Value<'c>,
        results: &[Type<'c>],
        then: impl FnOnce() -> Result<Vec<Value<'c>>, E>,
        otherwise: impl FnOnce() -> Result<Vec<Value<'c>>, E>,
    ) -> Result<Vec<Value<'c>>, E> {
        let branch = |yielded: Vec<Value<'c>>| {
            self.effect("scf.yield", &yielded, &[]);
            Ok(())
        };
        let then = self.region(&[], |_| branch(then()?))?;
        let otherwise = self.region(&[], |_| branch(otherwise()?))?;
        let operation = self.operation_with_regions("scf.if", &[condition], results, &[], vec![then, otherwise]);
        Ok(operation.results().map(Value::from).collect())
    }

    /// `if condition { then }`.
    pub fn if_then(&self, condition: Value<'c>, then: impl FnOnce()) {
        let then = self.region::<std::convert::Infallible>(&[], |_| {
            then();
            self.effect("scf.yield", &[], &[]);
            Ok(())
        });
        let Ok(then) = then;
        self.operation_with_regions("scf.if", &[condition], &[], &[], vec![then, Region::new()]);
    }

    /// Builds a region of one block; operations go there while `build` runs.
    fn region<E>(
        &self,
        arguments: &[Type<'c>],
        build: impl FnOnce(&[Value<'c>]) -> Result<(), E>,
    ) -> Result<Region<'c>, E> {
        let location = self.location.get();
        let arguments: Vec<_> = arguments.iter().map(|ty| (*ty, location)).collect();
        let region = Region::new();
        let block: BlockRef<'c, 'c> = region.append_block(Block::new(&arguments));
        let outer = self.cursor.replace(Cursor::End(block));
        let built = build(&block_arguments(block));
        self.cursor.set(outer);
        self.location.set(location);
        built.map(|()| region)
    }
}
