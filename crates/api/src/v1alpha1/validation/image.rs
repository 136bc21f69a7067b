//! Rules about `spec.image`.

use kube::core::Rule;

/// A digest, or a tag: a colon after the last slash. A colon before that is the port of a registry.
const TAG_OR_DIGEST: &str = "@|:[^/]*$";

/// A registry, maybe with a port, then path components as registries allow them.
const REPOSITORY: &str =
    r"^(([a-zA-Z0-9.-]+|\[[a-fA-F0-9:]+\])(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$";

pub fn repository_has_no_tag() -> Rule {
    Rule::new(format!("!self.matches(r'{TAG_OR_DIGEST}')")).message(
        "spec.image.repository must not have a tag or a digest, because the tag is made from spec.version; write it \
         like quay.io/coreos/etcd",
    )
}

/// Says nothing about a tag, which has a sentence of its own.
pub fn repository_is_well_formed() -> Rule {
    Rule::new(format!("self.matches(r'{TAG_OR_DIGEST}') || self.matches(r'{REPOSITORY}')")).message(
        "spec.image.repository must be the name of a repository in a registry, in lower case and without a protocol; \
         write it like quay.io/coreos/etcd",
    )
}
