//! Publishes what a plan says is worth an event.

use etcd_operator_core::notice::Notice;
use kube::Resource;

use super::context::Context;

pub async fn publish<K: Resource<DynamicType = ()>>(notices: &[Notice], object: &K, context: &Context) {
    for notice in notices {
        context.events.publish(object, notice).await;
    }
}
