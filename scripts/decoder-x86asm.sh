#!/bin/sh
# Compares a version of golang.org/x/arch/x86/x86asm with the one of go.mod (make decoder
# X86ASM=VERSION): what is better, what is worse, what is other. X86ASM is a version, or
# a folder that has x86/x86asm.
#
# decoder-x86asm.sh KPROBELAB X86ASM. COUNT=N encodings are generated from SEED=N; FILE=F
# is an ELF file or a kernel image whose code is asked about, too. Ends with 1 where
# something is worse.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
kprobelab=$1
version=$2
work=$root/.cache/decoders/x86asm
mkdir -p "$work"

# build NAME [EDIT]: the line program, with an edited go.mod.
build() {
	cp "$root/go.mod" "$work/$1.mod"
	cp "$root/go.sum" "$work/$1.sum"
	if [ -n "${2:-}" ]; then (cd "$root" && go mod edit "$2" "$work/$1.mod"); fi
	(cd "$root" && CGO_ENABLED=0 GOFLAGS=-mod=mod go build -buildvcs=false -modfile "$work/$1.mod" -o "$work/$1" ./internal/tools/x86asmline)
}

if [ -d "$version" ]; then
	folder=$(cd "$version" && pwd)
	if [ ! -d "$folder/x86/x86asm" ]; then
		echo "decoder-x86asm.sh: $version has no x86/x86asm" >&2
		exit 2
	fi
	edit="-replace=golang.org/x/arch=$folder"
else
	edit="-require=golang.org/x/arch@$version"
fi
build old
build new "$edit"
(
	cd "$root"
	echo "x86asm $(go list -m -f '{{.Version}}' golang.org/x/arch) and $version"
)
status=0
"$kprobelab" decode fuzz --count "${COUNT:-1000000}" --seed "${SEED:-1}" --base "'$work/old'" --cmd "'$work/new'" || status=$?
if [ -n "${FILE:-}" ] && [ $status -le 1 ]; then
	"$kprobelab" decode check --base "'$work/old'" --cmd "'$work/new'" "$FILE" || status=$?
fi
exit $status
