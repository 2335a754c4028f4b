#!/bin/sh
# Debian's newest cloud kernel image, unpacked into .cache/kernel/SUITE:
# vmlinuz-VERSION and config-VERSION. Prints the image's path.
#
# SUITE is the system's own by default; SUITE=trixie, say, picks another one.
# FLAVOUR=amd64 or FLAVOUR=rt-amd64 picks another kernel than the cloud's, into
# .cache/kernel/SUITE-FLAVOUR.
# REFRESH=1 looks for a newer one when one is there; with --present, nothing is
# fetched.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"

flavour=${FLAVOUR:-cloud-amd64}
meta=linux-image-$flavour
suite=${SUITE:-$(debian_codename)}
case $flavour in
cloud-amd64 | rt-amd64 | amd64) ;;
*) die "FLAVOUR=$flavour is none of cloud-amd64, amd64 and rt-amd64" ;;
esac
case $suite in
*[!a-z-]* | '') die "SUITE=$suite is no name of a Debian release" ;;
esac
dir=$root/.cache/kernel/$suite
if [ "$flavour" != cloud-amd64 ]; then dir=$dir-$flavour; fi

# present: the path of the image that is there, if any.
present() {
	for f in "$dir"/vmlinuz-*; do
		if [ -r "$f" ]; then
			printf '%s\n' "$f"
			return
		fi
	done
	return 1
}

# resolve: the package that the metapackage depends on, its unsigned twin after it.
resolve() {
	apt-cache -c "$apt_conf" show --no-all-versions "$meta" 2>/dev/null |
		awk '/^Depends:/ { for (i = 2; i <= NF; i++) if ($i ~ /^linux-image-[0-9].*amd64/) {
			sub(/,$/, "", $i); print $i; if ($i !~ /-unsigned$/) print $i "-unsigned"; exit } }'
}

if [ -z "${REFRESH:-}" ] && present; then
	exit 0
fi
if [ "${1:-}" = --present ]; then die "no kernel image is in ${dir#"$root"/}; make kernel fetches one"; fi
lock "$root/.cache/kernel/lock"
if [ -z "${REFRESH:-}" ] && present; then
	exit 0
fi
state=$root/.cache/kernel/apt
# The state is large and of no use afterwards, whatever happens.
trap 'rm -rf "$state"' EXIT
debian_open "$state" "$suite"
packages=$(resolve)
if [ -z "$packages" ]; then die "the package $meta is not in $suite"; fi
deb=
for p in $packages; do
	if debian_download "$p" "$state"; then
		deb=$state/$p.deb
		break
	fi
done
if [ -z "$deb" ]; then die "the kernel package did not arrive (apt's message is above)"; fi
say "unpacking vmlinuz and config"
mkdir -p "$state/root"
# The modules, nine tenths of the package, stay packed.
dpkg-deb --fsys-tarfile "$deb" | (cd "$state/root" && tar -xf - --wildcards './boot/vmlinuz-*' './boot/config-*') ||
	die "the package $p has no vmlinuz and config in /boot (Debian after 13 packs them otherwise)"
mkdir -p "$dir"
rm -f "$dir"/vmlinuz-* "$dir"/config-*
mv "$state"/root/boot/config-* "$state"/root/boot/vmlinuz-* "$dir/"
present
