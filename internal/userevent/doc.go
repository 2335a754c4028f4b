// Package userevent is uprobe events: what is written to uprobe_events and read from trace and
// uprobe_profile, of one process.
//
// It must not know command lines.
package userevent
