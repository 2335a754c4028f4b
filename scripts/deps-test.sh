#!/bin/sh
# The decoders to compare ours with, in .cache/decoders/bin: zydis, llvm, capstone and
# iced, which answer in the line protocol of docs/decoder.md, and objdump.
#
# A system's own objdump is used; what is missing is unpacked from Debian's packages as
# an ordinary user. Zydis, Capstone and LLVM are always Debian 13's, so that results are
# the same everywhere. LLVM is the newest that Debian 13 and its backports have; it runs
# with Debian 13's C library, which is unpacked with it. iced comes from npm, and is
# left out where there is no npm.
# deps-test.sh [zydis llvm capstone objdump iced]: only those.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"

out=$root/.cache/decoders
state=$root/.cache/decoders-apt
bin=$out/bin
lib=$out/root/usr/lib/x86_64-linux-gnu
opened=

# unpack SUITE PACKAGE...: into .cache/decoders/root.
unpack() {
	if [ "$opened" != "$1" ]; then
		debian_open "$state" "$1"
		opened=$1
	fi
	shift
	for p in "$@"; do
		debian_download "$p" "$state" || die "the package $p did not arrive (apt's message is above)"
		dpkg-deb -x "$state/$p.deb" "$out/root"
	done
}

# unpack_also SUITE PACKAGE...: libraries whose name differs between releases,
# those that the release has.
unpack_also() {
	suite=$1
	shift
	for p in "$@"; do
		if apt-cache -c "$apt_conf" show "$p" >/dev/null 2>&1; then unpack "$suite" "$p"; fi
	done
}

# built NAME: true when the program is there and newer than its sources.
built() {
	[ -x "$bin/$1" ] && [ "$bin/$1" -nt "$scripts/decoders/$1.c" ] && [ "$bin/$1" -nt "$scripts/decoders/line.h" ]
}

# compile NAME ARGUMENT...
compile() {
	name=$1
	shift
	gcc -O2 -Wall -o "$bin/$name" "$scripts/decoders/$name.c" "$@" || die "$name does not compile (above)"
}

# answers NAME: proves that the program decodes a jump.
answers() {
	case $(echo e900000000 | "$bin/$1") in
	5\ *) say "$1 is ready in .cache/decoders/bin" ;;
	*)
		rm -f "$bin/$1"
		die "$1 does not answer as it should"
		;;
	esac
}

zydis() {
	if built zydis; then return; fi
	unpack trixie libzydis-dev libzycore-dev libzydis4.1 libzycore1.5
	compile zydis -I"$out/root/usr/include" -L"$lib" -Wl,-rpath,"$lib" -lZydis -lZycore
	answers zydis
}

capstone() {
	if built capstone; then return; fi
	unpack trixie libcapstone-dev
	compile capstone -I"$out/root/usr/include" "$lib/libcapstone.a"
	answers capstone
}

# LLVM has a root of its own: with its C library among the others' libraries, programs
# of the system would take that.
llvm() {
	if built llvm; then return; fi
	debian_open "$state" "trixie trixie-backports"
	opened=
	newest=$(apt-cache -c "$apt_conf" pkgnames | grep -E '^libllvm[0-9]+$' | sort -t m -k 3n | tail -n 1)
	[ -n "$newest" ] || die "Debian 13 has no LLVM"
	rm -rf "$out/llvm"
	out_root=$out/llvm
	for p in "$newest" libc6 libgcc-s1 libstdc++6 libedit2 libbsd0 libmd0 libz3-4 libxml2 libicu76 liblzma5 libffi8 libtinfo6 libzstd1 zlib1g; do
		debian_download "$p" "$state" || die "the package $p did not arrive (apt's message is above)"
		dpkg-deb -x "$state/$p.deb" "$out_root"
	done
	libs=$out_root/usr/lib/x86_64-linux-gnu
	library=$(find "$libs" -name 'libLLVM.so.*' | sort | tail -n 1)
	compile llvm "$library" -Wl,--allow-shlib-undefined
	mv "$bin/llvm" "$out/llvm/llvm"
	printf "#!/bin/sh\nexec '%s' --library-path '%s' '%s' \"\$@\"\n" "$libs/ld-linux-x86-64.so.2" "$libs" "$out/llvm/llvm" >"$bin/llvm"
	chmod +x "$bin/llvm"
	answers llvm
}

iced() {
	if [ -x "$bin/iced" ] && [ "$bin/iced" -nt "$scripts/decoders/iced.js" ]; then return; fi
	if ! command -v npm >/dev/null 2>&1 || ! command -v node >/dev/null 2>&1; then
		say "iced is left out: there is no node and npm here"
		return
	fi
	rm -rf "$out/iced"
	mkdir -p "$out/iced"
	(cd "$out/iced" && npm pack --silent iced-x86@1.21.0 >/dev/null && tar -xzf iced-x86-*.tgz) || die "iced-x86 did not arrive from npm"
	cp "$scripts/decoders/iced.js" "$out/iced/iced.js"
	printf "#!/bin/sh\nexec node '%s' '%s' \"\$@\"\n" "$out/iced/iced.js" "$out/iced/package" >"$bin/iced"
	chmod +x "$bin/iced"
	answers iced
}

objdump() {
	if command -v objdump >/dev/null 2>&1 || [ -x "$bin/objdump" ]; then return; fi
	unpack "$(debian_codename)" binutils-x86-64-linux-gnu libbinutils
	unpack_also "$(debian_codename)" libctf0 libsframe1 libjansson4
	printf "#!/bin/sh\nLD_LIBRARY_PATH='%s' exec '%s' \"\$@\"\n" "$lib" "$out/root/usr/bin/x86_64-linux-gnu-objdump" >"$bin/objdump"
	chmod +x "$bin/objdump"
	say "objdump is ready in .cache/decoders/bin"
}

need gcc gcc
mkdir -p "$bin"
lock "$out/lock"
trap 'rm -rf "$state"' EXIT
for name in ${*:-zydis llvm capstone objdump iced}; do
	case $name in
	zydis | llvm | capstone | objdump | iced) "$name" ;;
	*) die "there is no decoder $name here; zydis, llvm, capstone, objdump and iced are" ;;
	esac
done
