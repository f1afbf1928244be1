//! Vectors of a few elements, and casts between them and words.
//!
//! Lowering packs the elements of an operation's result and unpacks them again for the next one. What undoes itself is not
//! built: elements of a vector packed again are the vector, those of a packed vector are what was packed, and a cast back is
//! the value. Without that, a third of a matrix multiplication's operations were such pairs, which all passes of MLIR and the
//! first of LLVM went through.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use melior::ir::{BlockLike, ValueLike};

use super::{Cursor, Emitter, Type, Value, type_of};

/// A value or block, by which it is looked up.
type Key = *const std::ffi::c_void;

/// What is found by values, types and blocks.
type Found<K, V> = RefCell<HashMap<K, V>>;

/// The elements of a vector.
type Elements<'c> = Rc<[Value<'c>]>;

/// What packs, unpacks and casts have been built.
#[derive(Default)]
pub(super) struct Vectors<'c> {
    /// The elements that a vector was packed from.
    packed: Found<Key, Elements<'c>>,
    /// The vector that a value is an element of, and its number.
    origins: Found<Key, (Value<'c>, usize)>,
    /// What a value was cast from.
    sources: Found<Key, Value<'c>>,
    /// The elements of a vector that were taken in a block, for later operations of that block.
    unpacked: Found<(Key, Key), Elements<'c>>,
    /// A value cast to a type in a block, for the same.
    casts: Found<(Key, Type<'c>, Key), Value<'c>>,
    poisons: Found<Type<'c>, Value<'c>>,
}

fn key(value: Value<'_>) -> Key {
    value.to_raw().ptr
}

impl<'c> Emitter<'c> {
    /// The same bits as another type of the same width. A value that already has the type is returned as it is.
    pub fn bitcast(&self, value: Value<'c>, to: Type<'c>) -> Value<'c> {
        if type_of(value) == to {
            return value;
        }
        let source = self.vectors.sources.borrow().get(&key(value)).copied();
        if let Some(source) = source.filter(|source| type_of(*source) == to) {
            return source;
        }
        let at = self.block_appended_to().map(|block| (key(value), to, block));
        if let Some(cast) = at.and_then(|at| self.vectors.casts.borrow().get(&at).copied()) {
            return cast;
        }
        let cast = self.value("llvm.bitcast", &[value], to, &[]);
        self.vectors.sources.borrow_mut().insert(key(cast), value);
        if let Some(at) = at {
            self.vectors.casts.borrow_mut().insert(at, cast);
        }
        cast
    }

    /// A vector of the values, which all have one type. One value stays a scalar.
    pub fn pack(&self, values: &[Value<'c>]) -> Value<'c> {
        if let [value] = values {
            return *value;
        }
        let ty = self.vector_type(values.len() as u32, type_of(values[0]));
        if let Some(whole) = self.whole(values, ty) {
            return whole;
        }
        let mut vector = self.poison_vector(ty);
        for (index, value) in values.iter().enumerate() {
            let position = self.i32(index as i32);
            vector = self.value("llvm.insertelement", &[vector, *value, position], ty, &[]);
        }
        self.vectors.packed.borrow_mut().insert(key(vector), values.into());
        vector
    }

    /// The elements of a vector of `count` elements of a type; a scalar if `count` is one.
    pub fn unpack(&self, vector: Value<'c>, count: u32, element: Type<'c>) -> Vec<Value<'c>> {
        if count == 1 {
            return vec![vector];
        }
        if let Some(elements) = self.vectors.packed.borrow().get(&key(vector)) {
            return elements.to_vec();
        }
        let at = self.block_appended_to().map(|block| (key(vector), block));
        if let Some(elements) = at.and_then(|at| self.vectors.unpacked.borrow().get(&at).cloned()) {
            return elements.to_vec();
        }
        let take = |index| self.value("llvm.extractelement", &[vector, self.i32(index as i32)], element, &[]);
        let elements: Vec<Value<'c>> = (0..count).map(take).collect();
        let mut origins = self.vectors.origins.borrow_mut();
        origins.extend(elements.iter().enumerate().map(|(index, element)| (key(*element), (vector, index))));
        if let Some(at) = at {
            self.vectors.unpacked.borrow_mut().insert(at, elements.as_slice().into());
        }
        elements
    }

    /// Whether the values are the elements of one vector, in order.
    pub fn is_vector(&self, values: &[Value<'c>]) -> bool {
        let ty = self.vector_type(values.len() as u32, type_of(values[0]));
        self.whole(values, ty).is_some()
    }

    /// The vector of type `ty` whose elements these are, in order.
    fn whole(&self, values: &[Value<'c>], ty: Type<'c>) -> Option<Value<'c>> {
        let origins = self.vectors.origins.borrow();
        let (vector, _) = *origins.get(&key(values[0]))?;
        let is_element = |(index, value): (usize, &Value<'c>)| origins.get(&key(*value)) == Some(&(vector, index));
        (type_of(vector) == ty && values.iter().enumerate().all(is_element)).then_some(vector)
    }

    /// The block that operations are appended to; none where they go to a prologue. What was appended to it may be used by
    /// all that is appended later.
    fn block_appended_to(&self) -> Option<Key> {
        match self.cursor.get() {
            Cursor::End(block) => Some(block.to_raw().ptr),
            Cursor::After(..) => None,
        }
    }

    /// A vector of no particular elements, at the top of the function.
    fn poison_vector(&self, ty: Type<'c>) -> Value<'c> {
        let known = self.vectors.poisons.borrow().get(&ty).copied();
        known.unwrap_or_else(|| {
            let poison = self.in_entry(|| self.poison(ty));
            self.vectors.poisons.borrow_mut().insert(ty, poison);
            poison
        })
    }
}
