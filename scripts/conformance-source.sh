#!/bin/sh
# Has perf probe and kprobelab write the definitions of random probes on a Debian kernel with
# its debugging information, and compares them (make conformance-source).
#
# SUITE, FLAVOUR or RELEASE pick the kernel as for make kernel, or IMAGE=FILE is a vmlinux
# with DWARF. N and SEED are the probes, KPROBELAB_PERF another perf; without one on the
# system, Debian's is fetched. KEPT=FILE keeps perf's answers for the next run. Ends with 0 when every difference is explained, 1 when one is
# not, and 77 when the kernel or perf cannot be had.
undone='the definitions were NOT compared'
. "$(dirname "$0")/comparison.sh"

perf=${KPROBELAB_PERF:-$(command -v perf || :)}
if [ -z "$perf" ]; then
	tool perf bookworm linux-perf || cannot "perf cannot be had (see above)"
	perf=$(wrap perf "$(cd "$tools/perf" && echo /usr/bin/perf*)") || cannot "perf cannot be had"
fi
image=${IMAGE:-$("$scripts/kernel.sh" --debuginfo)} || cannot "no kernel with debugging information can be had (see above)"
work=$root/.cache/conformance
mkdir -p "$work"
build_program
exec "$compare" source -image "$image" -perf "$perf" -n "${N:-1000}" -seed "${SEED:-1}" -show "${SHOW:-20}" ${KEPT:+-kept "$KEPT"}
