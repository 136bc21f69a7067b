//! Which version of etcd a backup is restored with.

use etcd_operator_protocol::manifest::Manifest;
use semver::Version;

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    #[error(
        "the backup has no manifest that tells which version of etcd wrote it: create a new EtcdRestore with \
         spec.clusterTemplate.spec.version"
    )]
    Unknown,
    #[error(
        "the backup was written by etcd {written} and can't be restored with {asked}: create a new EtcdRestore with a \
         version of the same minor, and upgrade the cluster afterwards"
    )]
    OtherMinor { written: String, asked: String },
}

/// The desired version if it is of the same minor, otherwise the one that wrote the backup.
pub fn version_for(asked: &str, manifest: Option<&Manifest>) -> Result<String, VersionError> {
    let written = manifest.map(|manifest| manifest.etcd_version.as_str());
    match (asked, written) {
        ("", Some(written)) => Ok(written.to_owned()),
        ("", None) => Err(VersionError::Unknown),
        (asked, None) => Ok(asked.to_owned()),
        (asked, Some(written)) if minor(asked) == minor(written) => Ok(asked.to_owned()),
        (asked, Some(written)) => {
            Err(VersionError::OtherMinor { written: written.to_owned(), asked: asked.to_owned() })
        }
    }
}

fn minor(version: &str) -> Option<(u64, u64)> {
    Version::parse(version).ok().map(|version| (version.major, version.minor))
}

#[cfg(test)]
mod tests {
    use super::super::tests::manifest;
    use super::*;

    #[test]
    fn a_backup_is_restored_with_the_version_that_wrote_it_or_another_patch_of_it() {
        let written = manifest("3.6.12");
        assert_eq!(version_for("", Some(&written)).as_deref(), Ok("3.6.12"));
        assert_eq!(version_for("3.6.16", Some(&written)).as_deref(), Ok("3.6.16"));
        assert_eq!(version_for("3.6.16", None).as_deref(), Ok("3.6.16"));
        for wrong in ["3.7.3", "3.5.35"] {
            let message = version_for(wrong, Some(&written)).unwrap_err().to_string();
            assert!(message.contains(wrong) && message.contains("3.6.12"), "{message}");
        }
        assert!(version_for("", None).unwrap_err().to_string().contains("clusterTemplate.spec.version"));
    }
}
