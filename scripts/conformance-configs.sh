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
# Each is compared twice: with a measured profile, as the command has it, and by its
# release and symbols alone, which decides nothing.
# Ends with 0 when every answer is the same, 1 when some are not, and 77 when
# a kernel cannot be built, or did not run to its end.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
. "$scripts/conformance-tools.sh"
. "$scripts/kernel-build.sh"

suite=${SUITE:-$(debian_codename)}
case $suite in
*[!a-z-]* | '') die "SUITE=$suite is no name of a Debian release" ;;
esac
configs=${CONFIGS:-boosting noibt frames kcfi}
for c in $configs; do
	[ "$c" != base ] && [ -r "$scripts/configs/$c.config" ] || {
		say "CONFIGS: there is no scripts/configs/$c.config"
		exit 2
	}
done
work=$root/.cache/configs
mkdir -p "$work"
cannot() { say "the configurations were NOT compared: $*"; exit 77; }

# kernel CONFIG: prints the path of the kernel in that configuration, which it
# builds unless it is there.
kernel() (
	out=$work/$suite/$1
	made="$(cat "$source/complete") $(cat "$scripts/configs/base.config" "$scripts/configs/$1.config" | cksum)"
	image=$out/vmlinuz-$1
	if [ "$(cat "$out/complete" 2>/dev/null)" = "$made" ]; then
		printf '%s\n' "$image"
		exit
	fi
	rm -rf "$out"
	mkdir -p "$out/build"
	say "building $1 (some minutes; $out/log)"
	build "$1" >"$out/log" 2>&1 || {
		tail -n 5 "$out/log" >&2
		say "$1 cannot be built (the whole log is $out/log)"
		exit 1
	}
	mv "$out/build/arch/x86/boot/bzImage" "$image"
	mv "$out/build/.config" "$out/config-$1"
	rm -rf "$out/build"
	printf '%s\n' "$made" >"$out/complete"
	printf '%s\n' "$image"
)

# build CONFIG: make's work, in $out/build.
build() {
	set -- "$1" -C "$source" "O=$out/build" KBUILD_BUILD_USER=kprobelab KBUILD_BUILD_HOST=localhost
	compiler=
	case $1 in
	kcfi) compiler=$(printf 'CC=%s\nLLVM_IAS=1' "$kcfi_clang") ;;
	lto) compiler=$lto_words ;;
	esac
	while IFS= read -r word; do
		if [ -n "$word" ]; then set -- "$@" "$word"; fi
	done <<-END
		$build_host
		$compiler
	END
	name=$1
	shift
	merged "$scripts/configs/base.config" "$scripts/configs/$name.config" >"$out/wanted"
	make "$@" KCONFIG_ALLCONFIG="$out/wanted" allnoconfig || return 1
	taken "$scripts/configs/$name.config" "$out/build/.config" || return 1
	make "$@" -j "${JOBS:-$(nproc)}" bzImage
}

# merged FILE...: the options of all; the later file's word on an option counts.
merged() {
	awk '
		/^CONFIG_.*=/ { option = $0; sub(/=.*/, "", option) }
		/^# CONFIG_.* is not set$/ { option = $2 }
		option { if (!(option in said)) names[++n] = option; said[option] = $0; option = "" }
		END { for (i = 1; i <= n; i++) print said[names[i]] }' "$@"
}

# taken WANTED CONFIG: true where the kernel's configuration has none of the options
# that are not wanted, and one of those that are: an option's name changes with releases.
taken() {
	awk '
		FNR == 1 { file++ }
		file == 1 && /^CONFIG_.*=y$/ { on[$0]; wanted++ }
		file == 1 && /^# CONFIG_.* is not set$/ { off[$2 "=y"] }
		file == 2 && $0 in on { got++ }
		file == 2 && $0 in off { bad = bad " " $0 }
		END {
			if (bad) print "this kernel insists on" bad
			if (wanted && !got) print "this kernel has none of the options of " ARGV[1]
			exit bad || wanted && !got
		}' "$1" "$2"
}

plain "$root" || cannot "the kernel's makefiles take no path with a blank or a colon, and this is one: $root"
source=$(build_source "$suite") || cannot "the kernel's source cannot be had (see above)"
# The tools run on this system, whatever suite the source is of.
build_tools "$(debian_codename)" || cannot "a tool cannot be had (see above)"
case " $configs " in
*' kcfi '*) kcfi_clang=$(build_clang "$(debian_codename)") || cannot "clang 16 or later cannot be had (see above)" ;;
esac
case " $configs " in
*' lto '*) lto_words=$(build_lto "$(debian_codename)") || cannot "LLVM 16 cannot be had (see above)" ;;
esac

status=0
for c in $configs; do
	code=77
	if image=$(kernel "$c"); then
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
done
if [ "$status" = 77 ]; then say "the configurations were NOT compared where a kernel was not built or did not run"; fi
exit $status
