#!/bin/sh
# kernel-headers.sh SUITE VERSION: Debian's headers for building modules of
# the kernel whose release is VERSION (6.1.0-56-cloud-amd64, say), unpacked
# into .cache/headers/VERSION. Prints the folder that make -C wants.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"

suite=${1:?SUITE} version=${2:?VERSION}
dir=$root/.cache/headers/$version
headers=$dir/usr/src/linux-headers-$version

if [ -r "$dir/complete" ]; then
	printf '%s\n' "$headers"
	exit
fi
lock "$root/.cache/headers/lock"
if [ -r "$dir/complete" ]; then
	printf '%s\n' "$headers"
	exit
fi
state=$root/.cache/headers/apt
# The state is large and of no use afterwards, whatever happens.
trap 'rm -rf "$state"' EXIT
debian_open "$state" "$suite"

# depends PACKAGE PREFIX: what of that name the package depends on.
depends() {
	apt-cache -c "$apt_conf" show --no-all-versions "$1" 2>/dev/null |
		sed -n 's/^Depends: //p' | tr ', ' '\n\n' | grep "^$2" | head -n 1
}

common=$(depends "linux-headers-$version" linux-headers-)
kbuild=$(depends "linux-headers-$version" linux-kbuild-)
if [ -z "$common" ] || [ -z "$kbuild" ]; then
	die "$suite has no headers for $version (an older kernel's leave the archive; REFRESH=1 SUITE=$suite make kernel fetches the newest kernel)"
fi
rm -rf "$dir"
mkdir -p "$dir"
for package in "linux-headers-$version" "$common" "$kbuild"; do
	debian_download "$package" "$state" || die "the package $package did not arrive (apt's message is above)"
	dpkg-deb -x "$state/$package.deb" "$dir"
done
# One names the other by where the packages would be installed.
sed -i 's| /usr/src/| ../|g; s|^KBUILD_OUTPUT=/usr/src/.*|KBUILD_OUTPUT=.|' "$headers/Makefile"
: >"$dir/complete"
printf '%s\n' "$headers"
