// Package debuginfo opens what describes the functions and types of one kernel image: files with
// DWARF, then the image's own BTF and symbols. It writes the definitions of probes that are said in
// the words of the source, by the first description that knows the place.
//
// It must not know flags, scripts, a machine or an engine.
package debuginfo
