//! What the tests and benches of this package share: built policies, and questions made from a seed.

pub mod built;
pub mod measure;
pub use pointwork_tools::questions;
