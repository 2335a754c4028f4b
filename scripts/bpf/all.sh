# In the guest: runs tools one after the other, each beside one workload, and prints what each printed
# (conformance-bpf.sh, conformance-bpf-projects.sh; internal/tools/conformance/bpftools reads it). /scripts/tools.sh has a line
# "one TOOL [ARGUMENTS]" for each, and may have its own start and ready; /scripts/work.sh is the workload.
# shellcheck shell=sh
bb=/bin/busybox
export TZ=UTC0
$bb mkdir -p /tmp
$bb --install -s /bin 2>/dev/null
export PATH=/bin
$bb mount -t tracefs none /sys/kernel/tracing 2>/dev/null
$bb mount -t debugfs none /sys/kernel/debug 2>/dev/null
$bb ifconfig lo 127.0.0.1 up 2>/dev/null
# rest SECONDS: waits without a process, which a tool would see.
$bb mkfifo /tmp/rest
exec 9<>/tmp/rest
rest() { read -r -t "$1" _ <&9; }

# The process numbers of what follows do not depend on how many processes the boot took.
pid=0
while [ "$pid" -lt 300 ]; do
	$bb true &
	pid=$!
	wait $pid
done

# start TOOL [ARGUMENTS]: becomes the tool.
start() {
	name=$1
	shift
	exec /usr/sbin/$name-libbpf "$@"
}

# ready: waits until the tool has attached its probes, which takes capable longest. A tool that has not ended gets SIGINT again every ten seconds, and is
# killed after $patience seconds: Python loses the one that comes while it handles an event.
ready() { $bb sleep "$([ "$name" = capable ] && echo 12 || echo 4)"; }
patience=5

# one TOOL [ARGUMENTS]: SIGINT ends the tool a second after the workload.
one() {
	name=$1
	start "$@" </dev/null >/tmp/out 2>/tmp/err &
	tool=$!
	ready
	. /scripts/work.sh
	$bb sleep 1
	i=0
	while [ $i = 0 ] || { [ $i -lt $patience ] && kill -0 $tool; }; do
		[ $((i % 10)) -gt 0 ] || kill -INT $tool
		rest 1
		i=$((i + 1))
	done
	kill -KILL $tool
	wait $tool 2>/dev/null
	echo "=== $name $?"
	$bb cat /tmp/out
	echo "=== err"
	$bb cat /tmp/err
	echo "=== end"
	$bb rm -f /tmp/out /tmp/err
}

. /scripts/tools.sh
