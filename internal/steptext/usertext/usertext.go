// Package usertext says in words what a hit of a program's uprobe does, step by step, with the kernel's functions.
//
// It must not know who shows it. It is apart from steptext, which a page has without programs.
package usertext

import (
	"kprobelab/internal/userprobe"
	"kprobelab/profile"
	"kprobelab/uprobes"
)

// texts are the steps of a uprobe's hit in words.
var texts = [userprobe.NumEventKinds]string{
	userprobe.EventTrap:          "int3 at the probed address; ip is one past it",
	userprobe.EventGone:          "int3 of a probe that is there no more: the program goes back to the address, and executes what is there now",
	userprobe.EventHandler:       "handler, from handler_chain; ip is at the probed address",
	userprobe.EventRemoved:       "no consumer wants this process: its int3 is taken away",
	userprobe.EventInstance:      "the return address is saved in an instance, the trampoline takes its place",
	userprobe.EventMissed:        "the return is not probed: too many calls wait for theirs, or the stack cannot be written",
	userprobe.EventOptimized:     "the nop becomes a call of a trampoline nearby: the next hits take no trap",
	userprobe.EventCall:          "the call in the place of the nop led to the trampoline, which made the system call uprobe; registers and stack are as at the nop again",
	userprobe.EventCallEnd:       "the system call returns to the trampoline, which puts registers back and returns past the nop",
	userprobe.EventEmulated:      "the instruction was emulated",
	userprobe.EventCopy:          "resume at the copy in the XOL area, with the trap flag set",
	userprobe.EventNoSlot:        "all slots of the XOL area are taken: sleep until one is free, and hit again",
	userprobe.EventStepped:       "debug trap after the copy: put right what it left, clear the trap flag",
	userprobe.EventLostStep:      "the stepped system call took the trap flag away: this int3 is taken for the trap after the copy",
	userprobe.EventAborted:       "the copy faulted, or a signal kills: registers as before it, ip at the probe",
	userprobe.EventReturn:        "the function returned into the trampoline",
	userprobe.EventReturnHandler: "return handler, from handle_uretprobe_chain; ip is where the function returns to",
	userprobe.EventUnwound:       "this call will not return: longjmp has left it, its instance is dropped",
	userprobe.EventReturned:      "the program goes on at the real return address",
	userprobe.EventResume:        "resume the program",
}

// Step is a step of a uprobe's hit in words.
func Step(e *userprobe.Event) string {
	if e.Kind != userprobe.EventEmulated || e.Analysis == nil {
		return texts[e.Kind]
	}
	switch a := e.Analysis; {
	case a.Way == uprobes.Push:
		return "push is emulated: the kernel writes the register to the stack, and moves ip past it"
	case a.Opcode == 0xe8:
		return "the call is emulated: the kernel pushes the return address, and moves ip to the function"
	case a.Opcode == 0x90 || a.Target == 0 && a.Opcode&0xf0 != 0x70:
		return "the nop is emulated: the kernel moves ip past it"
	}
	return "the jump is emulated: the kernel moves ip to where it leads"
}

// Next is the kernel's function that comes after a step, and how it is come to; "" where the program goes on.
func Next(e *userprobe.Event, c *profile.Config) string {
	switch e.Kind {
	case userprobe.EventTrap:
		return "uprobe_pre_sstep_notifier, from the breakpoint exception; then handle_swbp, from uprobe_notify_resume on the way back"
	case userprobe.EventInstance:
		return "arch_uprobe_skip_sstep, from handle_swbp"
	case userprobe.EventCopy:
		return "the copy; then uprobe_post_sstep_notifier, from the debug exception, and handle_singlestep, from uprobe_notify_resume"
	case userprobe.EventReturn:
		if c.Uprobes.ReturnCall {
			return "uprobe_handle_trampoline, from the trampoline's system call uretprobe"
		}
		return "handle_trampoline, from handle_swbp: the trampoline is an int3"
	case userprobe.EventCall:
		return "handle_syscall_uprobe, from the system call"
	}
	return ""
}

// Operand says how a copy finds an operand that the original finds by rip; "" where it has none.
func Operand(a *uprobes.Analysis) string {
	for f, name := range map[uprobes.Fixups]string{uprobes.FixSI: "rsi", uprobes.FixDI: "rdi", uprobes.FixBX: "rbx"} {
		if a.Fixups&f != 0 {
			return name + " has what rip would be after the original, and the copy finds its operand by it"
		}
	}
	return ""
}
