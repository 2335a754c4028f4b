#!/bin/sh
# Runs scripts with Debian's SystemTap on a booted kernel, under QEMU's emulation, and in this
# program on a dump of the same boot, each under the same program (testdata/init/deep.c,
# or another that the script's first line names: "#! under everycall"), and
# compares what they print byte for byte: output, messages and exit code (make
# conformance-stap-output). stap compiles each script here to a module for that kernel, which
# staprun loads there; what stap says of its own after a run that failed is not compared.
#
# SUITE picks the kernel as for make kernel; stap of Debian 12 knows kernels up to 6.1.
# SCRIPTS=FOLDER has others than internal/script/stap/testdata/booted; a script's first line may
# have options of both: "#! stap -g -D MAXERRORS=3". JOBS compile at once. Ends with 0 when
# nothing differs, 1 when something does, and 77 when a kernel with its headers and debugging
# information, QEMU, stap or a C compiler cannot be had.
undone='the output was NOT compared'
. "$(dirname "$0")/comparison.sh"
. "$scripts/stap-tree.sh"

work=$root/.cache/conformance/stap-output
given=${SCRIPTS:-$root/internal/script/stap/testdata/booted}
SUITE=${SUITE:-bookworm}
export SUITE
plain "$root" || cannot "the kernel's makefiles take no path with a blank or a colon: $root"
command -v gcc >/dev/null && command -v make >/dev/null || cannot "there is no C compiler or no make; as root: apt-get install gcc make"

kernel=$("$scripts/kernel.sh") || cannot "there is no kernel (see above)"
debuginfo=$("$scripts/kernel.sh" --debuginfo) || cannot "no kernel with debugging information can be had (see above)"
release=${kernel##*/vmlinuz-}
headers=$("$scripts/kernel-headers.sh" "$SUITE" "$release") || cannot "there are no headers of the kernel (see above)"
qemu=$(qemu) || cannot "there is no QEMU (see above)"
tool busybox bookworm busybox-static || cannot "there is no busybox (see above)"
tool stap bookworm systemtap || cannot "stap cannot be had (see above)"
stap=$(wrap stap /usr/bin/stap) || cannot "stap cannot be had"
mkdir -p "$work/modules" "$work/dir"
make -s -C "$root/testdata/init" OUT="$work" BOOT="$work" "$work/deep.elf" "$work/everycall.elf" >&2 || cannot "there is no C compiler (see above)"

rm -rf "$work/theirs" "$work/ours" "$work/loaded"
mkdir -p "$work/theirs" "$work/ours" "$work/loaded"
stap_tree "$work" "$headers" "$debuginfo" || cannot "$debuginfo has no symbols"

# compiled NAME: makes its module, if there is none of the same script for the same kernel.
compiled() (
	script=$given/$1.stp to=$work/modules/$1
	{ echo "$release $script"; cat "$script"; } >"$to.is"
	if cmp -s "$to.is" "$to.was"; then exit; fi
	rm -rf "$to.was" "$to.ko" "$to.build"
	mkdir "$to.build"
	cd "$to.build"
	# shellcheck disable=SC2046
	if "$stap" -p4 -r "$tree" -m "$1" $(options "$script") "$script" >"$to.said" 2>&1; then
		mv "$1.ko" "$to.ko"
		mv "$to.is" "$to.was"
	fi
	cd "$work" && rm -rf "$to.build"
)
options() { sed -n '1s/^#! stap//p' "$1"; }
program() { sed -n '1{s/^#! under //p;t;s/.*/deep/p}' "$1"; }

names=$(cd "$given" && for f in *.stp; do echo "${f%.stp}"; done)
running=0 failed=
for name in $names; do
	compiled "$name" &
	running=$((running + 1))
	if [ "$running" -ge "${JOBS:-2}" ]; then wait; running=0; fi
done
wait
for name in $names; do
	if [ -e "$work/modules/$name.ko" ]; then
		ln "$work/modules/$name.ko" "$work/loaded/"
		program "$given/$name.stp" >"$work/loaded/$name.under"
	else
		failed="$failed $name"
		say "$name: stap makes no module of it:"
		tail -n 20 "$work/modules/$name.said" >&2
	fi
done

libraries=/lib/x86_64-linux-gnu
# A script that ends early leaves its program, which the next one shall not see.
cat >"$work/all.sh" <<'END'
left() {
	for stat in /proc/[0-9]*/stat; do
		read -r pid name state rest <"$stat" && [ "$name" = "($program)" ] && [ "$state" != Z ] && return
	done 2>/dev/null
	return 1
}
for module in /modules/*.ko; do
	name=${module##*/}
	read -r program <"${module%.ko}.under"
	echo "=== ${name%.ko}"
	/usr/bin/staprun -c "/bin/$program" $module 2>/tmp/said
	code=$?
	while read -r line; do echo "stderr: $line"; done </tmp/said
	[ $code = 0 ] || echo "ended with $code"
	while left; do :; done
done
END
echo 'root:x:0:0::/:/bin/sh' >"$work/passwd"
set -- --append 'nopti norandmaps' --file "$work/deep.elf:/bin/deep" --file "$work/everycall.elf:/bin/everycall"
"$lab" boot "$kernel" --qemu "$qemu" "$@" -o "$work/kernel.core" --format elf >&2 || cannot "the kernel does not boot (see above)"
for program in /usr/bin/staprun /usr/lib/systemtap/stapio; do
	set -- "$@" --file "$tools/stap$program:$program"
done
loader=$tools/stap/lib64/ld-linux-x86-64.so.2
"$loader" --library-path "$tools/stap$libraries:$tools/stap/usr$libraries" --list "$tools/stap/usr/bin/staprun" |
	awk '$3 ~ /^\// { print $3 }' >"$work/libraries"
while read -r library; do
	set -- "$@" --file "$library:$libraries/${library##*/}"
done <"$work/libraries"
"$lab" boot "$kernel" --qemu "$qemu" "$@" --memory 1G --timeout 30m --file "$(realpath "$loader"):/lib64/ld-linux-x86-64.so.2" \
	--file "$tools/busybox/bin/busybox:/bin/sh" --file "$work/passwd:/etc/passwd" --file "$work/loaded:/modules" --file "$work/all.sh:/all.sh" \
	--exec '/bin/sh /all.sh' >"$work/all" || cannot "staprun does not run on the kernel (see above)"
awk -v to="$work/theirs/" '/^=== / { f = to $2; printf "" >f; next } { print >f }' "$work/all"

status=0 same=0
[ -z "$failed" ] || status=1
for f in "$work"/theirs/*; do
	name=${f##*/}
	code=0
	# shellcheck disable=SC2046
	"$lab" stap -r "$work/kernel.core" --debuginfo "$debuginfo" -c "/bin/$(program "$given/$name.stp")" $(options "$given/$name.stp") "$given/$name.stp" \
		>"$work/ours/$name" 2>"$work/said" || code=$?
	{
		sed '/^kprobelab: Pass 5: run failed\.$/d; s/^/stderr: /' "$work/said"
		[ $code = 0 ] || echo "ended with $code"
	} >>"$work/ours/$name"
	if cmp -s "$f" "$work/ours/$name"; then
		same=$((same + 1))
	else
		status=1
		diff -a -u --label "stap: $name" --label "kprobelab: $name" "$f" "$work/ours/$name" || :
	fi
done
say "$same of $(echo "$names" | wc -l) outputs are the same ($(basename "$kernel"), $("$stap" --version 2>&1 | head -n 1))"
exit $status
