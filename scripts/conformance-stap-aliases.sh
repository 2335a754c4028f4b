#!/bin/sh
# Compares the variables of the library's probe aliases with those of SystemTap's tapset, alias by
# alias: which there are, of which type, and which argument of a system call each is, how wide
# (make conformance-stap-aliases). stap lists its own (stap -L) for Debian's kernel with its
# debugging information and headers; of the tapset's text the rest is read.
#
# SUITE picks the kernel as for make kernel; stap of Debian 12 knows kernels up to 6.1. What stap has
# listed is kept beside, and not asked again. Ends with 0 when each difference has a known
# cause, 1 when not, and 77 when a kernel with its headers and debugging information, stap or a C
# compiler cannot be had.
undone='the aliases were NOT compared'
. "$(dirname "$0")/comparison.sh"
. "$scripts/stap-tree.sh"

work=$root/.cache/conformance/stap-aliases
SUITE=${SUITE:-bookworm}
export SUITE
plain "$root" || cannot "the kernel's makefiles take no path with a blank or a colon: $root"
command -v gcc >/dev/null && command -v make >/dev/null || cannot "there is no C compiler or no make; as root: apt-get install gcc make"
kernel=$("$scripts/kernel.sh") || cannot "there is no kernel (see above)"
debuginfo=$("$scripts/kernel.sh" --debuginfo) || cannot "no kernel with debugging information can be had (see above)"
release=${kernel##*/vmlinuz-}
headers=$("$scripts/kernel-headers.sh" "$SUITE" "$release") || cannot "there are no headers of the kernel (see above)"
qemu=$(qemu) || cannot "there is no QEMU (see above)"
tool stap bookworm systemtap || cannot "stap cannot be had (see above)"
stap=$(wrap stap /usr/bin/stap) || cannot "stap cannot be had"
kept=$work/listed/$release
mkdir -p "$kept"
stap_tree "$work" "$headers" "$debuginfo" || cannot "$debuginfo has no symbols"
if [ ! -e "$kept/kernel.core" ]; then
	"$root/bin/kprobelab" boot "$kernel" --qemu "$qemu" -o "$kept/kernel.core" --format elf >&2 || cannot "the kernel does not boot (see above)"
fi
cd "$root"
build_program
"$compare" aliases -stap "$stap" -tree "$tree" -tapset "$library/tapset" -program "$root/bin/kprobelab" -image "$kept/kernel.core" -kept "$kept"
