#!/bin/sh
# Builds the kernel's own instruction decoder from Debian's linux-source packages, into
# .cache/decoders/kernel, and compares DecodeKernel with it: three and a half million
# enumerated strings, and DRAWN (a million) at random from SEED (make decoder-kernel).
#
# PACKAGES='SUITE PACKAGE PROFILE ...' are the sources and the profiles they decide;
# RECORD=1 writes the answers into decoder/compare/testdata/kernel_lengths.
# Ends with 0 when none differs, 1 when one does, and 77 when a package cannot be had.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
need gcc gcc
need awk mawk

work=$root/.cache/decoders/kernel
packages=${PACKAGES:-bullseye linux-source-5.10 5.10 bookworm linux-source-6.1 6.1 trixie linux-source-6.12 6.12 trixie-backports linux-source-7.2 7.0}
cannot() { say "the kernel's decoder was NOT compared: $*"; exit 77; }

# fetch SUITE PACKAGE DIR: what the decoder is built from, of the package's newest version.
fetch() (
	state=$work/apt
	trap 'rm -rf "$state"' EXIT
	debian_open "$state" "$1"
	debian_download "$2" "$state" || exit 1
	say "unpacking $2"
	rm -rf "$3"
	mkdir -p "$3"
	dpkg-deb --fsys-tarfile "$state/$2.deb" | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
		tar -xJ --strip-components=1 -C "$3" --wildcards '*/tools/arch/x86/*' '*/tools/include/*' || exit 1
	dpkg-deb -f "$state/$2.deb" Version | sed 's/-.*//' >"$3/version"
)

(cd "$root" && CGO_ENABLED=0 go build -o "$work/compare" ./internal/tools/kernellengths)
status=0
# shellcheck disable=SC2086
set -- $packages
while [ $# -ge 3 ]; do
	tree=$work/$2
	if [ ! -e "$tree/version" ]; then fetch "$1" "$2" "$tree" || cannot "$2 of $1 cannot be had (see above)"; fi
	x86=$tree/tools/arch/x86
	awk -f "$x86/tools/gen-insn-attr-x86.awk" "$x86/lib/x86-opcode-map.txt" >"$tree/inat-tables.c"
	gcc -O2 -w -I"$x86" -I"$x86/include" -I"$tree/tools/include" -I"$tree" -o "$tree/decoder" "$scripts/decoders/kernel.c" ||
		cannot "$2 does not compile (see above)"
	version=$(cat "$tree/version")
	echo "$version:"
	"$work/compare" -profile "$3" -drawn "${DRAWN:-1000000}" -seed "${SEED:-1}" \
		${RECORD:+-record "$root/decoder/compare/testdata/kernel_lengths/$version.gz"} "$tree/decoder" || status=1
	shift 3
done
exit $status
