#!/bin/sh
# Fetches and packs every kernel that Debian's suites offer (make archive): one
# independent job a kernel, JOBS of them at once, into .cache/archive or DIR. A kernel
# whose file is there, whole, of the package's version and in the form that the program
# reads, is not fetched again, so a run can be stopped and started at will. Files of other
# builds of a release may be there too.
#
# RELEASES='6.1.0-56-cloud-amd64 ...' names some, FLAVOURS='cloud-amd64 amd64' others than
# the cloud's. KEEP=1 leaves the fetched images in .cache/kernel. MODULES=1 packs the
# modules of each kernel's package with it, where Debian still has that. In the end the
# files are written as differences from each other (pack --shrink); not with WHOLE=1.
# "archive.sh --one RELEASE" is a job alone, as an array job on a cluster calls it;
# "archive.sh --list" prints the releases.
# Ends with 0, or 1 when a kernel could not be fetched or packed.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
. "$scripts/kernels.sh"

dir=${DIR:-$root/.cache/archive}
program=${KPROBELAB:-$root/bin/kprobelab}

list() {
	if [ -n "${RELEASES:-}" ]; then
		printf '%s\n' $RELEASES
		return
	fi
	lock "$root/.cache/kernel/lock"
	kernels_open
	kernels_list | awk -v flavours=" ${FLAVOURS:-cloud-amd64} " '{
		flavour = $1 ~ /-cloud-amd64$/ ? "cloud-amd64" : $1 ~ /-rt-amd64$/ ? "rt-amd64" : "amd64"
		if (index(flavours, " " flavour " ")) print
	}'
}

# packed RELEASE: true when the folder has the file of Debian's build, with modules where
# these are asked for. Any version counts for a release that the index does not have.
packed() {
	version=$(kernel_version $(kernel_packages "$1")) || :
	"$program" pack --list --json -o "$dir" "$1" 2>/dev/null |
		grep -F "\"package\":\"$version${version:+\"}" | grep -v '"entries":true' | grep -q "${MODULES:+\"packaged\":}"
}

one() {
	release=$1
	kernels_open
	if [ -n "${MODULES:-}" ] && ! kernel_version $(kernel_modules_packages "$release") >/dev/null; then
		say "no package has the modules of $release: it is packed without them"
		MODULES=
	fi
	if packed "$release"; then return; fi
	was=$(RELEASE=$release "$scripts/kernel.sh" --present 2>/dev/null) || was=
	image=$(RELEASE=$release "$scripts/kernel.sh") || return 1
	set -- "$image"
	if [ -n "${MODULES:-}" ]; then
		modules=$(mktemp -d "$root/.cache/kernel/modules.XXXXXX")
		trap 'rm -rf "$modules"' EXIT
		trap 'exit 1' HUP INT TERM
		# One job fetches at a time, as kernel.sh sees to for images.
		(lock "$root/.cache/kernel/lock" && kernels_open && kernel_modules "$release" "$modules") >&2 || return 1
		set -- --package "$modules" "$image"
	fi
	"$program" pack --keep -o "$dir" "$@" || return 1
	# An image that was there before is somebody else's.
	if [ -z "$was${KEEP:-}" ]; then rm -f "$image"; fi
}

mkdir -p "$dir" "$root/.cache/kernel"
case ${1:-} in
--list) list ;;
--one) one "${2:?a release}" ;;
'')
	releases=$(list)
	failed=0
	printf '%s\n' "$releases" | KPROBELAB=$program DIR=$dir xargs -P "${JOBS:-$(nproc)}" -n 1 "$scripts/archive.sh" --one || failed=1
	[ -n "${WHOLE:-}" ] || "$program" pack -o "$dir" --shrink || failed=1
	set -- "$dir"/*.kpack
	say "$# kernels in $dir, $(du -ch "$@" | awk 'END { print $1 }')"
	exit $failed
	;;
*) die "archive.sh takes --one RELEASE, --list, or nothing" ;;
esac
