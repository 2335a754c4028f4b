// Package download fetches files over HTTP into a folder, each known by its checksum: a partial
// download is continued, and two processes fetch a file once.
//
// It must not know what the files are.
package download
