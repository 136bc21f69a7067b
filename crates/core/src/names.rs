//! The names and addresses of a cluster's objects, and how to parse an ordinal from them.

use crate::ordinal::Ordinal;

/// Everything that the names and addresses of a cluster's members consist of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNames {
    pub cluster: String,
    pub namespace: String,
    /// The DNS domain of the Kubernetes cluster, for example `cluster.local`.
    pub domain: String,
}

impl ClusterNames {
    /// The name of a member, of its EtcdPeer, pod and claim.
    pub fn member_name(&self, ordinal: Ordinal) -> String {
        format!("{}-{ordinal}", self.cluster)
    }

    /// The DNS name of a member, which follows its pod to any node.
    pub fn host(&self, ordinal: Ordinal) -> String {
        format!("{}.{}.{}.svc.{}", self.member_name(ordinal), self.cluster, self.namespace, self.domain)
    }

    pub fn peer_url(&self, ordinal: Ordinal) -> String {
        format!("http://{}:2380", self.host(ordinal))
    }

    pub fn client_url(&self, ordinal: Ordinal) -> String {
        format!("http://{}:2379", self.host(ordinal))
    }

    /// The ordinal in the name of a member. All callers compare ordinals as numbers: `-10` is above `-9`.
    pub fn ordinal_of_name(&self, name: &str) -> Option<Ordinal> {
        let digits = name.strip_prefix(&self.cluster)?.strip_prefix('-')?;
        // Only in the canonical form: `c-01` and `c-+1` are not names of this operator.
        digits.parse().ok().map(Ordinal).filter(|ordinal| ordinal.to_string() == digits)
    }

    /// The ordinal of the member at a peer URL. A member that has not started yet has no name, only this.
    pub fn ordinal_of_url(&self, url: &str) -> Option<Ordinal> {
        let host = url.split_once("://")?.1.split([':', '/']).next()?;
        // The whole address up to the domain: a member elsewhere may have the same first label.
        let (name, names) = host.split_once('.')?;
        let ours = format!("{}.{}.svc", self.cluster, self.namespace);
        let is_here = names == ours || names.strip_prefix(&ours).is_some_and(|rest| rest.starts_with('.'));
        self.ordinal_of_name(name).filter(|_| is_here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> ClusterNames {
        ClusterNames { cluster: "my-etcd".into(), namespace: "db".into(), domain: "cluster.local".into() }
    }

    #[test]
    fn names_and_urls_lead_back_to_the_ordinal() {
        for ordinal in [0, 9, 10, 123].map(Ordinal) {
            assert_eq!(names().ordinal_of_name(&names().member_name(ordinal)), Some(ordinal));
            assert_eq!(names().ordinal_of_url(&names().peer_url(ordinal)), Some(ordinal));
        }
        assert_eq!(names().peer_url(Ordinal(2)), "http://my-etcd-2.my-etcd.db.svc.cluster.local:2380");
    }

    #[test]
    fn name_of_another_owner_has_no_ordinal() {
        for name in ["my-etcd", "my-etcd-", "my-etcd-01", "my-etcd-+1", "my-etcd-x", "other-1", "my-etcd-1-2"] {
            assert_eq!(names().ordinal_of_name(name), None, "{name}");
        }
        for url in
            ["http://10.0.0.7:2380", "http://my-etcd-1.my-etcd.other.svc.cluster.local:2380", "http://my-etcd-1:2380"]
        {
            assert_eq!(names().ordinal_of_url(url), None, "{url}");
        }
        assert_eq!(names().ordinal_of_url("http://my-etcd-1.my-etcd.db.svc.other.domain:2380"), Some(Ordinal(1)));
    }
}
