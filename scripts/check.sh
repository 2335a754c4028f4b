#!/bin/sh
# check.sh test: make test, which takes two to nine minutes on two cores.
# check.sh check: make check, the rest of what CI runs. Tests that make test
# shortens or skips run whole here.
# check.sh mount: mounts as they are with fusermount3, for an ordinary user.
# check.sh root: as root, what test and check have skipped for want of root.
# check.sh total: one count over the last runs of all these.
#
# Every step runs, even after one has failed. The last line counts the tests, each
# once over all runs.
set -eu
cd "$(dirname "$0")/.."
part=${1:-test}
work=.cache/check
tally=$work/$part.tally
mkdir -p "$work"

# The release that knows the Go of go.mod. It is run by version and is no tool of
# go.mod, because archtest checks the licence of everything in go.mod.
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2

failures=
# step NAME COMMAND...: a heading, the command, and a note when it fails.
step() {
	printf '== %s\n' "$1"
	name=$1
	began=$(date +%s)
	shift
	if ! "$@"; then
		printf '   %s: FAILED\n' "$name"
		failures="$failures
   $name"
	fi
	printf '   %s s\n' $(($(date +%s) - began))
}

# folders: those of all packages, from here, so that a blank in the path of this tree divides none.
folders() { go list ./... | sed 's|^kprobelab|.|'; }

# gofmt of the toolchain that go.mod names; the one on PATH may be older.
check_gofmt() {
	bad=$(folders | tr '\n' '\0' | xargs -0 "$(go env GOROOT)/bin/gofmt" -l) || return 1
	[ -z "$bad" ] && return
	printf 'not formatted; run gofmt -w on: %s\n' "$bad"
	return 1
}

# Generated files are committed as the generators write them. The guest kernel's
# ELF is not compared here: another compiler writes other bytes. A test of its own
# rebuilds it where the compiler is the same.
check_generated() {
	if ! git rev-parse HEAD >/dev/null 2>&1; then
		echo "   not a git checkout: nothing to compare with"
		return
	fi
	tree_state >"$work/before"
	go generate ./... || return 1
	tree_state >"$work/after"
	diff "$work/before" "$work/after" && return
	echo "generated files differ (above); commit what go generate writes"
	return 1
}

tree_state() {
	git ls-files -z --cached --others --exclude-standard | xargs -0 sha256sum 2>/dev/null
}

# So many of the longest tests make check names, that CI's time can be read from its log.
longest_named=0
if [ "$part" = check ]; then longest_named=12; fi

# tests ARGUMENT...: go test, without the vet that a step of its own has done, and without DWARF in the tests' programs, which
# takes half the time of linking them.
tests() { go run ./internal/tools/testsum -tally "$tally" -longest $longest_named -- -vet=off -ldflags=-w "$@"; }

# Without the recordings of real kernels, the tests that call a kernel's own
# functions take Debian's, where make demo or make kernel has left it.
tests_with_kernel() (
	if [ ! -d "${KPROBELAB_ORACLE:-../shared}/oracle" ] && [ -z "${KPROBELAB_KERNEL:-}" ] &&
		KPROBELAB_KERNEL=$(scripts/kernel.sh --present 2>/dev/null); then
		export KPROBELAB_KERNEL
		printf '   real kernel: %s\n' "$KPROBELAB_KERNEL"
	fi
	tests -timeout 30m "$@"
)

# These take a third of the time of all tests. go test begins with what it is given first, so no core waits
# for them at the end.
longest="./internal/integration/running ./cmd/kprobelab ./internal/integration/userprobes"

# Tests on the dumps of booted kernels are left to make check, where they run once, and whole.
# shellcheck disable=SC2086
tests_short() ( KPROBELAB_DUMPS=later && export KPROBELAB_DUMPS && tests_with_kernel -short $longest ./internal/process ./... )

# tests_whole: what make test shortens or leaves out. The other tests have run whole there.
tests_whole() (
	# shellcheck disable=SC2046
	go run ./internal/tools/shortened $(folders) >"$work/shortened" || return 1
	{ read -r names && read -r packages; } <"$work/shortened"
	# shellcheck disable=SC2086
	tests_with_kernel -run "$names" $longest $packages
)

# Without cgo, guest code runs on the engine in Go: all tests of what runs it are for
# both engines.
without_cgo() (
	CGO_ENABLED=0
	export CGO_ENABLED
	"$@"
)

