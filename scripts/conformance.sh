#!/bin/sh
# Boots Debian's cloud kernels under QEMU's software emulation, registers
# probes on them, and compares what they say with what kprobelab computes for
# the same images (make conformance).
#
# SUITES='bullseye bookworm trixie' picks the kernels (all three by default),
# FLAVOURS='cloud-amd64 amd64 rt-amd64' their flavours (the first by default),
# CPU='qemu64 EPYC' the processors, POINTS and SEED the points, KPROBELAB_QEMU and
# KPROBELAB_CLANG other tools.
# Ends with 0 when every answer is the same, 1 when some are not, and 77 when
# the kernels or the tools cannot be had, or a kernel did not run to its end.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
. "$scripts/conformance-tools.sh"

work=$root/.cache/conformance
mkdir -p "$work"
source=$root/internal/tools/conformance/testdata/tool.bpf.c
object=$work/tool.bpf.o
cannot() { say "conformance was NOT checked: $*"; exit 77; }

set --
for suite in ${SUITES:-bullseye bookworm trixie}; do
	for flavour in ${FLAVOURS:-cloud-amd64}; do
		kernel=$(SUITE=$suite FLAVOUR=$flavour "$scripts/kernel.sh") || cannot "the kernel of $suite ($flavour) cannot be had (see above)"
		set -- "$@" "$kernel"
	done
done
qemu=$(qemu) || cannot "QEMU cannot be had (see above)"
clang=$(clang) || cannot "clang cannot be had (see above)"

"$clang" -O2 -g -target bpf -c "$source" -o "$object" || die "the BPF source does not compile"
(cd "$root" && CGO_ENABLED=0 GOOS=linux GOARCH=amd64 go build -trimpath -ldflags '-s -w' -o "$work/init" ./internal/tools/conformance/guest &&
	CGO_ENABLED=0 go build -o "$work/boot" ./internal/tools/conformance/boot)

began=$(date +%s)
status=0
for kernel; do
	"$work/boot" -qemu "$qemu" -init "$work/init" -object "$object" -cpu "${CPU:-qemu64}" \
		-points "${POINTS:-3000}" -seed "${SEED:-1}" "$kernel" || {
		code=$?
		[ "$status" = 1 ] || status=$code
	}
done
say "conformance took $(($(date +%s) - began)) s"
exit $status
