//! Where the time goes when a cluster is bootstrapped: when each of its objects got how far.

use std::collections::BTreeMap;

use e2e::Namespace;
use jiff::Timestamp;
use serde_json::Value;

use crate::sightings::{CLAIM, CLUSTER, EVENT, Kind, PEER, POD, SET, Sighting};

/// What of a StatefulSet or an EtcdCluster is watched.
pub const WATCHED: [Kind; 6] = [CLUSTER, PEER, SET, CLAIM, POD, EVENT];

/// What happened, to some objects or to one, each at its time: name → time.
struct Moments {
    what: &'static str,
    times: BTreeMap<String, Timestamp>,
}

/// One line for each kind of moment, in the order of time, in milliseconds since the beginning.
pub fn lines(
    began: Timestamp,
    seen: &[Sighting],
    answers: &BTreeMap<String, Timestamp>,
    namespace: &Namespace,
) -> Vec<String> {
    let mut moments = of_objects(seen);
    moments.extend(of_logs(seen, namespace));
    moments.push(Moments { what: "member answers", times: answers.clone() });
    moments.retain(|it| !it.times.is_empty());
    moments.sort_by_key(|it| it.times.values().max().copied());
    moments.iter().map(|it| line(began, it)).collect()
}

fn line(began: Timestamp, moments: &Moments) -> String {
    let since = |time: &Timestamp| time.duration_since(began).as_millis();
    let mut times: Vec<i128> = moments.times.values().map(since).collect();
    times.sort_unstable();
    let times: Vec<String> = times.iter().map(|time| format!("{time:>6}")).collect();
    format!("{:<32}{} ms", moments.what, times.join(""))
}

fn of_objects(seen: &[Sighting]) -> Vec<Moments> {
    let has = |what, kind: Kind, is_so: fn(&Value) -> bool| Moments { what, times: first(seen, kind, is_so) };
    vec![
        has("EtcdCluster created", CLUSTER, |_| true),
        has("StatefulSet created", SET, |_| true),
        has("bootstrap recorded", CLUSTER, |it| !it["status"]["bootstrap"].is_null()),
        has("EtcdPeer created", PEER, |_| true),
        has("claim created", CLAIM, |_| true),
        has("claim bound", CLAIM, |it| it["status"]["phase"] == "Bound"),
        has("pod created", POD, |_| true),
        has("pod scheduled", POD, |it| !it["spec"]["nodeName"].is_null()),
        has("address in the pod's status", POD, |it| !it["status"]["podIP"].is_null()),
        has("pod ready", POD, |it| condition(it, "Ready")),
        has("EtcdCluster Available", CLUSTER, |it| condition(it, "Available")),
        started("gate's container started", seen, "spec.initContainers{gate}"),
        started("etcd's container started", seen, "spec.containers{etcd}"),
    ]
}

/// When an object was so for the first time.
fn first(seen: &[Sighting], kind: Kind, is_so: impl Fn(&Value) -> bool) -> BTreeMap<String, Timestamp> {
    let mut times = BTreeMap::new();
    for sighting in seen.iter().filter(|it| it.kind == kind.2 && is_so(&it.object)) {
        times.entry(sighting.name()).or_insert(sighting.at);
    }
    times
}

fn condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|it| it["type"] == kind && it["status"] == "True")
}

/// The kubelet tells at once that it started a container; in the pod's status it is seen up to a second later.
fn started(what: &'static str, seen: &[Sighting], container: &str) -> Moments {
    let is_so = |it: &Value| it["reason"] == "Started" && it["involvedObject"]["fieldPath"] == container;
    Moments { what, times: first(seen, EVENT, is_so) }
}

/// What the containers' logs tell, which have the exact time of each line.
fn of_logs(seen: &[Sighting], namespace: &Namespace) -> Vec<Moments> {
    let lines = [
        ("gate has checked the volume", "gate", ""),
        ("gate runs before etcd", "etcd", "may start"),
        ("etcd runs", "etcd", r#""level":"#),
        ("etcd knows a leader", "etcd", "elected leader"),
        ("etcd serves clients", "etcd", "ready to serve client requests"),
    ];
    let pods = first(seen, POD, |_| true);
    lines
        .into_iter()
        .map(|(what, container, text)| {
            let time = |pod: &String| Some((pod.clone(), time_of_line(namespace, pod, container, text)?));
            Moments { what, times: pods.keys().filter_map(time).collect() }
        })
        .collect()
}

fn time_of_line(namespace: &Namespace, pod: &str, container: &str, text: &str) -> Option<Timestamp> {
    let command = format!("--namespace {} logs {pod} --container {container} --timestamps", namespace.name);
    // The pod of a StatefulSet has no gate.
    let log = e2e::try_kubectl(&command).ok()?;
    let line = log.lines().find(|line| line.contains(text))?;
    line.split_whitespace().next()?.parse().ok()
}
