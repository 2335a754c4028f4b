#!/bin/sh
# Hardware breakpoints of booted kernels (make conformance-watch), under QEMU, and in this
# program on a dump of the same boot. Three minutes a kernel.
#
# Which are refused: asks for some at random, by perf_event_open of tasks and CPUs and by ptrace, and
# compares each answer with the rules of watch/registers. What those that are set do: compares
# which fire, where, in which order and by which signals (testdata/init/breakpoints.c); on the dump
# also with this machine's own processor, where it lets the program run.
#
# SUITES, FLAVOURS, RELEASES and KERNEL pick the kernels as for make conformance. CPUS=2
# is how many processors they have, QUESTIONS=1000 how many questions each is asked under
# QEMU, ROUNDS=10 how many times 400 the dump is, BREAKPOINTS=100 how many are set at random,
# SEED=1 decides them.
# Ends with 0 when nothing differs, 1 when something does, and 77 when a kernel or QEMU cannot
# be had.
undone='the debug registers were NOT compared'
. "$(dirname "$0")/comparison.sh"

work=$root/.cache/conformance/watch
mkdir -p "$work"

choose_kernels 'bullseye bookworm trixie trixie-backports'
qemu=$(qemu) || cannot "QEMU cannot be had (see above)"
build_program unicorn

seed=${SEED:-1}
questions=${QUESTIONS:-1000}
breakpoints=${BREAKPOINTS:-100}
set -f
IFS='
'
status=0
for kernel in $kernels; do
	boot() {
		"$lab" boot "$kernel" --qemu "$qemu" --cpus "${CPUS:-2}" --append nopti --file "$root/testdata/registers.elf:/bin/registers" \
			--file "$root/testdata/breakpoints.elf:/bin/breakpoints" "$@"
	}
	symbol() {
		"$lab" symbols "$work/kernel.core" "$1" | sed -n '1s/ .*//p'
	}
	# On the dump, by the program's arguments.
	on_dump() (
		IFS=' '
		# shellcheck disable=SC2086 # several arguments
		"$lab" exec --kernel "$work/kernel.core" --budget 100000000000 /bin/breakpoints $1 2>"$work/said"
	)
	# Whether two files are the same; says so, or how they differ.
	same() {
		if diff "$work/there" "$work/here" >"$work/differ"; then
			say "breakpoints $1: $(wc -l <"$work/there") lines, none differs"
		else
			say "breakpoints $1: $(grep -c '^[<>]' "$work/differ") lines differ"
			cat "$work/differ"
			return 1
		fi
	}
	boot -o "$work/kernel.core" --format elf >"$work/said" 2>&1 || { cat "$work/said" >&2; cannot "the kernel does not boot"; }
	"$compare" registers -seed "$seed" -questions "$questions" -ask "$work/asked" "$work/kernel.core"
	boot --exec /bin/registers --stdin "$work/asked" >"$work/out" 2>"$work/said" || { cat "$work/said" >&2; cannot "the kernel did not run the program"; }
	sed '/^-\{0,1\}[0-9]\{1,\}$/!d' "$work/out" >"$work/answers" # the rest is the command's own
	"$compare" registers -seed "$seed" -questions "$questions" -answers "$work/answers" "$work/kernel.core" || status=1
	"$compare" registers -seed "$seed" -rounds "${ROUNDS:-10}" "$work/kernel.core" || status=1
	args="$breakpoints $seed $(symbol panic_timeout) $(symbol proc_dointvec)"
	boot --exec "/bin/breakpoints $args" >"$work/there" 2>"$work/said" || { cat "$work/said" >&2; cannot "the kernel did not run the program"; }
	on_dump "$args" >"$work/here"
	same "under QEMU and on the dump" || status=1
	if ! "$root/testdata/breakpoints.elf" "$breakpoints" "$seed" >"$work/alone" 2>/dev/null || grep -q '!-\|fails with' "$work/alone"; then
		say "breakpoints were NOT compared with this machine's processor: it does not let a program set them"
		continue
	fi
	on_dump "$breakpoints $seed" >"$work/here"
	cp "$work/alone" "$work/there"
	if grep -q '^SIGTRAP: -7' "$work/here"; then # the kernel is older than 5.13
		sed -i '/^SIGTRAP:/d' "$work/here" "$work/there"
	fi
	same "on this machine's processor and on the dump" || status=1
done
rm -f "$work/kernel.core"
exit $status
