package kimage

import "kprobelab/x86"

// kernelTables is what the kernel keeps about its text.
type kernelTables struct{}

func (img *Image) loadTables() error       { return nil }
func (img *Image) bootPatch() error        { return nil }
func (img *Image) loadModule(string) error { return nil }

// Blacklisted implements View.
func (img *Image) Blacklisted(x86.Addr) (x86.Range, bool) { return x86.Range{}, false }

// ExceptionEntry implements View.
func (img *Image) ExceptionEntry(x86.Addr) (x86.Addr, bool) { return 0, false }

// BugEntry implements View.
func (img *Image) BugEntry(x86.Addr) bool { return false }

// SiteAt implements View.
func (img *Image) SiteAt(SiteKind, x86.Addr) (Site, bool) { return Site{}, false }

// SiteIn implements View.
func (img *Image) SiteIn(SiteKind, x86.Range) (Site, bool) { return Site{}, false }
