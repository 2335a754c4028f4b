#!/bin/sh
# dist-test.sh: installs or unpacks each artifact of dist/ on bare systems without a network, runs three commands there, and prints
# the table of docs/measured/release.md (make dist-test): its version, the first command of README that needs no file, and explain on a kernel
# image. Their output must be that of the program for linux/amd64 on this system, on every system and with both engines. Needs root, for
# chroot and dpkg; what else it needs it names. The first run makes five root file systems, for some minutes; they stay in
# .cache/dist/roots (1.5 GB).
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
dist=$root/dist
[ "$(id -u)" = 0 ] || die "chroot and dpkg need root; make dist needs none"
[ -e "$dist/SHA256SUMS" ] || die "dist/ has no SHA256SUMS; make dist writes it"
need rpm rpm
need qemu-aarch64-static qemu-user-static
need umoci umoci
need unzip unzip
need unshare util-linux
"$scripts/dist-roots.sh" bullseye bookworm trixie sid wine
image=$("$scripts/kernel.sh" --present || "$scripts/kernel.sh")

chroot=$(command -v chroot)
work=$root/.cache/dist/test
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
umask 022
export LC_ALL=C

(cd "$dist" && sha256sum --quiet -c SHA256SUMS) || die "dist/ is not what SHA256SUMS says"
version=$(cd "$dist" && ls kprobelab-*-linux-amd64.tar.gz)
version=${version#kprobelab-} version=${version%-linux-amd64.tar.gz}
name=kprobelab-$version

first=$(awk '/^    \$ kprobelab / && !/\.cache|--kernel|newest|\/boot/ { sub(/^    \$ kprobelab /, ""); print; exit }' "$root/README.md")
[ -n "$first" ] || die "README has no command without a file"

# ask FILE COMMAND...: the output of the three commands by a program, into a file. The image is in the working directory.
ask() {
	to=$1
	shift
	{
		"$@" --version && eval '"$@" '"$first" && "$@" explain vmlinuz vfs_read+0x5
	} >"$to" 2>"$to.err" </dev/null
}

failed=
rows=$work/rows
# row ARTIFACT SYSTEM HOW RESULT
row() {
	printf '| %s | %s | %s | %s |\n' "$1" "$2" "$3" "$4" >>"$rows"
	say "$1, $2: $4"
}

# run ARTIFACT SYSTEM HOW COMMAND...: asks there, and compares with the program's answers on this system.
run() {
	artifact=$1 system=$2 how=$3
	shift 3
	result="the same output"
	if ! ask "$work/out" "$@"; then
		result="FAILED: $(tail -n 1 "$work/out.err")"
	elif ! cmp -s "$work/out" "$work/want"; then
		result="FAILED: other output"
		diff "$work/want" "$work/out" | head -n 20 >&2 || :
	fi
	case $result in FAILED*) failed=yes ;; esac
	row "$artifact" "$system" "$how" "$result"
}

# bare SUITE: unpacks its root file system into $work/SUITE, with the image in its root folder.
bare() {
	mkdir -p "$work/$1"
	if [ "${2:-}" != empty ]; then tar -xf "$root/.cache/dist/roots/$1.tar" -C "$work/$1"; fi
	mkdir -p -m 1777 "$work/$1/tmp"
	cp "$image" "$work/$1/vmlinuz"
	chmod 644 "$work/$1/vmlinuz"
}

# in_root FOLDER COMMAND...: as nobody (or USER) in a root file system, in its root folder, without a network.
in_root() {
	in=$1
	shift
	unshare -n env -i PATH=/usr/bin:/bin "HOME=${HOME_THERE:-/tmp}" WINEDEBUG=-all "$chroot" --userspec="${USER_THERE:-65534:65534}" "$in" "$@"
}

