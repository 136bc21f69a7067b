//! The HTTP server for probes and metrics.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tracing::{error, info};

use crate::runtime::metrics::Metrics;
use crate::runtime::readiness::Readiness;
use crate::runtime::shutdown::Shutdown;

/// What the responses are built from.
#[derive(Clone)]
pub struct Sources {
    pub metrics: Arc<Metrics>,
    pub readiness: Arc<Readiness>,
    pub shutdown: Shutdown,
}

/// Serves /healthz, /readyz and /metrics until the returned task is aborted.
pub async fn serve(address: SocketAddr, sources: Sources) -> anyhow::Result<JoinHandle<()>> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("listening on {address}"))?;
    let address = listener.local_addr().context("asking for the address that is listened on")?;
    info!(%address, "serving /metrics, /healthz and /readyz");
    let routes = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(sources);
    Ok(tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, routes).await {
            error!(%error, "the HTTP server stopped");
        }
    }))
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn readyz(State(sources): State<Sources>) -> Response {
    if sources.shutdown.has_begun() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response();
    }
    match sources.readiness.missing() {
        None => "ok\n".into_response(),
        Some(what) => (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {what}\n")).into_response(),
    }
}

async fn metrics(State(sources): State<Sources>) -> Response {
    match sources.metrics.as_text() {
        Ok(text) => {
            ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}\n")).into_response(),
    }
}
