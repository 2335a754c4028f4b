package session

import "kprobelab"

// Session is a Lab that takes calls and probes as the command line writes them.
type Session struct{ *kprobelab.Lab }

// New is a session on a lab, which stays the caller's to close.
func New(l *kprobelab.Lab) *Session { return &Session{l} }
