# kprobelab: `make` lists what there is to make.

SHELL = /bin/sh
.DEFAULT_GOAL = help
.DELETE_ON_ERROR:
.PHONY: help deps deps-test build build-nocgo dist dist-test page demo dumps kernel archive tools-table conformance conformance-all conformance-bpf conformance-bpftrace conformance-check conformance-configs conformance-explore conformance-forms conformance-hazards conformance-levels conformance-load conformance-modules conformance-output conformance-own conformance-readers conformance-source conformance-stap conformance-stap-aliases conformance-stap-output conformance-table conformance-trace conformance-tracing conformance-uprobes conformance-watch decoder decoder-kernel decoder-opponents decoder-speed guest module load-tools selftests selftests-booted transparency-uprobes transparency-uprobes-booted test test-mount test-page test-page-firefox test-unicorn test-root test-wasm check soak fuzz engines watchpoints hostile bench bench-booted bench-docs bench-qemu bench-scan env clean distclean film picture

unicorn = $(CURDIR)/.deps/unicorn

# How long make fuzz and make soak stay with each fuzz target.
FUZZTIME ?= 20s
SOAKTIME ?= 2m

# How long make hostile goes on; SEED is what decides its cases, the time unless set.
DURATION ?= 10m

# quoted is a text as one word of the shell.
quoted = '$(subst ','\'',$(1))'

