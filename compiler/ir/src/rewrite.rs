//! Editing a kernel. All changes of operands go through here, so that the users of a value are known without a search.
//!
//! ```text
//! kernel.replace_uses(old, new)      every use of `old` becomes one of `new`
//! kernel.erase(op)                   `op` and what is nested in it are gone
//! kernel.move_op(op, at)             `op` stands elsewhere
//! kernel.clone_ops(block, map, at)   a copy of a block's operations, with other operands
//! ```

use std::collections::HashMap;

use cranelift_entity::EntitySet;
use smallvec::SmallVec;

use crate::{Block, Kernel, Literal, Loc, Op, OpData, OpKind, Position, Traits, Type, Value, ValueData, ValueDef};

/// The most users of a value that are searched for one.
const MOST_SEARCHED: usize = 32;

/// The map from original to cloned values.
pub type ValueMap = HashMap<Value, Value>;

impl Kernel {
    /// The kind of an operation, to change its attributes.
    pub fn kind_mut(&mut self, op: Op) -> &mut OpKind {
        &mut self.ops[op].kind
    }

    /// Sets the location of an operation.
    pub fn set_loc(&mut self, op: Op, loc: Loc) {
        self.ops[op].loc = loc;
    }

    /// The operations that use a value, each once, in the order in which the uses were added.
    pub fn users(&self, value: Value) -> Vec<Op> {
        let entries = &self.users[value];
        let mut users: Vec<Op> = Vec::with_capacity(entries.len());
        let mut seen = EntitySet::new();
        for op in entries {
            // Entries of former users stay behind.
            let data = &self.ops[*op];
            let is_user = data.parent.is_some() && data.operands.contains(&value);
            // Most values have few users; a search among those takes less time than a set.
            let is_new = match entries.len() {
                0..=MOST_SEARCHED => !users.contains(op),
                _ => seen.insert(*op),
            };
            if is_user && is_new {
                users.push(*op);
            }
        }
        users
    }

    /// Whether an operation only computes results from its operands, in each thread alone: it may be moved, repeated and
    /// left out.
    pub fn only_computes(&self, op: Op) -> bool {
        let data = self.op(op);
        let traits = data.kind.spec().traits;
        traits.has(Traits::PURE) && !traits.has(Traits::CONVERGENT) && data.blocks.is_empty()
    }

    /// Whether an attached operation uses the value.
    pub fn is_used(&self, value: Value) -> bool {
        self.users[value].iter().any(|op| self.ops[*op].parent.is_some() && self.ops[*op].operands.contains(&value))
    }

    /// Sets operand `index`, counted over all operands.
    pub fn set_operand(&mut self, op: Op, index: usize, value: Value) {
        let operand = &mut self.ops[op].operands[index];
        if *operand != value {
            *operand = value;
            self.users[value].push(op);
        }
    }

    /// Adds an operand after all others.
    pub fn push_operand(&mut self, op: Op, value: Value) {
        self.ops[op].operands.push(value);
        self.users[value].push(op);
    }

    /// Takes operand `index` out, counted over all operands; only variadic ones may go.
    pub fn remove_operand(&mut self, op: Op, index: usize) {
        self.ops[op].operands.remove(index);
    }

    /// Replaces each operand by what `map` makes of it.
    pub fn map_operands(&mut self, op: Op, map: impl Fn(Value) -> Value) {
        for index in 0..self.ops[op].operands.len() {
            let new = map(self.ops[op].operands[index]);
            self.set_operand(op, index, new);
        }
    }

    /// Sets or replaces optional operand `index`.
    pub fn set_optional(&mut self, op: Op, index: usize, value: Value) {
        let data = &mut self.ops[op];
        let before = (data.optional & ((1 << index) - 1)).count_ones() as usize;
        let at = data.kind.spec().operands.len() + before;
        if data.optional & (1 << index) == 0 {
            data.optional |= 1 << index;
            data.operands.insert(at, value);
        } else {
            data.operands[at] = value;
        }
        self.users[value].push(op);
    }

    /// Removes optional operand `index`, if it is there.
    pub fn clear_optional(&mut self, op: Op, index: usize) {
        let data = &mut self.ops[op];
        if data.optional & (1 << index) != 0 {
            let before = (data.optional & ((1 << index) - 1)).count_ones() as usize;
            data.operands.remove(data.kind.spec().operands.len() + before);
            data.optional &= !(1 << index);
        }
    }

    /// Uses `new` wherever `old` was used.
    pub fn replace_uses(&mut self, old: Value, new: Value) {
        self.replace_uses_except(old, new, None);
    }

