#!/bin/sh
# dist.sh: all that a release has, into dist/ (make dist). The same commit makes the same bytes, in whatever folder:
# names of folders, times, users and build IDs are in nothing. SOURCES=no leaves out the sources of what is linked statically, of which
# gcc's are 90 MB. Without a source the programs must not be given away: dist/NOT-A-RELEASE says why, and the exit code is 1.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
cd "$root"
need git git
git rev-parse HEAD >/dev/null || die "make dist works in a git checkout: the version and the time are the commit's"
if [ -n "$(git status --porcelain)" ] && [ -z "${DIRTY:-}" ]; then
	die "git status shows changes; commit them, or set DIRTY=1 for a try that is no release"
fi

# What runs in this release's place: nfpm is run by version, as staticcheck is in check.sh. It is MIT, and nothing of it is linked.
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
version=$(git describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null | sed 's/^v//')
[ -n "$version" ] || version=0.0.0-$(TZ=UTC0 git log -1 --date=format-local:%Y%m%d%H%M%S --format=%cd).$(git rev-parse --short=12 HEAD)
out=$root/dist
work=$root/.cache/dist/work
rm -rf "$out" "$work"
mkdir -p "$out" "$work"
umask 022
export LC_ALL=C TZ=UTC0
say "kprobelab $version"

# All modules are what go.sum says: their sources are given away, and Unicorn's is built.
GOFLAGS='' go mod download || die "the Go modules did not arrive (go's message is above)"
GOFLAGS='' go mod verify >&2 || die "a Go module on this machine is not what go.sum says; go clean -modcache removes all of them"
unicorn=$root/.cache/dist/unicorn
"$scripts/unicorn.sh" "$unicorn"

CGO_ENABLED=0 GOFLAGS= go build -o "$work/dist" ./internal/tools/dist

# build GOOS ARCH: a program with the engine in Go. -buildid= because an ID contains the flags, with the name of this folder.
build() {
	say "building for $1/$2"
	mkdir -p "$work/$1-$2"
	suffix=
	if [ "$1" = windows ]; then suffix=.exe; fi
	CGO_ENABLED=0 GOOS=$1 GOARCH=$2 GOFLAGS='' go build -trimpath -buildvcs=auto -ldflags='-s -w -buildid=' -o "$work/$1-$2/kprobelab$suffix" ./cmd/kprobelab
}

say "building for linux/amd64, with Unicorn"
mkdir -p "$work/linux-amd64"
# The map of the linker says which static archives are in the program. The linker's flags take no path with a blank.
map=$(mktemp /tmp/kprobelab-map.XXXXXX)
trap 'rm -f "$map"' EXIT
CGO_ENABLED=0 GOOS=linux GOARCH=amd64 GOFLAGS='' go build -trimpath -buildvcs=false -ldflags='-s -w -buildid=' -o bpf/loader.elf ./internal/bpfloader
CGO_CFLAGS="-O2 -g '-I$unicorn/include'" CGO_LDFLAGS="'-L$unicorn/lib'" GOFLAGS='' go build -trimpath -buildvcs=auto -tags unicorn,netgo,osusergo,bpfloader \
	-ldflags "-s -w -buildid= -linkmode external -extldflags '-static -Wl,--build-id=none -Wl,-Map=$map'" -o "$work/linux-amd64/kprobelab" ./cmd/kprobelab
build linux arm64
build darwin arm64
build darwin amd64
build windows amd64
say "building the page"
GOFLAGS='' go run ./internal/tools/page -o "$out/kprobelab-$version.html"

program=$work/linux-amd64/kprobelab
"$program" man | gzip -9n >"$work/kprobelab.1.gz"
"$program" completion bash >"$work/kprobelab.bash"
"$program" completion zsh >"$work/_kprobelab"
"$program" completion fish >"$work/kprobelab.fish"
# The image has Debian's keys, so that it fetches kernels.
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keys" ] || die "$keys is missing; as root: apt-get install debian-archive-keyring"
"$work/dist" archives "$map" "$unicorn" "$keys" >"$work/static-archives.tsv"
"$work/dist" describe "$version" "$work" "$work/static-archives.tsv" "$unicorn"
cat LICENSE "$work/LICENCES.txt" >"$work/copyright"
cp "$work/sbom.spdx.json" "$out/kprobelab-$version.spdx.json"
cp "$work/static-archives.tsv" "$out/"

