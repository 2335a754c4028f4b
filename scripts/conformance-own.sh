#!/bin/sh
# Asks booted kernels' own register_kprobe about points of their text, and compares what
# it makes of each probe with the rules; then their own parser of kprobe_events about
# definitions (make conformance-own). The kernels run in this program, from memory
# dumps, without QEMU. 20 minutes of CPU for each kernel.
#
# DUMPS='6.1 6.12 5.10' are NAME.core in $KPROBELAB_DUMPS, .cache/dumps by default; one
# that is not there is made by kprobelab boot, of Debian's cloud kernel of that
# release, which needs QEMU. BOUNDARIES=100000 instructions and INSIDES=10000
# addresses inside instructions are drawn by SEED=1.
# Ends with 0 when all answers are the same, 1 when some are not, and 77 when a
# dump cannot be had.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"

lab=$root/bin/kprobelab
dumps=${KPROBELAB_DUMPS:-$root/.cache/dumps}

# dump NAME FILE: boots Debian's kernel of a release and saves its memory.
dump() {
	case $1 in
	5.10) suite=bullseye ;;
	6.1) suite=bookworm ;;
	6.12) suite=trixie ;;
	*) say "there is no $2, and $1 is not known here (5.10, 6.1, 6.12)"; return 1 ;;
	esac
	kernel=$("$scripts/kernel.sh" "$suite") || return 1
	say "booting $kernel"
	mkdir -p "${2%/*}"
	"$lab" boot "$kernel" -o "$2"
}

status=0
for name in ${DUMPS:-6.1 6.12 5.10}; do
	file=$dumps/$name.core
	[ -e "$file" ] || dump "$name" "$file" || {
		say "$name was NOT asked: its dump cannot be had (see above)"
		exit 77
	}
	"$lab" selfcheck --boundaries "${BOUNDARIES:-100000}" --insides "${INSIDES:-10000}" --seed "${SEED:-1}" "$file" || status=1
done
cd "$root"
KPROBELAB_SOAK=1 KPROBELAB_DUMPS=$dumps go test -count=1 -timeout 10h -v -run '^TestBootedKernelsTakeDefinitions$' ./internal/tools/conformance || status=1
exit $status
