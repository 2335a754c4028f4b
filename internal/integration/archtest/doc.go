// Package archtest checks the structure of the project: its tests fail when an import
// points the wrong way, when cgo leaves its one package, when a linked module's
// licence does not go with GPL-2.0, or when something public has no doc.
//
// It must not know what the packages do. It exports nothing.
package archtest
