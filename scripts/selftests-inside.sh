#!/bin/sh
# What scripts/selftests.sh runs in its mount namespace: mounts (the image in
# KPROBELAB_IMAGE, or the guest kernel), runs the tests, and leaves their results
# in LOGS/results.
set -eu
program=$1 tests=$2 logs=$3
shift 3
say() { printf '%s\n' "$*"; }

work=$(mktemp -d)
mnt=$work/tracing
mkdir "$mnt"
server=
# What is mounted here ends with the namespace.
finish() {
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null || :
		wait "$server" 2>/dev/null || :
	fi
	cd /
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
over() { # FILE-OF-OURS HOST'S
	if [ -e "$2" ]; then mount --bind "$1" "$2"; fi
}
over "$mnt/kprobelab/kallsyms" /proc/kallsyms
over "$mnt/kprobelab/version" /proc/version
if [ -d /sys/kernel/debug ]; then
	mount -t tmpfs kprobelab /sys/kernel/debug
	mkdir /sys/kernel/debug/kprobes
	mount --bind "$mnt/kprobes" /sys/kernel/debug/kprobes
fi
over "$mnt/debug/kprobes-optimization" /proc/sys/debug/kprobes-optimization
over "$mnt/kernel/stack_tracer_enabled" /proc/sys/kernel/stack_tracer_enabled
# The tests change the host's scheduler while they run; here they change a copy.
cp /proc/sys/kernel/sched_rt_runtime_us "$work/runtime" 2>/dev/null || echo 950000 >"$work/runtime"
over "$work/runtime" /proc/sys/kernel/sched_rt_runtime_us

timeout -k 10 900 "$tests/ftracetest" -k -l "$logs" "$@" || :
cd "$logs"
# "NAME RESULT" for each, from its number in the log and the name of its own.
sed -n 's/^\[\([0-9]*\)\].*\[\([A-Z]*\)\]$/\1 \2/p' ftracetest.log | while read -r n result; do
	for f in "$n"-*.tc-log.*; do
		f=${f#"$n"-}
		echo "${f%.tc-log.*} $result"
	done
done >results
