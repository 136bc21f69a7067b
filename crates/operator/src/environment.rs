//! What the operator finds out about its environment: its own image, and the DNS domain of the cluster.

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};

use crate::runtime::leader;

/// The name of the operator's own container in its Deployment. Others may have been injected beside it.
const CONTAINER: &str = "etcd-operator";
const DEFAULT_DOMAIN: &str = "cluster.local";

/// The image for the init container of members: the configured one, or that of the operator's own pod.
pub async fn agent_image(client: &Client, given: Option<String>) -> anyhow::Result<String> {
    if let Some(image) = given {
        return Ok(image);
    }
    let Ok(name) = std::env::var("POD_NAME") else {
        bail!("which image holds the operator is not known: run it as a pod with POD_NAME set, or give --agent-image")
    };
    let namespace = leader::own_namespace()?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let pod = pods.get(&name).await.with_context(|| format!("reading the operator's own pod {namespace}/{name}"))?;
    let containers = pod.spec.map(|spec| spec.containers).unwrap_or_default();
    let own = containers.into_iter().find(|container| container.name == CONTAINER);
    let image = own.and_then(|container| container.image);
    image.with_context(|| format!("the operator's own pod {namespace}/{name} has no container {CONTAINER}"))
}

/// The DNS domain of the Kubernetes cluster: the configured one, or the one in which a pod looks up services.
pub fn cluster_domain(given: Option<String>) -> String {
    let resolver = || std::fs::read_to_string("/etc/resolv.conf").ok().as_deref().and_then(domain_in);
    given.or_else(resolver).unwrap_or_else(|| DEFAULT_DOMAIN.to_owned())
}

/// Kubernetes gives every pod a search path such as `ns.svc.cluster.local svc.cluster.local cluster.local`.
fn domain_in(resolv_conf: &str) -> Option<String> {
    let search = resolv_conf.lines().filter_map(|line| line.trim().strip_prefix("search"));
    let mut names = search.flat_map(str::split_whitespace);
    let domain = names.find_map(|name| name.strip_prefix("svc."))?;
    Some(domain.trim_end_matches('.').to_owned()).filter(|domain| !domain.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_is_read_from_the_search_path() {
        let pod = "search db.svc.example.org svc.example.org example.org\nnameserver 10.0.0.10\noptions ndots:5\n";
        assert_eq!(domain_in(pod).as_deref(), Some("example.org"));
        assert_eq!(domain_in("nameserver 1.1.1.1\n"), None);
        assert_eq!(domain_in("search lan\n"), None);
    }

    #[test]
    fn cluster_domain_given_by_flag_is_used() {
        assert_eq!(cluster_domain(Some("k8s.lan".into())), "k8s.lan");
    }
}
