#!/bin/sh
# Builds the program for js/wasm and runs the scripts of the command line on it, under
# Node (make test-wasm). 10 minutes of CPU: each command compiles the program anew.
# Ends with 77 when there is no Node.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"

command -v node >/dev/null || {
	say "the scripts were NOT run on js/wasm: there is no node (Debian: apt install nodejs)"
	exit 77
}
cd "$root"
dir=$root/.cache/wasm
mkdir -p "$dir"
CGO_ENABLED=0 GOOS=js GOARCH=wasm go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$dir/kprobelab.wasm" ./cmd/kprobelab
cat >"$dir/kprobelab" <<END
#!/bin/sh
exec node --stack-size=8192 "$(go env GOROOT)/lib/wasm/wasm_exec_node.js" "$dir/kprobelab.wasm" "\$@"
END
chmod +x "$dir/kprobelab"
CGO_ENABLED=0 KPROBELAB_PROGRAM=$dir go test -count=1 -timeout 30m ${TESTFLAGS:-} -run '^TestScripts$' ./cmd/kprobelab
