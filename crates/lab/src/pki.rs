//! Certificates and kubeconfigs of the lab, created again at every `up`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

use crate::node::Node;
use crate::{network, paths};

/// Where the API server listens, for everybody.
pub fn api_server_url() -> String {
    format!("https://{}:6443", network::CONTROL_ADDRESS)
}

pub fn file(name: &str) -> PathBuf {
    paths::data("pki").join(name)
}

pub fn kubeconfig(user: &str) -> PathBuf {
    file(&format!("{user}.kubeconfig"))
}

/// Makes the authority, the service-account key, all certificates and all kubeconfigs.
pub fn create() -> Result<()> {
    let folder = paths::data("pki");
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let authority = Authority::create()?;

    let service_accounts = KeyPair::generate()?;
    write(&file("service-accounts.key"), &service_accounts.serialize_pem())?;
    write(&file("service-accounts.pub"), &service_accounts.public_key_pem())?;

    let api_names = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
        "127.0.0.1",
        network::CONTROL_ADDRESS,
        network::API_SERVICE_ADDRESS,
    ];
    authority.issue("apiserver", "kube-apiserver", None, &api_names)?;
    for node in Node::all() {
        let user = format!("system:node:{}", node.name());
        authority.issue(&node.name(), &user, Some("system:nodes"), &[&node.name(), &node.address()])?;
    }
    authority.issue("admin", "lab-admin", Some("system:masters"), &[])?;
    for component in ["kube-controller-manager", "kube-scheduler", "kube-proxy"] {
        authority.issue(component, &format!("system:{component}"), None, &[])?;
    }
    let users = ["admin", "kube-controller-manager", "kube-scheduler", "kube-proxy"].map(str::to_owned);
    for user in users.into_iter().chain(Node::all().map(|node| node.name())) {
        write(&kubeconfig(&user), &kubeconfig_text(&user))?;
    }
    Ok(())
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn create() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "etcd-lab");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        write(&file("ca.crt"), &params.self_signed(&key)?.pem())?;
        write(&file("ca.key"), &key.serialize_pem())?;
        Ok(Authority { issuer: Issuer::new(params, key) })
    }

    /// Writes `<name>.crt` and `<name>.key` for a user (and group) that may serve under the given names.
    fn issue(&self, name: &str, user: &str, group: Option<&str>, names: &[&str]) -> Result<()> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer).with_context(|| format!("signing for {user}"))?;
        write(&file(&format!("{name}.crt")), &certificate.pem())?;
        write(&file(&format!("{name}.key")), &key.serialize_pem())
    }
}

/// A kubeconfig that names the certificate files rather than holding them: it is of use on this machine only.
fn kubeconfig_text(user: &str) -> String {
    let pki = paths::data("pki");
    let pki = pki.display();
    let server = api_server_url();
    format!(
        "apiVersion: v1
kind: Config
current-context: lab
clusters:
- name: lab
  cluster: {{server: \"{server}\", certificate-authority: {pki}/ca.crt}}
contexts:
- name: lab
  context: {{cluster: lab, user: {user}}}
users:
- name: {user}
  user: {{client-certificate: {pki}/{user}.crt, client-key: {pki}/{user}.key}}
"
    )
}

fn write(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::File::options();
    let mut file = options
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("writing {}", path.display()))?;
    std::io::Write::write_all(&mut file, text.as_bytes()).with_context(|| format!("writing {}", path.display()))
}
