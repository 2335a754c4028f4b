#!/bin/sh
# The functions that the tools of bcc and bpftrace probe, over the kernels of an archive:
# prints the table of docs/tools.md (make tools-table).
#
# Debian's packages bpfcc-tools and bpftrace are fetched and read, not run. DIR is the
# archive's folder (.cache/archive), KPROBELAB the program (bin/kprobelab).
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"

dir=${DIR:-$root/.cache/archive}
program=${KPROBELAB:-$root/bin/kprobelab}
work=$root/.cache/tools
mkdir -p "$work"

if [ ! -d "$work/unpacked" ]; then
	(cd "$work" && apt-get download bpfcc-tools bpftrace >&2)
	for deb in "$work"/*.deb; do dpkg-deb -x "$deb" "$work/unpacking"; done
	mv "$work/unpacking" "$work/unpacked"
fi

# A line for each tool and target: "p NAME" or "r NAME", a tab, the tool. A target that
# the tool puts together at run time is not among them.
cd "$work/unpacked/usr/sbin"
{
	grep -Eo 'attach_k(ret)?probe\(event=("[a-z0-9_]+"|[a-z]+\.get_syscall_fnname\("[a-z0-9_]+"\))' -- *-bpfcc |
		sed -E 's/get_syscall_fnname\("([^"]*)"\)/"__x64_sys_\1"/; s/^([^:]*)-bpfcc:attach_k(ret)?probe\(event=[^"]*"([^"]*)".*/\2\t\3\t\1 (bcc)/'
	grep -Eo 'int k(ret)?probe__[a-z0-9_]+' -- *-bpfcc |
		sed -E 's/^([^:]*)-bpfcc:int k(ret)?probe__(.*)/\2\t\3\t\1 (bcc)/'
	grep -Eo '\bk(ret)?probe:[a-z0-9_]+' -- *.bt |
		sed -E 's/^([^:]*):k(ret)?probe:(.*)/\2\t\3\t\1/'
} | awk -F '\t' '{ print ($1 == "" ? "p" : "r") " " $2 "\t" $3 }' | sort -u >"$work/targets"
cut -f 1 "$work/targets" | sort -u >"$work/probes"

# check ends with 1 where a probe does not attach, which is what is asked here.
"$program" check --archive "$dir" --tsv "$work/probes" >"$work/answers" || [ $? = 1 ]

awk -F '\t' '
	function short(release) { match(release, /^[0-9]+\.[0-9]+/); return substr(release, 1, RLENGTH) }
	function spans(list,   n, i, word, out, from, last, all) {
		# consecutive series of those that the archive has
		n = split(list, word, " ")
		for (i = 1; i <= n; i++) {
			if (from == "") from = word[i]
			else if (place[word[i]] != place[last] + 1) { out = out range(from, last) ", "; from = word[i] }
			last = word[i]
		}
		return n ? out range(from, last) : ""
	}
	function range(a, b) { return a == b ? a : a " to " b }
	function add(key, series) {
		if ((" " seen[key] " ") !~ (" " series " ")) seen[key] = seen[key] (seen[key] == "" ? "" : " ") series
	}
	FNR == NR { tools[$1] = tools[$1] (tools[$1] == "" ? "" : ", ") $2; next }
	FNR == 1 { next }
	{
		n = split($1, part, "/"); series = short(part[n])
		if (!(series in place)) place[series] = ++count
		if (!($2 in tools)) next
		if (!($2 in order)) { order[$2] = ++probes; name[probes] = $2 }
		if ($6) add($2 SUBSEP "yes", series)
		else if ($5 == "absent") add($2 SUBSEP "absent", series)
		else add($2 SUBSEP "no", series)
		if (!$6 && $5 != "absent") why[$2] = $12
	}
	END {
		print "| target | attaches | absent | refused | tools |\n|---|---|---|---|---|"
		for (i = 1; i <= probes; i++) {
			p = name[i]
			target = substr(p, 3); if (p ~ /^r/) target = target " (return)"
			no = spans(seen[p SUBSEP "no"]); if (no != "") no = no ": " why[p]
			printf "| %s | %s | %s | %s | %s |\n", target, spans(seen[p SUBSEP "yes"]), spans(seen[p SUBSEP "absent"]), no, tools[p]
		}
	}' "$work/targets" "$work/answers"