# Only the static archive is in lib, so -lunicorn of the Go binding finds that.
# The caller's own flags come after ours, and ours are not repeated when a make
# runs a make: the build cache compares flags as text, and built everything twice.
# cgo takes a flag in quotes as one; a path with a space was two.
empty =
comma = ,
quote = $(if $(findstring $(empty) ,$(CURDIR)),')
cflags = -O2 -g $(quote)-I$(unicorn)/include$(quote)
ldflags = $(quote)-L$(unicorn)/lib$(quote)
export CGO_CFLAGS := $(if $(findstring $(cflags),$(CGO_CFLAGS)),$(CGO_CFLAGS),$(strip $(cflags) $(CGO_CFLAGS)))
export CGO_LDFLAGS := $(if $(findstring $(ldflags),$(CGO_LDFLAGS)),$(CGO_LDFLAGS),$(strip $(ldflags) $(CGO_LDFLAGS)))

# Without the tag unicorn a build has the engine in Go alone, and needs nothing but Go. Tags of the
# caller's GOFLAGS are kept: go takes the last -tags only.
gotags = $(patsubst -tags=%,%,$(filter -tags=%,$(GOFLAGS)))
export GOFLAGS := $(strip -tags=$(if $(filter unicorn unicorn$(comma)% %$(comma)unicorn,$(gotags)),$(gotags),unicorn$(addprefix $(comma),$(gotags))) $(filter-out -tags=%,$(GOFLAGS)))

# git refuses a clone that belongs to another user, as in many CI containers;
# the build would then fail for want of a version to stamp.
buildvcs = $(shell git rev-parse HEAD >/dev/null 2>&1 && echo auto || echo false)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-22s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo "IMAGE=FILE picks the kernel image of make demo, SUITE=trixie the release of make kernel."

deps: ## find Unicorn >= 2.1, or fetch it into .deps (no root needed)
	@scripts/deps.sh

deps-test: ## the decoders that ours is compared with, into .cache/decoders (no root needed)
	@scripts/deps-test.sh

# netgo and osusergo leave out glibc's resolvers, which a static program cannot
# load: the linker warned of each.
build: deps ## bin/kprobelab, static, runs from anywhere
	@CGO_ENABLED=0 GOFLAGS= go build -trimpath -buildvcs=false -ldflags '-s -w' -o bpf/loader.elf ./internal/bpfloader
	@go build -trimpath -buildvcs=$(buildvcs) -tags unicorn,netgo,osusergo,bpfloader \
		-ldflags '-linkmode external -extldflags "-static"' -o bin/kprobelab ./cmd/kprobelab
	@echo "built bin/kprobelab"

build-nocgo: ## bin/kprobelab-nocgo, with the engine in Go, and everything else without cgo
	@CGO_ENABLED=0 go build ./...
	@CGO_ENABLED=0 go build -trimpath -buildvcs=$(buildvcs) -o bin/kprobelab-nocgo ./cmd/kprobelab
	@echo "built bin/kprobelab-nocgo"

dist: ## all that a release has, into dist/: programs, packages, image, page, sources, licences, checksums; the same commit makes the same bytes
	@scripts/dist.sh

dist-test: ## run each artifact of dist/ on bare Debian 11, 12, 13 and sid, under QEMU and Wine, without a network (needs root)
	@scripts/dist-test.sh

page: ## bin/kprobelab.html: the program in one file for a browser, without cgo
	@CGO_ENABLED=0 go run ./internal/tools/page -o bin/kprobelab.html
	@echo "built bin/kprobelab.html"

film: build ## docs/film.svg: a terminal in which commands run, as they print now
	@CGO_ENABLED=0 go run ./internal/tools/film
	@echo "wrote docs/film.svg"

picture: page ## docs/page.png: README's picture of the page, as a headless Chromium shows it now
	@KPROBELAB_README_PICTURE=$(call quoted,$(CURDIR)/docs/page.png) scripts/test-page.sh -count=1 -run '^TestThePictureOfREADME$$'
	@echo "wrote docs/page.png"

demo: build ## probe the embedded guest kernel, then a real kernel image
	@scripts/demo.sh bin/kprobelab

kernel: ## fetch Debian's newest cloud kernel into .cache/kernel, print its path
	@scripts/kernel.sh

dumps: build ## boot Debian's 6.1, 6.12, 5.10 and newest kernel into .cache/dumps: the tests that need a booted kernel run then
	@scripts/dumps.sh $(or $(DUMPS),6.1 6.1.smp2 6.12 5.10 newest)

selftests: build ## the kernel's own ftrace selftests over kprobelab mount (needs root and /dev/fuse)
	@scripts/selftests.sh bin/kprobelab

selftests-booted: build ## run the kernel's own ftrace selftests about uprobes on a booted kernel's dump, by that kernel's code
	@scripts/selftests-booted.sh $(CURDIR)/bin/kprobelab $(TESTS)

archive: build ## fetch and pack every kernel that Debian's suites offer, in parallel; restartable
	@scripts/archive.sh

tools-table: build ## print the tables of docs/measured/tools.md: bcc's and bpftrace's probes over the archive
	@scripts/tool-probes.sh

# With SHARD=I/N a comparison runs for each item of its share, and prints the output of a shard, for kprobelab merge.
shards = $(if $(SHARD),CGO_ENABLED=0 go build -o .cache/shards ./internal/tools/shards && .cache/shards -target $@ )
# Comparisons on one kernel have no shards.
alone = $(if $(SHARD),$(error make $@ asks one kernel and has no SHARD: another machine takes another SEED, KERNEL or DUMPS))

conformance: ## boot Debian's kernels under QEMU's emulation, and compare their answers
	@$(shards)scripts/conformance.sh

conformance-all: ## the same with every kernel that Debian's suites offer, JOBS at once; restartable
	@scripts/conformance-all.sh

conformance-table: deps ## put the results of conformance-all into docs/measured/conformance.md
	@go run ./internal/tools/conformance/program table -kept .cache/conformance/kept -data docs/measured/conformance.jsonl -page docs/measured/conformance.md

conformance-bpftrace: $(if $(ATTACH)$(BEGIN),build) ## compare what bpftrace says of 3,000 scripts with what is said here; ATTACH=500: which probes attach, on a booted kernel; BEGIN=2000: all output of BEGIN scripts
	@$(alone)scripts/conformance-bpftrace$(if $(ATTACH),-attach,$(if $(BEGIN),-begin)).sh

conformance-bpf: build ## run Debian's libbpf-tools on booted kernels under QEMU and by exec, and compare what they print; PROJECTS='bcc bpftrace cilium' these
	@$(shards)scripts/conformance-bpf$(if $(PROJECTS),-projects).sh

conformance-check: build ## have bpftool load 600 drawn sections of BPF objects on booted kernels, and compare its answers with check's
	@$(shards)scripts/conformance-check.sh

conformance-configs: deps ## build Debian's linux-source in other configurations (drawn ones with DRAWN=12), and compare their answers
	@$(shards)scripts/conformance-configs.sh

conformance-explore: build ## do on booted kernels what explore found: a detour buffer that is freed under a preempted task
	@$(shards)scripts/conformance-explore.sh

conformance-forms: build ## have every form of dump that QEMU and makedumpfile write opened, and compare what is said of it
	@$(alone)scripts/conformance-forms.sh

conformance-hazards: ## show on booted kernels that hazards do what kprobelab hazards says, and their neighbours nothing
	@$(shards)scripts/conformance-hazards.sh

conformance-levels: ## ask kernels which value each dated field has in them (profile/testdata/asked.txt)
	@$(shards)scripts/conformance-levels.sh

conformance-load: build ## load the kernel's BPF selftests on booted kernels by veristat and by kprobelab bpf, and compare verdicts, figures and logs
	@$(shards)scripts/conformance-load.sh

load-tools: build ## ask kernels about each program of Debian's libbpf-tools, write docs/measured/load-tools.md, and compare with bpftool prog loadall autoattach
	@$(alone)scripts/load-tools.sh

conformance-modules: build ## load the kernel's sample modules and eight faulty ones on booted kernels, under QEMU and here, and compare what they print
	@$(shards)scripts/conformance-modules.sh

conformance-own: build ## ask booted kernels' own register_kprobe, in this program, and compare its answers
	@$(shards)scripts/conformance-own.sh

conformance-output: build ## run scripts (drawn ones with N=500) with the real bpftrace on a booted kernel, and here, and compare what they print
	@$(alone)scripts/conformance-output.sh

conformance-readers: build ## have crash, drgn and makedumpfile read dumps of booted kernels, and compare what they see
	@$(alone)scripts/conformance-readers.sh

conformance-source: ## compare random definitions with those of perf probe, on a kernel with its debugging information
	@$(alone)scripts/conformance-source.sh

conformance-stap: deps ## compare what stap -p1 says of 3,000 scripts with what is said here
	@$(alone)scripts/conformance-stap.sh

conformance-stap-aliases: build ## compare the variables of the library's probe aliases with those of SystemTap's own
	@$(alone)scripts/conformance-stap-aliases.sh

conformance-stap-output: build ## run scripts with the real SystemTap on a booted kernel, and here, and compare what they print
	@$(alone)scripts/conformance-stap-output.sh

conformance-trace: build ## run a program with 50 events on booted kernels, under QEMU and here, and compare the traces
	@$(shards)scripts/conformance-trace.sh

conformance-tracing: ## ask the same kernels about the tracing files, and compare the answers
	@$(shards)scripts/conformance-tracing.sh

conformance-uprobes: build ## ask booted kernels' own uprobes about instructions of eleven programs, and compare their answers
	@$(shards)scripts/conformance-uprobes.sh

conformance-watch: build ## ask booted kernels for hardware breakpoints at random, under QEMU and here, and compare their answers with the rules
	@$(shards)scripts/conformance-watch.sh

transparency-uprobes: deps ## a C program and 200 functions of libc with uprobes on every instruction, one at a time and all at once, by three releases' rules (MINUTES=N for each)
	@KPROBELAB_SOAK=1 KPROBELAB_MINUTES=$(MINUTES) GOGC=800 go test -count=1 -timeout 24h -v -run TestTransparency ./internal/integration/userprobes

transparency-uprobes-booted: build ## the same on booted kernels
	@$(shards)scripts/transparency-uprobes-booted.sh

decoder: build ## compare a version of x86asm, X86ASM=VERSION or a folder, with the one of go.mod: better, worse, other (COUNT=N FILE=F)
	@scripts/decoder-x86asm.sh $(CURDIR)/bin/kprobelab "$(or $(X86ASM),$(error X86ASM=VERSION or a folder is missing))"

decoder-opponents: build deps-test ## compare length, class, target and text with LLVM, Zydis and iced, on generated and enumerated encodings (COUNT=N SEED=N)
	@for d in zydis llvm iced; do bin/kprobelab decode fuzz --count $(or $(COUNT),1000000) --seed $(or $(SEED),5) --text --with $$d && bin/kprobelab decode fuzz --enumerated --text --with $$d || exit; done

decoder-speed: deps-test ## nanoseconds and memory of ours, Zydis, Capstone, LLVM, iced and objdump on the same bytes (FILE=F: an ELF file)
	@CGO_ENABLED=0 go build -o .cache/decoders/speed ./internal/tools/decoderspeed
	@.cache/decoders/speed $(or $(FILE),$$(go env GOROOT)/bin/go)

decoder-kernel: ## build the kernel's own decoder from four linux-source packages, and compare the kernel view with it (SEED=N DRAWN=N)
	@scripts/decoder-kernel.sh

decoder-text: ## compare the text of an ELF file's instructions with objdump, and put it through as (ELF=FILE OBJDUMP=FILE AS=FILE)
	@CGO_ENABLED=0 go run ./internal/tools/kerneltext -objdump '$(or $(OBJDUMP),objdump)' -as '$(AS)' '$(ELF)'

guest: ## rebuild the embedded guest kernel, and the init of booted ones, from their sources
	@$(MAKE) --no-print-directory -C testdata/guest
	@$(MAKE) --no-print-directory -C testdata/init

# SHELL has to find its commands although PATH is an argument: scripts/module.sh looks for the real one.
module: ## give the project another module path everywhere: PATH=example.org/x/kprobelab
	@$(call quoted,$(CURDIR))/scripts/module.sh $(call quoted,$(if $(filter command line,$(origin PATH)),$(PATH)))

test: deps ## what a newcomer runs, in some minutes: gofmt, vet, tests
	@scripts/check.sh test

test-page: page ## the page in a headless Chromium and a Firefox: lessons, steps, verdicts, accessibility (fetches all)
	@scripts/test-page.sh

test-page-firefox: page ## the part of test-page that is in Firefox
	@scripts/test-page.sh -count=1 -run Firefox

test-wasm: ## the command line's scripts on the program as WebAssembly, under Node
	@scripts/test-wasm.sh

test-unicorn: ## the tests that run guest code most, with a release's Unicorn, which is built first
	@scripts/unicorn.sh "$(CURDIR)/.cache/unicorn"
	@CGO_CFLAGS="-O2 -g '-I$(CURDIR)/.cache/unicorn/include'" CGO_LDFLAGS="'-L$(CURDIR)/.cache/unicorn/lib'" \
		go run ./internal/tools/testsum -- -timeout 60m ./emu/... ./machine/... ./booted/... ./kprobes/... ./run/... ./internal/integration/engines ./internal/integration/running

test-mount: deps ## the tests of mounts alone, as they are with /dev/fuse and fusermount3 (package fuse3)
	@scripts/check.sh mount

test-root: deps ## as root: the tests that make test and make check, run by an ordinary user, had to skip for that
	@scripts/check.sh root

check: deps ## the rest of what CI runs: whole tests, race, staticcheck, generators, benchmarks once, other systems
	@scripts/check.sh check

soak: deps deps-test ## what takes longer: long variants, race on everything, repeated random tests, fuzzing
	@echo "== the long variants of the tests, with inputs of their own"
	@seed=$$(date +%s) && echo "   KPROBELAB_SEED=$$seed" && \
		KPROBELAB_SOAK=1 KPROBELAB_SEED=$$seed go run ./internal/tools/testsum -- -timeout 120m ./...
	@echo "== every test with the race detector, three times over"
	@go run ./internal/tools/testsum -- -race -count=3 -timeout 120m ./...
	@scripts/fuzz.sh $(SOAKTIME)

fuzz: deps ## each fuzz target for FUZZTIME (20s)
	@scripts/fuzz.sh $(FUZZTIME)

engines: deps ## a million random runs on both engines (RUNS=N, SEED=N)
	@KPROBELAB_ENGINE_RUNS=$(or $(RUNS),1000000) KPROBELAB_ENGINE_SEED=$(or $(SEED),1) \
		go test ./internal/integration/engines -run TestRandomRunsAgree -timeout 10h -v

watchpoints: deps ## a million random programs on each engine, their watchpoints against a log of all accesses (RUNS=N)
	@RUNS=$(or $(RUNS),1000000) go test ./internal/integration/watchpoints -run TestNoneMissedNoneInvented -timeout 10h -v

hostile: build ## attack the program for DURATION (10m), as a hostile user would; SEED=N repeats
	@go run ./internal/tools/hostile -for $(DURATION) $(if $(SEED),-seed $(SEED)) bin/kprobelab $(if $(IMAGE),$(call quoted,$(IMAGE)))

bench: deps ## all benchmarks, with allocations
	@go test -v -run '^$$' -bench . -benchmem ./... 2>&1 | scripts/measured.sh

bench-docs: build ## measure what a hit costs, and write docs/measured/cost.md and its plot
	@scripts/bench-docs.sh bin/kprobelab

bench-booted: deps ## a program on a booted kernel, under QEMU and here; going back, and memory of many machines
	@rc=0; \
		go test -v -run '^$$' -bench '^BenchmarkFilesBesideQEMU$$' -benchtime 20000x -count $(or $(COUNT),3) -timeout 1h ./internal/integration/running 2>&1 | scripts/measured.sh || rc=1; \
		go test -v -run '^$$' -bench '^BenchmarkBooted' -timeout 1h ./kprobestest 2>&1 | scripts/measured.sh || rc=1; \
		exit $$rc

bench-qemu: build ## the same on real kernels under QEMU's emulation, side by side, into docs/measured/cost-qemu.md
	@scripts/bench-qemu.sh bin/kprobelab

bench-scan: build ## scan of a whole kernel image against objdump -d of its text
	@scripts/bench-scan.sh bin/kprobelab

env: ## the lines that let a plain `go test` find Unicorn: eval "$(make env)"
	@printf 'export CGO_CFLAGS="%s"\nexport CGO_LDFLAGS="%s"\nexport GOFLAGS="%s"\n' "$(CGO_CFLAGS)" "$(CGO_LDFLAGS)" "$(GOFLAGS)"

clean: ## remove what was built
	@rm -rf bin dist .cache/check

distclean: clean ## remove what was fetched, too
	@rm -rf .deps .cache
