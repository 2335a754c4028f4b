#!/bin/sh
# Prints the command that starts qemu-system-x86_64 of Debian's package, which is
# unpacked under .cache/tools with all that it depends on (no root needed).
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
. "$scripts/conformance-tools.sh"
qemu || die "QEMU cannot be had (see above)"
