#!/bin/sh
# The main job, shown three times: on the guest kernel inside the program, on a real
# kernel image where one can be had, and on that kernel booted where QEMU can be had.
# demo.sh PROGRAM
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
program=$1

# show ARGUMENT...: prints the command as one would type it, then runs it.
show() {
	printf '$ kprobelab'
	for a in "$@"; do
		case $a in
		*[!A-Za-z0-9_./:+=-]*) printf " '%s'" "$a" ;;
		*) printf ' %s' "$a" ;;
		esac
	done
	printf '\n'
	"$program" "$@"
}

echo "== the guest kernel inside the program"
show run --kprobe vfs_read --kretprobe kernel_clone \
	--call 'sys_open("/etc/hostname", 0, 0)' --call 'sys_read(3, buf[16], 16)' --call 'sys_fork()'

echo
echo "== a real kernel image"
status=0
image=$("$scripts/image.sh") || status=$?
if [ "$status" = 2 ]; then exit 2; fi # IMAGE= names none: the line above says so
if [ "$status" != 0 ]; then
	echo "There is no kernel image to show it on (the line above says why); IMAGE=FILE names one."
	exit 0
fi
image=${image#"$PWD/"} # as one would type it
show run "$image" --kprobe snprintf --kretprobe crc32_le \
	--call 'snprintf(buf[64], 64, "%s has %d things", "abc", 42)' \
	--call 'crc32_le(0xffffffff, "123456789", 9)'

echo
echo "== the same kernel, booted"
qemu=$("$scripts/qemu.sh") || {
	echo "There is no QEMU to boot it with (the line above says why); KPROBELAB_QEMU=PROGRAM names one."
	exit 0
}
dump=${scripts%/*}/.cache/dumps/demo.core
mkdir -p "${dump%/*}"
dump=${dump#"$PWD/"}
show boot "$image" --qemu "${qemu#"$PWD/"}" -o "$dump" || {
	echo "It could not be booted here (the line above says why)."
	exit 0
}
show run "$dump" --kprobe vfs_read \
	--call 'openat(AT_FDCWD, "/proc/version", O_RDONLY)' --call 'read(3, buf[40], 40)'
