#!/bin/sh
# Asks booted kernels for hardware breakpoints at random, by perf_event_open of tasks and
# CPUs and by ptrace, and compares each answer with the rules of watch/registers (make
# conformance-watch): under QEMU, and in this program on a dump of the same boot. Two
# minutes a kernel.
#
# SUITES, FLAVOURS, RELEASES and KERNEL pick the kernels as for make conformance. CPUS=2
# is how many processors they have, QUESTIONS=1000 how many questions each is asked under
# QEMU, ROUNDS=10 how many times 400 the dump is, SEED=1 decides them.
# Ends with 0 when no answer differs, 1 when some do, and 77 when a kernel or QEMU cannot
# be had.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
. "$scripts/kernels.sh"
. "$scripts/conformance-tools.sh"

lab=$root/bin/kprobelab
work=$root/.cache/conformance/watch
cannot() { say "the debug registers were NOT compared: $*"; exit 77; }
mkdir -p "$work"

kernels=$(kernels_chosen 'bullseye bookworm trixie trixie-backports') || {
	[ $? != 2 ] || exit 2
	cannot "a kernel cannot be had (see above)"
}
qemu=$(qemu) || cannot "QEMU cannot be had (see above)"
(cd "$root" && go build -o "$work/registers" ./internal/tools/conformance/registers)

seed=${SEED:-1}
questions=${QUESTIONS:-1000}
set -f
IFS='
'
status=0
for kernel in $kernels; do
	boot() {
		"$lab" boot "$kernel" --qemu "$qemu" --cpus "${CPUS:-2}" --append nopti --file "$root/testdata/registers.elf:/bin/registers" "$@"
	}
	boot -o "$work/kernel.core" --format elf >"$work/said" 2>&1 || { cat "$work/said" >&2; cannot "the kernel does not boot"; }
	"$work/registers" -seed "$seed" -questions "$questions" -ask "$work/asked" "$work/kernel.core"
	boot --exec /bin/registers --stdin "$work/asked" >"$work/out" 2>"$work/said" || { cat "$work/said" >&2; cannot "the kernel did not run the program"; }
	sed '/^-\{0,1\}[0-9]\{1,\}$/!d' "$work/out" >"$work/answers" # the rest is the command's own
	"$work/registers" -seed "$seed" -questions "$questions" -answers "$work/answers" "$work/kernel.core" || status=1
	"$work/registers" -seed "$seed" -rounds "${ROUNDS:-10}" "$work/kernel.core" || status=1
done
rm -f "$work/kernel.core"
exit $status
