package steptext

// Watch is a hit of a watchpoint in words: what leads to the handler, the handler, what follows.
// Of an instruction that is executed it is a fault, of an access a trap (SDM Vol. 3B, "Debug
// Exceptions").
func Watch(executed bool) [3]string {
	if executed {
		return [3]string{
			"the watched instruction comes next: a debug fault, before it is executed; ip is at it",
			"handler of the watchpoint",
			"resume with RF set: the instruction runs without another hit",
		}
	}
	return [3]string{
		"an instruction has made the access, and completed: a debug trap; ip is at the next one",
		"handler of the watchpoint",
		"resume",
	}
}
