//! What Kubernetes does by itself: it detects node failures, schedules pods, starts and terminates them, and
//! garbage-collects what is deleted.

use etcd_operator_protocol::gate::{DataDirContents, StartDecision, decide_start};
use etcd_operator_protocol::report::Refusal;
use semver::Version;

use super::coverage::Rule;
use super::etcd::Etcd;
use super::templates::fits_no_node;
use super::world::{Broken, DataDir, Disk, PodObject, Process, Storage, World};
use crate::cluster::initial_members::identity_of;
use crate::cluster::observed::{Bootstrap, Identity, Problem, ProblemKind};
use crate::cluster::tests::support::names;
use crate::ordinal::Ordinal;

impl World {
    /// Lets everything happen that happens without the operator.
    pub fn settle(&mut self) -> Result<(), Broken> {
        self.notice_nodes();
        self.stop_pods();
        self.collect_claims();
        self.schedule_pods();
        self.start_pods()?;
        self.form_etcd();
        self.probe_pods();
        self.run_etcd()
    }

    /// Kubelets report whether pods are ready; pods on unreachable nodes count as not ready.
    pub fn probe_pods(&mut self) {
        let runs = |pod: &PodObject| {
            let process = self.processes.iter().find(|process| process.pod == pod.uid);
            process.is_some_and(|process| self.answers(process))
        };
        let changed = self.api.pods.iter().map(|(ordinal, pod)| (*ordinal, pod.ready, runs(pod)));
        let changed: Vec<(Ordinal, bool)> =
            changed.filter(|(_, was, is)| was != is).map(|(ordinal, _, is)| (ordinal, is)).collect();
        for (ordinal, ready) in changed {
            if let Some(pod) = self.api.pods.get_mut(&ordinal) {
                pod.ready = ready;
            }
        }
    }

    fn notice_nodes(&mut self) {
        for (number, machine) in self.machines.iter().enumerate() {
            match (machine.is_reachable() && !machine.unready, self.api.nodes[number].down_since) {
                (true, Some(_)) => self.api.nodes[number].down_since = None,
                (false, None) => self.api.nodes[number].down_since = Some(self.now),
                _ => {}
            }
        }
    }

    /// Kubelets that reach the API server terminate deleted pods. Processes on a machine without power are gone anyway.
    fn stop_pods(&mut self) {
        self.processes.retain(|process| self.machines[process.machine].on);
        let hears = |node: Option<usize>| node.is_none_or(|node| self.machines[node].is_reachable());
        let sticks =
            |pod: &PodObject| self.processes.iter().any(|process| process.pod == pod.uid && process.unkillable);
        let stops = |pod: &PodObject| pod.deleting && hears(pod.node) && !sticks(pod);
        let stopped: Vec<Ordinal> = self.api.pods.iter().filter(|(_, pod)| stops(pod)).map(|(it, _)| *it).collect();
        for ordinal in stopped {
            self.note(|| format!("kubelet: c-{ordinal}'s pod has stopped"));
            self.remove_pod(ordinal);
        }
        let known: Vec<u64> = self.api.pods.values().map(|pod| pod.uid).collect();
        let machines = &self.machines;
        self.processes.retain(|it| known.contains(&it.pod) || it.unkillable || !machines[it.machine].is_reachable());
    }

    /// Removes a pod from the API server. Its process ends only if its machine reaches the API server.
    pub fn remove_pod(&mut self, ordinal: Ordinal) {
        let Some(pod) = self.api.pods.remove(&ordinal) else { return };
        let machines = &self.machines;
        self.processes.retain(|it| it.pod != pod.uid || it.unkillable || !machines[it.machine].is_reachable());
        if let Some(disk) = pod.own_disk {
            self.disks[disk].data = None;
        }
    }

    fn collect_claims(&mut self) {
        let used = |ordinal: &Ordinal| self.api.pods.contains_key(ordinal);
        let gone: Vec<Ordinal> = self
            .api
            .claims
            .iter()
            .filter(|(ordinal, claim)| claim.claim.deleting && !used(ordinal))
            .map(|(ordinal, _)| *ordinal)
            .collect();
        for ordinal in gone {
            self.note(|| format!("kubernetes: c-{ordinal}'s claim and its disk are gone"));
            if let Some(disk) = self.api.claims.remove(&ordinal).and_then(|claim| claim.disk) {
                self.disks[disk].data = None;
            }
        }
    }

