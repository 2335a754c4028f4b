#!/bin/sh
# Any CI: fetch the program by its checksum, then check probes and run a tool on the kernels of kernels.lock. Keep
# $XDG_CACHE_HOME/kprobelab/kernels between runs, by the key that "kprobelab kernels key" prints.
set -eu
: "${URL:?}" "${VERSION:?}" "${SHA256:?}" "${PROBES:?}" "${TOOL:?}" "${KERNELS:?}"
curl -fsSL -o kprobelab.tar.gz "$URL/kprobelab-$VERSION-linux-amd64.tar.gz"
echo "$SHA256  kprobelab.tar.gz" | sha256sum -c --quiet -
tar -xzf kprobelab.tar.gz
set -- $(printf -- '--kernel %s ' $KERNELS); code=0
"./kprobelab-$VERSION/kprobelab" check "$@" --format junit "$PROBES" >check.xml || code=$?
[ -z "${OBJECT:-}" ] || "./kprobelab-$VERSION/kprobelab" check --load "$@" --format junit "$OBJECT" >load.xml || code=$?
"./kprobelab-$VERSION/kprobelab" exec "$@" --junit exec.xml -- $TOOL || code=$?
exit $code
