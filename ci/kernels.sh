#!/bin/sh
# Asks whether the probes of a tool attach, whether its BPF programs load, and runs it, on a matrix of kernels. It needs kprobelab in PATH.
#
#   KERNELS   the kernels, in words of kernels.lock: '5.10 6.1 newest'
#   PROBES    a file with the probes, or a BPF object, for check; empty: no check
#   OBJECT    a BPF object, for check --load by the verifiers of booted kernels; empty: no such check
#   TOOL      a command line, for exec; empty: no exec
#   SHARD     I/N runs a share of the kernels and leaves the outputs of the shard; "merge" reads those of all shards
#   RESULTS   the folder for results (kprobelab-results): check.txt, check.xml, load.txt, load.xml, exec.txt, exec.xml
#
# On GitHub the probes that do not attach and the programs that do not load become annotations, and the tables are in the job's summary. The exit code is the first
# that is not 0. A path and the name of a kernel have no blanks.
set -euf
out=${RESULTS:-kprobelab-results} shard=${SHARD:-1/1} code=0
mkdir -p "$out"
if [ "$shard" != merge ]; then
	set -- $(printf -- '--kernel %s ' $KERNELS)
	if [ -n "${PROBES:-}" ]; then kprobelab check "$@" --shard "$shard" "$PROBES" >"$out/check-${shard%/*}.shard" || code=$?; fi
	if [ -n "${OBJECT:-}" ]; then kprobelab check --load "$@" --shard "$shard" "$OBJECT" >"$out/load-${shard%/*}.shard" || code=$?; fi
	if [ -n "${TOOL:-}" ]; then eval "kprobelab exec $* --shard $shard -- $TOOL" >"$out/exec-${shard%/*}.shard" || code=$?; fi
	if [ "$shard" != 1/1 ]; then exit $code; fi
fi
code=0
for what in check load exec; do
	set +f
	set -- "$out/$what"-*.shard
	set -f
	[ -e "$1" ] || continue
	failed=0
	case $what in
	check | load)
		kprobelab merge "$@" >"$out/$what.txt" || failed=$?
		kprobelab merge --format junit "$@" >"$out/$what.xml" 2>/dev/null || :
		if [ -n "${GITHUB_ACTIONS:-}" ]; then kprobelab merge --format annotations "$@" 2>/dev/null || :; fi
		;;
	exec)
		kprobelab merge --junit "$out/exec.xml" "$@" >"$out/exec.txt" || failed=$?
		if [ -n "${GITHUB_ACTIONS:-}" ] && [ $failed != 0 ]; then echo "::error title=kprobelab exec::exit code $failed; the table is in the log"; fi
		;;
	esac
	cat "$out/$what.txt"
	if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
		{ printf '### kprobelab %s\n\n' "$what" && sed 's/^/    /' "$out/$what.txt" && echo; } >>"$GITHUB_STEP_SUMMARY"
	fi
	if [ $code = 0 ]; then code=$failed; fi
done
exit $code
