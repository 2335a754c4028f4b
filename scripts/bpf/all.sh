# In the guest: runs tools one after the other, each beside one workload, and prints what each printed
# (conformance-bpf.sh; internal/tools/conformance/bpftools reads it). /scripts/tools.sh has a line "one TOOL [ARGUMENTS]"
# for each, /scripts/work.sh the workload.
# shellcheck shell=sh
bb=/bin/busybox
export TZ=UTC0
$bb mkdir -p /tmp
$bb --install -s /bin 2>/dev/null
export PATH=/bin
$bb mount -t tracefs none /sys/kernel/tracing 2>/dev/null
$bb mount -t debugfs none /sys/kernel/debug 2>/dev/null
$bb ifconfig lo 127.0.0.1 up 2>/dev/null
# The process numbers of what follows do not depend on how many processes the boot took.
pid=0
while [ "$pid" -lt 300 ]; do
	$bb true &
	pid=$!
	wait $pid
done

# one TOOL [ARGUMENTS]: SIGINT ends the tool a second after the workload, SIGKILL five seconds later.
one() {
	name=$1
	shift
	/usr/sbin/$name-libbpf "$@" </dev/null >/tmp/out 2>/tmp/err &
	tool=$!
	$bb sleep 4
	. /scripts/work.sh
	$bb sleep 1
	kill -INT $tool 2>/dev/null
	for i in 0 1 2 3 4 5 6 7 8 9; do
		kill -0 $tool 2>/dev/null || break
		$bb sleep 0.5
	done
	kill -KILL $tool 2>/dev/null
	wait $tool 2>/dev/null
	echo "=== $name $?"
	$bb cat /tmp/out
	echo "=== err"
	$bb cat /tmp/err
	echo "=== end"
	$bb rm -f /tmp/out /tmp/err
}

. /scripts/tools.sh
