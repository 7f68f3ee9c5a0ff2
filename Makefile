# All that is done to this repository is a target here: by hand, and by .ci/run.
# `make` lists them. Only Go and make are needed for `make test`.

.DEFAULT_GOAL := help
.NOTPARALLEL:

# The race detector needs a C compiler; without one Go turns cgo off.
RACE     ?= $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)
TEST      = go test $(RACE) -shuffle=on -timeout 20m
TOOL      = go run tools.go

# The packages that every target means: the library's module, and those that the bench
# and the suites have so that their dependencies are not the library's.
PACKAGES = ./... ./cmd/bench/... ./testing/integration/... ./testing/redistest/...

FUZZTIME    ?= 30s
# So many runs and not a time: at the end of a time a worker that is late is a failure.
CI_FUZZTIME ?= 10000x
SEED        ?= 1
SOAK        ?= 200s
BENCH       ?= .

# What docs/performance.md shows.
RESULTS = docs/performance-data

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# testing/integration runs last and in its own directory, where go test shows
# what a passing suite prints: the Redis it ran on.
.PHONY: test
test: ## run every test; needs no Redis, uses the best one at hand and says which
	@$(if $(RACE),,echo 'testing without the race detector: it needs a C compiler')
	@packages=$$(go list $(PACKAGES)) || exit 1; \
		packages=$$(echo "$$packages" | grep -v '/testing/integration$$'); \
		echo '$(TEST) (every package but testing/integration)'; $(TEST) $$packages
	cd testing/integration && $(TEST) -count=1

.PHONY: lint
lint: ## vet, format, staticcheck, go.mod, the repository's own rules, lua
	go vet $(PACKAGES)
	go vet tools.go
	@echo 'gofumpt -l .'; unformatted=$$($(TOOL) gofumpt -l .) || exit 1; \
		if [ -n "$$unformatted" ]; then echo "$$unformatted"; echo 'not formatted; run: go run tools.go gofumpt -w .'; exit 1; fi
	$(TOOL) staticcheck $(PACKAGES)
	go mod tidy -diff
	go test -count=1 ./testing/repo
	@if command -v luacheck >/dev/null; then \
		echo 'luacheck lua'; luacheck --quiet --std lua51 --read-globals redis KEYS ARGV -- lua; \
	else echo 'luacheck is not installed: lua/ is not linted'; fi

.PHONY: generate
generate: ## write what is derived from the tables in gen/, and the listings of the API
	go run ./gen
	go run ./gen/api

.PHONY: generate-check
generate-check: ## fail if a generated file is stale
	@go run ./gen -check && go run ./gen/api -check || { echo 'stale; run: make generate'; exit 1; }

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (30s)
	@listed=$$(go test -list '^Fuzz' $(PACKAGES)) || { echo "$$listed"; exit 1; }; \
	echo "$$listed" | awk '/^Fuzz/{name[n++]=$$1} /^ok/{for(i=0;i<n;i++) print $$2, name[i]; n=0}' | \
	while read -r package target; do \
		echo "fuzz $$package $$target"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "$$package" </dev/null || exit 1; \
	done

.PHONY: bench
bench: ## measure throughput, and whether every unit arrives once
	go run ./cmd/bench

.PHONY: bench-peers
bench-peers: ## measure a decision beside other libraries'
	cd cmd/bench/peers && go run .

# A gate for people who changed the decision, not a test: it needs a quiet machine.
.PHONY: bench-gate
bench-gate: ## fail if a decision became slower beside the floor and x/time/rate
	cd cmd/bench/peers && go run . -gate $(CURDIR)/$(RESULTS)/peers.txt

# It needs a redis-server, and a quiet machine.
.PHONY: bench-envoy
bench-envoy: ## measure Envoy's rate limit service beside the original
	cd ratelimit/envoylimit/beside && go run ./cost

.PHONY: bench-smoke
bench-smoke: ## run every benchmark once, briefly: that they work, not how fast
	go test -run '^$$' -bench . -benchtime 1x $(PACKAGES)
	go run ./cmd/bench -duration 2s -nodes 2 -keys 1000 -window 1s -tick 100ms
	cd cmd/bench/peers && go run . -rounds 1 -time 1ms -keys 100
	@if command -v redis-server >/dev/null || command -v valkey-server >/dev/null; then \
		echo 'go run ./cmd/bench tick -sizes 100 -window 10s'; go run ./cmd/bench tick -sizes 100 -window 10s; \
	else echo 'no redis-server: the tick is not measured'; fi

.PHONY: tick
tick: ## measure a tick beside a plain pipeline of equal freshness
	go run ./cmd/bench tick

.PHONY: scale
scale: ## test the bounds at their whole size: minutes, and a gigabyte of memory
	go test -run '^TestScale' -count=1 -timeout 30m -v ./ratelimit -args -scale.full

.PHONY: accuracy
accuracy: ## measure what a fleet admits beside what it should, and write docs/accuracy.md
	go run ./cmd/bench accuracy -page docs/accuracy.md -svg docs/accuracy.svg -kinds docs/accuracy-kinds.svg

.PHONY: one-key
one-key: ## live one key's minute on two nodes and write docs/one-key.md
	go run ./cmd/bench one-key -page docs/one-key.md -svg docs/one-key.svg

