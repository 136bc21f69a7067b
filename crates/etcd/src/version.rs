//! The version that a cluster has agreed on.
//!
//! etcd tells it over HTTP/1.1 only, at the address where it speaks gRPC.

use etcd_operator_errors::with_causes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tonic::codegen::http::Uri;
use tonic::codegen::http::uri::PathAndQuery;

use crate::error::Cause;

/// Bytes. The answer is far smaller; whoever sends more is no etcd.
const LONGEST_ANSWER: usize = 64 << 10;

/// Asks the member at this address, over a connection of its own: `None` until the cluster has a version.
pub(crate) async fn ask(member: &Uri) -> Result<Option<String>, Cause> {
    let mut parts = member.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::from_static("/version"));
    let address = Uri::from_parts(parts).map_err(|e| Cause::Other(with_causes(&e)))?;
    let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http::<Empty<&[u8]>>();
    let answer = client.get(address).await.map_err(|e| Cause::Unreachable(with_causes(&e)))?;
    if !answer.status().is_success() {
        return Err(Cause::Other(format!("the answer is {}", answer.status())));
    }
    let body = Limited::new(answer.into_body(), LONGEST_ANSWER).collect().await;
    let body = body.map_err(|e| Cause::Unreachable(with_causes(&*e)))?;
    read(&body.to_bytes()).map_err(|e| Cause::Other(format!("the answer is no JSON: {e}")))
}

/// Reads an answer, like `{"etcdserver":"3.6.16","etcdcluster":"3.6.0","storage":"3.6.0"}`.
fn read(answer: &[u8]) -> Result<Option<String>, serde_json::Error> {
    let answer: Value = serde_json::from_slice(answer)?;
    let version = answer.get("etcdcluster").and_then(Value::as_str);
    Ok(version.filter(|v| *v != "not_decided").map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_version_is_parsed_once_it_is_decided() {
        let version = |answer: &str| read(answer.as_bytes()).ok();
        // 3.7, then 3.5.
        let there = Some(Some("3.6.0".to_owned()));
        assert_eq!(version(r#"{"etcdserver":"3.7.3","etcdcluster":"3.6.0","storage":"3.6.0"}"#), there);
        assert_eq!(version(r#"{"etcdserver":"3.5.35","etcdcluster":"3.6.0"}"#), there);
        assert_eq!(version(r#"{"etcdserver":"3.5.35","etcdcluster":"not_decided"}"#), Some(None));
        assert_eq!(version(r#"{"etcdserver":"3.5.35"}"#), Some(None));
        assert_eq!(version("404 page not found"), None);
    }
}