    /// Erases an operation and uses `value` in place of its one result, whose name it takes.
    pub fn replace_op(&mut self, op: Op, value: Value) {
        self.replace_value(self.result(op, 0), value);
        self.erase(op);
    }

    /// Uses `new` wherever `old` was used, and gives it the name.
    pub fn replace_value(&mut self, old: Value, new: Value) {
        if let Some(name) = self.value(old).name.clone() {
            self.name_value(new, &name);
        }
        self.replace_uses(old, new);
    }

    /// Uses `new` wherever `old` was used, but for the operands of one operation.
    pub fn replace_uses_except(&mut self, old: Value, new: Value, except: Option<Op>) {
        if old == new {
            return;
        }
        for op in std::mem::take(&mut self.users[old]) {
            if Some(op) == except {
                self.users[old].push(op);
                continue;
            }
            let mut changed = false;
            for operand in self.ops[op].operands.iter_mut().filter(|operand| **operand == old) {
                *operand = new;
                changed = true;
            }
            if changed {
                self.users[new].push(op);
            }
        }
    }

    /// Turns an operation with one result into a constant: `value` in every place of its type.
    pub fn make_constant(&mut self, op: Op, value: Literal) {
        let data = &mut self.ops[op];
        data.kind = OpKind::Constant { value };
        data.operands.clear();
        data.optional = 0;
        // A name describes the origin of a value, and this one is only a number now.
        self.values[data.results[0]].name = None;
    }

    /// Erases an operation and its nested operations. Its results must have no users.
    pub fn erase(&mut self, op: Op) {
        self.detach_op(op);
        for block in self.ops[op].blocks.clone() {
            for nested in self.ops(block).collect::<Vec<_>>() {
                self.erase(nested);
            }
        }
    }

    /// Moves an operation.
    pub fn move_op(&mut self, op: Op, at: Position) {
        self.detach_op(op);
        self.insert_op(op, at);
    }

    /// Creates a detached operation; see [`crate::Builder`] for the usual interface.
    pub(crate) fn make_op(&mut self, data: OpData, results: &[Type]) -> Op {
        let blocks = data.blocks.clone();
        let operands = data.operands.clone();
        let divides = matches!(data.kind, OpKind::WarpSpecialize { .. });
        let op = self.ops.push(data);
        if divides {
            self.specializations.push(op);
        }
        for value in operands {
            self.users[value].push(op);
        }
        for ty in results {
            self.add_result(op, *ty);
        }
        for block in blocks {
            self.blocks[block].parent = Some(op);
        }
        op
    }

    /// A detached clone of an operation without nested blocks, with other operands and result types.
    pub fn clone_op(&mut self, op: Op, operands: &[Value], types: &[Type]) -> Op {
        let mut data = self.ops[op].clone();
        data.operands = operands.iter().copied().collect();
        data.results.clear();
        data.parent = None;
        self.make_op(data, types)
    }

    /// Inserts clones of a block's operations, nested ones included. Operands are looked up in `map`, and stay as they
    /// are if it has none; it receives the clones of all results and arguments.
    pub fn clone_ops(&mut self, block: Block, map: &mut ValueMap, mut at: Position) {
        for op in self.ops(block).collect::<Vec<_>>() {
            let copy = self.clone_whole(op, map);
            self.insert_op(copy, at);
            at = Position::After(copy);
        }
    }

    /// A detached clone of an operation and its nested operations, with operands looked up in `map`.
    pub fn clone_whole(&mut self, op: Op, map: &mut ValueMap) -> Op {
        let mut blocks: SmallVec<[Block; 2]> = SmallVec::new();
        for block in self.ops[op].blocks.clone() {
            let copy = self.new_block();
            for arg in self.blocks[block].args.clone() {
                let ValueData { ty, name, .. } = self.values[arg].clone();
                let new = self.add_arg(copy, ty, name);
                map.insert(arg, new);
            }
            self.clone_ops(block, map, Position::End(copy));
            blocks.push(copy);
        }
        let mut data = self.ops[op].clone();
        for operand in &mut data.operands {
            *operand = map.get(operand).copied().unwrap_or(*operand);
        }
        data.blocks = blocks;
        data.parent = None;
        let old = std::mem::take(&mut data.results);
        let types: Vec<Type> = old.iter().map(|value| self.value_type(*value)).collect();
        let copy = self.make_op(data, &types);
        for (index, value) in old.iter().enumerate() {
            let new = self.ops[copy].results[index];
            self.values[new].name = self.values[*value].name.clone();
            map.insert(*value, new);
        }
        copy
    }

