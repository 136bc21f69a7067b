//! Members of an EtcdCluster fail, one or several, or what a cluster needs does, and the operator repairs what can be
//! repaired. No fault here affects more than one test, so they run side by side; those that hit whole nodes belong
//! in `power`.

mod corruption;
mod hang;
mod pause;
mod quorum;
mod replace;
mod restart;
mod space;
mod store;
