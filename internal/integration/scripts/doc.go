// Package scripts tests the shell scripts that set up a build: what they
// read from apt's sources, which image they choose, and what they say when
// something is missing. Nothing is fetched: apt is a stand-in.
//
// It must not know the program that the scripts build.
package scripts