    /// Adds a result to an operation; see [`Kernel::add_slot`] for those that nested blocks yield.
    pub(crate) fn add_result(&mut self, op: Op, ty: Type) -> Value {
        let index = self.ops[op].results.len() as u32;
        let value = self.values.push(ValueData { ty, def: ValueDef::Result(op, index), name: None });
        self.ops[op].results.push(value);
        value
    }

    /// Removes result `index`, which must have no users.
    pub(crate) fn remove_result(&mut self, op: Op, index: usize) {
        self.ops[op].results.remove(index);
        for (i, value) in self.ops[op].results.iter().enumerate().skip(index) {
            self.values[*value].def = ValueDef::Result(op, i as u32);
        }
    }

    /// Removes argument `index` of a block, which must have no users.
    pub fn remove_arg(&mut self, block: Block, index: usize) {
        self.blocks[block].args.remove(index);
        for (i, value) in self.blocks[block].args.iter().enumerate().skip(index) {
            self.values[*value].def = ValueDef::Arg(block, i as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{parse, print};

    const LOOP: &str = "kernel @k(%n: i32, %x: f32) warps 1 phase tile {
  %zero = constant {value = 0} : i32
  %one = constant {value = 1} : i32
  %r = for_range %zero, %n, %one, (%x) : f32 ^(%i: i32, %a: f32) {
    %s = addf %a, %x : f32
    %t = mulf %s, %s : f32
    yields (%t)
  }
  %d = addf %r, %x : f32
  ret
}
";

    fn find(kernel: &Kernel, mnemonic: &str) -> Op {
        let is = |op: &Op| kernel.kind(*op).spec().mnemonic == mnemonic;
        crate::walk(kernel).into_iter().find(is).expect("it is there")
    }

    #[test]
    fn users_follow_every_change() {
        let mut kernel = parse(LOOP).expect("the form is right");
        let (add, mul) = (find(&kernel, "addf"), find(&kernel, "mulf"));
        let (sum, square, x) = (kernel.result(add, 0), kernel.result(mul, 0), kernel.params[1].value);
        assert_eq!(kernel.users(sum), [mul]);
        assert_eq!(kernel.users(x).len(), 3, "the loop and two sums");
        kernel.replace_uses_except(sum, x, Some(mul));
        assert_eq!(kernel.users(sum), [mul]);
        kernel.replace_uses(sum, x);
        assert!(!kernel.is_used(sum));
        assert_eq!(kernel.users(x).len(), 4);
        kernel.erase(add);
        assert_eq!(kernel.users(x).len(), 3);
        kernel.set_operand(mul, 0, square);
        kernel.set_operand(mul, 0, x);
        assert_eq!(kernel.users(x).len(), 3, "each user is named once");
        let whole = find(&kernel, "for_range");
        kernel.erase(whole);
        assert_eq!(kernel.users(x), [find(&kernel, "addf")], "what was nested is gone, too");
    }

    #[test]
    fn a_copy_of_nested_blocks_uses_its_own_values() {
        let text = "kernel @k(%c: i1, %n: i32, %x: f32) warps 1 phase tile {
  if_else %c ^() {
    %r = for_range %n, %n, %n, (%x) : f32 ^(%i: i32, %a: f32) {
      %s = addf %a, %x : f32
      yields (%s)
    }
    %d = mulf %r, %x : f32
    yields
  } ^() {
    yields
  }
  %y = addf %x, %x : f32
  ret
}
";
        let mut kernel = parse(text).expect("the form is right");
        let branch = find(&kernel, "if_else");
        let (x, last) = (kernel.params[2].value, find(&kernel, "ret"));
        let y = kernel.result(kernel.previous_op(last).expect("the sum"), 0);
        let mut map = ValueMap::from([(x, y)]);
        kernel.clone_ops(kernel.op(branch).blocks[0], &mut map, Position::Before(last));
        let end = kernel.previous_op(last).expect("the copy of the terminator");
        kernel.erase(end);
        crate::verify(&kernel).expect("the copy is in order");
        insta::assert_snapshot!(print(&kernel), @r#"
        kernel @k(%c: i1 {sig = "u1"}, %n: i32 {sig = "i32"}, %x: f32 {sig = "fp32"}) warps 1 phase tile {
          if_else %c ^() {
            %r = for_range %n, %n, %n, (%x) : f32 ^(%i: i32, %a: f32) {
              %s = addf %a, %x : f32
              yields (%s)
            }
            %d = mulf %r, %x : f32
            yields
          } ^() {
            yields
          }
          %y = addf %x, %x : f32
          %r_1 = for_range %n, %n, %n, (%y) : f32 ^(%i_1: i32, %a_1: f32) {
            %s_1 = addf %a_1, %y : f32
            yields (%s_1)
          }
          %d_1 = mulf %r_1, %y : f32
          ret
        }
        "#);
    }
}
