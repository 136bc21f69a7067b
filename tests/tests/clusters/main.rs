//! EtcdClusters on the lab, from the first `kubectl apply` to the end: judged with `kubectl` and `etcdctl`. Faults
//! belong in `heal` and `power`, changes of the spec other than the number of members in `rollout`.

mod create;
mod delete;
mod operator;
mod repair;
mod scale;
