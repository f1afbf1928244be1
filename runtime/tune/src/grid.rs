//! How many programs a configuration launches.

use crate::Error;
use rtc_abi::Expr;
use rtc_compiler::{Choice, ConstValue};
use std::fmt;
use std::sync::Arc;

/// How many programs a configuration launches.
#[derive(Clone)]
pub struct GridFn(Kind);

#[derive(Clone)]
enum Kind {
    Sizes([Expr; 3]),
    Function(Arc<Function>),
}

/// Gives the sizes for a configuration.
type Function = dyn Fn(&Choice) -> [u32; 3] + Send + Sync;

impl fmt::Debug for GridFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Sizes(sizes) => f.debug_tuple("GridFnFn").field(sizes).finish(),
            Kind::Function(_) => f.write_str("GridFn(..)"),
        }
    }
}

impl GridFn {
    /// Sizes as expressions over integer arguments, constexprs and options: `cdiv(n, BLOCK)`.
    pub fn new(sizes: [Expr; 3]) -> GridFn {
        GridFn(Kind::Sizes(sizes))
    }

    /// Sizes as a function of the configuration.
    ///
    /// ```
    /// let n = 1000u32;
    /// let grid = rtc_tune::GridFn::by(move |choice| {
    ///     let Some(rtc_compiler::ConstValue::Int(block)) = choice.value("BLOCK") else { return [1, 1, 1] };
    ///     [n.div_ceil(*block as u32), 1, 1]
    /// });
    /// let choice = rtc_compiler::Choice {
    ///     values: vec![("BLOCK".into(), rtc_compiler::ConstValue::Int(256))],
    ///     ..Default::default()
    /// };
    /// assert_eq!(grid.sizes(&choice, &[])?, [4, 1, 1]);
    /// assert!(!grid.is_constant());
    /// # Ok::<(), rtc_tune::Error>(())
    /// ```
    pub fn by(function: impl Fn(&Choice) -> [u32; 3] + Send + Sync + 'static) -> GridFn {
        GridFn(Kind::Function(Arc::new(function)))
    }

    /// Whether it is the same for all configurations.
    pub fn is_constant(&self) -> bool {
        match &self.0 {
            Kind::Sizes(sizes) => sizes.iter().all(|size| size.names().is_empty()),
            Kind::Function(_) => false,
        }
    }

    /// Whether it depends on a constexpr or option, as far as that is known.
    pub(crate) fn depends_on(&self, name: &str) -> bool {
        match &self.0 {
            Kind::Sizes(sizes) => sizes.iter().any(|size| size.names().iter().any(|n| n == name)),
            Kind::Function(_) => true,
        }
    }

    /// The sizes for a configuration.
    ///
    /// # Errors
    ///
    /// [`Error::Grid`] for a name that has no value, and for a size that no grid has.
    pub fn sizes(&self, choice: &Choice, integers: &[(String, i64)]) -> Result<[u32; 3], Error> {
        let sizes = match &self.0 {
            Kind::Function(function) => return Ok(function(choice)),
            Kind::Sizes(sizes) => sizes,
        };
        let named = |name: &str| {
            let of_choice = match choice.value(name) {
                Some(ConstValue::Int(value)) => i64::try_from(*value).ok(),
                Some(ConstValue::Bool(value)) => Some((*value).into()),
                _ => None,
            };
            let option = || choice.option(name).map(i64::from);
            of_choice.or_else(option).or_else(|| integers.iter().find(|(n, _)| n == name).map(|(_, value)| *value))
        };
        let mut out = [1; 3];
        for (size, expr) in out.iter_mut().zip(sizes) {
            let value = expr.eval(named).map_err(|error| Error::Grid(error.to_string()))?;
            *size = u32::try_from(value).map_err(|_| Error::Grid(format!("the size {value} is out of range")))?;
        }
        Ok(out)
    }
}
