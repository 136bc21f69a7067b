# Everything a developer types. `make help` lists it.
.DEFAULT_GOAL := help
.PHONY: help demo test lint unit e2e simulate chaos soak bench audit lab-up lab-down lab-status image deploy generate

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## From nothing to a running operator on a real three-node Kubernetes, and a look at it
	@scripts/demo

test: ## Everything, from format to end to end (takes a running lab down first, and its own at the end)
	@scripts/test

lint: ## Format, clippy and the documentation of the code, every warning an error
	@cargo fmt --all -- --check
	@cargo clippy --locked --workspace --all-targets -- -D warnings
	@RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items

unit: ## The tests that need no lab: T=rollout for those with that in their names
	@scripts/unit $(T)

e2e: ## End-to-end tests on the lab: T=heal for a chapter, T=heal::replace for some of it (needs `make lab-up deploy` first)
	@scripts/e2e $(T)

simulate: ## Run the planner against simulated faults: SEEDS=1000000 for that many runs, SEED=4711 to read one
	@SIMULATE_SEEDS=$(or $(SEEDS),100000) SIMULATE_SEED=$(SEED) \
		cargo test --quiet --locked -p etcd-operator-core --lib simulation::no_rule -- --nocapture

chaos: ## Inject random faults into a real cluster on the lab for MINUTES=60 (needs `make lab-up deploy` first)
	@CHAOS_MINUTES=$(or $(MINUTES),10) cargo test --locked -p e2e --test chaos -- --nocapture

soak: ## The long-running tests: ONLY=simulation, ONLY=chaos or ONLY=schedule; without it, a list of them
	@SEEDS=$(SEEDS) MINUTES=$(MINUTES) CASES=$(CASES) scripts/soak $(ONLY)

bench: ## Measure on the lab, as ratios in one run (needs `make lab-up deploy` first)
	@cargo run --quiet --locked -p benches -- $(ONLY)

audit: ## Licences, sources and duplicates of all dependencies, and known vulnerabilities where their list can be fetched
	@scripts/audit

lab-up: ## Start a real three-node Kubernetes on this machine; kubeconfig and tools appear in .lab/
	@cargo run --locked -p lab -- up

lab-down: ## Stop it and leave nothing of it behind but the cache
	@cargo run --locked -p lab -- down

lab-status: ## Show what of it runs
	@cargo run --quiet --locked -p lab -- status

image: ## Build the operator's image, as an archive in target/image/
	@scripts/build-image

deploy: ## Build the image and install (or update) CRDs and operator in the lab
	@scripts/deploy

generate: ## Write config/crd/, config/install.yaml and docs/reference.md from the code
	@cargo run --quiet --locked -p etcd-operator -- crds --out-dir config/crd
	@cat config/crd/*.yaml config/operator/namespace.yaml config/operator/rbac.yaml config/operator/deployment.yaml > config/install.yaml
	@cargo run --quiet --locked -p etcd-operator -- reference --out-file docs/reference.md
