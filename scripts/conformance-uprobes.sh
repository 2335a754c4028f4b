#!/bin/sh
# Asks booted kernels' own uprobes about instructions of programs (make conformance-uprobes),
# and compares errno, whether the instruction is emulated or a copy of it stepped, the
# copy, and the byte that the probe leaves, with the rules. A program in the guest
# (testdata/init/uprobes.c) registers a uprobe at each place by perf_event_open, and
# executes the instruction once. A minute of CPU for 25,000 places of one kernel. The image's own
# arch_uprobe_analyze_insn is asked about all instructions, here.
#
# PLACES=20000 of the programs' instructions are drawn (0 for all), each once wherever it is, for a kernel
# decides by the bytes and by whether a page ends in them; as many places inside
# instructions as RANDOM_INSNS=5000, and so many random instructions, by SEED=1. FILES are the
# programs. SUITES='bookworm trixie trixie-backports' are Debian's releases whose
# kernels are asked; FLAVOURS, RELEASES='6.1.0-56-cloud-amd64 ...' and KERNEL=FILE as for conformance.sh.
# Ends with 0 when no answer differs, 1 when some do, and 77 when a kernel, QEMU or a C
# compiler cannot be had.
undone='uprobes were NOT compared'
. "$(dirname "$0")/comparison.sh"

work=${WORK:-$root/.cache/conformance/uprobes}
mkdir -p "$work"
cd "$root"

choose_kernels 'bookworm trixie trixie-backports'
qemu=$(qemu) || cannot "there is no QEMU (see above)"
make -s -C testdata/init OUT="$work" BOOT="$work" "$work/uprobes.elf" >&2 || cannot "there is no C compiler (see above)"
build_program unicorn
libraries=/lib/x86_64-linux-gnu
status=0
IFS='
'
for kernel in $kernels; do
	say "$kernel"
	IFS=' '
	# shellcheck disable=SC2086
	"$compare" uprobes draw -kernel "$kernel" -places "${PLACES:-20000}" -random "${RANDOM_INSNS:-5000}" -seed "${SEED:-1}" -o "$work" \
		${FILES:-$libraries/libc.so.6 $libraries/libm.so.6 $libraries/ld-linux-x86-64.so.2 /bin/bash /bin/ls /bin/grep /bin/sed /bin/tar /usr/bin/find /usr/bin/mawk /usr/bin/perl}
	IFS='
'
	"$compare" uprobes own -kernel "$kernel" "$work" || status=1
	"$lab" boot "$kernel" --qemu "$qemu" --cpu max --memory 1G --timeout 10h --append 'nopti rcupdate.rcu_expedited=1' \
		--file "$work/uprobes.elf:/bin/uprobes" --file "$work/code:/code" --file "$work/list:/list" \
		--exec '/bin/uprobes /code /list arch_uprobe_pre_xol' >"$work/answers" || { say "$kernel was NOT asked to the end"; status=1; continue; }
	"$compare" uprobes compare -kernel "$kernel" "$work" "$work/answers" || status=1
done
exit $status
