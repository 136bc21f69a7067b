//! What the API server takes and refuses about where backups are and how to get at them. The same holds for where a backup
//! goes and for where one comes from.

use e2e::Namespace;
use serde_json::{Value, json};

use crate::backups::to;
use crate::restores::from;
use crate::{refuses, refuses_once, takes};

/// A URL of each provider, with the name of its settings.
const PROVIDERS: [(&str, &str); 3] = [("s3", "s3://b/a.db"), ("googleCloud", "gs://b/a.db"), ("azure", "az://b/a.db")];

fn credentials_of(provider: &str) -> Value {
    match provider {
        "googleCloud" => json!({"googleCloud": {"secretKeyRef": {"name": "s", "key": "k"}}}),
        _ => json!({provider: {"secretName": "s"}}),
    }
}

/// A backup to such a place, and a restore from it.
fn both(fields: Value) -> [Value; 2] {
    [to(fields.clone()), from(fields)]
}

#[test]
fn object_url_must_have_a_known_scheme() {
    let namespace = Namespace::create("api-urls");
    let sentence = "objectURL must be the URL of an object and begin with s3://, gs:// or az://";
    for url in [
        "http://server/bucket/a.db",
        "file:///a.db",
        "bucket/a.db",
        "S3://b/a.db",
        "s3://b",
        "s3://b/",
        "s3://b/dir/",
        "s3:///a.db",
        "s3://b?region=r",
        "",
    ] {
        refuses_once(&namespace, both(json!({"objectURL": url})).map(|manifest| (manifest, sentence)));
    }
    for url in [
        "s3://b/a.db",
        "gs://b/dir/a.db",
        "az://b/a b.db",
        "s3://b/a.db?region=eu-west-1&endpoint=http://minio:9000&disableSSL=true&s3ForcePathStyle=true",
    ] {
        takes(&namespace, both(json!({"objectURL": url})));
    }
    refuses(&namespace, [(to(json!({"objectURL": format!("s3://b/{}", "a".repeat(1024))})), "Too long")]);
}

#[test]
fn store_settings_must_match_the_provider_of_the_url() {
    let namespace = Namespace::create("api-providers");
    let sentence = "credentials and settings must be of the provider that the URL is of";
    for (provider, url) in PROVIDERS {
        for (other, _) in PROVIDERS {
            let with_credentials = both(json!({"objectURL": url, "credentials": credentials_of(other)}));
            let with_settings = both(json!({"objectURL": url, other: {"endpoint": "http://store:9000"}}));
            let manifests = with_credentials.into_iter().chain(with_settings);
            if provider == other {
                takes(&namespace, manifests);
            } else {
                refuses_once(&namespace, manifests.map(|manifest| (manifest, sentence)));
            }
        }
        takes(&namespace, both(json!({"objectURL": url, "credentials": {"serviceAccountName": "backups"}})));
        let in_volume = json!({"claimName": "c", "path": "a.db"});
        let of_volume = both(json!({"persistentVolumeClaim": in_volume, "credentials": credentials_of(provider)}));
        refuses_once(&namespace, of_volume.map(|manifest| (manifest, sentence)));
    }
    let bucket = |provider: &str| json!({"bucketName": "b", "credentials": credentials_of(provider)});
    refuses_once(&namespace, [(to(json!({"gcsBucket": bucket("s3")})), sentence)]);
    takes(&namespace, [to(json!({"gcsBucket": bucket("googleCloud")}))]);
    let bucket =
        |provider: &str| json!({"bucketURL": "s3://b", "objectPath": "a", "credentials": credentials_of(provider)});
    refuses_once(&namespace, [(from(json!({"bucket": bucket("azure")})), sentence)]);
    takes(&namespace, [from(json!({"bucket": bucket("s3"), "s3": {"region": "r", "forcePathStyle": true}}))]);
}

#[test]
fn credentials_must_be_set_once_and_for_one_provider() {
    let namespace = Namespace::create("api-credentials");
    let ours = credentials_of("googleCloud");
    let mut two = ours.clone();
    two["s3"] = json!({"secretName": "s"});
    let of_two = both(json!({"objectURL": "gs://b/a.db", "credentials": two}));
    let sentence = "credentials and settings must be of the provider that the URL is of";
    refuses_once(&namespace, of_two.map(|manifest| (manifest, sentence)));
    let in_bucket = json!({"bucketName": "b", "credentials": ours});
    let of_bucket = json!({"bucketURL": "gs://b", "objectPath": "a.db", "credentials": ours});
    refuses_once(
        &namespace,
        [
            (
                to(json!({"gcsBucket": in_bucket, "credentials": ours})),
                "credentials and gcsBucket.credentials mean the same",
            ),
            (
                from(json!({"bucket": of_bucket, "credentials": ours})),
                "credentials and bucket.credentials mean the same",
            ),
        ],
    );
    let secret = |fields: Value| both(json!({"objectURL": "s3://b/a.db", "credentials": {"s3": fields}}));
    for nameless in [json!({}), json!({"secretName": ""})] {
        refuses(&namespace, secret(nameless).map(|manifest| (manifest, "credentials.s3.secretName")));
    }
}

#[test]
fn secret_keys_have_defaults() {
    let namespace = Namespace::create("api-keys");
    let s3 = to(json!({"objectURL": "s3://b/a.db", "credentials": {"s3": {"secretName": "s"}}}));
    namespace.apply(&s3.to_string()).unwrap();
    let stored = namespace.get("etcdbackup b")["spec"]["destination"]["credentials"]["s3"].clone();
    let expected = json!({
        "secretName": "s",
        "accessKeyIDKey": "AWS_ACCESS_KEY_ID",
        "secretAccessKeyKey": "AWS_SECRET_ACCESS_KEY",
        "sessionTokenKey": "AWS_SESSION_TOKEN",
    });
    assert_eq!(stored, expected);
}

#[test]
fn endpoint_must_be_an_address() {
    let namespace = Namespace::create("api-endpoints");
    let sentence = "endpoint must be the address of a server; write it like https://";
    for (provider, url) in PROVIDERS {
        let endpoint = |address: &str| json!({"objectURL": url, provider: {"endpoint": address}});
        refuses_once(&namespace, both(endpoint("minio:9000")).map(|manifest| (manifest, sentence)));
        takes(&namespace, both(endpoint("http://minio:9000")));
        for wrong in ["s3://minio", "http://", "http://minio?a=b", ""] {
            refuses_once(&namespace, [(to(endpoint(wrong)), sentence)]);
        }
        takes(&namespace, ["https://a.example.com", "http://10.0.0.1:10000/account"].map(endpoint).map(to));
    }
}

#[test]
fn path_must_be_a_file_in_the_volume() {
    let namespace = Namespace::create("api-paths");
    let sentence = "path must be that of a file in the volume";
    let path = |path: &str| both(json!({"persistentVolumeClaim": {"claimName": "c", "path": path}}));
    for wrong in ["/etc/passwd", "../a.db", "dir/../../a.db", "dir/", "a//b", "./a.db", "."] {
        refuses_once(&namespace, path(wrong).map(|manifest| (manifest, sentence)));
    }
    for right in ["a.db", "dir/a.db", "..a/.b/c..", "a b"] {
        takes(&namespace, path(right));
    }
    takes(&namespace, [to(json!({"persistentVolumeClaim": {"claimName": "c"}}))]);
    let nothing_said = from(json!({"persistentVolumeClaim": {"claimName": "c"}}));
    refuses(&namespace, [(nothing_said, "spec.source.persistentVolumeClaim.path: Required value")]);
}
