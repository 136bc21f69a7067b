//! The way to the lab's API server.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node as KubernetesNode;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

use crate::pki;

/// A client with all rights.
pub async fn client() -> Result<Client> {
    // Fails only if one was chosen before, and then there is nothing to do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let path = pki::kubeconfig("admin");
    let kubeconfig = Kubeconfig::read_from(&path).with_context(|| format!("reading {}", path.display()))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.context("reading the lab's kubeconfig")?).context("making a client for the lab")
}

/// A client of something else in the lab that speaks HTTP.
pub(crate) fn client_of(url: &str) -> Result<Client> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = Config::new(url.parse().with_context(|| format!("reading the address {url}"))?);
    Client::try_from(config).with_context(|| format!("making a client for {url}"))
}

/// Whether the API server says it is ready.
pub async fn is_ready() -> bool {
    let Ok(client) = client().await else { return false };
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else {
        return false;
    };
    let answer = tokio::time::timeout(Duration::from_secs(2), client.request_text(request)).await;
    matches!(answer, Ok(Ok(text)) if text == "ok")
}

/// The nodes as Kubernetes sees them: their names, and whether they are Ready.
pub async fn nodes(client: &Client) -> Result<Vec<(String, bool)>> {
    let nodes = Api::<KubernetesNode>::all(client.clone()).list(&Default::default()).await.context("listing nodes")?;
    Ok(nodes
        .items
        .into_iter()
        .map(|node| (node.metadata.name.clone().unwrap_or_default(), is_node_ready(&node)))
        .collect())
}

fn is_node_ready(node: &KubernetesNode) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
