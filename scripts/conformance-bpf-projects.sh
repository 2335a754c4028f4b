#!/bin/sh
# Runs what other projects than libbpf-tools bring, on booted kernels under QEMU's emulation and by kprobelab exec on dumps of the same
# boots, and compares what they print (make conformance-bpf PROJECTS='bcc bpftrace cilium'; docs/measured/bpf-projects.md has the tables):
# ten of bcc's tools, with Python, LLVM and the kernel's headers inside; bpftrace's own binary with nine scripts; the
# tests of cilium/ebpf, by go test -exec.
#
# SUITES, FLAVOURS, RELEASES and KERNEL pick the kernels as for make conformance; TOOLS='opensnoop trace' picks tools and scripts, PACKAGES='link btf' tests.
# OUT=FOLDER keeps the answers. An hour for each kernel.
# Ends with 0 when nothing differs without a rule, 1 when something does, and 77 when a kernel, QEMU or the tools cannot be had.
undone='the projects were NOT compared'
. "$(dirname "$0")/comparison.sh"

choose_kernels 'bullseye bookworm trixie trixie-backports'
out=${OUT:-$root/.cache/conformance/bpf-projects}
mkdir -p "$out"
cilium=github.com/cilium/ebpf@v0.22.0
libraries=/usr/lib/x86_64-linux-gnu
interpreter=/lib64/ld-linux-x86-64.so.2
append='nopti norandmaps'
qemu=$(qemu) || cannot "there is no QEMU (see above)"
tool busybox bookworm busybox-static || cannot "there is no busybox (see above)"
busybox=$tools/busybox/bin/busybox
build_program
"$compare" bpftools -workload files,processes,signals,mounts,sockets >"$out/work.sh"
echo kprobelab >"$out/hostname"
echo 'root:x:0:0::/:/bin/sh' >"$out/passwd"
differs=0

# bring INTO FILE...: links files into a folder.
bring() {
	into=$1
	shift
	mkdir -p "$into"
	cp -alL "$@" "$into"
}

# bcc_tree: the guest's /usr with Python, libbcc and the tools.
bcc_tree() {
	tool bpfcc-tools trixie bpfcc-tools || cannot "bpfcc-tools cannot be had (see above)"
	from=$tools/bpfcc-tools
	usr=$out/bcc/usr
	rm -rf "$out/bcc"
	# shellcheck disable=SC2046 # no path of a package has a blank
	bring "$usr/lib/x86_64-linux-gnu" $(libraries_of "$from" "$from"/usr/bin/python3.13 "$from$libraries/libbcc.so.0" "$from"/usr/lib/python3.13/lib-dynload/_ctypes.*.so) \
		"$from$libraries/libbcc.so.0" "$from$libraries/librt.so.1"
	bring "$usr/bin" "$from/usr/bin/python3.13"
	cp -al "$from/usr/lib/python3" "$from/usr/lib/python3.13" "$usr/lib/"
	for t in opensnoop execsnoop exitsnoop tcplife tcpconnect killsnoop mountsnoop runqlat funccount trace; do
		bring "$usr/sbin" "$from/usr/sbin/$t-bpfcc"
	done
}

# headers RELEASE: the folder with what bcc includes of a kernel's headers: usr and lib/modules.
headers() {
	to=$out/headers/$1
	if [ -e "$to/complete" ]; then return; fi
	case $1 in
	5.10.*) suites=bullseye ;;
	*+deb13*) suites='trixie trixie-backports' ;;
	*) suites=bookworm ;;
	esac
	for s in $suites; do
		if of=$("$scripts/kernel-headers.sh" "$s" "$1"); then break; fi
		of=
	done
	[ -n "$of" ] || return 1
	common=$(echo "$of" | sed 's/\(-cloud\)\{0,1\}-amd64$/-common/')
	rm -rf "$to"
	mkdir -p "$to/lib/modules/$1"
	for dir in "$of" "$common"; do
		at=$to/usr/src/$(basename "$dir")
		mkdir -p "$at/arch/x86"
		cp -al "$dir/include" "$at/"
		cp -al "$dir/arch/x86/include" "$at/arch/x86/"
		# Files of Kconfig's, and of device trees: nothing includes them.
		rm -rf "$at/include/config" "$at/include/dt-bindings"
	done
	ln -s "/usr/src/$(basename "$of")" "$to/lib/modules/$1/build"
	ln -s "/usr/src/$(basename "$common")" "$to/lib/modules/$1/source"
	: >"$to/complete"
}

# listed PROJECT: writes the guest's list, with all lines or those that $TOOLS names.
listed() {
	cat "$scripts/bpf/waits.sh"
	while IFS= read -r line; do
		name=${line#one }
		name=${name%% *}
		case $line in "one "*) ;; *) name= ;; esac
		case " ${name:+${TOOLS:-$name}} " in *" $name "*) printf '%s\n' "$line" ;; esac
	done <"$scripts/bpf/$1.sh"
}