    fn schedule_pods(&mut self) {
        let waiting: Vec<Ordinal> =
            self.api.pods.iter().filter(|(_, pod)| pod.node.is_none() && !pod.deleting).map(|(it, _)| *it).collect();
        for ordinal in waiting {
            let node = self.node_for(ordinal);
            let disk = node.and_then(|node| self.provide_disk(ordinal, node));
            let Some(pod) = self.api.pods.get_mut(&ordinal) else { continue };
            match (node, disk) {
                (Some(node), Some(disk)) => {
                    (pod.node, pod.problem) = (Some(node), None);
                    if self.storage == Storage::Ephemeral {
                        pod.own_disk = Some(disk);
                    }
                }
                _ => pod.problem = Some(Problem::new(ProblemKind::NoNode, "pod not scheduled")),
            }
        }
    }

    /// The node with the fewest pods among those that are eligible.
    fn node_for(&self, ordinal: Ordinal) -> Option<usize> {
        if self.api.pods.get(&ordinal).is_some_and(|pod| fits_no_node(pod.template)) {
            return None;
        }
        let bound = if self.storage == Storage::Ephemeral {
            None
        } else {
            let claim = self.api.claims.get(&ordinal).filter(|claim| !claim.claim.deleting)?;
            claim.disk.and_then(|disk| self.disks[disk].bound_to)
        };
        let pods_on = |node: usize| self.api.pods.values().filter(|pod| pod.node == Some(node)).count();
        let ready = |node: &usize| self.api.nodes[*node].down_since.is_none() && bound.is_none_or(|it| it == *node);
        (0..self.api.nodes.len()).filter(ready).min_by_key(|node| pods_on(*node))
    }

    fn provide_disk(&mut self, ordinal: Ordinal, node: usize) -> Option<usize> {
        if let Some(disk) = self.disk_of(ordinal) {
            return Some(disk);
        }
        let bound_to = (self.storage == Storage::Local).then_some(node);
        self.disks.push(Disk { bound_to, data: None });
        let disk = self.disks.len() - 1;
        if let Some(claim) = self.api.claims.get_mut(&ordinal) {
            (claim.disk, claim.chosen) = (Some(disk), Some(node));
        }
        Some(disk)
    }

    fn start_pods(&mut self) -> Result<(), Broken> {
        let ready: Vec<Ordinal> = self
            .api
            .pods
            .iter()
            .filter(|(_, pod)| !pod.deleting && pod.node.is_some_and(|node| self.machines[node].is_reachable()))
            .filter(|(_, pod)| self.processes.iter().all(|process| process.pod != pod.uid))
            .map(|(ordinal, _)| *ordinal)
            .collect();
        for ordinal in ready {
            self.start_pod(ordinal)?;
        }
        Ok(())
    }

    /// The gate checks the data, and then etcd starts as etcd does. Both happen at every container restart.
    fn start_pod(&mut self, ordinal: Ordinal) -> Result<(), Broken> {
        let (Some(pod), Some(disk)) = (self.api.pods.get(&ordinal).cloned(), self.disk_of(ordinal)) else {
            return Ok(());
        };
        let found =
            self.disks[disk].data.map_or(DataDirContents::Nothing, |data| DataDirContents::Member(data.identity));
        let problem = match decide_start(pod.start.expected, &found) {
            StartDecision::Start => None,
            StartDecision::Archive(_) => {
                self.disks[disk].data = None;
                None
            }
            StartDecision::Refuse(why) => Some(Problem::new(ProblemKind::of_refusal(Refusal::new(&why).reason), why)),
        };
        let problem = match problem {
            Some(problem) => Some(problem),
            None => self.start_etcd(ordinal, &pod, disk)?,
        };
        if let Some(problem) = &problem {
            self.note(|| format!("kubelet: c-{ordinal} does not start: {}", problem.message));
        }
        if (&pod.problem, pod.began) != (&problem, true)
            && let Some(pod) = self.api.pods.get_mut(&ordinal)
        {
            (pod.problem, pod.began) = (problem, true);
        }
        Ok(())
    }

