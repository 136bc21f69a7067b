//! Members of an EtcdCluster come to harm, one or several, or what a cluster needs does, and what can be mended is mended.
//! No fault here strikes more than one test, so they run side by side.

mod corruption;
mod hang;
mod pause;
mod quorum;
mod replace;
mod restart;
mod space;
mod store;
