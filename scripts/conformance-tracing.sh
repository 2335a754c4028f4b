#!/bin/sh
# Boots Debian's cloud kernels under QEMU's software emulation, asks them
# thousands of random things of the tracing files (definitions, writes of several
# lines, filters), and compares the answers with kprobelab's over the same images
# (make conformance-tracing).
#
# SUITES='bookworm trixie trixie-backports' picks the kernels, or RELEASES or
# KERNEL=FILE as for make conformance; N and SEED the questions, KPROBELAB_QEMU
# another QEMU. Ends with 0 when every answer is the same, 1 when
# some are not, and 77 when the kernels or QEMU cannot be had, or a kernel did not
# run to its end.
undone='the tracing files were NOT compared'
. "$(dirname "$0")/comparison.sh"

work=$root/.cache/conformance
mkdir -p "$work"

choose_kernels 'bookworm trixie trixie-backports'
qemu=$(qemu) || cannot "QEMU cannot be had (see above)"
build_init asked/guest "$work/init-asked"
build_program unicorn
# A path may have blanks or stars in it: only the ends of lines divide.
set -f
IFS='
'
exec "$compare" ask -qemu "$qemu" -init "$work/init-asked" -n "${N:-1000}" -seed "${SEED:-1}" $kernels
