#!/bin/sh
# The decoders to compare ours with, in .cache/decoders/bin: zydis, llvm and
# capstone, which answer in the line protocol of docs/decoder.md, and objdump.
#
# A system's own LLVM and objdump are used; what is missing is unpacked from
# Debian's packages as an ordinary user. Zydis and Capstone are always
# Debian 13's, so that results are the same everywhere; they need glibc 2.34.
# deps-test.sh [zydis llvm capstone objdump]: only those.
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
	*) die "$1 does not answer as it should" ;;
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

# The newest libLLVM that is there, by its soname's number.
system_llvm() {
	for dir in /usr/lib /usr/lib64 /usr/lib/x86_64-linux-gnu /usr/lib/llvm-*/lib "$lib"; do
		for f in "$dir"/libLLVM-[0-9]*.so "$dir"/libLLVM.so.[0-9]*; do
			if [ -r "$f" ]; then printf '%s\n' "$f"; fi
		done
	done | sed 's|.*/libLLVM[-.a-z]*\([0-9][0-9.]*\).*|\1\t&|' | sort -t. -k1,1n -k2,2n | tail -n 1 | cut -f 2
}

llvm() {
	if built llvm; then return; fi
	library=$(system_llvm)
	if [ -z "$library" ]; then
		# Its own libraries, where a small system lacks them.
		unpack "$(debian_codename)" libllvm19
		unpack_also "$(debian_codename)" libedit2 libbsd0 libmd0 libz3-4 libxml2 libicu72 libicu76 libffi8 libtinfo6
		library=$(system_llvm)
	fi
	compile llvm "$library" -Wl,-rpath,"$lib:${library%/*}" -Wl,--allow-shlib-undefined
	answers llvm
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
for name in ${*:-zydis llvm capstone objdump}; do
	case $name in
	zydis | llvm | capstone | objdump) "$name" ;;
	*) die "there is no decoder $name here; zydis, llvm, capstone and objdump are" ;;
	esac
done
