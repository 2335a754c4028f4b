# The beginning of a comparison with real kernels and tools: conformance*.sh source it first. It sets $scripts, $root,
# $lab (bin/kprobelab) and $tools, and has the functions of debian.sh, kernels.sh and conformance-tools.sh.
#
# Before it the script sets $undone: the sentence for a comparison that cannot be made.
# shellcheck shell=sh
# shellcheck disable=SC2034 # the script uses them
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
lab=$root/bin/kprobelab
compare=$root/.cache/conformance/program
. "$scripts/debian.sh"
. "$scripts/kernels.sh"
. "$scripts/conformance-tools.sh"

# cannot REASON: ends the script, and says what was not done.
cannot() { say "${undone:?the sentence, set by whoever sources this}: $*"; exit 77; }

# build_program [unicorn]: builds the program that compares (internal/tools/conformance/program) and sets $compare. It is in Go
# alone, or has Unicorn, for the verbs that run much of a kernel's code.
build_program() {
	compare=$root/.cache/conformance/program${1:+-$1}
	mkdir -p "${compare%/*}"
	(
		cd "$root"
		CGO_ENABLED=0
		if [ -n "${1:-}" ]; then CGO_ENABLED=1 && eval "$(make -s --no-print-directory env)"; fi
		export CGO_ENABLED
		go build -o "$compare" ./internal/tools/conformance/program
	)
}

# build_init NAME FILE: builds internal/tools/conformance/NAME, a program that is a guest's init.
build_init() { (cd "$root" && CGO_ENABLED=0 GOOS=linux GOARCH=amd64 go build -trimpath -ldflags '-s -w' -o "$2" "./internal/tools/conformance/$1"); }

# libraries_of TREE PROGRAM...: the paths of the libraries that the loader finds for the programs in an unpacked tree.
libraries_of() (
	tree=$1
	lib=$tree/usr/lib/x86_64-linux-gnu
	shift
	for program in "$@"; do
		"$lib/ld-linux-x86-64.so.2" --library-path "$lib:$(echo "$tree"/usr/lib/llvm-*/lib)" --list "$program"
	done | awk '$3 ~ /^\// { print $3 }' | sort -u
)
