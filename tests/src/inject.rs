//! Injects the lab's faults, for tests that do nothing else meanwhile.

use std::time::Duration;

use lab::{api, faults};

use crate::{eventually, finish};

/// Longer than it takes etcd to write what it had in memory when a fault was injected, also on a busy machine.
const COMMIT: Duration = Duration::from_secs(1);

pub fn wipe_volume(namespace: &str, claim: &str) {
    finish(async { faults::wipe_volume(&api::client().await?, namespace, claim).await }).expect("the volume is wiped")
}

/// Fails as long as the bytes are not in the database yet: etcd writes it a moment after it has acknowledged.
pub fn corrupt_volume(namespace: &str, claim: &str, bytes: &str) -> Result<(), String> {
    let corrupt = async { faults::corrupt_volume(&api::client().await?, namespace, claim, bytes.as_bytes()).await };
    finish(corrupt).map_err(|error| format!("{error:#}"))
}

/// Changes the bytes in the database until what they did is seen, and is still seen when etcd has written whatever it was
/// about to write: a commit that is open meanwhile has the right bytes in memory, and writes them somewhere else.
/// `is_corrupt` writes something else before it looks: until the next write etcd may answer from a copy of what it wrote last.
pub fn corrupt_volume_for_good(
    (namespace, claim, bytes): (&str, &str, &str),
    is_corrupt: impl Fn() -> Result<(), String>,
) {
    eventually(&format!("{bytes:?} is changed in {claim} and stays so"), Duration::from_secs(60), || {
        // It is nowhere if it was not written yet, or if an earlier attempt has changed it everywhere.
        let injected = corrupt_volume(namespace, claim, bytes);
        let stays_corrupt = is_corrupt().and_then(|()| {
            std::thread::sleep(COMMIT);
            is_corrupt()
        });
        stays_corrupt.map_err(|seen| format!("{seen}; the last attempt: {injected:?}"))
    });
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
