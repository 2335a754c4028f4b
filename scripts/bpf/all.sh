# In the guest: runs tools one after the other, each beside one workload, and prints what each printed
# (conformance-bpf.sh; internal/tools/conformance/bpftools reads it). /scripts/tools.sh has a line "one TOOL [ARGUMENTS]" for each.
# shellcheck shell=sh
bb=/bin/busybox
export TZ=UTC0
$bb mkdir -p /mnt /tmp
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

# work reads, makes, renames and removes files, starts processes, sends a signal, mounts, and talks over loopback.
work() {
	$bb cat /etc/hostname >/dev/null
	$bb ls /none 2>/dev/null
	$bb mkdir -p /tmp/w
	for i in 0 1 2 3 4; do
		echo $i >/tmp/w/f$i
		$bb cat /tmp/w/f$i >/dev/null
	done
	$bb mv /tmp/w/f0 /tmp/w/g
	$bb sync
	$bb rm -r /tmp/w
	$bb sleep 50 &
	$bb sleep 0.1
	kill $!
	wait $! 2>/dev/null
	$bb mount -t tmpfs none /mnt
	$bb umount /mnt
	$bb nc -l -p 4000 >/dev/null &
	server=$!
	$bb sleep 0.2
	$bb nc 127.0.0.1 4000 </etc/hostname >/dev/null
	wait $server
	$bb ping -c 1 127.0.0.1 >/dev/null
}

# one TOOL [ARGUMENTS]: SIGINT ends the tool a second after the workload, SIGKILL five seconds later.
one() {
	name=$1
	shift
	/usr/sbin/$name-libbpf "$@" </dev/null >/tmp/out 2>/tmp/err &
	tool=$!
	$bb sleep 4
	work
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
