//! Publishes what a plan says is worth an event.

use etcd_operator_core::notice::Notice;
use kube::{Resource, ResourceExt};

use super::context::Context;

pub async fn publish<K: Resource<DynamicType = ()>>(notices: &[Notice], object: &K, context: &Context) {
    for Notice { is_bad, reason, about, note } in notices {
        if *is_bad {
            context.events.failed(object, reason, note.clone()).await;
        } else {
            let about = about.clone().unwrap_or_else(|| object.name_any());
            context.events.done(object, reason, &about, note.clone()).await;
        }
    }
}
