#!/bin/sh
# What scripts/selftests.sh runs in its mount namespace: mounts (the image in
# KPROBELAB_IMAGE, or the guest kernel), and has the tests run.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
program=$1 tests=$2 logs=$3
shift 3
say() { printf '%s\n' "$*"; }

# Not in /tmp, over which the guest's will be.
work=$(mktemp -d /var/tmp/kprobelab.XXXXXX)
mnt=$work/tracing
mkdir "$mnt"
server=
# What is mounted here ends with the namespace.
finish() {
	cd /
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null || :
		wait "$server" 2>/dev/null || :
	fi
	umount -l "$mnt" 2>/dev/null || :
	rm -rf "$work" 2>/dev/null || :
}
trap finish EXIT
trap 'exit 1' INT TERM

# The host's own must not be found in the mount table before ours, nor changed.
for old in /sys/kernel/tracing /sys/kernel/debug; do
	while umount -l "$old" 2>/dev/null; do :; done
done
"$program" mount "$mnt" ${KPROBELAB_IMAGE:+"$KPROBELAB_IMAGE"} >"$work/ready" 2>"$logs/kprobelab.log" &
server=$!
n=0
until [ -s "$work/ready" ]; do
	n=$((n + 1))
	if [ $n -gt 300 ] || ! kill -0 "$server" 2>/dev/null; then
		cat "$logs/kprobelab.log"
		say "kprobelab did not mount"
		exit 1
	fi
	sleep 0.1
done
# The server must not see its own mount: opening a file there it would wait for
# itself when it ends.
unshare -m --propagation private "$scripts/selftests-over.sh" "$mnt" "$work" "$tests" "$logs" "$@"
