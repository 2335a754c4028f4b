#!/bin/sh
# Builds Debian's linux-source in configurations that no Debian kernel has, boots
# each kernel under QEMU's software emulation, and compares what it says with what
# kprobelab computes (make conformance-configs).
#
# CONFIGS='boosting noibt frames kcfi' picks files of scripts/configs, SUITE=trixie the
# suite whose linux-source it is (the system's own by default); CPU, POINTS, NAMES,
# SEED and KPROBELAB_QEMU are those of make conformance, JOBS is how many compilers
# run at once. KPROBELAB_KCFI_CLANG is a clang of 16 or later. A kernel that is built
# stays under .cache/configs. Needs make deps, gcc, make, perl and 3 GB of disk.
# DRAWN=12 draws so many configurations instead, as many of each of SUITES='bullseye
# bookworm trixie trixie-backports'; SEED decides them, and CONFIGS='drawn-32-1' picks
# some. Each is printed. 8 GB of disk more.
# Each is compared twice: with a measured profile, as the command has it, and by its
# release and symbols alone, which decides nothing.
# Ends with 0 when every answer is the same, 1 when some are not, and 77 when
# a kernel cannot be built, or did not run to its end.
undone='the configurations were NOT compared'
. "$(dirname "$0")/comparison.sh"
. "$scripts/kernel-build.sh"

case ${SEED:-1} in
*[!0-9]*)
	say "SEED=$SEED: a number is wanted"
	exit 2
	;;
esac
suites=${SUITE:-$(debian_codename)}
configs=${CONFIGS:-boosting noibt frames kcfi}
if [ -n "${DRAWN:-}" ]; then
	case $DRAWN in
	*[!0-9]* | 0* | ???*)
		say "DRAWN=$DRAWN: a number of configurations from 1 to 99 is wanted"
		exit 2
		;;
	esac
	suites=${SUITES:-${SUITE:-bullseye bookworm trixie trixie-backports}}
	configs=
fi
for suite in $suites; do
	case $suite in
	*[!a-z-]*) die "$suite is no name of a Debian release" ;;
	esac
done
[ -n "$suites" ] || die "SUITES has no name of a Debian release"
for c in $configs; do
	[ "$c" != base ] && [ -r "$scripts/configs/$c.config" ] || {
		say "CONFIGS: there is no scripts/configs/$c.config"
		exit 2
	}
done

# items: a configuration of a suite each. Drawn ones are named before they are drawn: drawn-SEED-NUMBER, NUMBER in the suite's share.
items() {
	# shellcheck disable=SC2086 # several suites
	set -- $suites
	share=$(((${DRAWN:-0} + $# - 1) / $#))
	for suite; do
		for c in $configs; do printf 'SUITE=%s\tCONFIGS=%s\n' "$suite" "$c"; done
		i=0
		while [ -n "${DRAWN:-}" ] && [ $((i += 1)) -le "$share" ]; do
			case " ${CONFIGS:-drawn-${SEED:-1}-$i} " in
			*" drawn-${SEED:-1}-$i "*) printf 'SUITES=%s\tDRAWN=%s\tCONFIGS=drawn-%s-%s\n' "$suite" "$share" "${SEED:-1}" "$i" ;;
			esac
		done
	done
}
offer "$(items)"
work=$root/.cache/configs
mkdir -p "$work"

# given CONFIG: the file of its options.
given() {
	case $1 in
	drawn-*) printf '%s\n' "$work/$suite/$1.config" ;;
	*) printf '%s\n' "$scripts/configs/$1.config" ;;
	esac
}

# drawn: draws as many configurations of the suite as it has its share of, and prints their names.
drawn() {
	mkdir -p "$work/$suite"
	build_program
	"$compare" configs -release "$(cat "$source/complete")" -n "$(((DRAWN + $# - 1) / $#))" -seed "${SEED:-1}" -folder "$work/$suite"
}

# kernel CONFIG: prints the path of the kernel in that configuration, which it
# builds unless it is there.
kernel() (
	out=$work/$suite/$1
	made="$(cat "$source/complete") $(cat "$scripts/configs/base.config" "$(given "$1")" | cksum)"
	image=$out/vmlinuz-$1
	if [ "$(cat "$out/complete" 2>/dev/null)" = "$made" ]; then
		printf '%s\n' "$image"
		exit
	fi
	# What was built when it was stopped need not be built again.
	if [ "$(cat "$out/begun" 2>/dev/null)" != "$made" ]; then rm -rf "$out"; fi
	mkdir -p "$out/build"
	printf '%s\n' "$made" >"$out/begun"
	say "building $1 (some minutes; $out/log)"
	build "$1" >"$out/log" 2>&1 || {
		tail -n 5 "$out/log" >&2
		say "$1 cannot be built (the whole log is $out/log)"
		exit 1
	}
	mv "$out/build/arch/x86/boot/bzImage" "$image"
	mv "$out/build/.config" "$out/config-$1"
	rm -rf "$out/build" "$out/begun"
	printf '%s\n' "$made" >"$out/complete"
	printf '%s\n' "$image"
)