mkdir "$work/here"
tar -xzf "$dist/$name-linux-amd64.tar.gz" -C "$work/here"
cp "$image" "$work/here/vmlinuz"
(cd "$work/here" && ask "$work/want" unshare -n "./$name/kprobelab") || die "the program fails on this system: $(tail -n 1 "$work/want.err")"

deb=$(cd "$dist" && ls kprobelab_*_amd64.deb)
for suite in bullseye bookworm trixie sid; do
	bare $suite
	tar -xzf "$dist/$name-linux-amd64.tar.gz" -C "$work/$suite/opt"
	run linux-amd64.tar.gz $suite "chroot, as nobody" in_root "$work/$suite" "/opt/$name/kprobelab"
	cp "$dist/$deb" "$work/$suite/tmp/"
	if unshare -n chroot "$work/$suite" dpkg -i "/tmp/$deb" >"$work/out" 2>&1 && in_root "$work/$suite" dpkg -V kprobelab >>"$work/out"; then
		run .deb $suite "dpkg -i, dpkg -V, as nobody" in_root "$work/$suite" kprobelab
	else
		failed=yes
		row .deb $suite "dpkg -i" "FAILED: $(tail -n 1 "$work/out")"
	fi
	rm -rf "${work:?}/$suite"
done

bare rpm empty
rpm=$(cd "$dist" && ls kprobelab-*.x86_64.rpm)
if rpm --root "$work/rpm" -i "$dist/$rpm" >"$work/out" 2>&1 && rpm --root "$work/rpm" -V kprobelab >>"$work/out" 2>&1; then
	run .rpm "an empty folder" "rpm --root -i, rpm -V, chroot, as nobody" in_root "$work/rpm" kprobelab
else
	failed=yes
	row .rpm "an empty folder" "rpm --root -i" "FAILED: $(tail -n 1 "$work/out")"
fi

mkdir "$work/image" "$work/layout"
tar -xf "$dist/$name-oci.tar" -C "$work/layout"
umoci unpack --image "$work/layout:$version" "$work/image/bundle" >&2 || die "umoci does not unpack the image"
there=$work/image/bundle/rootfs
cp "$image" "$there/vmlinuz"
chmod 644 "$there/vmlinuz"
# The user of the image's configuration, as umoci reads it.
USER_THERE=$(sed -n 's/.*"uid": *\([0-9]*\).*/\1/p' "$work/image/bundle/config.json" | head -n 1) HOME_THERE=/home/kprobelab
[ "${USER_THERE:-0}" != 0 ] || die "the image's user is root"
run oci.tar "the image alone" "umoci unpack, chroot, as user $USER_THERE" in_root "$there" kprobelab
for words in "--kernel /vmlinuz" "--kernel 6.1"; do
	code=0
	# shellcheck disable=SC2086
	in_root "$there" kprobelab exec $words /usr/bin/kprobelab --version >"$work/out" 2>&1 || code=$?
	if [ $code = 3 ] && grep -q 'kprobelab kernels import' "$work/out"; then
		row oci.tar "the image alone" "\`exec $words\`, without QEMU and network" "exit code 3, a sentence that names \`kernels import\`"
	else
		failed=yes
		row oci.tar "the image alone" "\`exec $words\`" "FAILED: $(tail -n 1 "$work/out")"
	fi
done
unset USER_THERE HOME_THERE

bare arm64 empty
tar -xzf "$dist/$name-linux-arm64.tar.gz" -C "$work/arm64"
cp "$(command -v qemu-aarch64-static)" "$work/arm64/qemu"
run linux-arm64.tar.gz "an empty folder" "qemu-user $(qemu-aarch64-static --version | sed -n '1s/.*version \([0-9.]*\).*/\1/p'), chroot, as nobody" in_root "$work/arm64" /qemu "/$name/kprobelab"

