//! What a URL of a backup says: which store, which bucket, which object.

use etcd_operator_protocol::report::{Failure, Reason};
use etcd_operator_protocol::task::Location;
use object_store::path::Path;
use url::Url;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub store: Store,
    /// The bucket or the container. Files have none.
    pub bucket: String,
    /// The object, or the beginning of several.
    pub key: Path,
    /// What the object and its neighbours are in: all of the URL up to its last `/`.
    pub directory: Path,
    /// The server, if it is not the provider's own: `http://` or `https://`.
    pub endpoint: Option<String>,
    pub region: Option<String>,
    /// Whether the bucket is the first part of the server's name instead of the first part of the path.
    pub bucket_in_host: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    S3,
    Gcs,
    Azure,
    Files,
}

/// What the URL's query says, in the words of Go's CDK, which people have in their URLs from other tools.
#[derive(Default)]
struct Query {
    endpoint: Option<String>,
    region: Option<String>,
    without_tls: bool,
    path_style: Option<bool>,
}

/// Reads a place. What it says explicitly wins over what is in the query of its URL.
pub fn parse(location: &Location) -> Result<Address, Failure> {
    let wrong = |why: String| invalid_request(format!("the URL {:?} cannot be used: {why}", location.url));
    let url = Url::parse(&location.url).map_err(|e| wrong(e.to_string()))?;
    let store = match url.scheme() {
        "s3" => Store::S3,
        "gs" => Store::Gcs,
        "az" => Store::Azure,
        "file" => Store::Files,
        other => return Err(wrong(format!("{other}:// is none of s3://, gs://, az:// and file://"))),
    };
    let bucket = url.host_str().unwrap_or_default().to_owned();
    match (store, bucket.is_empty()) {
        (Store::Files, false) => return Err(wrong("a file:// URL has three slashes".into())),
        (Store::S3 | Store::Gcs | Store::Azure, true) => return Err(wrong("it names no bucket".into())),
        _ => {}
    }
    if url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() || url.port().is_some() {
        return Err(wrong("besides bucket and object it may only have a query".into()));
    }
    let query = read_query(&url, store).map_err(wrong)?;
    let read_path = |path: &str| Path::from_url_path(path).map_err(|e| wrong(e.to_string()));
    let up_to_last_slash = url.path().rfind('/').map_or("", |at| &url.path()[..at]);

    let region = location.region.clone().or(query.region);
    let path_style = location.force_path_style.or(query.path_style);
    let endpoint = match location.endpoint.clone().or(query.endpoint) {
        Some(endpoint) => Some(read_endpoint(&endpoint, query.without_tls)?),
        None if query.without_tls => {
            Some(format!("http://s3.{}.amazonaws.com", region.as_deref().unwrap_or("us-east-1")))
        }
        None => None,
    };
    Ok(Address {
        store,
        bucket,
        key: read_path(url.path())?,
        directory: read_path(up_to_last_slash)?,
        endpoint,
        region,
        bucket_in_host: path_style == Some(false),
    })
}

fn read_query(url: &Url, store: Store) -> Result<Query, String> {
    let mut query = Query::default();
    for (name, value) in url.query_pairs() {
        let yes = || match &*value {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            other => Err(format!("{name}={other} is neither true nor false")),
        };
        match (store, &*name) {
            (Store::S3 | Store::Gcs | Store::Azure, "endpoint") => query.endpoint = Some(value.into_owned()),
            (Store::S3, "region") => query.region = Some(value.into_owned()),
            (Store::S3, "disableSSL" | "disable_https") => query.without_tls = yes()?,
            (Store::S3, "s3ForcePathStyle" | "use_path_style") => query.path_style = Some(yes()?),
            _ => return Err(format!("{name} is not known in its query")),
        }
    }
    Ok(query)
}

