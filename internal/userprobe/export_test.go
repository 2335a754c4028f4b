package userprobe

// Room is how many bytes the trace may still take; SetRoom changes it.
func (t *Trace) Room() int     { return t.left }
func (t *Trace) SetRoom(n int) { t.left = n }
