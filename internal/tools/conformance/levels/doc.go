// Package levels asks kernels which value each dated field of profile.Config has in
// them (scripts/conformance-levels.sh). It prints one line per field and kernel, as
// profile/asked.txt has them, from which docs/releases.md takes its evidence.
//
// An image's own code, tables and texts answer for most fields. Those of the tracing
// files are asked of the booted kernel: the same uses of files are made there, and here
// under each value that the field can have. A value that gives the kernel's answers at
// every use that tells the values apart is the kernel's. The command must not take
// anything from the table of releases.
package levels
