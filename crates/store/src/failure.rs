//! What a store's error means, and how to say it to somebody who has never seen the store's client.

use std::error::Error;
use std::io;

use etcd_operator_errors::with_causes;
use etcd_operator_protocol::report::{Failure, Reason};
use object_store::client::{HttpError, HttpErrorKind};

/// As much of a server's words as goes into a message: a termination message has room for 4096 bytes in all.
const MAX_WORDS: usize = 600;
/// Where a pod's own identity comes from, if it has one.
const METADATA_SERVERS: [&str; 3] = ["169.254.169.254", "169.254.170.2", "metadata.google.internal"];
/// The first bytes of something cannot be had if there are none.
const RANGE_NOT_SATISFIABLE: u16 = 416;
const EMPTY: &str = "it is empty";

/// A request to a store that failed. `doing` says what was being done to what, `bucket` is what it is in.
pub fn of_store(doing: &str, bucket: &str, error: &object_store::Error) -> Failure {
    let (reason, words) = meaning(bucket, error);
    Failure { reason, message: format!("{doing}: {words}") }
}

/// Work with files that failed.
pub fn of_io(doing: &str, error: &io::Error) -> Failure {
    let reason = reason_of_io(error).unwrap_or(Reason::StoreFailed);
    Failure { reason, message: format!("{doing}: {}", words_of_io(reason, error)) }
}

pub fn is_not_found(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::NotFound { .. })
}

fn meaning(bucket: &str, error: &object_store::Error) -> (Reason, String) {
    if is_about_files(error)
        && let Some(io) = find::<io::Error>(error)
        && let Some(reason) = reason_of_io(io)
    {
        return (reason, words_of_io(reason, io));
    }
    let whole = with_causes(error);
    if METADATA_SERVERS.iter().any(|server| whole.contains(server)) {
        let words = "there are no credentials: none were given, and this pod has no identity of its own that the store's \
                     provider knows";
        return (Reason::AccessDenied, format!("{words} ({})", clipped(&whole)));
    }
    if let Some(answer) = StoreResponse::read(&whole) {
        let reason = answer.reason();
        return (reason, answer.in_words(reason, bucket));
    }
    let http = find::<HttpError>(error).map(HttpError::kind);
    let reason = match (error, http) {
        (_, Some(HttpErrorKind::Decode)) => Reason::StoreFailed,
        (_, Some(_)) => Reason::StoreUnreachable,
        (object_store::Error::NotFound { .. }, _) => Reason::NoSuchObject,
        (object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. }, _) => {
            Reason::AccessDenied
        }
        _ if whole.contains("Received redirect without LOCATION") => Reason::InvalidRequest,
        // What the client says of files.
        _ if whole.contains("Wanted range starting at 0, but object was only 0 bytes long") => Reason::HashMismatch,
        _ => Reason::StoreFailed,
    };
    let words = match reason {
        Reason::NoSuchObject => "there is no such object".into(),
        Reason::HashMismatch => EMPTY.into(),
        Reason::InvalidRequest => format!("{bucket} is in another region than the one that was asked"),
        Reason::StoreUnreachable => format!("the store does not answer: {}", clipped(&innermost(error))),
        _ => clipped(&whole),
    };
    (reason, words)
}

/// Others have trouble with files, too: with those of their credentials.
fn is_about_files(error: &object_store::Error) -> bool {
    match error {
        object_store::Error::Generic { store, .. } => *store == "LocalFileSystem",
        _ => true,
    }
}

/// What a server answered instead of doing what it was asked.
#[derive(Debug, PartialEq, Eq)]
struct StoreResponse {
    status: u16,
    /// A word for machines, like `NoSuchBucket`. An answer to a HEAD request has none.
    code: String,
    message: String,
}

impl StoreResponse {
    /// From the client's words, because it does not give the answer itself.
    fn read(whole: &str) -> Option<Self> {
        let after = whole.split_once("status code: ").map(|(_, after)| after);
        let in_body = || whole.split_once("Server returned error response: ").map(|(_, after)| after);
        let status = after.and_then(|after| after.get(..3)?.parse().ok());
        let rest = after.or_else(in_body)?;
        let element = |name: &str| {
            let (_, value) = rest.split_once(&format!("<{name}>"))?;
            Some(value.split_once("</")?.0.trim().to_owned())
        };
        let code = element("Code").unwrap_or_default();
        let body = rest.split_once(": ").map_or("", |(_, body)| body);
        let message = match element("Message") {
            // Some say in further lines what is different every time.
            Some(message) => message.lines().next().unwrap_or_default().to_owned(),
            None if code.is_empty() => body.trim().to_owned(),
            None => String::new(),
        };
        Some(Self { status: status.unwrap_or_default(), code, message })
    }

