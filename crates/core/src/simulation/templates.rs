//! The templates that users set, as numbers: what Kubernetes makes of a pod that is created from one, and how a running
//! member follows from one to another. A template stands for everything that members are created from, besides the
//! version.

use crate::cluster::spec_diff::UpdateMethod;

/// Of what each template consists: what takes a restart, and the resources. The labels of all of them differ.
const PARTS: [(u32, u32); 7] = [(0, 0), (0, 0), (0, 1), (1, 1), (2, 1), (2, 2), (2, 1)];
const REFUSED: usize = 3;
const TOO_LARGE: usize = 5;

fn place(template: u32) -> usize {
    template as usize % PARTS.len()
}

/// Whether Kubernetes rejects pods that are created from a template: because of an unknown class, a policy or a quota.
pub fn is_refused(template: u32) -> bool {
    place(template) == REFUSED
}

/// Whether a template requests more than any node has.
pub fn fits_no_node(template: u32) -> bool {
    place(template) == TOO_LARGE
}

/// How a running member follows from one template to another.
pub fn method_between(made: u32, wanted: u32) -> UpdateMethod {
    let parts = |template: u32| {
        let (rest, resources) = PARTS[place(template)];
        ((template as usize / PARTS.len(), rest), resources)
    };
    match (parts(made), parts(wanted)) {
        (old, new) if old == new => UpdateMethod::Relabel,
        ((old, _), (new, _)) if old == new => UpdateMethod::Resize,
        _ => UpdateMethod::Restart,
    }
}

#[test]
fn every_way_of_change_is_simulated() {
    let next: Vec<UpdateMethod> = (0..7).map(|template| method_between(template, template + 1)).collect();
    let (relabel, resize, restart) = (UpdateMethod::Relabel, UpdateMethod::Resize, UpdateMethod::Restart);
    assert_eq!(next, [relabel, resize, restart, restart, resize, resize, restart]);
    assert!(!is_refused(4) && !fits_no_node(4), "a running member is asked to become too large");
}
