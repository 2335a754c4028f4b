#!/bin/sh
# Boots Debian's cloud kernels under QEMU's software emulation, and asks each which value
# every dated field of profile.Config has in it: the tracing files by uses that tell the values apart, the rest of the
# image's own functions, code and symbols (make conformance-levels). Prints a line per field and kernel:
# FIELD HOW RELEASE VALUE, of which profile/testdata/asked.txt is the sum.
#
# SUITES='bullseye bookworm trixie trixie-backports' picks the kernels, or RELEASES or
# KERNEL=FILE as for make conformance; KEEP=FOLDER keeps what kernels answer, and asks
# none again that is there; DIFFER=1 prints the uses that are answered otherwise here.
# Ends with 77 when the kernels or QEMU cannot be had, or a kernel did not run to its end.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
. "$scripts/kernels.sh"
. "$scripts/conformance-tools.sh"

keep_folder
work=$root/.cache/conformance
mkdir -p "$work"
cannot() { say "the kernels were NOT asked: $*"; exit 77; }

choose_kernels 'bullseye bookworm trixie trixie-backports'
qemu=$(qemu) || cannot "QEMU cannot be had (see above)"
(cd "$root" && CGO_ENABLED=0 GOOS=linux GOARCH=amd64 go build -trimpath -ldflags '-s -w' -o "$work/init-asked" ./internal/tools/conformance/asked/guest &&
	go build -o "$work/levels" ./internal/tools/conformance/levels)
# A path may have blanks or stars in it: only the ends of lines divide.
set -f
IFS='
'
exec "$work/levels" -qemu "$qemu" -init "$work/init-asked" ${KEEP:+"-keep=$KEEP"} ${DIFFER:+-differ} $kernels
