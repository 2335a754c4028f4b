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
undone='the kernels were NOT asked'
. "$(dirname "$0")/comparison.sh"

keep_folder
work=$root/.cache/conformance
mkdir -p "$work"

choose_kernels 'bullseye bookworm trixie trixie-backports'
qemu=$(qemu) || cannot "QEMU cannot be had (see above)"
build_init asked/guest "$work/init-asked"
build_program unicorn
# A path may have blanks or stars in it: only the ends of lines divide.
set -f
IFS='
'
exec "$compare" levels -qemu "$qemu" -init "$work/init-asked" ${KEEP:+"-keep=$KEEP"} ${DIFFER:+-differ} $kernels
