//! The command `crds`: writes the CustomResourceDefinitions as YAML.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use etcd_operator_api::all_crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

const HEADER: &str = "# Generated from crates/api by `make generate`. Change the types there, not this file.";

/// Prints the definitions as one YAML stream, or writes a file for each into `out_dir`.
pub fn write(out_dir: Option<&Path>) -> anyhow::Result<()> {
    for crd in all_crds() {
        let document = document(&crd)?;
        match out_dir {
            None => std::io::stdout().write_all(document.as_bytes()).context("printing")?,
            Some(dir) => {
                let path = dir.join(file_name(&crd));
                std::fs::write(&path, document).with_context(|| format!("writing {}", path.display()))?;
            }
        }
    }
    Ok(())
}

fn document(crd: &CustomResourceDefinition) -> anyhow::Result<String> {
    let yaml = serde_saphyr::to_string(crd).with_context(|| format!("writing {} as YAML", crd.spec.names.kind))?;
    Ok(format!("{HEADER}\n---\n{}\n", yaml.trim_end()))
}

fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}
