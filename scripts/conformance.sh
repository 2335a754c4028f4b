#!/bin/sh
# Boots Debian's kernels, or another one, under QEMU's software emulation, registers
# probes on them, and compares what they say with what kprobelab computes for
# the same images (make conformance).
#
# SUITES='bullseye bookworm trixie trixie-backports' picks the kernels (the newest
# of all four by default), FLAVOURS='cloud-amd64 amd64 rt-amd64' their flavours (the
# first by default); RELEASES='7.0.13+deb13-amd64 …' are kernels by name, KERNEL=FILE
# is one of any origin. CPU='qemu64 EPYC' picks the processors, POINTS, NAMES and SEED
# the points and definitions by name, KPROBELAB_QEMU and KPROBELAB_CLANG other tools.
# SHARD=2/3, by make, is the second of three shares of them, for kprobelab merge (docs/ci.md).
# MEASURED=1 asks each image's own functions how it behaves, too (needs make deps, and
# its environment). KEEP=FOLDER keeps what kernels answer; AGAIN=1 compares that again.
# Ends with 0 when every answer is the same, 1 when some are not, and 77 when
# the kernels or the tools cannot be had, or a kernel did not run to its end.
undone='conformance was NOT checked'
. "$(dirname "$0")/comparison.sh"

keep_folder
work=$root/.cache/conformance
mkdir -p "$work"
source=$root/internal/tools/conformance/testdata/tool.bpf.c
object=$work/tool.bpf.o

choose_kernels 'bullseye bookworm trixie trixie-backports'
qemu=$(qemu) || cannot "QEMU cannot be had (see above)"
clang=$(clang) || cannot "clang cannot be had (see above)"

"$clang" -O2 -g -target bpf -c "$source" -o "$object" || die "the BPF source does not compile"
build_init guest "$work/init"
build_program ${MEASURED:+unicorn}

began=$(date +%s)
# A path may have blanks or stars in it: only the ends of lines divide.
set -f
IFS='
'
code=0
"$compare" boot -qemu "$qemu" -init "$work/init" -object "$object" -cpu "${CPU:-qemu64}" \
	${MEASURED:+-measured} ${KEEP:+"-keep=$KEEP"} ${AGAIN:+-again} \
	-points "${POINTS:-3000}" -names "${NAMES:-200}" -seed "${SEED:-1}" $kernels || code=$?
say "conformance took $(($(date +%s) - began)) s"
exit $code
