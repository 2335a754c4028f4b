#!/bin/sh
# The functions that the tools of bcc and bpftrace probe, over the kernels of an archive:
# prints the tables of docs/measured/tools.md (make tools-table).
#
# Debian's packages bpfcc-tools and bpftrace are fetched and read, not run. DIR is the
# archive's folder (.cache/archive), KPROBELAB the program (bin/kprobelab).
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"

dir=${DIR:-$root/.cache/archive}
program=${KPROBELAB:-$root/bin/kprobelab}
work=$root/.cache/tool-probes
mkdir -p "$work"

if [ ! -d "$work/unpacked" ]; then
	(cd "$work" && apt-get download bpfcc-tools bpftrace >&2)
	for deb in "$work"/*.deb; do dpkg-deb -x "$deb" "$work/unpacking"; done
	mv "$work/unpacking" "$work/unpacked"
fi

# A line for each tool and target: the target as check takes it, a tab, the tool. A target
# that the tool puts together at run time is not among them, but for system calls.
cd "$work/unpacked/usr/sbin"
{
	grep -Eo 'attach_k(ret)?probe\(event=b?"[a-z0-9_]+"' -- *-bpfcc |
		sed -E 's/^([^:]*)-bpfcc:attach_k(ret)?probe\(event=b?"([^"]*)".*/\2\t\3\t\1 (bcc)/'
	# A regular expression: of these the tools have names, alternatives, .* and a digit.
	grep -Eo 'attach_k(ret)?probe\(event_re=b?"[^"]+"' -- *-bpfcc |
		sed -E 's/\\d|\.\*/*/g; s/\\\././g; s/[$^]//g; s/^([^:]*)-bpfcc:attach_k(ret)?probe\(event_re=b?"([^"]*)".*/\2\t\3\t\1 (bcc)/'
	grep -Eo 'get_syscall_fnname\(b?"[a-z0-9_]+"' -- *-bpfcc |
		sed -E 's/^([^:]*)-bpfcc:[^"]*"([^"]*)".*/\t__x64_sys_\2\t\1 (bcc)/'
	grep -Eo 'int k(ret)?probe__[a-z0-9_]+' -- *-bpfcc |
		sed -E 's/^([^:]*)-bpfcc:int k(ret)?probe__(.*)/\2\t\3\t\1 (bcc)/'
	grep -Eo '\bk(ret)?probe:[a-z0-9_*]+' -- *.bt |
		sed -E 's/^([^:]*):k(ret)?probe:(.*)/\2\t\3\t\1/'
} | awk -F '\t' '{ print $2 ($1 == "" ? "" : "%return") "\t" $3 }' | LC_ALL=C sort -u >"$work/targets"
cut -f 1 "$work/targets" | LC_ALL=C sort -u >"$work/probes"

# check ends with 1 where a probe does not attach, which is what is asked here. The tools
# attach by perf events.
"$program" pack --list --json -o "$dir" >"$work/kernels"
"$program" check --archive "$dir" --via bpf --tsv "$work/probes" >"$work/answers" || [ $? = 1 ]

awk -F '\t' -f "$scripts/tool-probes.awk" "$work/targets" "$work/kernels" "$work/answers"
