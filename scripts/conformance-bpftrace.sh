#!/bin/sh
# Has bpftrace and kprobelab check scripts that are made of a corpus by changes at random, and
# compares what they say (make conformance-bpftrace).
#
# N and SEED are the scripts, SCRIPTS='PATTERN' files in place of the corpus, KPROBELAB_BPFTRACE another bpftrace; otherwise Debian 13's is
# fetched, whose version is the truth. It needs root, or a user namespace, and a kernel with BTF.
# Ends with 0 when 95 of 100 verdicts are the same and every script that is accepted here alone
# has a known cause, 1 when not, and 77 when bpftrace cannot be had.
undone='the scripts were NOT compared'
. "$(dirname "$0")/comparison.sh"

work=$root/.cache/conformance/bpftrace
[ -r /sys/kernel/btf/vmlinux ] || cannot "this kernel has no BTF"
bpftrace=${KPROBELAB_BPFTRACE:-}
if [ -z "$bpftrace" ]; then
	tool bpftrace trixie bpftrace || cannot "bpftrace cannot be had (see above)"
	bpftrace=$(wrap bpftrace /usr/bin/bpftrace) || cannot "bpftrace cannot be had"
fi
mkdir -p "$work"
if [ "$(id -u)" != 0 ]; then
	unshare -Ur true 2>/dev/null || cannot "bpftrace wants root, and there are no user namespaces"
	printf '#!/bin/sh\nexec unshare -Ur %s "$@"\n' "'$bpftrace'" >"$work/bpftrace"
	chmod +x "$work/bpftrace"
	bpftrace=$work/bpftrace
fi
build_program
cd "$root"
exec "$compare" scripts -language bpftrace -tool "$bpftrace" -n "${N:-3000}" -seed "${SEED:-1}" -show "${SHOW:-0}" ${SCRIPTS:+-corpus "$SCRIPTS"} ${TABLE:+-table "$TABLE"}