# make soak runs the race detector over the rest, too: code of one goroutine, and the command line where
# it runs guest code, of which minutes add no goroutine, or prints and refuses, or divides its work among
# goroutines of a package that is tried here itself (archive, decode, scan). Signals, progress, mounts,
# the page's server, kernels that are fetched, and check, which asks several kernels at once, stay. A new test of the
# command line is run here until it is named below. Of other packages, long tests of one goroutine are named, too.
tests_race() {
	started='\bgo (func|[A-Za-z_.]+\()|errgroup|sync\.WaitGroup|t\.Parallel'
	packages=$(folders | while read -r dir; do
		if grep -qE "$started" "$dir"/*.go; then echo "$dir"; fi
	done)
	guests='^Test(EveryAddressIsAnsweredAlike|ScriptsOn(Dumps|RealKernels)|Slide.*|Drawn.*|AliasesOnBootedKernels|PlacesMeanTheSame.*)$'
	guests="$guests|^TestScripts\$/^(archive|bad_input|bench|bench_against|bounds|bpftrace|decode|decode_vendor|decoder|engine|engine_failure|events|exec|explain|explore|hazards|info|json|kernel|limits|old|optimized|perfetto|probe|run|sample|scan|selfcheck|stap|steps|symbols|uprobe|usage|watch)\$"
	guests="$guests|^Test(SamplesAreDocumentedAsTheyPrint|ReadmeShowsWhatIsPrinted|OptimizationIsDocumentedAsItPrints|ValuesFetched|TooManyTasks|SanitizedProgramsHaveUprobes|StapPointsOfAKernelWithDWARF|StapListOfAKernelWithDWARF|StapLibraryReadsTheKernelsTasks|BytesOfAScript|RawOfAGuestOnATerminal|FilesThatAreTooLong|UnknownCPU)\$"
	# machine, decoder and decoder/compare, internal/selfcheck, internal/archive
	guests="$guests|^(FuzzNestedRuns|Test(GuestCodeCannotOverrunTheTranslations|RealKernelFunctions|(Long)?Patched(Code|Blocks)DoNotPileUp|HandlersDoNotPileUp|OneHandlerCallsTooMuch))\$"
	guests="$guests|^Test(EveryRowIsDecoded|LengthsAgainstObjdump|ReadersAgreeOnEveryRow|KernelViewIsTheKernels|EveryOpcodeComesUp)\$"
	guests="$guests|^Test(UprobesAgainstImage|ImageDecides(AsTheRules|AgainstWrongRules)|WrongRulesShow|FunctionsThatDoNotAnswer|BootedKernelsAgreeWithTheRules)\$"
	guests="$guests|^Test(DifferencesAnswerTheSame|ShrinkGoesOn|DifferencesWithoutTheirBase|TwoBuildsOfOneRelease|ImagesAgreeWithTheRules)\$"
	guests="$guests|^(FuzzDecode|Test(VerdictsOfTheKernels|ObjectsThatAreNone|ShardsOfCommandsAreOneRun|ChildThat(Errs|WritesTooMuch)))\$"
	# bpf: what one kernel after another is asked; TestShardsOfBPFAreOneRun asks several at once
	guests="$guests|^Test(VariablesOfTheConfiguration|TypesThat(AreNotThere|AreNone)|Contracts(ThatAreNone)?|FlagsOfALoad|MapsOfStacksWithoutASize|DamagedObjects|ObjectsOfBadWill|FieldsOfTheKernels|TypesOfAFile|Runs(WithoutEnd)?|LossesOfARun|CoverageIsTheLogOfBranches)\$"
	# bpf/*attach*_test.go
	guests="$guests|^Test(TrafficControl(SeesPackets|WithoutItsModules)|TracepointsOfAProgram(ThatMoves)?|FunctionsOfAProgram|DevicesOfNetkit|MultiProbesSeeCalls|VariablesOfTheKernel|RoutesAndRedirections|StructuresThat(ALinkRegisters|TheKernelRefuses)|StructuresOfPrograms)\$"
	# shellcheck disable=SC2086
	tests -race -short -timeout 15m -skip "$guests" $packages
}

# What runs no guest code is the same there, and make test has run it: whole packages, and the longest scripts of the
# command line; so do limits that the engine has no part in. go vet sees other files only in packages with a build constraint of cgo; of the rest, it would say the
# same twice.
vet_and_test() {
	differ=$(folders | while read -r dir; do
		if grep -qE '^//go:build .*\bcgo\b' "$dir"/*.go; then echo "$dir"; fi
	done)
	# shellcheck disable=SC2086
	go vet $differ || return 1
	go build ./... || return 1
	packages=$(go list -test -f '{{.ImportPath}} {{join .Deps " "}}' ./... |
		awk '$1 ~ /\.test$/ && / kprobelab\/interp( |$)/ { sub(/\.test$/, "", $1); print $1 }')
	# shellcheck disable=SC2086
	tests -short -skip '^TestScripts$/^(decode|decode_vendor|decoder|explore)$|^Test(ShardsOfCommandsAreOneRun|ImageDecidesAgainstWrongRules|FunctionsThatDoNotAnswer|StandInsArePassedOver|PipesAndEpollsOfManyProcessesAreBounded|MemoryOfAProgramIsBounded)$' $packages
}

# Unicorn and FUSE are for Linux; the rest of the program is for every system. One system
# that is neither Linux nor 64 bits wide stands for all: each costs a minute. The program is linked, and every
# package that others import is compiled; our own tools and tests across packages are for the system they run on.
check_elsewhere() (
	export CGO_ENABLED=0 GOOS=windows GOARCH=386
	# shellcheck disable=SC2046
	go build $(go list ./... | grep -v '/internal/') && go build -o "$work/elsewhere.exe" ./cmd/kprobelab
)

# A skip for want of root has the word in its reason. It is asked of the runs of an
# ordinary user, not of mount's: so root's own mounts are tried, too. Of several reasons the first counts: make check's,
# as make test leaves tests out.
tests_of_root() {
	cat "$work/check.tally" "$work/test.tally" >"$work/user.tally" 2>/dev/null || :
	go run ./internal/tools/testsum -skipped '\broot\b' "$work/user.tally" >"$work/root.list" || return 1
	[ -s "$work/root.list" ] || { echo "   nothing was skipped for want of root" && return; }
	bad=0
	while read -r package names; do
		tests -timeout 30m -run "$names" "$package" || bad=1
	done <"$work/root.list"
	return $bad
}

# Where there are some: without a list, go test links the tests of every package for nothing.
check_benchmarks() {
	packages=$(folders | while read -r dir; do
		if grep -q '^func Benchmark' "$dir"/*_test.go 2>/dev/null; then echo "$dir"; fi
	done)
	# shellcheck disable=SC2086
	go test -vet=off -ldflags=-w -run '^$' -bench . -benchtime 1x $packages >"$work/bench" 2>&1 || {
		cat "$work/bench"
		return 1
	}
	printf '   %s benchmarks ran\n' "$(grep -c '^Benchmark' "$work/bench" || :)"
}

case $part in
test)
	: >"$tally"
	step "gofmt" check_gofmt
	step "go vet" go vet ./...
	step "tests, the long ones shortened" tests_short
	;;
check)
	: >"$tally"
	step "staticcheck" go run "$staticcheck" ./...
	step "go generate leaves no difference" check_generated
	step "tests that were shortened, whole" tests_whole
	step "tests with the race detector, where goroutines are started" tests_race
	step "vet, build and tests without cgo, on the engine in Go" without_cgo vet_and_test
	step "build for other systems without cgo" check_elsewhere
	step "each benchmark once" check_benchmarks
	;;
mount)
	: >"$tally"
	step "mounts by fusermount3" tests ./internal/mount
	step "the command line's mounts" tests -run '^TestScripts$/^mount$' ./cmd/kprobelab
	;;
root)
	: >"$tally"
	step "tests that an ordinary user has to skip" tests_of_root
	;;
total)
	: >"$tally"
	for each in check test; do
		cat "$work/$each.tally" >>"$tally" || failures="$failures
   make $each did not run its tests"
	done
	# CI alone has these.
	for each in mount root; do
		if [ -e "$work/$each.tally" ]; then cat "$work/$each.tally" >>"$tally"; fi
	done
	;;
*)
	echo "check.sh: there is no part $part; test, check, mount, root and total are" >&2
	exit 2
	;;
esac

echo
if [ -n "$failures" ]; then
	printf 'FAILED:%s\n' "$failures"
fi
go run ./internal/tools/testsum -total "$tally"
[ -z "$failures" ]
