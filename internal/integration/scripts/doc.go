// Package scripts tests the shell scripts that set up a build: their reading of apt's sources,
// their choice of an image, and their messages when something is missing. Nothing is fetched: apt
// is a stand-in.
//
// It must not know the program that the scripts build.
package scripts
