#!/bin/sh
# Runs a C program on booted kernels with uprobes on every instruction of its own functions and of
# 200 functions of libc, one at a time and all at once (make transparency-uprobes-booted): exit status, output
# and memory have to be as without probes. A program in the guest (testdata/init/transparent.c) does it.
#
# Of the places that are not executed here, every STEP=1-th is tried alone. SUITES='bookworm trixie trixie-backports' are Debian's
# releases whose kernels are asked; FLAVOURS, RELEASES='6.1.0-56-cloud-amd64 ...' and KERNEL=FILE as for
# conformance.sh.
# Ends with 0 when no probe makes a difference, 1 when one does, and 77 when a kernel, QEMU or a C compiler
# cannot be had.
undone='transparency was NOT tried'
. "$(dirname "$0")/comparison.sh"

work=${WORK:-$root/.cache/conformance/transparent}
mkdir -p "$work"
cd "$root"

choose_kernels 'bookworm trixie trixie-backports'
qemu=$(qemu) || cannot "there is no QEMU (see above)"
source=program.c
{
	make -s -C testdata/init OUT="$work" BOOT="$work" "$work/transparent.elf" >&2 &&
		gcc -O2 -static -pthread -o "$work/prog" "internal/integration/userprobes/testdata/$source" -lm
} || cannot "there is no C compiler (see above)"
build_program
printf 'first line\nname 42\nthird\n' >"$work/data"
status=0
IFS='
'
for kernel in $kernels; do
	say "$kernel"
	"$compare" transparent draw -kernel "$kernel" -source "$source" -step "${STEP:-1}" -o "$work" "$work/prog"
	"$lab" boot "$kernel" --qemu "$qemu" --memory 1G --timeout 10h --append 'nopti rcupdate.rcu_expedited=1' \
		--file "$work/transparent.elf:/bin/transparent" --file "$work/prog:/bin/prog" --file "$work/list:/list" --file "$work/data:/data" \
		--exec '/bin/transparent /bin/prog /list uprobe_pre_sstep_notifier' >"$work/answers" || { say "$kernel was NOT asked to the end"; status=1; continue; }
	"$compare" transparent judge "$work" "$work/answers" || status=1
done
exit $status
