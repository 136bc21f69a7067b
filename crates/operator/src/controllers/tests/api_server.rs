//! A mocked API server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower_test::mock;

/// What the API server answers.
pub enum Answer {
    /// What it was sent.
    Echo,
    Object(Value),
    Refusal(u16, &'static str),
    /// It got the request, but its answer is lost with the connection.
    Lost,
}

/// The expected requests (method and path), and the answers.
type Script = VecDeque<(&'static str, Answer)>;

/// A request that was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub query: String,
    pub content_type: String,
    pub body: Value,
}

#[derive(Default)]
struct Log {
    sent: Vec<Sent>,
    events: Vec<(String, String)>,
    unexpected: Vec<String>,
    left: Script,
}

pub struct ApiServer(Arc<Mutex<Log>>);

impl ApiServer {
    pub fn start(script: Script) -> (Client, Self) {
        let (service, mut handle) = mock::pair::<Request<Body>, Response<Body>>();
        let log = Arc::new(Mutex::new(Log { left: script, ..Log::default() }));
        let server = ApiServer(log.clone());
        tokio::spawn(async move {
            while let Some((request, respond)) = handle.next_request().await {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                match log.lock().unwrap().answer(&head, &body) {
                    Answer::Echo => respond.send_response(response(200, &body)),
                    Answer::Object(object) => respond.send_response(response(200, &object)),
                    Answer::Refusal(code, message) => {
                        let status = json!({
                            "apiVersion": "v1", "kind": "Status", "metadata": {},
                            "status": "Failure", "code": code, "message": message, "reason": "",
                        });
                        respond.send_response(response(code, &status));
                    }
                    Answer::Lost => respond.send_error(std::io::Error::other("connection closed")),
                }
            }
        });
        (Client::new(service, "default"), server)
    }

    /// What was sent, if it was exactly what was expected. Events are not counted.
    pub fn sent(&self) -> Vec<Sent> {
        let log = self.0.lock().unwrap();
        assert_eq!(log.unexpected, [""; 0], "not expected at this point");
        let left: Vec<_> = log.left.iter().map(|(line, _)| *line).collect();
        assert_eq!(left, [""; 0], "expected, but not sent");
        log.sent.clone()
    }

    /// Reason and note of the events that were published.
    pub fn events(&self) -> Vec<(String, String)> {
        self.0.lock().unwrap().events.clone()
    }
}

impl Log {
    fn answer(&mut self, head: &http::request::Parts, body: &Value) -> Answer {
        let line = format!("{} {}", head.method, head.uri.path());
        if line.ends_with("/events") {
            let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
            self.events.push((text("reason"), text("note")));
            return Answer::Echo;
        }
        let query = head.uri.query().unwrap_or_default().to_owned();
        let is_strict = query.contains("fieldValidation=Strict");
        if ["POST", "PATCH"].contains(&head.method.as_str()) && !is_strict {
            self.unexpected.push(format!("{line} without strict validation"));
        }
        match self.left.pop_front() {
            Some((expected, answer)) if expected == line => {
                let content_type = head.headers.get(http::header::CONTENT_TYPE).map(|it| it.to_str().unwrap());
                let content_type = content_type.unwrap_or_default().to_owned();
                self.sent.push(Sent { query, content_type, body: body.clone() });
                answer
            }
            _ => {
                self.unexpected.push(line);
                Answer::Refusal(500, "not expected")
            }
        }
    }
}

fn response(code: u16, body: &Value) -> Response<Body> {
    let body = Body::from(serde_json::to_vec(body).unwrap());
    Response::builder().status(code).body(body).unwrap()
}
