//! What the fuzz targets assert of any input: reading it does not panic and takes memory in proportion, what is read is
//! within the [`Limits`], and what is understood can be written, is understood again, and says the same.

mod bounds;
mod check;
mod medium;
mod memory;
mod settle;

pub use check::check;
pub use medium::{Entry, Medium, Payload};
