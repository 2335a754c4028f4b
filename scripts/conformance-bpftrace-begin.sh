#!/bin/sh
# Draws scripts of bpftrace's that have BEGIN and END alone (BEGIN=N make conformance-bpftrace), runs each
# with the real bpftrace on this system's kernel and with this program, and compares the exit code, every
# byte of the output, and every message.
#
# BEGIN is how many, 2,000 by default, SEED decides the choice; SHOW prints so many differences. It needs
# root and a kernel that loads BPF programs. Ends with 0 when nothing differs without a known cause, 1
# when something does, and 77 when bpftrace cannot be had or runs nothing here.
undone='the scripts were NOT compared'
. "$(dirname "$0")/comparison.sh"

work=$root/.cache/conformance/begin
mkdir -p "$work"
tool bpftrace trixie bpftrace || cannot "bpftrace cannot be had (see above)"
bpftrace=$(wrap bpftrace /usr/bin/bpftrace) || cannot "bpftrace cannot be had"
"$bpftrace" -e 'BEGIN { exit(); }' >/dev/null 2>&1 || cannot "bpftrace runs no script here (root, and a kernel with BPF and BTF)"
build_program
exec "$compare" begin -tool "$bpftrace" -kprobelab "$root/bin/kprobelab" -n "${BEGIN:-2000}" -seed "${SEED:-1}" -show "${SHOW:-20}"
