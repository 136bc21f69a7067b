//! Where backups are stored: the URL of one, of all that a schedule takes, and how it is shown.

use etcd_operator_api::{
    Destination, EtcdBackup, EtcdBackupSchedule, RestoreFrom, StoreAccess, Variables, fill_template,
};
use etcd_operator_protocol::task::Location;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Where a volume with backups is mounted in a pod.
pub const CLAIM_MOUNT: &str = "/backups";

/// Why nobody knows where a backup is stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// The URL or the path has a variable that stands for nothing, as this sentence says.
    #[error("{0}")]
    Template(String),
}

/// Where a backup is read from.
pub fn of_source(from: &RestoreFrom) -> Location {
    match &from.persistent_volume_claim {
        Some(claim) => in_volume(&claim.path),
        None => in_store(from.url().unwrap_or_default(), &from.access),
    }
}

/// Where a backup is stored.
pub fn of_backup(backup: &EtcdBackup) -> Result<Location, LocationError> {
    let metadata = &backup.metadata;
    let created = metadata.creation_timestamp.clone().unwrap_or(Time(Timestamp::UNIX_EPOCH));
    let variables = Variables {
        name: metadata.name.as_deref().unwrap_or_default(),
        namespace: metadata.namespace.as_deref().unwrap_or_default(),
        uid: metadata.uid.as_deref().unwrap_or_default(),
        created: &created,
        cluster_name: backup.spec.cluster_name.as_deref(),
    };
    of_destination(&backup.spec.destination, &variables)
}

/// The folder that contains all backups of a schedule, at any depth.
pub fn of_all(schedule: &EtcdBackupSchedule) -> Result<Location, LocationError> {
    let spec = schedule.spec.backup_spec();
    let like = |name: &str, created: Timestamp| {
        let variables = Variables {
            name,
            namespace: schedule.metadata.namespace.as_deref().unwrap_or_default(),
            uid: name,
            created: &Time(created),
            cluster_name: spec.cluster_name.as_deref(),
        };
        of_destination(&spec.destination, &variables)
    };
    // The common folder of two backups that differ in all variables.
    let (one, other) = (like("a", Timestamp::UNIX_EPOCH)?, like("b", Timestamp::MAX)?);
    Ok(Location { url: common_folder(&one.url, &other.url), ..one })
}

/// How a location is shown to users: one in a volume is named after its claim.
pub fn shown_url(location: &Location, claim: Option<&str>) -> String {
    match (path_of(location), claim) {
        (Some(path), Some(claim)) => format!("pvc://{claim}/{path}"),
        _ => location.url.clone(),
    }
}

/// The path of a location in a volume, relative to the volume's root.
pub fn path_in_volume(location: &Location) -> String {
    path_of(location).unwrap_or(&location.url).to_owned()
}

fn path_of(location: &Location) -> Option<&str> {
    location.url.strip_prefix("file://")?.strip_prefix(CLAIM_MOUNT)?.strip_prefix('/')
}

fn of_destination(to: &Destination, variables: &Variables) -> Result<Location, LocationError> {
    let filled = |template: &str| fill_template(template, variables).map_err(LocationError::Template);
    match &to.persistent_volume_claim {
        Some(claim) => Ok(in_volume(&filled(claim.path())?)),
        None => Ok(in_store(filled(&to.url_template().unwrap_or_default())?, &to.access)),
    }
}

fn in_volume(path: &str) -> Location {
    Location { url: format!("file://{CLAIM_MOUNT}/{}", path.trim_start_matches('/')), ..Location::default() }
}

fn in_store(url: String, access: &StoreAccess) -> Location {
    Location {
        url,
        endpoint: access.endpoint().map(str::to_owned),
        region: access.region().map(str::to_owned),
        force_path_style: access.force_path_style().then_some(true),
    }
}

/// The part of two URLs up to the last `/` before they differ, with the query of the first.
fn common_folder(one: &str, other: &str) -> String {
    let (path, query) = one.split_once('?').map_or((one, None), |(path, query)| (path, Some(query)));
    let other = other.split('?').next().unwrap_or_default();
    let same: usize = path.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let folder = path[..same].rfind('/').map_or("", |slash| &path[..=slash]);
    query.map_or_else(|| folder.to_owned(), |query| format!("{folder}?{query}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn all_backups_are_below_the_part_that_has_nothing_of_one_of_them() {
        for (one, other, expected) in [
            ("s3://b/db/a.db", "s3://b/db/b.db", "s3://b/db/"),
            ("s3://b/a/x.db?region=eu", "s3://b/b/x.db?region=eu", "s3://b/?region=eu"),
            ("gs://b/db/same.db", "gs://b/db/same.db", "gs://b/db/"),
            ("file:///backups/19700101.db", "file:///backups/99991231.db", "file:///backups/"),
            ("az://b/ä-a", "az://b/ö-b", "az://b/"),
        ] {
            assert_eq!(common_folder(one, other), expected);
        }
    }

    fn backup(destination: Value) -> EtcdBackup {
        let backup = json!({
            "apiVersion": "etcd.improbable.io/v1alpha1",
            "kind": "EtcdBackup",
            "metadata": {"name": "b", "namespace": "db", "uid": "7e1c", "creationTimestamp": "2026-11-15T22:42:05Z"},
            "spec": {"source": {"clusterURL": "http://other:2379"}, "destination": destination},
        });
        serde_json::from_value(backup).unwrap()
    }

    #[test]
    fn backup_to_a_volume_is_shown_by_its_claim() {
        let location = of_backup(&backup(json!({"persistentVolumeClaim": {"claimName": "backups"}}))).unwrap();
        assert_eq!(location.url, "file:///backups/db/b.db");
        assert_eq!(shown_url(&location, Some("backups")), "pvc://backups/db/b.db");
        assert_eq!(path_in_volume(&location), "db/b.db");
    }

    #[test]
    fn backup_to_a_store_is_shown_by_its_url() {
        let location = of_backup(&backup(json!({"objectURLTemplate": "s3://b/{{.UID}}.db"}))).unwrap();
        assert_eq!(location.url, "s3://b/7e1c.db");
        assert_eq!(shown_url(&location, None), "s3://b/7e1c.db");
    }

    #[test]
    fn template_that_cannot_be_filled_is_an_error_that_says_why() {
        let error = of_backup(&backup(json!({"objectURLTemplate": "s3://b/{{.ClusterName}}.db"}))).unwrap_err();
        assert!(error.to_string().contains("set spec.clusterName or remove it"), "{error}");
    }
}