bare wine
unzip -q "$dist/$name-windows-amd64.zip" -d "$work/wine"
mount -t proc proc "$work/wine/proc"
trap 'umount "$work/wine/proc"; rm -rf "$work"' EXIT
mkdir "$work/wine/probe"
chown 65534:65534 "$work/wine/probe" # Wine wants a home of the user's own
HOME_THERE=/probe
run windows-amd64.zip trixie "Wine $(in_root "$work/wine" wine --version 2>/dev/null | sed 's/wine-//'), as nobody" in_root "$work/wine" wine "/$name/kprobelab.exe"

mkdir "$work/source"
tar -xzf "$dist/$name-source.tar.gz" -C "$work/source"
if (cd "$work/source/$name" && CGO_ENABLED=0 GOFLAGS=-mod=vendor GOPROXY=off GOTOOLCHAIN=local unshare -n go build -buildvcs=false -o "$work/source/kprobelab" ./cmd/kprobelab) >"$work/out" 2>&1; then
	row source.tar.gz "this system" "go build, without a network and cgo" built
else
	failed=yes
	row source.tar.gz "this system" "go build, without a network and cgo" "FAILED: $(tail -n 1 "$work/out")"
fi

# A test of another module gets the library as go get does, from a folder that is its proxy (make module gives it a path), where Go is and
# no compiler of C. The tree is that of the source archive; of it, folders that are modules of their own are no part of a module.
bare trixie
there=$work/trixie published=example.org/x/kprobelab tree=$work/source/$name
rm -rf "$tree/vendor"
find "$tree" -mindepth 2 -name go.mod -printf '%h\0' | xargs -0 rm -rf
git -C "$tree" init -q # make module changes the files that git knows
git -C "$tree" add -f -A
"$tree/scripts/module.sh" "$published" >&2
versions=$there/proxy/$published/@v
mkdir -p "$versions" "$there/importer" "$there/usr/local" "$there/proc"
cp "$tree/internal/integration/frontdoor/testdata/importer_test.go.txt" "$there/importer/importer_test.go"
cp "$tree/go.mod" "$versions/v0.1.0.mod"
echo v0.1.0 >"$versions/list"
echo '{"Version":"v0.1.0"}' >"$versions/v0.1.0.info"
git -C "$tree" add -f -A
git -C "$tree" archive --format=zip --prefix="$published@v0.1.0/" -o "$versions/v0.1.0.zip" "$(git -C "$tree" write-tree)"
cp -R "$(go env GOROOT)" "$there/usr/local/go"
cp -R "$(go env GOMODCACHE)/cache/download" "$there/modules"
chown -R 65534:65534 "$there/importer"
mount -t proc proc "$there/proc" # go finds its own folder by it
trap 'umount "$work/wine/proc" "$there/proc"; rm -rf "$work"' EXIT
chmod -R go+rX "$there/usr/local/go" "$there/modules" "$there/proxy"
# shellcheck disable=SC2016
if in_root "$there" /usr/bin/env HOME=/importer PATH=/usr/local/go/bin:/usr/bin:/bin GOTOOLCHAIN=local GOSUMDB=off GOPROXY=file:///proxy,file:///modules sh -ec '
	for c in cc gcc clang; do if command -v $c; then echo "there is a compiler of C"; exit 1; fi; done
	cd /importer
	[ "$(go env CGO_ENABLED)" = 0 ]
	go mod init example.org/importer
	go get '$published'/kprobestest
	go test -count=1 -v .' >"$work/out" 2>&1 && grep -q '^--- PASS: TestSnprintf' "$work/out"; then
	row "the library" trixie "make module; go get from a folder, go test, with Go and without a compiler of C, as nobody" "the test passes"
else
	failed=yes
	row "the library" trixie "go get, go test" "FAILED: $(tail -n 1 "$work/out")"
fi
for system in darwin-arm64 darwin-amd64; do row $system.tar.gz - "not run: there is no such system here" built; done

printf '| artifact | system | how | result |\n|---|---|---|---|\n'
cat "$rows"
[ -z "$failed" ]
