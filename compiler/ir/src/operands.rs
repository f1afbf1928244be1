//! Operands by name where the operation may be one of several: accesses to memory, dots, operations with scratch memory.
//! Where it is of one kind, see [`view`](crate::view).

use crate::{Kernel, Op, Value};

impl Kernel {
    /// The operand that the operation's row of the table names so, if it has one and it is present.
    fn named(&self, op: Op, name: &str) -> Option<Value> {
        let spec = self.kind(op).spec();
        let place = |names: &[&str]| names.iter().position(|other| *other == name);
        match place(spec.operands) {
            Some(index) => self.op(op).operands.get(index).copied(),
            None => self.optional(op, place(spec.optional)?),
        }
    }

    /// The two sides of a sum, a quotient, a comparison or another operation that names them so.
    pub fn sides(&self, op: Op) -> Option<[Value; 2]> {
        Some([self.named(op, "lhs")?, self.named(op, "rhs")?])
    }

    /// The value that an operation casts, stores, or otherwise takes as `value`.
    pub fn value_operand(&self, op: Op) -> Option<Value> {
        self.named(op, "value")
    }

    /// The addresses of an access to global memory by pointers, or the block pointer.
    pub fn pointer(&self, op: Op) -> Option<Value> {
        self.named(op, "pointer")
    }

    /// The mask of an access, a histogram or an assertion, if there is one.
    pub fn mask(&self, op: Op) -> Option<Value> {
        self.named(op, "mask")
    }

    /// The tensor descriptor, or tensor map, through which an operation accesses a tensor.
    pub fn desc(&self, op: Op) -> Option<Value> {
        self.named(op, "desc")
    }

    /// The buffer in shared memory that an operation fills, reads, or sees in another way.
    pub fn buffer(&self, op: Op) -> Option<Value> {
        self.named(op, "buffer")
    }

    /// The buffer for the values that an operation moves between warps, once it has one.
    pub fn scratch(&self, op: Op) -> Option<Value> {
        self.named(op, "scratch")
    }

    /// The flag of a `wgmma` dot that decides whether it adds to its accumulator, if there is one.
    pub fn use_acc(&self, op: Op) -> Option<Value> {
        self.named(op, "use_acc")
    }

    /// The operands `lhs`, `rhs` and `acc` of a dot, whatever unit executes it.
    pub fn dot_operands(&self, op: Op) -> Option<[Value; 3]> {
        Some([self.named(op, "lhs")?, self.named(op, "rhs")?, self.named(op, "acc")?])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Kernel, OpKind, text, walk};

    fn kernel() -> Kernel {
        let source = "kernel @k(%p: ptr<f32> {sig = \"*fp32\"}, %m: i1 {sig = \"u1\"}) warps 4 {
            %x = load %p, mask = %m : f32
            %y = load %p : f32
            %t = splat %x : tile<16x16xf32>
            %d = dot %t, %t, %t {precision = ieee} : tile<16x16xf32>
            %s = addf %x, %y : f32
            %n = constant {value = 8} : i32
            %o = constant {value = 1} : i64
            %v = make_desc %p, (%n, %n, %o) : desc<8x8xf32>
            %b = desc_load %v, (%n, %n) : tile<8x8xf32>
            store %p, %s, mask = %m
            ret
        }";
        text::parse(source).unwrap_or_else(|e| panic!("{e}\n{source}"))
    }

    #[test]
    fn operands_of_several_kinds_have_one_name() {
        let kernel = kernel();
        let [pointer, mask] = [0, 1].map(|number| kernel.params[number].value);
        let (mut masks, mut dots) = (Vec::new(), 0);
        for op in walk(&kernel) {
            let is_access = matches!(kernel.kind(op), OpKind::Load { .. } | OpKind::Store { .. });
            assert_eq!(kernel.pointer(op), is_access.then_some(pointer));
            masks.extend(is_access.then(|| kernel.mask(op)));
            if let Some([lhs, rhs, acc]) = kernel.dot_operands(op) {
                assert!(matches!(kernel.kind(op), OpKind::Dot { .. }));
                assert!(lhs == rhs && rhs == acc);
                assert_eq!(kernel.scratch(op), None);
                dots += 1;
            }
            let is_block = matches!(kernel.kind(op), OpKind::DescLoad {});
            assert_eq!(kernel.desc(op).is_some(), is_block);
            let is_sum = matches!(kernel.kind(op), OpKind::AddF {});
            assert_eq!(kernel.sides(op).is_some(), is_sum || kernel.dot_operands(op).is_some());
            let is_store = matches!(kernel.kind(op), OpKind::Store { .. });
            assert_eq!(kernel.value_operand(op).is_some(), is_store);
        }
        assert_eq!(masks, [Some(mask), None, Some(mask)]);
        assert_eq!(dots, 1);
    }
}
