// Package steptext says in words what a hit and the optimizer do, step by step.
//
// It must not know who shows it.
package steptext

import "kprobelab/kprobes"

// hitTexts has a sentence for each step of a hit that has only one.
var hitTexts = map[kprobes.EventKind]string{
	kprobes.EventPre:           "pre handler",
	kprobes.EventPost:          "post handler; ip is at the next instruction",
	kprobes.EventBoost:         "resume in the slot; the jump after the copy leads back",
	kprobes.EventStep:          "resume at the copy in the slot, interrupts off",
	kprobes.EventEmulate:       "the instruction was emulated",
	kprobes.EventFault:         "the copy faulted: report it at the original's address",
	kprobes.EventInstance:      "the return address is saved in an instance, the trampoline takes its place",
	kprobes.EventNoInstance:    "no free instance: this return is missed",
	kprobes.EventInNMI:         "in an NMI, which an int3 counts as: this return is missed",
	kprobes.EventReturn:        "the function returned into the trampoline, which built a frame",
	kprobes.EventReturnHandler: "return handler",
	kprobes.EventReturned:      "the real return address is restored",
	kprobes.EventJprobeReturn:  "int3 in jprobe_return: the saved registers and stack are back",
	kprobes.EventOptimized:     "the jump at the probed address led to the detour buffer, which built a frame and calls optimized_callback",
	kprobes.EventDetoured:      "the buffer restores the registers, runs its copy of the instructions, and jumps to what follows them",
	kprobes.EventDetour:        "OPTIMIZED is set: resume at the copied instructions in the detour buffer",
	kprobes.EventPoke:          "the int3 of a text poke: the jump to the detour buffer is emulated",
}

// Hit is a step of a hit in words.
func Hit(e *kprobes.Event) string {
	tracer := e.Way == kprobes.WayTracer
	switch e.Kind {
	case kprobes.EventTrap:
		if tracer {
			return "the call at the fentry site led to the tracer's trampoline, which built a frame; ip is one past the site's address"
		}
		return "int3 at the probed address; ip is one past it"
	case kprobes.EventMissed:
		if e.Way == kprobes.WayDetour {
			return "reached through the jump while another probe is handled: counted as missed, no handlers"
		}
		return "hit while another probe is handled: counted as missed, no handlers"
	case kprobes.EventSkipped:
		if tracer {
			return "the pre handler returned non-zero: the trampoline returns to where it left ip"
		}
		return "the pre handler returned non-zero: resume where it left ip"
	case kprobes.EventStepped:
		if e.Way == kprobes.WayDebug {
			return "debug trap after one instruction: fix ip up"
		}
		return "int3 after the copy: move ip back to the original code"
	case kprobes.EventResume:
		if tracer {
			return "return past the site"
		}
		return "resume the probed code"
	}
	return hitTexts[e.Kind]
}

// optimizerTexts are the steps of the optimizer in words.
var optimizerTexts = map[kprobes.OptKind]string{
	kprobes.OptQueued:      "OPTIMIZED is set, and it is queued for the worker; the int3 stays until then",
	kprobes.OptQueuedUndo:  "it is queued to be undone; the jump stays until the worker comes",
	kprobes.OptDequeued:    "it is taken off its list before the worker came to it",
	kprobes.OptKept:        "its jump was to be undone: it stays",
	kprobes.OptForced:      "the jump has to go now",
	kprobes.OptFreeing:     "the worker would have undone it: it is left to free",
	kprobes.OptWorker:      "the worker begins, with kprobe_mutex and text_mutex held",
	kprobes.OptPokeInt3:    "write cc at A: whoever comes here traps",
	kprobes.OptPokeTail:    "write the tail, A+1 to A+4, after the int3",
	kprobes.OptPokeFirst:   "write the first byte over the int3: the instruction is whole",
	kprobes.OptPokeSync:    "synchronize: every CPU runs a serializing instruction and sees what was written",
	kprobes.OptPokeDone:    "withdraw the announcement; no CPU is in its handler any more",
	kprobes.OptPokeStopped: "stop all CPUs, write the 5 bytes, synchronize, let them go on",
	kprobes.OptDisarmed:    "it is disabled: the original byte is written over the int3",
	kprobes.OptUndone:      "OPTIMIZED is cleared; it is on no list",
	kprobes.OptRemoved:     "nobody uses it: out of the hash table, to be freed after the wait",
	kprobes.OptWait:        "wait until every task has scheduled (RCU-tasks)",
	kprobes.OptWaited:      "every task has scheduled: nobody is inside the bytes after an int3 that was there before",
	kprobes.OptOptimized:   "it is optimized: the jump leads to the detour buffer",
	kprobes.OptFreed:       "its buffer and slot are free again",
	kprobes.OptWorkerEnd:   "the worker ends",
	kprobes.OptGivenUp:     "somebody wants kprobe_mutex while tasks are waited for: the worker will start over",
	kprobes.OptAllowed:     "optimization is allowed: every enabled probe is asked",
	kprobes.OptForbidden:   "optimization is forbidden: every probe is undone",
}

// Optimizer is a step of the optimizer in words.
func Optimizer(e *kprobes.OptEvent) string {
	if e.Kind == kprobes.OptFreeing && e.Probe.Gone() {
		return "its code goes: nothing is written, the worker will free it"
	}
	return optimizerTexts[e.Kind]
}

// Standing says what stands at a probed address: entry is the table's, jump is whether the jump to its detour buffer is in
// memory, queue the optimizer's list that it is on.
func Standing(entry *kprobes.Kprobe, jump bool, queue string) string {
	text := "an int3"
	switch {
	case entry.OnFtrace():
		text = "called by the function tracer"
	case jump:
		text = "a jump to its detour buffer"
	}
	if queue != "" {
		text += ", on the list " + queue
	}
	return text
}
