#!/bin/sh
# Runs Debian's libbpf-tools, one after the other, on dumps of booted kernels, each beside one workload of files,
# processes, sockets, signals and mounts (make bpf-tools; docs/bpf.md has the table). Prints tool, kernel, exit code, lines of
# output and seconds of processor time. TOOLS='opensnoop tcplife' and DUMPS='6.1 newest' choose; OUT=FOLDER keeps what they print.
# Ends with 77 when the tools or a dump cannot be had, with 1 when a tool ends with another exit code than 0.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
. "$scripts/conformance-tools.sh"

cannot() { say "no tool was run: $*"; exit 77; }

tool libbpf-tools trixie libbpf-tools || cannot "libbpf-tools cannot be had (see above)"
dumps=${KPROBELAB_DUMPS:-$root/.cache/dumps}
out=${OUT:-$(mktemp -d)}
if [ -z "${OUT:-}" ]; then trap 'rm -rf "$out"' EXIT; fi
mkdir -p "$out"
all='opensnoop exitsnoop tcpconnect killsnoop mountsnoop filelife runqlat statsnoop bindsnoop solisten tcpstates tcptracer sigsnoop syscount
	cachestat capable funclatency softirqs biolatency tcplife wakeuptime slabratetop tcprtt execsnoop vfsstat fsslower offcputime hardirqs klockstat
	readahead cpudist numamove drsnoop syncsnoop'
work='cat /etc/hostname >/dev/null; ls /none 2>/dev/null; mkdir -p /tmp/w; for i in 0 1 2 3 4; do echo $i >/tmp/w/f$i; cat /tmp/w/f$i >/dev/null; done
	mv /tmp/w/f0 /tmp/w/g; sync; rm -r /tmp/w; sleep 5 & kill $!; mkdir -p /mnt; mount -t tmpfs none /mnt; umount /mnt
	(echo hello | nc -l -p 4000 >/dev/null & sleep 0.1; echo x | nc 127.0.0.1 4000 >/dev/null; wait); ping -c 1 localhost >/dev/null; true'
bad=0
for t in ${TOOLS:-$all}; do
	for k in ${DUMPS:-6.1 6.12 newest}; do
		[ -e "$dumps/$k.core" ] || cannot "$k.core is missing; make dumps makes it"
		argument=
		if [ "$t" = funclatency ]; then argument=vfs_read; fi
		code=0
		# shellcheck disable=SC2086 # one argument or none
		# The second line of times is of the children.
		( "$root/bin/kprobelab" exec --kernel "$dumps/$k.core" --root "$tools/libbpf-tools" --workload "$work" "/usr/sbin/$t-libbpf" $argument \
			</dev/null >"$out/$t.$k.out" 2>"$out/$t.$k.err" || code=$?
		times >"$out/$t.$k.time"
		exit "$code" ) || code=$?
		if [ "$code" != 0 ]; then bad=1; fi
		printf '%-12s %-8s %3d %6d lines %6.1f s\n' "$t" "$k" "$code" "$(wc -l <"$out/$t.$k.out")" "$(awk 'NR == 2 { split($1 "m" $2, part, "m"); print 60 * (part[1] + part[3]) + part[2] + part[4] }' "$out/$t.$k.time")"
	done
done
exit $bad
