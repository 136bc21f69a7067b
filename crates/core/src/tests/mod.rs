//! What must be true of the decisions. `support` builds clusters to decide about.

mod adopting;
mod birth;
mod growing;
mod keeping;
mod shrinking;
mod status;
mod support;
