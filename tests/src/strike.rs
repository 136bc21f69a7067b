//! The lab's faults, for tests that do nothing else meanwhile.

use lab::{api, faults};

use crate::finish;

pub fn wipe_volume(namespace: &str, claim: &str) {
    finish(async { faults::wipe_volume(&api::client().await?, namespace, claim).await }).expect("the volume is wiped")
}

/// Fails as long as the bytes are not in the database yet: etcd writes it a moment after it has acknowledged.
pub fn corrupt_volume(namespace: &str, claim: &str, bytes: &str) -> Result<(), String> {
    let corrupt = async { faults::corrupt_volume(&api::client().await?, namespace, claim, bytes.as_bytes()).await };
    finish(corrupt).map_err(|error| format!("{error:#}"))
}

/// Fails if the container does not run. So do the next two.
pub fn kill_container(namespace: &str, pod: &str, container: &str) -> Result<(), String> {
    let kill = async { faults::kill_container(&api::client().await?, namespace, pod, container).await };
    finish(kill).map_err(|error| format!("{error:#}"))
}

pub fn pause_container(namespace: &str, pod: &str, container: &str) -> Result<(), String> {
    let pause = async { faults::pause_container(&api::client().await?, namespace, pod, container).await };
    finish(pause).map_err(|error| format!("{error:#}"))
}

pub fn resume_container(namespace: &str, pod: &str, container: &str) -> Result<(), String> {
    let resume = async { faults::resume_container(&api::client().await?, namespace, pod, container).await };
    finish(resume).map_err(|error| format!("{error:#}"))
}
