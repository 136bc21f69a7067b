//! The namespaces that the operator watches: all, or some.

use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    AllNamespaces,
    Namespace(String),
}

impl Scope {
    /// The scopes that cover the namespaces which the user named; if none, one that covers all.
    pub fn of_namespaces(names: &[String]) -> Vec<Scope> {
        let mut names: Vec<&str> = names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            vec![Scope::AllNamespaces]
        } else {
            names.into_iter().map(|name| Scope::Namespace(name.into())).collect()
        }
    }

    /// The objects of one kind in this scope.
    pub fn api<K>(&self, client: &Client) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        match self {
            Scope::AllNamespaces => Api::all(client.clone()),
            Scope::Namespace(name) => Api::namespaced(client.clone(), name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes_of(names: &[&str]) -> Vec<Scope> {
        Scope::of_namespaces(&names.iter().map(|name| name.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn no_name_means_all_namespaces() {
        assert_eq!(scopes_of(&[]), [Scope::AllNamespaces]);
        assert_eq!(scopes_of(&["", " "]), [Scope::AllNamespaces]);
    }

    #[test]
    fn each_namespace_is_watched_once() {
        let expected = [Scope::Namespace("a".into()), Scope::Namespace("b".into())];
        assert_eq!(scopes_of(&["b", " a", "b"]), expected);
    }
}
