//! Rules about objects in S3, Google Cloud Storage and Azure: their URLs and how to get at them.
//!
//! They hold in several places, so a sentence names the field as it is called in each of them.

use kube::core::{Reason, Rule};

/// A bucket, then the name of an object, then maybe settings after a question mark.
const OBJECT_URL: &str = r"^(s3|gs|az)://[^/?]+/([^?]*[^/?])(\?.*)?$";

/// A bucket, maybe the beginning of the names of objects, then maybe settings after a question mark.
const BUCKET_URL: &str = r"^(s3|gs|az)://[^/?]+(/[^?]*)?(\?.*)?$";

/// The providers as fields name them, and what their URLs begin with.
const PROVIDERS: [(&str, &str); 3] = [("s3", "s3://"), ("googleCloud", "gs://"), ("azure", "az://")];

pub fn endpoint_is_an_address() -> Rule {
    Rule::new("self.matches('^https?://[^/?#]+(/[^?#]*)?$')")
        .message("endpoint must be the address of a server; write it like https://storage.example.com:9000")
}

pub fn object_url_has_a_scheme() -> Rule {
    is_object_url("objectURL", "s3://bucket/my-cluster.db")
}

pub fn object_url_template_has_a_scheme() -> Rule {
    is_object_url("objectURLTemplate", "s3://bucket/{{ .Namespace }}/{{ .Name }}.db")
}

pub fn bucket_url_has_a_scheme() -> Rule {
    Rule::new(format!("self.matches(r'{BUCKET_URL}')")).message(
        "bucketURL must be the URL of a bucket and begin with s3://, gs:// or az://; write it like gs://bucket",
    )
}

fn is_object_url(field: &str, example: &str) -> Rule {
    Rule::new(format!("self.matches(r'{OBJECT_URL}')")).message(format!(
        "{field} must be the URL of an object and begin with s3://, gs:// or az://, then a bucket, then the name of the \
         object; write it like {example}"
    ).as_str())
}

/// How to get at an object fits to where it is: `url` is the condition's text for its URL, empty for a volume, and
/// `more_credentials` names a field of the object that may have credentials of its own.
///
/// Says nothing about a URL that has a sentence of its own.
pub(super) fn access_fits(is_one_place: &str, url: &str, more_credentials: &str) -> Rule {
    let fits = PROVIDERS.map(|(provider, scheme)| {
        format!(
            "(url.startsWith('{scheme}') || !(has(self.{provider}) \
             || (has(self.credentials) && has(self.credentials.{provider})) || (has(self.{more_credentials}) \
             && has(self.{more_credentials}.credentials) && has(self.{more_credentials}.credentials.{provider}))))"
        )
    });
    let known = PROVIDERS.map(|(_, scheme)| format!("url.startsWith('{scheme}')")).join(" || ");
    Rule::new(format!(
        "!({is_one_place}) || [{url}].all(url, (url != '' && !({known})) || ({}))",
        fits.join(" && ")
    ))
    .message(
        "credentials and settings must be of the provider that the URL is of: s3 goes with s3://, googleCloud with gs:// \
         and azure with az://; remove the others",
    )
    .reason(Reason::FieldValueForbidden)
}

/// Credentials may be written into one of two places: beside the URL, or into what `holder` names.
pub(super) fn are_given_once(holder: &str) -> Rule {
    Rule::new(format!("!has(self.credentials) || !has(self.{holder}) || !has(self.{holder}.credentials)"))
        .message(
            format!("credentials and {holder}.credentials mean the same and cannot both be set; keep one of them")
                .as_str(),
        )
        .reason(Reason::FieldValueForbidden)
}

/// The condition that exactly one of these fields is there.
pub(super) fn exactly_one(fields: &[&str]) -> String {
    let given = fields.iter().map(|field| format!("has(self.{field})")).collect::<Vec<_>>().join(", ");
    format!("[{given}].filter(given, given).size() == 1")
}
