#!/bin/sh
# A kernel image of Debian's, unpacked under .cache/kernel: vmlinuz-VERSION and,
# where the archive has it, config-VERSION. Prints the image's path.
#
# SUITE is the system's own by default, and its newest cloud kernel is taken, into
# .cache/kernel/SUITE; SUITE=trixie, say, or trixie-backports picks another one.
# FLAVOUR=amd64 or FLAVOUR=rt-amd64 picks another kernel than the cloud's, into
# .cache/kernel/SUITE-FLAVOUR. RELEASE=6.12.107+deb13-amd64 is one by its name in
# any of Debian's suites, into .cache/kernel/RELEASE.
# REFRESH=1 looks for a newer one when one is there; with --present, nothing is
# fetched. With --debuginfo, the image's vmlinux with its debugging information is
# put beside it, as vmlinux-VERSION (a package of 300 MB to 1 GB), and its path printed.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
. "$scripts/kernels.sh"

flavour=${FLAVOUR:-cloud-amd64}
meta=linux-image-$flavour
suite=${SUITE:-$(debian_codename)}
release=${RELEASE:-}
case $flavour in
cloud-amd64 | rt-amd64 | amd64) ;;
*) die "FLAVOUR=$flavour is none of cloud-amd64, amd64 and rt-amd64" ;;
esac
case $suite in
*[!a-z-]* | '') die "SUITE=$suite is no name of a Debian release" ;;
esac
case $release in
*[!a-z0-9.+-]* | [!0-9]*) die "RELEASE=$release is no release of a kernel; uname -r says one, as 6.12.107+deb13-amd64" ;;
esac
dir=$root/.cache/kernel/$suite
if [ "$flavour" != cloud-amd64 ]; then dir=$dir-$flavour; fi
if [ -n "$release" ]; then dir=$root/.cache/kernel/$release; fi

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

# newest: the release that the metapackage depends on.
newest() {
	apt-cache -c "$apt_conf" show --no-all-versions "$meta" 2>/dev/null |
		awk '/^Depends:/ { for (i = 2; i <= NF; i++) if ($i ~ /^linux-image-[0-9].*amd64/) {
			sub(/,$/, "", $i); sub(/^linux-image-/, "", $i); sub(/-unsigned$/, "", $i); print $i; exit } }'
}

# debuginfo: fetches the debugging information of the image that is there, unless
# it is there too.
debuginfo() {
	image=$(present) || die "no kernel image is in ${dir#"$root"/}"
	release=${image##*/vmlinuz-}
	if [ ! -r "$dir/vmlinux-$release" ]; then
		lock "$root/.cache/kernel/lock"
		kernels_open
		kernel_debuginfo "$release" "$dir" || die "no package with the debugging information of $release arrived"
	fi
	printf '%s\n' "$dir/vmlinux-$release"
}

if [ "${1:-}" = --debuginfo ]; then
	present >/dev/null || "$0" >/dev/null
	debuginfo
	exit 0
fi
if [ -z "${REFRESH:-}" ] && present; then
	exit 0
fi
if [ "${1:-}" = --present ]; then die "no kernel image is in ${dir#"$root"/}; make kernel fetches one"; fi
lock "$root/.cache/kernel/lock"
if [ -z "${REFRESH:-}" ] && present; then
	exit 0
fi
if [ -n "$release" ]; then
	kernels_open
else
	state=$root/.cache/kernel/apt
	# The state is large and of no use afterwards, whatever happens.
	trap 'rm -rf "$state"' EXIT
	debian_open "$state" "$suite"
	release=$(newest)
	if [ -z "$release" ]; then die "the package $meta is not in $suite"; fi
fi
rm -rf "$apt_state/root"
if ! kernel_fetch "$release" "$apt_state/fetched"; then
	die "no package with the kernel $release arrived (apt's message, if any, is above)"
fi
mkdir -p "$dir"
rm -f "$dir"/vmlinuz-* "$dir"/config-*
mv "$apt_state/fetched/"* "$dir/"
present
