// Package debian reads the files that Debian's archive and similar ones publish: apt's sources and
// their keys, signed indexes, packages and their dependencies.
//
// It must not know how a file is fetched, nor what packages are for.
package debian
