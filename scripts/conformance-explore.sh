#!/bin/sh
# Does on booted kernels what kprobelab explore found in the model: the scenario
# disarmed-unregister, a detour buffer that is freed under a preempted task (make
# conformance-explore; docs/bugs.md). A minute a kernel.
#
# SUITES, FLAVOURS, RELEASES and KERNEL pick the kernels as for make conformance; 6.1, 6.12
# and the newest by default. ROUNDS=5 is how often it is tried.
# Ends with 0 when all was tried, whatever came of it, and 77 when a kernel, QEMU or a C
# compiler cannot be had.
undone='nothing was tried'
. "$(dirname "$0")/comparison.sh"

work=$root/.cache/conformance/explore
mkdir -p "$work"

choose_kernels 'bookworm trixie trixie-backports'
qemu=$(qemu) || cannot "QEMU cannot be had (see above)"
make -s -C "$root/testdata/init" OUT="$work" BOOT="$work" "$work/freed.elf" >&2 || cannot "there is no C compiler (see above)"

# A place that is optimized, and the next one, in its jump.
pair() {
	"$lab" scan --tsv "$1" __x64_sys_umask 2>/dev/null |
		awk -F '\t' '$8 == 1 { if (last && $3 - last < 5) { print "__x64_sys_umask+" last, "__x64_sys_umask+" $3; exit } last = $3 }'
}
other() { "$lab" scan --tsv "$1" __x64_sys_vhangup 2>/dev/null | awk -F '\t' '$8 == 1 { print $2 "+" $3; exit }'; }

set -f
IFS='
'
for kernel in $kernels; do
	code=0
	"$lab" boot "$kernel" --qemu "$qemu" --append 'nopti preempt=full rcupdate.rcu_expedited=1' --file "$work/freed.elf:/bin/freed" \
		--exec "/bin/freed $(pair "$kernel") $(other "$kernel") ${ROUNDS:-5}" || code=$?
	case $code in
	0 | 1) ;;
	*) cannot "the kernel does not run the program (see above)" ;;
	esac
done