for system in linux-amd64 linux-arm64 darwin-arm64 darwin-amd64; do
	"$work/dist" pack "$out/kprobelab-$version-$system.tar.gz" "kprobelab-$version" "$work/$system/kprobelab" LICENSE README.md "$work/LICENCES.txt" "$work/sbom.spdx.json" \
		"$work/kprobelab.1.gz=man/kprobelab.1.gz" "$work/kprobelab.bash=completion/kprobelab.bash" "$work/_kprobelab=completion/_kprobelab" "$work/kprobelab.fish=completion/kprobelab.fish"
done
"$work/dist" pack "$out/kprobelab-$version-windows-amd64.zip" "kprobelab-$version" "$work/windows-amd64/kprobelab.exe" LICENSE README.md "$work/LICENCES.txt" "$work/sbom.spdx.json"
"$work/dist" image "$out/kprobelab-$version-oci.tar" "$version" "$program=usr/bin/kprobelab" "$keys=${keys#/}" packaging/debian.sources=etc/apt/sources.list.d/debian.sources \
	LICENSE=usr/share/doc/kprobelab/LICENSE "$work/LICENCES.txt=usr/share/doc/kprobelab/LICENCES.txt" "$work/sbom.spdx.json=usr/share/doc/kprobelab/sbom.spdx.json"

say "packing the .deb and the .rpm"
DIST_VERSION=$version DIST_TIME=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ) DIST_WORK=$work
export DIST_VERSION DIST_TIME DIST_WORK
# nfpm expands the names of its own fields only; the paths are ours.
awk '{ while (match($0, /\$\{[A-Z_]+\}/)) { n = substr($0, RSTART + 2, RLENGTH - 3); $0 = substr($0, 1, RSTART - 1) ENVIRON[n] substr($0, RSTART + RLENGTH) } print }' \
	packaging/nfpm.yaml >"$work/nfpm.yaml"
CGO_ENABLED=0 GOFLAGS='' GOBIN=$work/bin go install -trimpath "$nfpm"
"$work/bin/nfpm" package -f "$work/nfpm.yaml" -p deb -t "$out/" >/dev/null
"$work/bin/nfpm" package -f "$work/nfpm.yaml" -p rpm -t "$out/" >/dev/null

say "packing the source, with the Go modules"
mkdir -p "$work/kprobelab-$version"
git archive HEAD | tar -x -C "$work/kprobelab-$version"
GOFLAGS='' go mod vendor -o "$work/kprobelab-$version/vendor"
tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" -C "$work" -c "kprobelab-$version" | gzip -9n >"$out/kprobelab-$version-source.tar.gz"
why=$work/NOT-A-RELEASE
: >"$why"
if [ -n "$(git status --porcelain)" ]; then echo "git status shows changes" >>"$why"; fi
if [ "${SOURCES:-yes}" = no ]; then
	echo "the sources of what is linked were left out (SOURCES=no)" >>"$why"
elif ! "$scripts/dist-sources.sh" "$work/static-archives.tsv" "$out/sources" >"$work/missing"; then
	sed 's/^/the source is missing: /' "$work/missing" >>"$why"
	[ -s "$why" ] || die "no sources of what is linked (the message is above)"
fi

(cd "$out" && find . -type f | sed 's|^\./||' | sort | xargs sha256sum >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
if [ -s "$why" ]; then
	mv "$why" "$out/"
	say "all else is in dist/, with its checksums in SHA256SUMS. Do not give it away:"
	cat "$out/NOT-A-RELEASE" >&2
	rm -rf "$work"
	if [ "${SOURCES:-yes}" = no ] || [ -n "${DIRTY:-}" ]; then exit 0; fi
	exit 1
fi
rm -rf "$work"
say "all of it is in dist/; SHA256SUMS has the checksums"