    fn start_etcd(&mut self, ordinal: Ordinal, pod: &PodObject, disk: usize) -> Result<Option<Problem>, Broken> {
        let crash = |why: &str| Ok(Some(Problem::new(ProblemKind::Other, why)));
        if pod.version.patch == 98 {
            return Ok(Some(Problem::new(ProblemKind::NoImage, "there is no such image")));
        }
        if pod.version.patch == 99 {
            return crash("this version does not run");
        }
        self.forget_the_version_of_what_is_lost();
        if self.shows_only_now(&pod.version, disk) {
            return crash("its data or its log is not readable for this version");
        }
        self.check_version(ordinal, &pod.version, disk)?;
        let minor = pod.version.minor;
        let data = match self.disks[disk].data {
            Some(data) => data,
            None => match self.identity_to_start_with(ordinal, pod)? {
                Ok(identity) => DataDir { identity, index: 0, corrupt: false, minor, oldest_log: minor },
                Err(why) => return crash(why),
            },
        };
        let removed = self.etcd.as_ref().is_some_and(|etcd| {
            etcd.cluster_id == data.identity.cluster_id
                && etcd.has_quorum(self)
                && etcd.member(data.identity.member_id).is_none()
        });
        self.disks[disk].data = Some(data);
        if removed {
            return crash("the member was removed");
        }
        self.note(|| format!("kubelet: c-{ordinal} runs as {}", data.identity.member_id));
        let machine = pod.node.unwrap_or_default();
        let (identity, index) = (data.identity, data.index);
        self.processes.push(Process {
            pod: pod.uid,
            ordinal,
            machine,
            disk,
            identity,
            version: pod.version.clone(),
            template: pod.template,
            index,
            hung: false,
            unkillable: false,
        });
        Ok(None)
    }

    /// Whether a version can't read the data on a disk, and the operator could not know: etcd could not be queried, or
    /// was not yet known to exist. That does no harm, and neither does a version that is too old for the others but has
    /// no data to lose.
    fn shows_only_now(&self, version: &Version, disk: usize) -> bool {
        let minor = version.minor;
        let Some(data) = self.disks[disk].data else {
            let agreed = self.etcd.as_ref().and_then(|etcd| etcd.minor);
            return agreed.is_some_and(|agreed| minor < agreed);
        };
        let is_asked = self.etcd.as_ref().is_some_and(|etcd| etcd.has_quorum(self));
        let is_known = self.api.cluster.cluster_id.is_some();
        let agreed = self.etcd.as_ref().and_then(|etcd| etcd.minor).unwrap_or(minor);
        let fits = (agreed..=agreed + 1).contains(&minor) && minor >= data.minor;
        let could_be_known = is_asked && is_known;
        let starts = fits && (minor < 7 || data.oldest_log >= 6);
        !could_be_known && !starts
    }

    /// A cluster that is bootstrapped again with the same token has the same ID, but no member has any data.
    fn forget_the_version_of_what_is_lost(&mut self) {
        if self.etcd.as_ref().is_some_and(|etcd| !self.is_anything_left_of(etcd))
            && let Some(etcd) = &mut self.etcd
        {
            (etcd.minor, etcd.downgrade) = (None, None);
        }
    }

    /// Versions change by one minor at a time, down only with data that was made readable for it, and up only from a
    /// patch from which it is safe.
    fn check_version(&self, ordinal: Ordinal, version: &Version, disk: usize) -> Result<(), Broken> {
        let minor = version.minor;
        if self.disks[disk].data.is_some() {
            self.coverage.judge(Rule::DataIsReadable);
        }
        if self.disks[disk].data.is_some() && minor >= 7 {
            self.coverage.judge(Rule::LogIsReadable);
        }
        if self.disks[disk].data.is_some_and(|data| data.minor > minor) {
            return Err(format!("c-{ordinal} starts as {version} and cannot read its data"));
        }
        if minor >= 7 && self.disks[disk].data.is_some_and(|data| data.oldest_log < 6) {
            return Err(format!("c-{ordinal} starts as {version} and cannot read its log"));
        }
        let is_member =
            |it: &&Process| self.etcd.as_ref().is_some_and(|etcd| etcd.member(it.identity.member_id).is_some());
        let Some(agreed) = self.etcd.as_ref().and_then(|etcd| etcd.minor) else {
            let Some(other) = self.processes.iter().find(is_member) else { return Ok(()) };
            self.coverage.judge(Rule::VersionsWaitForAgreement);
            let is_same = other.version.minor == minor;
            let how = || format!("c-{ordinal} starts as {version} beside {}, before they agreed on any", other.version);
            return if is_same { Ok(()) } else { Err(how()) };
        };
        self.coverage.judge(Rule::VersionsGoStepByStep);
        if minor < agreed {
            return Err(format!("c-{ordinal} starts as {version}, and the others agreed on 3.{agreed}"));
        }
        if minor > agreed + 1 {
            return Err(format!(
                "c-{ordinal} starts as {version} and skips a minor version: the others are at 3.{agreed}"
            ));
        }
        let is_earlier = |it: &&Process| is_member(it) && it.version.minor < minor;
        let mut earlier = self.processes.iter().filter(is_earlier).peekable();
        if earlier.peek().is_some() {
            self.coverage.judge(Rule::UpgradesStartFromSafePatches);
        }
        match earlier.find(|it| [Version::new(3, 5, 20), Version::new(3, 6, 10)].contains(&it.version)) {
            Some(old) => {
                Err(format!("c-{ordinal} starts as {version} beside {}, which is too old for that", old.version))
            }
            None => Ok(()),
        }
    }

