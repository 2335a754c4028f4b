#!/bin/sh
# Boots every kernel that Debian's suites offer, in three flavours, JOBS of them at
# once, and compares as conformance.sh does (make conformance-all). What a kernel
# answered and how it compares is kept in .cache/conformance/kept; a kernel that has
# a result there is not booted again, so a run can be stopped and started at will.
#
# The newest of each series come first, then the older ones. CPU='qemu64 EPYC' picks
# the processors, SHARD=2/3 the second of three shares of the kernels for as many machines (the results are all machines'
# files in .cache/conformance/kept, put into one folder), POINTS, NAMES and SEED the points and definitions by name, SERIES='6.12
# 7.3' and FLAVOURS='cloud-amd64' some of the kernels, LIMIT=20 the first so many.
# AGAIN=differing compares those with differences again, by what they answered,
# AGAIN=all all of them; neither boots any. make conformance-table puts the results
# into docs/measured/conformance.md. "conformance-all.sh --one RELEASE" is a job alone.
# Ends with 0 when every answer is the same, 1 when some are not, and 77 when a
# kernel or a tool could not be had, or a kernel did not run to its end.
undone='conformance was NOT checked'
. "$(dirname "$0")/comparison.sh"

work=$root/.cache/conformance
kept=$work/kept
object=$work/tool.bpf.o
case ${AGAIN:-} in
'' | differing | all) ;;
*) die "AGAIN=$AGAIN is neither differing nor all" ;;
esac

# in_turn: of releases on stdin, newest first, the newest of each series and flavour,
# then the next ones.
in_turn() {
	awk -v series=" ${SERIES:-} " -v flavours=" ${FLAVOURS:-cloud-amd64 amd64 rt-amd64} " '
		{
			flavour = $1 ~ /-cloud-amd64$/ ? "cloud-amd64" : $1 ~ /-rt-amd64$/ ? "rt-amd64" : "amd64"
			match($1, /^[0-9]+\.[0-9]+/)
			of = substr($1, 1, RLENGTH)
			if (series !~ /^ +$/ && !index(series, " " of " ")) next
			at = index(flavours, " " flavour " ")
			if (at) print n[of, flavour]++, at, NR, $1
		}' | sort -n -k1,1 -k2,2 -k3,3 | awk '{ print $4 }'
}

# differs RESULT: true when it has differences.
differs() { ! "$compare" table -same "$1" 2>/dev/null; }

# one RELEASE: asks a kernel on each processor, unless it was.
one() {
	release=$1
	for cpu in ${CPU:-qemu64}; do
		result=$kept/$release@$cpu.json
		log=$kept/$release@$cpu.log
		again=
		if [ -e "$result" ]; then
			case ${AGAIN:-} in
			all) again=-again ;;
			differing) if differs "$result"; then again=-again; fi ;;
			esac
			if [ -z "$again" ]; then continue; fi
		elif [ -n "${AGAIN:-}" ]; then
			continue
		fi
		if ! kernel=$(RELEASE=$release "$scripts/kernel.sh" 2>"$log"); then
			say "$release did not arrive, see ${log#"$root"/}"
			continue
		fi
		code=0
		"$compare" boot -qemu "$qemu" -init "$work/init" -object "$object" -cpu "$cpu" -keep "$kept" $again \
			-points "${POINTS:-3000}" -names "${NAMES:-500}" -seed "${SEED:-1}" "$kernel" >"$log" 2>&1 </dev/null || code=$?
		case $code in
		0) said='same' ;;
		77) said="did not run, see ${log#"$root"/}" ;;
		*) said="differs, see ${log#"$root"/}" ;;
		esac
		say "$release on $cpu: $said"
	done
}

mkdir -p "$kept"
qemu=$(qemu) || cannot "QEMU cannot be had (see above)"
if [ "${1:-}" = --one ]; then
	one "${2:?a release}"
	exit
fi
build_init guest "$work/init"
build_program
(cd "$root" && CGO_ENABLED=0 go build -o "$work/shards" ./internal/tools/shards)
kernels_open || cannot "the index of kernels cannot be had (see above)"
clang=$(clang) || cannot "clang cannot be had (see above)"
"$clang" -O2 -g -target bpf -c "$root/internal/tools/conformance/testdata/tool.bpf.c" -o "$object" || die "the BPF source does not compile"
kernels_list | in_turn | head -n "${LIMIT:-100000}" | "$work/shards" -of "${SHARD:-1/1}" >"$work/all" || exit 2
say "$(wc -l <"$work/all") kernels"
code=0
xargs -P "${JOBS:-$(nproc)}" -n 1 "$scripts/conformance-all.sh" --one <"$work/all" || code=$?

same=0 differing=0 missing=0
while read -r release; do
	for cpu in ${CPU:-qemu64}; do
		result=$kept/$release@$cpu.json
		if [ ! -e "$result" ]; then
			missing=$((missing + 1))
		elif differs "$result"; then
			differing=$((differing + 1))
		else
			same=$((same + 1))
		fi
	done
done <"$work/all"
say "$same are the same, $differing differ, $missing did not arrive or run"
if [ "$differing" -gt 0 ]; then exit 1; fi
if [ "$missing" -gt 0 ] || [ "$code" -gt 0 ]; then exit 77; fi
