#!/bin/sh
# Boots kernels, saves each in every form that QEMU and makedumpfile, Debian's, write, and has kprobelab open it: memory,
# info, explain, run, --as, exec are compared with those of the dump that boot writes (make conformance-forms).
# KERNEL='FILE FILE', Debian 12's by default; CPUS=2, KASLR=1. Needs room for three times the machine's 128 MiB.
# Ends with 77 when a tool or a kernel cannot be had.
undone='no form was opened'
. "$(dirname "$0")/comparison.sh"

qemu=$(qemu) || cannot "QEMU cannot be had (see above)"
tool busybox bookworm busybox-static || cannot "busybox cannot be had (see above)"
tool makedumpfile trixie makedumpfile || cannot "makedumpfile cannot be had (see above)"
makedumpfile=$(wrap makedumpfile /usr/bin/makedumpfile)
if [ -z "${KERNEL:-}" ]; then
	KERNEL=$(SUITE=bookworm "$scripts/kernel.sh") || cannot "the kernel cannot be had (see above)"
fi
work=$(mktemp -d "$root/.cache/forms.XXXXXX")
trap 'rm -rf "$work"' EXIT
build_program
cd "$root"
# shellcheck disable=SC2086 # several kernels
"$compare" forms -lab bin/kprobelab -qemu "$qemu" -makedumpfile "$makedumpfile" \
	-busybox "$tools/busybox/bin/busybox" -work "$work" -cpus "${CPUS:-1}" ${KASLR:+-kaslr} $KERNEL
