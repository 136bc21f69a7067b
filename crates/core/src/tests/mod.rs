//! What must be true of the decisions. `support` builds clusters to decide about; `world` is a small world that plans
//! are carried out in.

mod adopting;
mod birth;
mod growing;
mod keeping;
mod properties;
mod shrinking;
mod status;
mod support;
mod world;
