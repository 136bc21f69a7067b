//! What runs in the pods of members rather than in the operator's own.

pub mod gate;