    /// The identity that etcd takes if it starts without data, or why it does not start.
    fn identity_to_start_with(
        &self,
        ordinal: Ordinal,
        pod: &PodObject,
    ) -> Result<Result<Identity, &'static str>, Broken> {
        let member = self.etcd.as_ref().and_then(|etcd| etcd.member_at(ordinal));
        if let Some(token) = &pod.start.bootstrap_token {
            let size = u32::try_from(pod.start.initial_cluster.len()).unwrap_or_default();
            let initial_member = identity_of(&names(), &Bootstrap { token: token.clone(), size }, ordinal);
            let Some(etcd) = &self.etcd else { return Ok(Ok(initial_member)) };
            if etcd.bootstrap.token != *token {
                self.coverage.judge(Rule::NoDataIsBootstrappedOver);
                return if self.is_anything_left_of(etcd) {
                    Err("another cluster was bootstrapped over this one".to_owned())
                } else {
                    Ok(Ok(initial_member))
                };
            }
            // etcd queries the others whether it was a member before.
            let reaches_somebody = self.processes.iter().any(|process| etcd.connects(self, process));
            if reaches_somebody && member.is_some_and(|member| member.started && member.id == initial_member.member_id)
            {
                return Ok(Err("the member has been bootstrapped already"));
            }
            return self.check_return(ordinal, initial_member).map(Ok);
        }
        let Some((etcd, member)) = self.etcd.as_ref().zip(member) else { return Ok(Err("nobody knows the member")) };
        if !self.processes.iter().any(|process| etcd.connects(self, process)) {
            return Ok(Err("nobody can be asked who belongs to the cluster"));
        }
        if etcd.downgrade.is_some() {
            return Ok(Err("nobody can join while a downgrade is in progress"));
        }
        let live: Vec<_> = etcd.members.iter().map(|it| it.peer_url.as_str()).collect();
        let expected: Vec<_> = pod.start.initial_cluster.iter().map(|(_, url)| url.as_str()).collect();
        if expected != live {
            return Ok(Err("the list of members is not the live one"));
        }
        self.check_return(ordinal, Identity { member_id: member.id, cluster_id: etcd.cluster_id }).map(Ok)
    }

    /// Whether any data of a cluster is left. If the user deleted it all, a new one may be bootstrapped.
    fn is_anything_left_of(&self, etcd: &Etcd) -> bool {
        let claimed = self.api.claims.values().filter_map(|claim| self.disks[claim.disk?].data);
        let mut held = claimed.map(|data| data.identity).chain(self.processes.iter().map(|process| process.identity));
        held.any(|identity| identity.cluster_id == etcd.cluster_id)
    }

    /// Rule 3: a member that lost its data never returns under its old ID.
    fn check_return(&self, ordinal: Ordinal, identity: Identity) -> Result<Identity, Broken> {
        let noted = self.api.peers.get(&ordinal).is_some_and(|peer| peer.started && peer.identity == Some(identity));
        if self.api.cluster.cluster_id.is_some() {
            self.coverage.judge(Rule::LostDataDoesNotReturn);
        }
        if noted && self.api.cluster.cluster_id.is_some() {
            return Err(format!("c-{ordinal} lost its data and returns as {} again", identity.member_id));
        }
        Ok(identity)
    }
}
