#!/bin/sh
# Boots Debian's cloud kernels under QEMU's emulation and saves their memory, for tests and
# for make conformance-own: each NAME of the arguments becomes NAME.core in $KPROBELAB_DUMPS,
# .cache/dumps by default, unless it is there. A NAME is 5.10, 6.1, 6.12 or newest, which is the
# newest backport, or 6.18, 7.0, 7.1 or 7.2, the newest of that series in any of Debian's suites; with .smp2 it has two processors. MEMORY=512M gives
# it more than 128 MiB. Ten seconds each; QEMU and kernels are fetched where they are missing.
# Ends with 77 when one cannot be had.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
. "$scripts/kernels.sh"
. "$scripts/conformance-tools.sh"

lab=$root/bin/kprobelab
dumps=${KPROBELAB_DUMPS:-$root/.cache/dumps}
cannot() { say "$name.core cannot be had: $*"; exit 77; }

for name in "$@"; do
	if [ -e "$dumps/$name.core" ]; then continue; fi
	release=
	case ${name%.smp2} in
	5.10) suite=bullseye ;;
	6.1) suite=bookworm ;;
	6.12) suite=trixie ;;
	newest) suite=trixie-backports ;;
	6.18 | 7.[012])
		suite=
		kernels_open
		release=$(kernels_list | grep "^${name%.smp2}\\..*-cloud-amd64$" | head -n 1)
		[ -n "$release" ] || cannot "no suite has a kernel of that series"
		;;
	*) cannot "only 5.10, 6.1, 6.12, 6.18, 7.0, 7.1, 7.2 and newest are known here, and .smp2 of each" ;;
	esac
	cpus=1
	if [ "${name%.smp2}" != "$name" ]; then cpus=2; fi
	kernel=$(SUITE=$suite RELEASE=$release "$scripts/kernel.sh") || cannot "there is no kernel (see above)"
	qemu=$(qemu) || cannot "there is no QEMU (see above)"
	tool busybox bookworm busybox-static || cannot "there is no busybox (see above)"
	mkdir -p "$dumps"
	echo kprobelab >"$tools/hostname"
	# Without page table isolation, as most processors run today.
	"$lab" boot "$kernel" --qemu "$qemu" -o "$dumps/$name.core" --format elf --cpus "$cpus" --append nopti ${MEMORY:+--memory "$MEMORY"} \
		--file "$root/testdata/calls.elf:/bin/calls" --file "$tools/busybox/bin/busybox:/bin/busybox" \
		--file "$tools/hostname:/etc/hostname" >&2 || cannot "it does not boot (see above)"
done