# build CONFIG: make's work, in $out/build.
build() {
	options=$(given "$1")
	set -- "$1" -C "$source" "O=$out/build" KBUILD_BUILD_USER=kprobelab KBUILD_BUILD_HOST=localhost
	compiler=
	if [ "$1" = lto ]; then
		compiler=$(build_lto "$(debian_codename)") || return 1
	elif grep -qE '^CONFIG_CFI(_CLANG)?=y$' "$options"; then
		clang=$(build_clang "$(debian_codename)") || return 1
		compiler=$(printf 'CC=%s\nLLVM_IAS=1' "$clang")
	fi
	while IFS= read -r word; do
		if [ -n "$word" ]; then set -- "$@" "$word"; fi
	done <<-END
		$compiler
	END
	name=$1
	shift
	if grep -qx '# CONFIG_OPTPROBES is not set' "$options"; then
		asked OPTPROBES "$source/Kconfig" >"$out/Kconfig"
		set -- "$@" "KBUILD_KCONFIG=$out/Kconfig"
	fi
	merged "$scripts/configs/base.config" "$options" >"$out/wanted"
	make "$@" KCONFIG_ALLCONFIG="$out/wanted" allnoconfig || return 1
	taken "$options" "$out/build/.config" "$name" || return 1
	make "$@" -j "${JOBS:-$(nproc)}" bzImage
}

# asked OPTION FILE: the Kconfig file, with an option that is always set off by default.
asked() {
	awk -v option="$1" '
		{ print }
		$0 == "source \"scripts/Kconfig.include\"" { printf "\nconfig %s\n\tbool\n\tdefault n\n", option }' "$2"
}

# merged FILE...: the options of all; the later file's word on an option counts.
merged() {
	awk '
		/^CONFIG_.*=/ { option = $0; sub(/=.*/, "", option) }
		/^# CONFIG_.* is not set$/ { option = $2 }
		option { if (!(option in said)) names[++n] = option; said[option] = $0; option = "" }
		END { for (i = 1; i <= n; i++) print said[names[i]] }' "$@"
}

# taken WANTED CONFIG NAME: true where the kernel's configuration has none of the options
# that are not wanted, and one of those that are: an option's name changes with releases.
# A drawn configuration has options of this release: it has all that are wanted.
taken() {
	awk -v every="${3##drawn-*}" '
		FNR == 1 { file++ }
		file == 1 && /^CONFIG_.*=y$/ { on[$0]; wanted++ }
		file == 1 && /^# CONFIG_.* is not set$/ { off[$2 "=y"] }
		file == 2 && $0 in on { got++; delete on[$0] }
		file == 2 && $0 in off { bad = bad " " $0 }
		END {
			if (every == "") for (option in on) lacks = lacks " " option
			if (bad) print "this kernel insists on" bad
			if (lacks) print "this kernel does not take" lacks
			if (wanted && !got) print "this kernel has none of the options of " ARGV[1]
			exit bad || lacks || wanted && !got
		}' "$1" "$2"
}

# compared CONFIG: asks the kernel in that configuration twice, and compares what it answers.
compared() {
	code=77
	if image=$(kernel "$1"); then
		code=0
		export KERNEL="$image" KEEP="$work/$suite"
		MEASURED=1 "$scripts/conformance.sh" || code=$?
		if [ "$code" != 77 ]; then
			say "the same answers, and what the image's release and symbols tell alone:"
			AGAIN=1 "$scripts/conformance.sh" || :
		fi
	fi
	case $code in
	0) ;;
	77) [ "$status" = 1 ] || status=77 ;;
	*) status=1 ;;
	esac
}

plain "$root" || cannot "the kernel's makefiles take no path with a blank or a colon, and this is one: $root"
# The tools run on this system, whatever suite the source is of.
{ build_tools "$(debian_codename)" && { [ -z "${DRAWN:-}" ] || build_command pahole "$(debian_codename)"; }; } || cannot "a tool cannot be had (see above)"
status=0
asked=
for suite in $suites; do
	source=$(build_source "$suite") || cannot "the kernel's source cannot be had (see above)"
	names=$configs
	# shellcheck disable=SC2086 # several suites
	if [ -n "${DRAWN:-}" ]; then names=$(drawn $suites) || cannot "no configuration was drawn (see above)"; fi
	for c in $names; do
		case " ${CONFIGS:-$c} " in
		*" $c "*) compared "$c"; asked=1 ;;
		esac
	done
done
[ -n "$asked" ] || {
	say "CONFIGS=$CONFIGS: none of them was drawn"
	exit 2
}
if [ "$status" = 77 ]; then say "the configurations were NOT compared where a kernel was not built or did not run"; fi
exit $status
