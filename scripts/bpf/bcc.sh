# Ten of bcc's tools (conformance-bpf-projects.sh).
# shellcheck shell=sh
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
start() {
	name=$1
	shift
	exec /usr/bin/python3.13 /scripts/interruptible.py "/usr/sbin/$name-bpfcc" "$@"
}

one opensnoop
one execsnoop
one exitsnoop
one tcplife
one tcpconnect
one killsnoop -s 15
one mountsnoop
one runqlat
one funccount 'vfs_*'
one trace 'do_sys_openat2 "%s", arg2@user'
