// Package unpack puts the files of a package into a folder, whoever has made the package: nothing of it gets outside
// of the folder, and what it unpacks to has bounds.
//
// It must not know the formats of packages, nor what their files are for.
package unpack
