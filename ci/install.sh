#!/bin/sh
# Fetches a release of kprobelab for Linux/amd64, compares its checksum, and unpacks it: install.sh VERSION SHA256 URL FOLDER.
# URL is the folder of the release's files; SHA256 is the line of kprobelab-VERSION-linux-amd64.tar.gz in its SHA256SUMS.
# Prints the folder with the program.
set -eu
[ $# = 4 ] || { echo "usage: install.sh VERSION SHA256 URL FOLDER" >&2; exit 2; }
file=kprobelab-$1-linux-amd64.tar.gz
mkdir -p "$4"
cd "$4"
curl -fsSL --retry 3 -o "$file" "$3/$file" || { echo "$3/$file cannot be fetched" >&2; exit 3; }
echo "$2  $file" | sha256sum -c --quiet - >&2 || { echo "$file is not the file with the checksum $2" >&2; exit 3; }
tar -xzf "$file"
echo "$PWD/kprobelab-$1"