    fn reason(&self) -> Reason {
        let says = |text: &str| self.code.contains(text) || self.message.contains(text);
        match (self.status, self.code.as_str()) {
            (_, "NoSuchBucket" | "ContainerNotFound" | "InvalidBucketName") => Reason::NoSuchBucket,
            (_, "NoSuchKey" | "BlobNotFound") => Reason::NoSuchObject,
            (_, "PermanentRedirect" | "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException") => {
                Reason::InvalidRequest
            }
            (_, "AccessDenied" | "SignatureDoesNotMatch" | "InvalidAccessKeyId" | "RequestTimeTooSkewed")
            | (_, "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" | "InvalidSecurity" | "AccountProblem")
            | (_, "AuthenticationFailed" | "AuthorizationFailure" | "InvalidAuthenticationInfo")
            | (_, "AuthorizationPermissionMismatch" | "AccountIsDisabled") => Reason::AccessDenied,
            (507, _) => Reason::NoSpace,
            _ if says("QuotaExceeded") || says("InsufficientStorage") || says("StorageFull") => Reason::NoSpace,
            _ if says("No space left") || says("no space left") => Reason::NoSpace,
            _ if says("invalid_grant") || says("invalid_client") => Reason::AccessDenied,
            (401 | 403, _) => Reason::AccessDenied,
            (404, _) => Reason::NoSuchObject,
            (RANGE_NOT_SATISFIABLE, _) => Reason::HashMismatch,
            _ => Reason::StoreFailed,
        }
    }

    fn in_words(&self, reason: Reason, bucket: &str) -> String {
        let said = match (self.code.is_empty(), self.message.is_empty()) {
            (false, false) => format!("{}: {}", self.code, clipped(&self.message)),
            (false, true) => self.code.clone(),
            (true, false) => clipped(&self.message),
            (true, true) => format!("status {}", self.status),
        };
        match reason {
            Reason::NoSuchBucket => format!("{bucket} does not exist ({said})"),
            Reason::NoSuchObject => "there is no such object".into(),
            Reason::HashMismatch => EMPTY.into(),
            Reason::AccessDenied => format!("access denied ({said})"),
            Reason::NoSpace => format!("{bucket} is full ({said})"),
            Reason::InvalidRequest => format!("{bucket} is in another region than the one that was asked ({said})"),
            _ => format!("the store failed with status {} ({said})", self.status),
        }
    }
}

fn reason_of_io(error: &io::Error) -> Option<Reason> {
    Some(match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => Reason::NoSpace,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Reason::AccessDenied,
        io::ErrorKind::NotFound => Reason::NoSuchObject,
        io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory | io::ErrorKind::InvalidFilename => {
            Reason::InvalidRequest
        }
        // Network errors, too, end in one of these.
        _ => return None,
    })
}

fn words_of_io(reason: Reason, error: &io::Error) -> String {
    match reason {
        Reason::NoSpace => format!("the volume is full ({error})"),
        Reason::AccessDenied => format!("access denied ({error})"),
        Reason::NoSuchObject => "there is no such file".into(),
        _ => error.to_string(),
    }
}

fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(next) = last.source() {
        last = next;
    }
    last.to_string()
}