# both NAME FLAGS...: runs the guest's script under QEMU and on the dump, with these files, and compares the answers.
both() {
	what=$1
	shift
	set -- "$@" --file "$busybox:/bin/busybox" --file "$busybox:/bin/sh" --file "$scripts/bpf/all.sh:/scripts/all.sh" \
		--file "$out/$what.sh:/scripts/tools.sh" --file "$out/work.sh:/scripts/work.sh" --file "$out/hostname:/etc/hostname" --file "$out/passwd:/etc/passwd"
	here=$out/$release.$what
	listed "$what" >"$out/$what.sh"
	"$lab" exec --kernel "$core" --budget 1000000000000 --root "$from" "$@" /bin/sh /scripts/all.sh >"$here.ours" 2>"$here.ours.err" || say "$release: the dump's shell ended with $?"
	"$lab" boot "$kernel" --qemu "$qemu" --append "$append" --memory 1G --timeout 120m "$@" --file "$from$libraries/ld-linux-x86-64.so.2:$interpreter" \
		--exec '/bin/sh /scripts/all.sh' >"$here.theirs" 2>"$here.theirs.err" || cannot "$what does not run on $release (see $here.theirs.err)"
	echo "$release, $what"
	"$compare" bpftools -theirs "$here.theirs" -ours "$here.ours" || differs=1
}

project_bcc() {
	headers "$release" || cannot "the headers of $release cannot be had (see above)"
	[ -d "$out/bcc" ] && [ -n "${from_bcc:-}" ] || bcc_tree
	from_bcc=$tools/bpfcc-tools from=$tools/bpfcc-tools
	both bcc --file "$out/bcc/usr:/usr" --file "$out/headers/$release/usr/src:/usr/src" --file "$out/headers/$release/lib/modules:/lib/modules" --file "$scripts/bpf/interruptible.py:/scripts/interruptible.py"
}

project_bpftrace() {
	tool bpftrace trixie bpftrace || cannot "bpftrace cannot be had (see above)"
	from=$tools/bpftrace
	rm -rf "$out/bpftrace"
	# shellcheck disable=SC2046
	bring "$out/bpftrace/usr/lib/x86_64-linux-gnu" $(libraries_of "$from" "$from/usr/bin/bpftrace")
	bring "$out/bpftrace/usr/bin" "$from/usr/bin/bpftrace"
	both bpftrace --file "$out/bpftrace/usr:/usr"
}

# verdicts FILE: a line for each test, without its time.
verdicts() { sed -n 's/^ *--- \([A-Z]*: [^ ]*\) (.*/\1/p' "$1" | sort; }

# go_test FOLDER COMMAND: runs the tests of a package of cilium/ebpf by a command.
go_test() { (cd "$out/ebpf" && CGO_ENABLED=0 go test -v -count=1 -timeout 60m -exec "$2" "$1" 2>&1) || :; }

project_cilium() {
	tool bash trixie bash || cannot "bash, which the tests probe, cannot be had (see above)"
	from=$tools/bash
	modules=$(cd "$out" && go mod download -json "$cilium" | sed -n 's/^\t"Dir": "\(.*\)",*/\1/p')
	[ -n "$modules" ] || cannot "$cilium cannot be had"
	if [ ! -e "$out/ebpf/complete" ]; then
		rm -rf "$out/ebpf"
		cp -r "$modules" "$out/ebpf"
		chmod -R u+w "$out/ebpf"
		# A module has no links: of an object that several compilers have made, the tests want the last one's.
		for object in "$out"/ebpf/testdata/*-clang-[0-9]*.elf; do
			ln -sf "${object##*/}" "$(echo "$object" | sed 's/-clang-[0-9]*//')"
		done
		: >"$out/ebpf/complete"
	fi
	config=$(dirname "$kernel")/config-$release
	brought="--file $out/ebpf/testdata:$out/ebpf/testdata --file $from/usr/bin/bash:/bin/bash"
	if [ -e "$config" ]; then brought="$brought --file $config:/boot/config-$release"; fi
	theirs="$brought --file $from$libraries/ld-linux-x86-64.so.2:$interpreter"
	for library in $(libraries_of "$from" "$from/usr/bin/bash"); do
		theirs="$theirs --file $library:$libraries/${library##*/}"
	done
	theirs="$theirs --file $busybox:/bin/busybox"
	export KPROBELAB_OUT="$out" KPROBELAB_BOOT="$lab boot $kernel --qemu $qemu --memory 1G --timeout 60m --raw $theirs" KPROBELAB_APPEND="$append"
	for package in ${PACKAGES:-root link ringbuf perf features rlimit pin btf}; do
		folder=./$package
		if [ "$package" = root ]; then folder=.; fi
		here=$out/$release.cilium-$package
		go_test "$folder" "$lab exec --kernel $core --budget 1000000000000 --root $from $brought" >"$here.ours"
		go_test "$folder" "$scripts/bpf/qemu-test.sh" >"$here.theirs"
		verdicts "$here.theirs" >"$here.theirs.verdicts"
		verdicts "$here.ours" >"$here.ours.verdicts"
		echo "$release, cilium/ebpf, $package: $(grep -c ^PASS "$here.theirs.verdicts") pass, $(grep -c ^FAIL "$here.theirs.verdicts") fail, $(grep -c ^SKIP "$here.theirs.verdicts") are skipped under QEMU; here what follows differs"
		if [ ! -s "$here.theirs.verdicts" ]; then differs=1; fi
		diff "$here.theirs.verdicts" "$here.ours.verdicts" || differs=1
	done
}

# each IMAGE: does the projects on a kernel.
each() {
	kernel=$1
	release=${kernel##*/vmlinuz-}
	core=$out/$release.core
	"$lab" boot "$kernel" --qemu "$qemu" --append "$append" --memory 1G -o "$core" --format elf >&2 || cannot "$release does not boot (see above)"
	for project in ${PROJECTS:-bcc bpftrace cilium}; do
		"project_$project"
	done
	rm -f "$core"
}

while IFS= read -r chosen <&3; do
	each "$chosen"
done 3<<END
$kernels
END
exit $differs
