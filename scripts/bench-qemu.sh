#!/bin/sh
# bench-qemu.sh KPROBELAB: measures what a hit costs on real kernels under
# QEMU's software emulation and, in between, what KPROBELAB takes for it; prints
# both side by side and writes them into docs/measured/cost-qemu.md, after the line that
# begins with "<!-- measured" (make bench-qemu).
#
# SUITES='bookworm bullseye' picks Debian's kernels (both by default: only the
# second has no PREEMPTION, which boosting needs), CPU=qemu64 the processor,
# BOOTS=2 how often each kernel boots before KPROBELAB's turn, and again after
# it, ROUNDS=4 its rounds in each boot, BENCH the options of kprobelab bench
# (rounds that are short and many: those that something else interrupts are then
# fewer than half),
# KPROBELAB_QEMU and KPROBELAB_CC other tools.
# Ends with 77 when something cannot be had, or a kernel did not run to its end.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
. "$scripts/conformance-tools.sh"
. "$scripts/modules.sh"

kprobelab=$1
page=$root/docs/measured/cost-qemu.md
work=$root/.cache/bench-qemu
sources=$root/internal/tools/benchqemu/module
mkdir -p "$work"
cannot() { say "nothing was measured under QEMU: $*"; exit 77; }

plain "$root" || cannot "the kernel's makefiles take no path with a blank or a colon, and this is one: $root"
command -v make >/dev/null || cannot "make is missing; as root: apt-get install make"
set --
for suite in ${SUITES:-bookworm bullseye}; do
	kernel=$(SUITE=$suite "$scripts/kernel.sh") || cannot "the kernel of $suite cannot be had (see above)"
	version=${kernel##*/vmlinuz-}
	headers=$("$scripts/kernel-headers.sh" "$suite" "$version") || cannot "the headers of $version cannot be had (see above)"
	module_build "$sources" "$headers" "$work/$version" || cannot "$module_why"
	set -- "$@" "$kernel"
done
qemu=$(qemu) || cannot "QEMU cannot be had (see above)"
(cd "$root" && CGO_ENABLED=0 GOOS=linux GOARCH=amd64 go build -trimpath -ldflags '-s -w' -o "$work/init" ./internal/tools/benchqemu/guest &&
	CGO_ENABLED=0 go build -o "$work/boot" ./internal/tools/benchqemu/boot)

# real KERNEL...: their figures, appended.
real() {
	for kernel; do
		say "measuring ${kernel##*/} under QEMU"
		for _ in $(seq "${BOOTS:-2}"); do
			"$work/boot" -qemu "$qemu" -init "$work/init" -module "$work/${kernel##*/vmlinuz-}/kprobelab_bench.ko" \
				-cpu "${CPU:-qemu64}" -rounds "${ROUNDS:-4}" "$kernel" >>"$work/figures" || cannot "a kernel did not run to its end (see above)"
		done
	done
}

: >"$work/figures"
real "$@"
say "measuring kprobelab"
# shellcheck disable=SC2086
"$kprobelab" bench --json ${BENCH:---rounds 201 --hits 500} >"$work/here.json"
real "$@"
"$kprobelab" bench --report "$work/here.json" --against "$work/figures" >"$work/table"
cat "$work/table"
{
	sed '/^<!-- measured/q' "$page"
	printf '\n%s\n\n' "Measured by $("$kprobelab" version | sed 's/.*, //') on $(nproc) CPUs of this kind: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)."
	sed '/./s/^/    /' "$work/table"
} >"$work/page"
mv "$work/page" "$page"
say "wrote docs/measured/cost-qemu.md; the rounds are in .cache/bench-qemu/figures and here.json"
