//! Tests of schedules, one file for each decision. `support` builds them; `story` and `loss` let time pass in a small
//! world, with an operator that crashes.

mod cluster;
mod cron;
mod deletion;
mod due;
mod history;
mod loss;
mod requeue;
mod status;
mod story;
mod support;
