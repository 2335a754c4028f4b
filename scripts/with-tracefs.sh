#!/bin/sh
# with-tracefs.sh DIR COMMAND...: runs trace-cmd, or another user of libtracefs, on
# the files that kprobelab mount shows at DIR.
#
# libtracefs takes the first file system of type tracefs in /proc/mounts, and mounts
# the running kernel's where it finds none. A mount of FUSE has another type. So the
# command gets a mount namespace of its own, whose /proc says that DIR is tracefs, and
# has the image's symbols and version. The running kernel's tracing files are not
# reached. As an ordinary user it needs user namespaces.
set -eu
[ $# -ge 2 ] || { echo "usage: with-tracefs.sh DIR COMMAND..." >&2; exit 2; }
if [ "${KPROBELAB_INSIDE-}" != 1 ]; then
	dir=$(cd "$1" && pwd)
	[ -e "$dir/kprobe_events" ] || { echo "with-tracefs.sh: $1 has no kprobe_events: mount it first, with kprobelab mount" >&2; exit 2; }
	shift
	user=--map-root-user
	[ "$(id -u)" != 0 ] || user=
	KPROBELAB_INSIDE=1 exec unshare $user --mount --propagation private "$0" "$dir" "$@"
fi
dir=$1
shift
unset KPROBELAB_INSIDE
mount -t tmpfs none /proc
# In this file a blank of a path is written as \040.
# Without a debugfs trace-cmd mounts the running kernel's, to look for its guests.
escaped=$(printf %s "$dir" | sed 's/ /\\040/g')
printf '%s\n' "tracefs $escaped tracefs rw 0 0" "debugfs $escaped debugfs rw 0 0" >/proc/mounts
# trace-cmd takes a kernel without this file for one that has no function tracer.
mkdir -p /proc/sys/kernel
echo 1 >/proc/sys/kernel/ftrace_enabled
for file in kallsyms version; do
	[ ! -e "$dir/kprobelab/$file" ] || cat "$dir/kprobelab/$file" >"/proc/$file"
done
exec "$@"