/// The address of a server, which may be without `http://` or `https://`.
fn read_endpoint(endpoint: &str, without_tls: bool) -> Result<String, Failure> {
    let scheme = if without_tls { "http" } else { "https" };
    let whole = if endpoint.contains("://") { endpoint.to_owned() } else { format!("{scheme}://{endpoint}") };
    let wrong = |why: &str| invalid_request(format!("the endpoint {endpoint:?} cannot be used: {why}"));
    let url = Url::parse(&whole).map_err(|e| wrong(&e.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it is neither http:// nor https://"));
    }
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
        return Err(wrong("it may only have a host, a port and a path"));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

impl Address {
    /// As messages name it: without what comes from the query.
    pub fn url(&self) -> String {
        match self.store {
            Store::S3 => format!("s3://{}/{}", self.bucket, self.key),
            Store::Gcs => format!("gs://{}/{}", self.bucket, self.key),
            Store::Azure => format!("az://{}/{}", self.bucket, self.key),
            Store::Files => format!("file:///{}", self.key),
        }
    }
}

pub fn invalid_request(message: String) -> Failure {
    Failure { reason: Reason::InvalidRequest, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(url: &str) -> Location {
        Location { url: url.into(), ..Location::default() }
    }

    fn parsed(url: &str) -> Address {
        parse(&location(url)).unwrap()
    }

    fn refused(url: &str) -> String {
        let failure = parse(&location(url)).unwrap_err();
        assert_eq!(failure.reason, Reason::InvalidRequest);
        failure.message
    }

    #[test]
    fn urls_are_parsed_into_store_bucket_and_object() {
        for (url, store, bucket, key, directory) in [
            ("s3://backups/prod/etcd/1.db", Store::S3, "backups", "prod/etcd/1.db", "prod/etcd"),
            ("gs://my_backups/1.db", Store::Gcs, "my_backups", "1.db", ""),
            ("az://backups/prod/1%20a.db", Store::Azure, "backups", "prod/1 a.db", "prod"),
            ("file:///var/backups/1.db", Store::Files, "", "var/backups/1.db", "var/backups"),
            ("s3://backups/prod/", Store::S3, "backups", "prod", "prod"),
            ("s3://backups", Store::S3, "backups", "", ""),
        ] {
            let address = parsed(url);
            assert_eq!((address.store, address.bucket.as_str()), (store, bucket), "{url}");
            assert_eq!((address.key.as_ref(), address.directory.as_ref()), (key, directory), "{url}");
            assert_eq!((address.endpoint, address.region, address.bucket_in_host), (None, None, false), "{url}");
        }
        assert_eq!(
            parsed("az://backups/prod/1.db?endpoint=http://azurite:10000/account").url(),
            "az://backups/prod/1.db"
        );
        assert_eq!(parsed("file:///var/backups/1.db").url(), "file:///var/backups/1.db");
    }

    #[test]
    fn url_query_is_that_of_go_cdk() {
        let address =
            parsed("s3://b/k?region=eu-west-1&endpoint=minio.minio:9000&disableSSL=true&s3ForcePathStyle=true");
        assert_eq!(address.endpoint.as_deref(), Some("http://minio.minio:9000"));
        assert_eq!(address.region.as_deref(), Some("eu-west-1"));
        assert!(!address.bucket_in_host);

        assert_eq!(parsed("s3://b/k?endpoint=minio:9000").endpoint.as_deref(), Some("https://minio:9000"));
        assert_eq!(parsed("s3://b/k?endpoint=http://minio:9000/").endpoint.as_deref(), Some("http://minio:9000"));
        assert!(parsed("s3://b/k?use_path_style=false").bucket_in_host);
        let without_tls = parsed("s3://b/k?disable_https=true&region=eu-west-1");
        assert_eq!(without_tls.endpoint.as_deref(), Some("http://s3.eu-west-1.amazonaws.com"));
    }

    #[test]
    fn explicit_store_options_win_over_the_url_query() {
        let url = "s3://b/k?region=a&endpoint=http://a&s3ForcePathStyle=true".to_owned();
        let (endpoint, region) = (Some("http://b".to_owned()), Some("b".to_owned()));
        let address = parse(&Location { url, endpoint, region, force_path_style: Some(false) }).unwrap();
        assert_eq!(address.endpoint.as_deref(), Some("http://b"));
        assert_eq!(address.region.as_deref(), Some("b"));
        assert!(address.bucket_in_host);
    }

    #[test]
    fn malformed_url_is_refused_with_a_message() {
        for (url, word) in [
            ("backups/1.db", "relative URL"),
            ("ftp://b/k", "ftp://"),
            ("s3:///k", "no bucket"),
            ("file://backups/k", "three slashes"),
            ("s3://b/a//k", "mpty"),
            ("s3://user@b/k", "only have a query"),
            ("s3://b/k#1", "only have a query"),
            ("s3://b/k?reigon=a", "reigon"),
            ("gs://b/k?region=a", "region"),
            ("s3://b/k?disableSSL=yes", "neither true nor false"),
            ("s3://b/k?endpoint=ftp://x", "neither http:// nor https://"),
            ("s3://b/k?endpoint=http://x?y=z", "only have a host"),
        ] {
            let message = refused(url);
            assert!(message.contains(word), "{url}: {message}");
        }
    }
}
