//! What operator and agent say to each other, as plain data: nothing here moves it anywhere.
//!
//! [`task`] is what a pod is to do, [`report`] how that ended. [`manifest`], [`proof`] and [`marker`] lie beside a stored
//! backup, and [`retention`] decides by them which backups may go. The programs are upgraded at different times, so all
//! of this is read as earlier versions wrote it.

pub mod manifest;
pub mod marker;
pub mod proof;
pub mod report;
pub mod retention;
pub mod task;
