//! What operator, agent and gate say to each other, as plain data: nothing here moves it anywhere.
//!
//! [`gate`] is what a member's pod expects to find, and whether etcd may start on what is there; [`ids`] is how members
//! and clusters are named in it. [`task`] is what an agent is to do, [`report`] how that ended. [`manifest`], [`proof`] and [`marker`] lie beside a stored
//! backup, and [`retention`] decides by them which backups may go. The programs are upgraded at different times, so all
//! of this is read as earlier versions wrote it.

pub mod gate;
pub mod ids;
pub mod manifest;
pub mod marker;
pub mod proof;
pub mod report;
pub mod retention;
pub mod task;
