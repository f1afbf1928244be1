//! A PTX module as data: variables, functions, statements, operands.

use crate::modifier::Modifier;
use crate::table::Opcode;

/// A line number of the text that was read. It says where a thing stood, not what it is: all lines are equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line(pub u32);

impl PartialEq for Line {
    fn eq(&self, _: &Line) -> bool {
        true
    }
}

/// A whole PTX text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// `.version major.minor`.
    pub version: (u32, u32),
    /// `.target sm_90a, debug`.
    pub target: Vec<String>,
    /// `.address_size`.
    pub address_size: u32,
    /// `.file` lines.
    pub files: Vec<File>,
    /// Module-level variables.
    pub globals: Vec<Variable>,
    /// Declarations and definitions in order.
    pub functions: Vec<Function>,
    /// `.section` blocks (debug information), as text.
    pub sections: Vec<Section>,
}

/// `.file index "name"`.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// The number `.loc` refers to.
    pub index: u32,
    /// The name.
    pub name: String,
}

/// A `.section name { … }` block.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Its name with the dot.
    pub name: String,
    /// The contents of the braces.
    pub text: String,
}

/// How a name is seen from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linkage {
    /// Only here.
    #[default]
    Internal,
    /// `.visible`
    Visible,
    /// `.extern`
    Extern,
    /// `.weak`
    Weak,
    /// `.common`
    Common,
}

/// A variable: of the module, of a function, or a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Linkage (module level only).
    pub linkage: Linkage,
    /// `.global`, `.shared`, `.local`, `.const`, `.param` or `Reg` for register parameters.
    pub space: StateSpace,
    /// `.align`, if written.
    pub align: Option<u32>,
    /// Element type.
    pub ty: Modifier,
    /// For pointers of kernels: `.ptr .space .align n`.
    pub pointer: Option<Pointer>,
    /// Name.
    pub name: String,
    /// Array dimensions; `None` for `[]`. Empty for a scalar.
    pub dimensions: Vec<Option<u64>>,
    /// Initialiser, flat.
    pub initial: Vec<Initial>,
    /// The location.
    pub line: Line,
}

/// Where a variable lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is named as PTX spells it")]
pub enum StateSpace {
    Global,
    Shared,
    Local,
    Const,
    Param,
    Reg,
}

/// `.ptr .space .align n` of a kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The state space of its target, if given.
    pub space: Option<StateSpace>,
    /// The alignment of its target, if given.
    pub align: Option<u32>,
}

/// One element of an initialiser.
#[derive(Clone, Debug, PartialEq)]
pub enum Initial {
    /// A number.
    Immediate(Immediate),
    /// `symbol + offset`, or `generic(symbol) + offset`.
    Symbol {
        /// The name.
        name: String,
        /// Bytes added.
        offset: i64,
        /// True for `generic(…)`.
        generic: bool,
    },
}

/// A number in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Immediate {
    /// An integer; negative ones as two's complement, with the sign kept apart.
    Integer {
        /// The 64 bits.
        bits: u64,
        /// True if written with a minus.
        negative: bool,
    },
    /// `0fXXXXXXXX`
    Single(u32),
    /// `0dXXXXXXXXXXXXXXXX`, or a decimal fraction.
    Double(u64),
}

/// A kernel or device function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Linkage.
    pub linkage: Linkage,
    /// True for `.entry`.
    pub entry: bool,
    /// Name.
    pub name: String,
    /// Return values of a `.func`.
    pub returns: Vec<Variable>,
    /// Parameters.
    pub params: Vec<Variable>,
    /// `.reqntid 128` and the like.
    pub directives: Vec<Directive>,
    /// Statements; `None` for a declaration.
    pub body: Option<Vec<Statement>>,
    /// The location.
    pub line: Line,
}

impl Function {
    /// The numbers of a performance directive such as `reqntid`.
    pub fn directive(&self, name: &str) -> Option<&[u32]> {
        self.directives.iter().find(|d| d.name == name).map(|d| d.values.as_slice())
    }
}

/// A performance directive of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// Name without the dot.
    pub name: String,
    /// Its numbers.
    pub values: Vec<u32>,
}

/// One statement of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// An instruction.
    Instruction(Instruction),
    /// `name:`
    Label(String),
    /// `.loc`
    Loc(Loc),
    /// `.reg .b32 %r<10>;`
    Registers {
        /// Type of each.
        ty: Modifier,
        /// Names; with a count for the `<n>` form.
        names: Vec<(String, Option<u32>)>,
    },
    /// A `.local`, `.shared` or `.param` variable.
    Variable(Variable),
    /// `{`
    Open,
    /// `}`
    Close,
    /// `.pragma "…";`
    Pragma(String),
    /// `name: .branchtargets a, b;`
    BranchTargets {
        /// Name of the list.
        name: String,
        /// The labels.
        targets: Vec<String>,
    },
}

/// `.loc file line column`, with the call site if it was inlined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Loc {
    /// Index of the `.file`.
    pub file: u32,
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
    /// `, function_name label+offset, inlined_at file line column`.
    pub inlined: Option<Inlined>,
}

/// The second half of a `.loc` of an inlined instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inlined {
    /// Label in `.debug_str` and bytes after it.
    pub function: (String, u64),
    /// File, line, column of the call.
    pub at: (u32, u32, u32),
}

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// `@p` or `@!p`.
    pub guard: Option<Guard>,
    /// The row of the table.
    pub opcode: Opcode,
    /// Its modifiers in order.
    pub modifiers: Vec<Modifier>,
    /// Its operands in order.
    pub operands: Vec<Operand>,
    /// The location.
    pub line: Line,
}

impl Instruction {
    /// True if the modifier is there.
    pub fn has(&self, modifier: Modifier) -> bool {
        self.modifiers.contains(&modifier)
    }

    /// The first of `choice` that is there.
    pub fn one_of(&self, choice: &[Modifier]) -> Option<Modifier> {
        self.modifiers.iter().copied().find(|m| choice.contains(m))
    }
}

/// `@p` or `@!p`.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// The predicate register.
    pub register: String,
    /// True for `@!p`.
    pub negated: bool,
}

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register (`%r1`, `%tid.x`), variable, label or function.
    Name(String),
    /// `!p`
    Not(String),
    /// A variable's address plus a number: `smem+8`.
    Offset(String, i64),
    /// A number.
    Immediate(Immediate),
    /// `_`
    Sink,
    /// `{a, b}`
    Vector(Vec<Operand>),
    /// `[base + offset]`
    Address(Address),
    /// `[map, {x, y}]`: a tensor map and where in the tensor.
    TensorAddress(Address, Vec<Operand>),
    /// `d|p`
    Pair(Box<Operand>, Box<Operand>),
    /// `(a, b)`
    List(Vec<Operand>),
}

/// `[base + offset]`
#[derive(Clone, Debug, PartialEq)]
pub struct Address {
    /// A register or variable; `None` for an absolute address.
    pub base: Option<String>,
    /// Bytes added.
    pub offset: i64,
}
