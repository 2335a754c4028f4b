// Package debian reads what Debian's archive and those like it publish: apt's sources and their keys, signed indexes,
// packages and what they need.
//
// It must not know how a file is fetched, nor what packages are for.
package debian
