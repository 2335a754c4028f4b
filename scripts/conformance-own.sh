#!/bin/sh
# Asks booted kernels' own register_kprobe about points of their text, and compares what
# it makes of each probe with the rules; then their own parser of kprobe_events about
# definitions (make conformance-own). The kernels run in this program, from memory
# dumps, without QEMU. 20 minutes of CPU for each kernel.
#
# DUMPS='6.1 6.12 5.10' are NAME.core in $KPROBELAB_DUMPS, .cache/dumps by default; one
# that is not there is made by scripts/dumps.sh. BOUNDARIES=100000 instructions and INSIDES=10000
# addresses inside instructions are drawn by SEED=1.
# Ends with 0 when all answers are the same, 1 when some are not, and 77 when a
# dump cannot be had.
. "$(dirname "$0")/comparison.sh"

dumps=${KPROBELAB_DUMPS:-$root/.cache/dumps}

names=${DUMPS:-6.1 6.12 5.10}
# shellcheck disable=SC2086 # several names
offer "$(printf 'DUMPS=%s\n' $names)"
status=0
for name in $names; do
	file=$dumps/$name.core
	"$scripts/dumps.sh" "$name" || {
		say "$name was NOT asked"
		exit 77
	}
	"$lab" selfcheck --boundaries "${BOUNDARIES:-100000}" --insides "${INSIDES:-10000}" --seed "${SEED:-1}" "$file" || status=1
done
cd "$root"
KPROBELAB_SOAK=1 KPROBELAB_DUMPS=$dumps go test -count=1 -timeout 10h -v -run "^TestBootedKernelsTakeDefinitions\$/^($(printf '%s' "$names" | tr ' ' '|'))\$" ./internal/tools/conformance || status=1
exit $status
