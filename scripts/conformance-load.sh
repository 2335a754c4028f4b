#!/bin/sh
# Loads the programs of the kernel's own BPF selftests on booted kernels by veristat, that is by libbpf, and by kprobelab bpf, and compares
# verdict, instructions, states and the verifier's log (make conformance-load; docs/load.md has the figures).
# Sources are those of Debian's linux-source of each series: tools/testing/selftests/bpf/progs, compiled by Debian 13's clang with the
# kernel's own types, and veristat, linked with Debian 13's libbpf.
#
# SUITES, FLAVOURS, RELEASES and KERNEL pick the kernels as for make conformance; OBJECTS='map_kptr loop3' picks objects. OUT=FOLDER keeps what was printed.
# Ends with 0 when nothing differs without a cause, 1 when something does, and 77 when a kernel, QEMU, sources or clang cannot be had.
undone='programs were NOT compared'
. "$(dirname "$0")/comparison.sh"

choose_kernels 'bookworm trixie trixie-backports'
need gcc gcc
need python3 python3
work=$root/.cache/conformance/load
out=${OUT:-$work/out}
mkdir -p "$work" "$out"
qemu=$(qemu) || cannot "there is no QEMU (see above)"
tool busybox bookworm busybox-static || cannot "there is no busybox (see above)"
tool clang-trixie trixie clang-19 || cannot "clang cannot be had (see above)"
tool bpftool trixie bpftool || cannot "bpftool cannot be had (see above)"
tool libbpf trixie libbpf-dev || cannot "libbpf cannot be had (see above)"
lib=usr/lib/x86_64-linux-gnu
libbpf=$tools/libbpf
llvm=$tools/clang-trixie/usr/lib/llvm-19
busybox=$tools/busybox/bin/busybox
(cd "$root" && CGO_ENABLED=0 GOFLAGS='' go build -o "$out/bpfloader" ./internal/bpfloader)
build_program unicorn

# clang ARGUMENTS: Debian 13's.
clang() {
	"$tools/clang-trixie/$lib/ld-linux-x86-64.so.2" --library-path "$tools/clang-trixie/$lib:$llvm/lib" \
		"$llvm/bin/clang-19" -resource-dir "$llvm/lib/clang/19" "$@"
}

# suite RELEASE: the suite that has the source of a kernel's series.
suite() {
	case $1 in
	5.10.*) echo bullseye ;;
	6.1.*) echo bookworm ;;
	6.12.*) echo trixie ;;
	*) echo trixie-backports ;;
	esac
}

# sources SERIES SUITE: unpacks what the selftests are compiled from.
sources() (
	src=$work/src-$1
	if [ -e "$src/bpf/bpf_helper_defs.h" ]; then return; fi
	state=$work/apt
	trap 'rm -rf "$state" "$src.new"' EXIT
	debian_open "$state" "$2"
	debian_download "linux-source-$1" "$state" || exit 1
	say "unpacking the selftests of $1"
	rm -rf "$src.new" "$src"
	mkdir -p "$src.new/bpf"
	dpkg-deb --fsys-tarfile "$state/linux-source-$1.deb" | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
		tar -xJ --strip-components=1 -C "$src.new" --wildcards '*/tools/testing/selftests/bpf' '*/tools/lib/bpf' '*/tools/include' '*/scripts/bpf_doc.py' || exit 1
	cp "$src.new"/tools/lib/bpf/*.h "$src.new/bpf/"
	python3 "$src.new/scripts/bpf_doc.py" --header --filename "$src.new/tools/include/uapi/linux/bpf.h" >"$src.new/bpf/bpf_helper_defs.h" || exit 1
	mv "$src.new" "$src"
)

# veristat: that of 6.12, whose release Debian 13's libbpf is of; that of 6.1 needs more of its tree.
veristat() (
	sources 6.12 trixie || exit 1
	gcc -c -w -O2 -D_GNU_SOURCE -isystem "$libbpf/usr/include" -isystem "$libbpf/usr/include/x86_64-linux-gnu" \
		-o "$out/veristat.o" "$work/src-6.12/tools/testing/selftests/bpf/veristat.c" || exit 1
	cd "$libbpf/$lib"
	gcc -nostdlib -no-pie "-Wl,--dynamic-linker=/$lib/ld-linux-x86-64.so.2" -Wl,--allow-shlib-undefined -o "$out/veristat" crt1.o crti.o "$out/veristat.o" \
		libbpf.so.1 libelf.so.1 libz.so.1 libm.so.6 libc.so.6 libc_nonshared.a libgcc_s.so.1 ld-linux-x86-64.so.2 crtn.o
)

# compiled SERIES DUMP: compiles the objects of a series with the types of a kernel.
compiled() {
	src=$work/src-$1
	self=$src/tools/testing/selftests/bpf
	"$lab" exec --kernel "$2" --root "$tools/bpftool" /usr/sbin/bpftool btf dump file /sys/kernel/btf/vmlinux format c >"$src/vmlinux.h"
	rm -rf "$src/objects"
	mkdir "$src/objects"
	for c in "$self"/progs/*.c; do
		name=$(basename "$c" .c)
		case " ${OBJECTS:-$name} " in
		*" $name "*) ;;
		*) continue ;;
		esac
		clang -g -O2 --target=bpf -mcpu=v3 -D__TARGET_ARCH_x86 -DENABLE_ATOMICS_TESTS -w -fno-strict-aliasing -fms-extensions -std=gnu11 \
			"-I$src" "-I$self" "-I$self/progs" "-I$self/libarena/include" "-I$src/tools/include" "-I$src/tools/include/uapi" \
			-idirafter "$libbpf/usr/include" -idirafter "$libbpf/usr/include/x86_64-linux-gnu" \
			-c "$c" -o "$src/objects/$name.bpf.o" 2>"$src/objects/$name.err" || continue
		rm "$src/objects/$name.err"
	done
	say "$1: $(ls "$src/objects" | grep -c '\.o$') objects; $(ls "$src/objects" | grep -c '\.err$') do not compile"
}

cat >"$out/all.sh" <<'END'
for object in /objects/*.o; do /bin/veristat -v -l 1 -o csv -e file,prog,verdict,insns,states "$object"; done
END
status=0
IFS='
'
for kernel in $kernels; do
	unset IFS
	release=${kernel##*/vmlinuz-}
	series=$(echo "$release" | sed 's/^\([0-9]*\.[0-9]*\).*/\1/')
	sources "$series" "$(suite "$release")" || cannot "the sources of $series cannot be had (see above)"
	[ -e "$out/veristat" ] || veristat || cannot "veristat cannot be had (see above)"
	here=$out/$release
	"$lab" boot "$kernel" --qemu "$qemu" --append nopti --memory 1G -o "$here.core" --format elf >&2 || cannot "$release does not boot (see above)"
	compiled "$series" "$here.core"
	"$lab" exec --kernel "$here.core" --budget 100000000000000 --root "$libbpf" --file "$out/veristat:/bin/veristat" --file "$work/src-$series/objects:/objects" \
		--file "$busybox:/bin/sh" --file "$out/all.sh:/all.sh" /bin/sh /all.sh >"$here.theirs" 2>"$here.theirs.err" || say "$release: the shell ended with $?"
	echo "$release"
	"$compare" load -dump "$here.core" -theirs "$here.theirs" -loader "$out/bpfloader" "$work/src-$series/objects"/*.o || status=1
	rm -f "$here.core"
	IFS='
'
done
exit $status
