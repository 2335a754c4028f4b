#!/bin/sh
# The kernel's own ftrace selftests for kprobe events, unmodified, over
# `kprobelab mount` (make selftests). They come from Debian's package
# linux-source-6.1 into .cache/selftests, and nothing of them leaves it.
#
# Everything happens in a mount namespace of its own, in which the mount's
# files stand over the host's: /sys/kernel/tracing, /sys/kernel/debug/kprobes,
# /proc/kallsyms, /proc/version. The host's tracing is not touched. It takes root
# (the tests ask for it), /dev/fuse, and a few minutes.
#
#   scripts/selftests.sh PROGRAM [TEST.tc...]
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"

dir=$root/.cache/selftests
tests=$dir/ftrace
package=linux-source-6.1

fetch() {
	if [ -x "$tests/ftracetest" ]; then return; fi
	state=$dir/apt
	trap 'rm -rf "$state"' EXIT
	debian_open "$state" bookworm
	debian_download "$package" "$state" || die "the package $package did not arrive (apt's message is above)"
	say "unpacking the ftrace selftests"
	dpkg-deb --fsys-tarfile "$state/$package.deb" | tar -xf - -O ./usr/src/linux-source-6.1.tar.xz |
		tar -C "$state" -xJf - linux-source-6.1/tools/testing/selftests/ftrace
	mkdir -p "$dir"
	mv "$state/linux-source-6.1/tools/testing/selftests/ftrace" "$tests"
	rm -rf "$state"
	trap - EXIT
}

program=${1:?the kprobelab program}
shift
case $program in /*) ;; *) program=$PWD/$program ;; esac
if [ "$(id -u)" -ne 0 ]; then die "the kernel's selftests want to be run by root; as an ordinary user: unshare -rm make selftests, where /dev/fuse may be used"; fi
if [ ! -c /dev/fuse ]; then die "/dev/fuse is not there: no selftests here"; fi
need unshare util-linux
need xz xz-utils
fetch
if [ $# -eq 0 ]; then set -- "$tests/test.d/kprobe" "$tests/test.d/dynevent"; fi
logs=$dir/logs
rm -rf "$logs"
mkdir -p "$logs"
exec unshare -m --propagation private "$scripts/selftests-inside.sh" "$program" "$tests" "$logs" "$@"
