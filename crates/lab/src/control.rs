//! The control plane: etcd, the API server, the controllers, the scheduler, DNS and the volume provisioner, all in one
//! network namespace.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::process::Daemon;
use crate::{api, cgroup, network, parts, paths, pki, stores};

pub const GROUP: &str = "etcd-lab/control";

/// What must be running for the control plane to be whole.
pub const PROGRAMS: [&str; 6] =
    ["coredns", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "lab"];

fn daemon(name: &str) -> Daemon<'_> {
    Daemon { name, group: GROUP, namespace: network::control_namespace() }
}

/// Starts the control plane and returns when the API server answers.
pub async fn start() -> Result<()> {
    cgroup::create(GROUP)?;
    let kubernetes = parts::KUBERNETES.bin()?;
    let pki = paths::data("pki");
    let pki = pki.display();

    let etcd = daemon("etcd");
    let data = paths::data("control/etcd");
    etcd.start(
        &parts::ETCD_3_6_16.bin()?.join("etcd"),
        // The lab's own store dies with the lab, so it needn't wait for the disk.
        ["--unsafe-no-fsync", "--quota-backend-bytes=8589934592", &format!("--data-dir={}", data.display())],
    )?;

    let api_server = daemon("kube-apiserver");
    api_server.start(
        &kubernetes.join("kube-apiserver"),
        [
            "--etcd-servers=http://127.0.0.1:2379",
            &format!("--advertise-address={}", network::CONTROL_ADDRESS),
            &format!("--tls-cert-file={pki}/apiserver.crt"),
            &format!("--tls-private-key-file={pki}/apiserver.key"),
            &format!("--client-ca-file={pki}/ca.crt"),
            &format!("--kubelet-certificate-authority={pki}/ca.crt"),
            &format!("--kubelet-client-certificate={pki}/admin.crt"),
            &format!("--kubelet-client-key={pki}/admin.key"),
            "--kubelet-preferred-address-types=InternalIP",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            &format!("--service-account-key-file={pki}/service-accounts.pub"),
            &format!("--service-account-signing-key-file={pki}/service-accounts.key"),
            &format!("--service-cluster-ip-range={}", network::SERVICES),
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            // Without a kube-proxy of its own the API server must find the pods behind a webhook's service itself.
            "--enable-aggregator-routing=true",
        ],
    )?;
    api_server.wait_until("the API server answers", Duration::from_secs(90), api::is_ready).await?;

    start_controllers(&kubernetes)?;
    start_dns()?;
    start_provisioner()
}

fn start_controllers(kubernetes: &std::path::Path) -> Result<()> {
    let pki = paths::data("pki");
    let pki = pki.display();
    let as_user = |user: &str| {
        let file = pki::kubeconfig(user).display().to_string();
        ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
            .map(|option| format!("--{option}={file}"))
            .to_vec()
    };

    let mut options = as_user("kube-controller-manager");
    options.extend([
        "--leader-elect=false".to_owned(),
        "--use-service-account-credentials=true".to_owned(),
        format!("--service-account-private-key-file={pki}/service-accounts.key"),
        format!("--root-ca-file={pki}/ca.crt"),
        format!("--cluster-signing-cert-file={pki}/ca.crt"),
        format!("--cluster-signing-key-file={pki}/ca.key"),
        // A lost node is noticed in a third of the usual time, so that tests of it are quick.
        "--node-monitor-grace-period=16s".to_owned(),
    ]);
    daemon("kube-controller-manager").start(&kubernetes.join("kube-controller-manager"), options)?;

    let mut options = as_user("kube-scheduler");
    options.push("--leader-elect=false".to_owned());
    daemon("kube-scheduler").start(&kubernetes.join("kube-scheduler"), options)
}

fn start_dns() -> Result<()> {
    let corefile = paths::data("control/Corefile");
    let text = format!(
        ".:53 {{
    bind {address}
    errors
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig}
    }}
}}
{stores}:53 {{
    bind {address}
    errors
    template IN A {{
        answer \"{{{{ .Name }}}} 60 IN A {address}\"
    }}
    template IN AAAA {{
        rcode NOERROR
    }}
}}
",
        address = network::CONTROL_ADDRESS,
        stores = stores::DOMAIN,
        kubeconfig = pki::kubeconfig("admin").display(),
    );
    std::fs::write(&corefile, text).with_context(|| format!("writing {}", corefile.display()))?;
    daemon("coredns")
        .start(&parts::COREDNS.bin()?.join("coredns"), [format!("-conf={}", corefile.display()), "-p=53".to_owned()])
}

/// The provisioner is this very program, copied so that a new build doesn't pull it away from under the process.
fn start_provisioner() -> Result<()> {
    let own: PathBuf = std::env::current_exe().context("finding the lab's own program")?;
    let copy = paths::data("control/lab");
    std::fs::copy(&own, &copy).with_context(|| format!("copying {} to {}", own.display(), copy.display()))?;
    daemon("provisioner").start(&copy, ["provision-volumes"])
}