.PHONY: profile
profile: ## profile the benchmarks BENCH (all) of a decision into bin/
	mkdir -p bin
	go test -run '^$$' -bench '$(BENCH)' -o bin/ratelimit.test \
		-cpuprofile bin/cpu.prof -mutexprofile bin/mutex.prof -memprofile bin/mem.prof ./ratelimit
	go run ./cmd/bench tick -sizes 5000 -cpuprofile bin/tick-cpu.prof -memprofile bin/tick-mem.prof
	@echo 'look at one: go tool pprof -http=127.0.0.1:0 bin/cpu.prof'
	@echo 'of a tick: go tool pprof -top -focus "tickedLimiter..sync" bin/tick-cpu.prof'

# What it writes is committed, and shown by the page. REDIS=redis://host:port is for
# the run of twenty nodes; without it they share an embedded server.
.PHONY: performance
performance: ## measure all that docs/performance.md shows; wants a quiet machine
	mkdir -p bin $(RESULTS)
	go run ./cmd/bench page -about >$(RESULTS)/about.txt
	cd cmd/bench/peers && go run . -plot $(CURDIR)/$(RESULTS)/peers.svg >$(CURDIR)/$(RESULTS)/peers.txt
	$(TOOL) benchstat -filter '.unit:(ns/op OR cpu-ns/op)' $(RESULTS)/peers.txt >$(RESULTS)/peers-benchstat.txt
	grep '^ratio ' $(RESULTS)/peers.txt >$(RESULTS)/peers-ratios.txt
	go run ./cmd/bench tick -json $(RESULTS)/tick.jsonl >$(RESULTS)/tick.txt
	go test -run '^$$' -bench Check -count 6 -benchtime 300ms ./ratelimit >bin/decision.txt
	$(TOOL) benchstat bin/decision.txt >$(RESULTS)/decision.txt
	go test -run '^$$' -bench Memory -benchtime 1x ./ratelimit >$(RESULTS)/memory.txt
	$(MAKE) --no-print-directory scale >bin/scale.txt
	sed -n 's/^ *scale_test.go:[0-9]*: //p' bin/scale.txt >$(RESULTS)/scale.txt
	go run ./cmd/bench -nodes 20 $(if $(REDIS),-redis $(REDIS) -clean) >$(RESULTS)/fleet.txt
	cd ratelimit/envoylimit/beside && go run ./cost >$(CURDIR)/$(RESULTS)/envoy.txt
	go run ./cmd/bench page

.PHONY: integration
integration: ## run the integration tests but the fault suite; fail if there is no real Redis
	cd testing/integration && REQUIRE_REDIS=1 $(TEST) -count=1 -skip '^TestFaults$$'

.PHONY: integration-docker
integration-docker: ## run the integration tests in containers; fail if there can be none
	cd testing/integration && REQUIRE_DOCKER=1 $(TEST) -count=1 -skip '^TestFaults$$'

# CI sets REQUIRE_ALL, and then needs a valkey-server.
.PHONY: integration-valkey
integration-valkey: ## run the integration tests on valkey-server, clusters and sentinels too
	@if ! command -v valkey-server >/dev/null; then \
		echo 'NOT TESTED: there is no valkey-server on PATH'; test -z "$(REQUIRE_ALL)"; exit; fi; \
	valkey-server --version; export REDIS_SERVER=valkey-server REQUIRE_REDIS=1; \
	(cd testing/integration && $(TEST) -count=1 -skip '^TestFaults$$') && \
	cd ratelimit/goredis && $(TEST) -count=1 -run 'Failovers|Cluster|ASlot|Resharding|Rights' .

# The tally comes last, in a line of its own.
.PHONY: faults
faults: ## run the fault suite with the seed SEED (1), its soak for SOAK (200s)
	@mkdir -p bin; rm -f bin/faults.ok; cd testing/integration; \
	{ REQUIRE_REDIS=1 $(TEST) -count=1 -timeout 30m -v -run '^TestFaults' \
		-args -faults.seed=$(SEED) -faults.soak=$(SOAK) && touch ../../bin/faults.ok; } 2>&1 | \
		tee ../../bin/faults.log | grep -v -e '^=== ' -e '^faults: '; \
	grep '^faults: ' ../../bin/faults.log; test -e ../../bin/faults.ok

# The docker tests take this image if it is there, else a public one; REDIS_IMAGE
# names another.
.PHONY: redis-image
redis-image: ## make a docker image of this machine's redis-server: no registry needed
	sh testing/redistest/image/build.sh $(REDIS_IMAGE)

# Needs vuln.go.dev, so it is no part of ci, which has to pass without a network
# beyond the module proxy.
.PHONY: vuln
vuln: ## look for known vulnerabilities
	$(TOOL) govulncheck $(PACKAGES)

# Modules below the root keep what only they need out of the library's go.mod. Those
# in PACKAGES are tested by `make test`.
.PHONY: modules
modules: ## tidy, vet and test the modules below the root
	@for mod in $$(find . -mindepth 2 -name go.mod -not -path '*/testdata/*'); do \
		dir=$$(dirname "$$mod"); echo "module $$dir"; \
		(cd "$$dir" && go mod tidy -diff) || exit 1; \
		case ' $(PACKAGES) ' in *" $$dir/... "*) continue;; esac; \
		(cd "$$dir" && go vet ./... && $(TEST) ./...) || exit 1; \
	done

.PHONY: release-check
release-check: ## build consumers outside the tree, against the modules as a user would get them
	go run ./cmd/release check

.PHONY: ci
ci: lint generate-check test integration integration-valkey faults bench-smoke ## everything that must pass
	go test -count=1 ./cmd/bench/internal/accuracy # all scenarios; the race detector leaves most out
	$(MAKE) fuzz FUZZTIME=$(CI_FUZZTIME)
	REQUIRE_REDIS=1 $(MAKE) modules
	$(MAKE) release-check
