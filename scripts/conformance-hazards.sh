#!/bin/sh
# Boots Debian's kernels under QEMU's software emulation and shows that hazards do what
# kprobelab says of them (make conformance-hazards): points drawn at random, and a
# neighbour of each, are probed and driven by system calls, each hazard on a copy of the
# same booted machine. Some minutes for each kernel. Where the kernel's headers can be
# had, a module sets probes that kprobe_events does not, and runs the reproducers of
# docs/hazards.md.
#
# SUITES, FLAVOURS, RELEASES and KERNEL pick the kernels as for make conformance; 6.1 and
# 6.12 by default. CPU=qemu64 is the processor, POINTS=30 how many hazards and how many
# neighbours of each kernel, SEED=1 chooses them; PAGE=docs/measured/hazards.md writes the
# results there. KPROBELAB_QEMU is another QEMU.
# Ends with 0 when all happened as predicted, 1 when something did not or was not shown,
# and 77 when the kernels or QEMU cannot be had, or a kernel did not run.
undone='hazards were NOT tried'
. "$(dirname "$0")/comparison.sh"
. "$scripts/modules.sh"

work=$root/.cache/conformance-hazards
mkdir -p "$work"

choose_kernels 'bookworm trixie'
qemu=$(qemu) || cannot "QEMU cannot be had (see above)"
build_init hazards/guest "$work/init"
build_program

# module KERNEL: builds it, where that can be. The headers of a kernel are in the suite
# that it comes from; others are asked in vain.
module() {
	version=${1##*/vmlinuz-}
	rm -f "$work/modules/$version.ko"
	case $version in
	*+deb13*) suites=trixie ;;
	*) suites='bookworm bullseye' ;;
	esac
	for suite in $suites; do
		headers=$("$scripts/kernel-headers.sh" "$suite" "$version") || continue
		if module_build "$root/internal/tools/conformance/hazards/module" "$headers" "$work/module"; then
			cp "$work/module/kprobelab_hazards.ko" "$work/modules/$version.ko"
		else
			say "no module for $version: $module_why"
		fi
		return
	done
	say "no module for $version: its headers cannot be had"
}

mkdir -p "$work/modules"
if plain "$root" && command -v make >/dev/null; then
	printf '%s\n' "$kernels" | while read -r kernel; do module "$kernel"; done
fi

# A path may have blanks or stars in it: only the ends of lines divide.
set -f
IFS='
'
exec "$compare" hazards -qemu "$qemu" -init "$work/init" -dir "$work" -cpu "${CPU:-qemu64}" -modules "$work/modules" ${PAGE:+"-page=$PAGE"} \
	-points "${POINTS:-30}" -seed "${SEED:-1}" $kernels
