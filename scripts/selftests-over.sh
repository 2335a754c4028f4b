#!/bin/sh
# What scripts/selftests-inside.sh runs in a mount namespace of its own: lays the
# files of the mount MNT over the host's, runs the tests, and leaves their results
# in LOGS/results. What is mounted here ends with the namespace.
set -eu
mnt=$1 work=$2 tests=$3 logs=$4
shift 4

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
# What the tests write to these files has to reach the guest. Tests and logs that
# are in /tmp stay visible.
keep=${tests%/*}
case $keep in
/tmp/*)
	mkdir -p "$mnt/kprobelab/root$keep"
	mount --bind "$keep" "$mnt/kprobelab/root$keep"
	;;
esac
mount --rbind "$mnt/kprobelab/root/tmp" /tmp
over "$mnt/kprobelab/root/dev/null" /dev/null
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
