// Package unpack puts the files of a package into a folder. The package may be hostile: no file of
// it gets outside of the folder, and the unpacked files have bounds.
//
// It must not know the formats of packages, nor what their files are for.
package unpack
