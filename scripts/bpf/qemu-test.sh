#!/bin/sh
# qemu-test.sh BINARY ARGUMENTS: runs a test of Go's on a booted kernel under QEMU, in the folder of its package, with what kprobelab
# exec mounts (go test -exec; conformance-bpf-projects.sh).
set -eu
binary=$1
shift
printf '%s\n' 'for m in "bpf /sys/fs/bpf" "cgroup2 /sys/fs/cgroup" "securityfs /sys/kernel/security" "devpts /dev/pts"; do
	/bin/busybox mkdir -p ${m#* }
	/bin/busybox mount -t ${m% *} ${m% *} ${m#* }
done 2>/dev/null
exec "$@"' >"$KPROBELAB_OUT/mounts.sh"
# shellcheck disable=SC2086 # the command is words
exec $KPROBELAB_BOOT --append "$KPROBELAB_APPEND" --file "$KPROBELAB_OUT/mounts.sh:/mounts.sh" --file "$binary:/bin/${binary##*/}" --file "$PWD:$PWD" --cwd "$PWD" \
	--exec "/bin/busybox sh /mounts.sh /bin/${binary##*/} $*"