fn clipped(words: &str) -> String {
    let one_line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.char_indices().nth(MAX_WORDS) {
        Some((end, _)) => format!("{}…", &one_line[..end]),
        None => one_line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(message: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: message.to_owned().into() }
    }

    fn said(text: &str) -> Failure {
        of_store("writing s3://b/k", "the bucket b", &generic(text))
    }

    #[test]
    fn store_responses_are_mapped_to_reasons() {
        let answer = |status: &str, code: &str, message: &str| {
            said(&format!(
                "Error performing POST http://h/b/k?uploads in 8ms - Server returned non-2xx status code: {status}: \
                 <?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>"
            ))
        };
        let failure = answer("404 Not Found", "NoSuchBucket", "The specified bucket does not exist.");
        assert_eq!(failure.reason, Reason::NoSuchBucket);
        assert_eq!(
            failure.message,
            "writing s3://b/k: the bucket b does not exist (NoSuchBucket: The specified bucket does not exist.)"
        );
        for (status, code, reason) in [
            ("404 Not Found", "NoSuchKey", Reason::NoSuchObject),
            ("404 Not Found", "ContainerNotFound", Reason::NoSuchBucket),
            ("403 Forbidden", "SignatureDoesNotMatch", Reason::AccessDenied),
            ("403 Forbidden", "SomethingNew", Reason::AccessDenied),
            ("400 Bad Request", "ExpiredToken", Reason::AccessDenied),
            ("400 Bad Request", "AuthorizationHeaderMalformed", Reason::InvalidRequest),
            ("507 Insufficient Storage", "InsufficientStorage", Reason::NoSpace),
            ("403 Forbidden", "QuotaExceeded", Reason::NoSpace),
            ("500 Internal Server Error", "InternalError", Reason::StoreFailed),
            ("400 Bad Request", "EntityTooSmall", Reason::StoreFailed),
        ] {
            let failure = answer(status, code, "words");
            assert_eq!(failure.reason, reason, "{failure:?}");
        }
        let full = answer("500 Internal Server Error", "InternalError", "write: no space left on device");
        assert_eq!(full.reason, Reason::NoSpace);
        let token = said("Error performing token request: status code: 400 Bad Request: {\"error\":\"invalid_grant\"}");
        assert_eq!(token.reason, Reason::AccessDenied);
        assert!(token.message.contains("invalid_grant"), "{token:?}");
    }

    #[test]
    fn message_omits_request_ids_and_times() {
        let azure =
            "<Code>ContainerNotFound</Code><Message>The container does not exist.\nRequestId:4711\nTime:now</Message>";
        let failure = said(&format!("status code: 404 Not Found: {azure}"));
        assert_eq!(
            failure.message,
            "writing s3://b/k: the bucket b does not exist (ContainerNotFound: The container does not exist.)"
        );
        let without_message = said("status code: 401 Unauthorized: <Error><Code>AuthenticationRequired</Code></Error>");
        assert_eq!(without_message.message, "writing s3://b/k: access denied (AuthenticationRequired)");
    }

    #[test]
    fn response_without_body_is_reported_with_its_status() {
        let failure = said("Server returned non-2xx status code: 403 Forbidden: ");
        assert_eq!(failure.reason, Reason::AccessDenied);
        assert_eq!(failure.message, "writing s3://b/k: access denied (status 403)");
    }

    #[test]
    fn missing_credentials_are_access_denied_and_not_unreachable() {
        let failure =
            said("Error performing PUT http://169.254.169.254/latest/api/token in 9s - HTTP error: timed out");
        assert_eq!(failure.reason, Reason::AccessDenied);
        assert!(failure.message.contains("there are no credentials"), "{failure:?}");
    }

    #[test]
    fn store_that_does_not_answer_is_unreachable() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let http = HttpError::new(HttpErrorKind::Connect, refused);
        let error = object_store::Error::Generic { store: "S3", source: Box::new(http) };
        let failure = of_store("writing s3://b/k", "the bucket b", &error);
        assert_eq!(failure.reason, Reason::StoreUnreachable);
        assert!(failure.message.contains("refused"), "{failure:?}");
    }

    #[test]
    fn full_and_read_only_volumes_have_different_reasons() {
        let wrapped = |kind: io::ErrorKind| object_store::Error::Generic {
            store: "LocalFileSystem",
            source: Box::new(io::Error::from(kind)),
        };
        let reason = |kind| of_store("writing file:///v/k", "the volume", &wrapped(kind)).reason;
        assert_eq!(reason(io::ErrorKind::StorageFull), Reason::NoSpace);
        assert_eq!(reason(io::ErrorKind::QuotaExceeded), Reason::NoSpace);
        assert_eq!(reason(io::ErrorKind::PermissionDenied), Reason::AccessDenied);
        assert_eq!(reason(io::ErrorKind::ReadOnlyFilesystem), Reason::AccessDenied);
        assert_eq!(reason(io::ErrorKind::NotADirectory), Reason::InvalidRequest);
        assert_eq!(of_io("writing /x", &io::Error::from(io::ErrorKind::StorageFull)).reason, Reason::NoSpace);
    }

    #[test]
    fn long_store_message_fits_into_a_report() {
        let failure = said(&format!("status code: 500 Internal Server Error: {}", "é".repeat(5000)));
        assert!(failure.message.len() < 2 * MAX_WORDS + 200, "{}", failure.message.len());
    }
}
