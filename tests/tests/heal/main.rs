//! Members of an EtcdCluster come to harm, one or several, and what can be mended is mended. No fault here strikes more
//! than one cluster, so these tests run side by side.

mod corruption;
mod hang;
mod pause;
mod quorum;
mod replace;
mod restart;
mod space;
