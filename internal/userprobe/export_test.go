package userprobe

// Room is the number of bytes that the trace may still take; SetRoom changes it.
func (t *Trace) Room() int     { return t.left }
func (t *Trace) SetRoom(n int) { t.left = n }
