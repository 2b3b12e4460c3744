# Longer recipes are in scripts/. `make help` lists the targets.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
BINARY  ?= bin/oddsgraph
TIMEOUT ?= 45m
NPM      = $(shell command -v npm)
# The example apps, which the tests build.
EXAMPLES = $(patsubst %/package-lock.json,%/node_modules/.installed.json,$(wildcard examples/*/package-lock.json))
# The sources of the pages.
WEBFILES = $(shell find web examples/*.graphql examples/*.json schema.graphqls -type f -not -path '*/node_modules/*' -not -path '*/dist/*' -not -path '*/__generated__/*')
GOFILES  = $(shell find . -name '*.go' -not -path './.*' -not -path '*/node_modules/*')

# The race detector needs a C compiler.
CC_NAME  = $(firstword $(shell $(GO) env CC))
# The packages whose goroutines share state: make check tests them with the race detector.
RACED    = ^oddsgraph/(app|httpapi|internal|loaders|resolvers|graph/exec)(/|$$)
# make check runs go vet itself.
GOTEST   = $(GO) test -vet=off -parallel 6 -timeout $(TIMEOUT)
export CGO_ENABLED ?= 0
# Tests build the program as it is shipped. With the same flag for everything, each package is compiled once.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS 2>/dev/null) -trimpath)
# Go and npm keep their caches below HOME.
ifeq ($(HOME),)
export HOME := $(shell getent passwd "$$(id -u)" | cut -d: -f6)
endif

.DEFAULT_GOAL := help
.PHONY: help run tools web test clients pages docs mutations screenshots soak check nightly generate fmt lint bench bench-pairs bench-curve bench-quick plain build binary reproducible release notes cc

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: certificates $(if $(NPM),web) ## serve GraphQL on http://127.0.0.1:8080 over the embedded demo venue
	@$(if $(NPM),,echo "npm is not here to build GraphiQL and the live board: serving the small page in their place" >&2)
	$(GO) run . --demo-control

web: web/dist/index.html ## build GraphiQL and the live board, which the program embeds; the first time installs what they need with npm

web/dist/index.html: web/node_modules/.installed $(WEBFILES)
	cd web && npm run --silent build

web/node_modules/.installed: web/package-lock.json
	cd web && npm ci --prefer-offline --ignore-scripts --no-audit --no-fund
	@touch $@

clients/node_modules/.installed.json: clients/package-lock.json
	cd clients && npm ci --prefer-offline --ignore-scripts --no-audit --no-fund
	@cp clients/package-lock.json $@

# This is npm install, because npm ci refuses a lock file that lacks packages of other platforms. A registry may lack them.
examples/%/node_modules/.installed.json: examples/%/package-lock.json
	cd examples/$* && npm install --no-save --prefer-offline --ignore-scripts --no-audit --no-fund
	@cp examples/$*/package-lock.json $@

tools: ## install what the tests run besides Go, if apt-get may, or print what to install
	@scripts/tools

certificates:
	@scripts/tools certificates

# tests/e2e is first, because it takes longest.
test: ## run the tests whose result does not depend on the speed of the machine; they need only Go
	$(GOTEST) ./tests/e2e $$($(GO) list ./... | grep -v '/tests/e2e$$')

clients: web clients/node_modules/.installed.json ## run the checks with real GraphQL clients alone, showing each; the first time installs them with npm
	TIER=check $(GO) test -run '^TestClients$$' -count=1 -v ./tests/e2e

pages: web $(EXAMPLES) ## run the checks of the pages in a browser alone, showing each
	TIER=check $(GO) test -run '^TestBrowser$$' -count=1 -v ./tests/e2e

docs: ## run every code block of the documentation and follow its links, showing each
	TIER=check $(GO) test -run '^TestDocs' -count=1 -v ./tests/e2e

mutations: ## remove each defence from a copy of the code alone, showing the test that fails
	TIER=nightly $(GO) test -run '^TestMutations$$' -count=1 -v ./tests/mutations

screenshots: web ## draw the images of docs/images anew
	@mkdir -p bin/screenshots docs/images
	TIER=check SCREENSHOTS=$(CURDIR)/bin/screenshots $(GO) test -run '^TestBrowser$$' -count=1 ./tests/e2e
	cp bin/screenshots/graphiql.png docs/images/graphiql.png
	cp bin/screenshots/board-markets.png docs/images/board.png
	cp bin/screenshots/board-market.png docs/images/market.png

soak: ## put 2,000 subscribers and a mixed load on the program for SOAK=10m, with faults of the venue at random, and poll within its budget
	TIER=nightly SOAK=$(or $(SOAK),10m) $(GO) test -run '^(TestSoak|TestPolling.*)$$' -count=1 -parallel 1 -timeout 0 -v ./tests/e2e

# The prerequisite tools may install npm, so the recipe builds the pages only then.
check: cc tools ## run what must be green before a commit, as CI does: format, lint, generated code, and all tests but those of nightly
	@unformatted="$$(gofmt -l $(GOFILES))"; [ -z "$$unformatted" ] || { echo "not formatted, run make fmt:" >&2; echo "$$unformatted" >&2; exit 1; }
	@$(if $(NPM),$(MAKE) --no-print-directory web clients/node_modules/.installed.json $(EXAMPLES),:)
	@$(MAKE) --no-print-directory lint
	@GO="$(GO)" scripts/generated
	$(GO) mod tidy -diff
	CGO_ENABLED=1 TIER=check $(GOTEST) -race $$($(GO) list ./... | grep -E '$(RACED)')
	@# tests/fleet is first, because it waits most of its time. tests/e2e is alone, because its browsers use all processors.
	TIER=check $(GOTEST) ./tests/fleet $$($(GO) list ./... | grep -v -E -e '$(RACED)' -e '/tests/(e2e|fleet)$$')
	TIER=check $(GOTEST) ./tests/e2e

nightly: cc tools ## run what takes longest: all mutations, fuzzing, chaos, a soak, the walkthrough, reproducible builds; at most an hour on two cores
	@$(if $(NPM),$(MAKE) --no-print-directory web,:)
	@GO="$(GO)" scripts/nightly

generate: ## write what is made from schema.graphqls (code, docs/schema*.md, web/kit), docs/configuration.md and THIRD_PARTY_LICENSES
	$(GO) run ./graph/gen
	$(GO) test ./internal/config -run '^TestReference$$' -count=1 -update
	$(GO) run ./scripts/licenses

fmt: ## format the Go code
	gofmt -w $(GOFILES)

lint: ## go vet and staticcheck
	$(GO) vet ./...
	GOGC=400 $(GO) tool staticcheck ./...

bench: plain ## measure queries and subscriptions beside a bare handler and a plain gqlgen server, about 10 minutes; BENCH="-rounds 9" adds flags
	$(GO) run ./bench -out bench $(BENCH)

bench-pairs: plain ## compare the queries with a bare handler in 30 pairs, with intervals, about 45 minutes; writes nothing
	$(GO) run ./bench -plain= -rounds 30 -duration 1s -run '^[WV]' $(BENCH)

bench-curve: plain ## measure portfolios and market pages of 1,000, 5,000 and 20,000, some ten minutes
	$(GO) run ./bench -rounds 1 -run Curve -out bench $(BENCH)

bench-quick: plain ## a look at whether the benchmark works, less than a minute; writes nothing
	$(GO) run ./bench -rounds 1 -duration 100ms -variety 100 -subscribers 500 $(BENCH)

plain: binary
	$(GO) generate ./bench/plain
	$(GO) build -o bin/plain bench/plain/main.go

build: web ## build bin/oddsgraph: one static binary with its version from git
	@$(MAKE) --no-print-directory binary

# binary does not build the pages. It embeds web/dist as it is.
binary:
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '-s -w -X oddsgraph/app.version=$(VERSION)' -o $(BINARY) .

reproducible: web ## build here and in another place, and compare the binaries
	@scripts/reproducible

release: ## build archives for Linux, macOS and Windows with their SBOMs and SHA256SUMS in bin/release
	@rm -f web/dist/index.html # so that the client kit gets the version of the release
	@VERSION='$(VERSION)' $(MAKE) --no-print-directory web
	@GO="$(GO)" scripts/release '$(VERSION)' $(PLATFORMS)

notes: ## print the notes of the release VERSION=1.2.3 from CHANGELOG.md
	@scripts/notes '$(VERSION)'

cc:
	@CC=$(CC_NAME) scripts/tools find cc >/dev/null || { echo "The checks run the race detector, which needs a C compiler, and $(CC_NAME) is not here: install gcc (apt-get install gcc libc6-dev)." >&2; exit 1; }
