//! Volumes that grow while they are in use, as a cloud's external resizer would make them.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::{NETWORK, STANDARD, requested_size};

/// The size that a bound claim of ours asks for beyond what it has. A claim of a class that doesn't grow can't ask.
pub fn wanted_growth(claim: &PersistentVolumeClaim) -> Option<String> {
    let spec = claim.spec.as_ref()?;
    let ours = matches!(spec.storage_class_name.as_deref(), Some(STANDARD | NETWORK));
    let size = requested_size(claim)?;
    let has = &claim.status.as_ref()?.capacity.as_ref()?.get("storage")?.0;
    // A claim may have more than it asked for, if it was bound to a volume that was there already.
    (ours && spec.volume_name.is_some() && bytes(&size)? > bytes(has)?).then_some(size)
}

/// A folder has room for whatever is written, so only the numbers change: the volume's first, as a real one's would.
pub async fn grow(claim: &PersistentVolumeClaim, size: &str, client: &Client) -> Result<()> {
    let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).context("the claim has no volume")?;
    let parameters = PatchParams::default();
    let capacity = json!({"spec": {"capacity": {"storage": size}}});
    Api::<PersistentVolume>::all(client.clone())
        .patch(volume, &parameters, &Patch::Merge(capacity))
        .await
        .with_context(|| format!("setting the capacity of {volume}"))?;
    // All conditions of a claim in the lab are about a resize, and none is under way any more.
    let status = json!({"status": {"capacity": {"storage": size}, "conditions": null}});
    Api::<PersistentVolumeClaim>::namespaced(client.clone(), &claim.namespace().unwrap_or_default())
        .patch_status(&claim.name_any(), &parameters, &Patch::Merge(status))
        .await
        .context("setting the capacity of the claim")?;
    Ok(())
}

/// A size as Kubernetes writes it, in bytes. Exact enough to tell which of two is bigger.
fn bytes(size: &str) -> Option<f64> {
    // A number without a unit, perhaps with an exponent, which would look like one.
    if let Ok(number) = size.parse() {
        return Some(number);
    }
    let (number, unit) = size.split_at(size.find(|letter: char| letter.is_ascii_alphabetic())?);
    let (letter, base) = match unit.strip_suffix('i') {
        Some(letter) => (letter, 1024_f64),
        None => (unit, 1000_f64),
    };
    let power = match letter {
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        "E" => 6,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * base.powi(power))
}

#[cfg(test)]
mod tests {
    use super::super::tests::claim;
    use super::*;

    /// A bound claim of a class that asks for 50Mi.
    fn bound(class: &str, has: &str) -> PersistentVolumeClaim {
        claim(json!({
            "spec": {"storageClassName": class, "volumeName": "pvc-u1"},
            "status": {"capacity": {"storage": has}},
        }))
    }

    #[test]
    fn bound_claim_with_larger_request_grows() {
        assert_eq!(wanted_growth(&bound("standard", "20Mi")), Some("50Mi".to_owned()));
        assert_eq!(wanted_growth(&bound("network", "20Mi")), Some("50Mi".to_owned()));
        assert_eq!(wanted_growth(&bound("standard", "50Mi")), None);
        assert_eq!(wanted_growth(&claim(json!({}))), None, "it is not bound");
    }

    #[test]
    fn claim_larger_than_its_request_keeps_its_size() {
        assert_eq!(wanted_growth(&bound("standard", "1Gi")), None);
        assert_eq!(wanted_growth(&bound("standard", "52428800")), None, "the same in another unit");
    }

    #[test]
    fn other_classes_do_not_grow() {
        assert_eq!(wanted_growth(&bound("fixed", "20Mi")), None);
        assert_eq!(wanted_growth(&bound("other", "20Mi")), None);
    }

    #[test]
    fn sizes_with_units_are_parsed() {
        assert_eq!(bytes("52428800"), Some(52_428_800.0));
        assert_eq!(bytes("50Mi"), bytes("52428800"));
        assert_eq!(bytes("1.5Gi"), bytes("1536Mi"));
        assert_eq!(bytes("2k"), bytes("2e3"));
        assert_eq!(bytes("1E"), bytes("1e18"));
        assert_eq!(bytes("1Ki"), Some(1024.0));
        assert_eq!(bytes("1500m"), None);
        assert_eq!(bytes("much"), None);
    }
}
