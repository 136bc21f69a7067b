//! EtcdClusters on the lab, from the first `kubectl apply` to the end: judged with `kubectl` and `etcdctl`.

mod create;
mod delete;
mod operator;
mod repair;
mod scale;
