package kprobes

import (
	"encoding/binary"

	"kprobelab/x86"
)

// What the kernel's own functions do with a hit whose handler is guest code,
// as guest code. rdi and rsi are a function's arguments. A function that finds
// anything out of the ordinary (another handler runs, no route) leaves all as
// it is and goes to the call-out that does it in Go.
//
// The record is rec, an instance is ri; running is the CPU's running word, and
// task the number of its task, both from gs.

// field32 and field64 are what a gpart has to be told.
const (
	fillNone     field = iota + 100
	fillRunning        // disp32: the running word, from gs
	fillTask           // disp32: the task's number, from gs
	fillTable          // imm64: the function's table
	fillTramp          // imm32: the return trampoline
	fillGo             // rel32: the call-out of this function
	fillMissed         // rel32: the routine for a return that is missed
	fillStore          // rel32: the routine that keeps a return address
	fillMissedGo       // rel32: the call-out that counts a missed return
)

// gpart is an instruction, with where in it something is filled in; at 0 means
// its last bytes.
type gpart struct {
	code []byte
	text string
	fill field
	at   int
	// ss: only where a detour buffer's frame has the ss word. stops: only where
	// a handler's result ends the chain, goes: only where it does not.
	ss, stops, goes bool
}

// The route of a hit: a table of 16,384 pairs of key and record, by 14 bits of
// the key. tableMask picks them, moved up by the 16 bytes of a pair.
const (
	tableSize = 1 << 18
	tableMask = tableSize - 16
)

// detourCode is optimized_callback(op, regs): op, which is a small number, is
// the key.
var detourCode = []gpart{
	{code: []byte{0x89, 0xf8}, text: "mov %edi,%eax"},
	{code: []byte{0xc1, 0xe0, 0x04}, text: "shl $4,%eax"},
	{code: []byte{0x25, 0xf0, 0xff, 0x03, 0x00}, text: "and $0x3fff0,%eax"},
	{code: []byte{0x48, 0xb9, 0, 0, 0, 0, 0, 0, 0, 0}, text: "movabs $table,%rcx", fill: fillTable},
	{code: []byte{0x48, 0x01, 0xc8}, text: "add %rcx,%rax"},
	{code: []byte{0x48, 0x8b, 0x10}, text: "mov (%rax),%rdx: the pair's key"},
	{code: []byte{0x48, 0x31, 0xfa}, text: "xor %rdi,%rdx"},
	{code: []byte{0x65, 0x48, 0x0b, 0x14, 0x25, 0, 0, 0, 0}, text: "or %gs:running,%rdx", fill: fillRunning},
	{code: []byte{0x0f, 0x85, 0, 0, 0, 0}, text: "jne to Go", fill: fillGo},
	{code: []byte{0x48, 0x8b, 0x78, 0x08}, text: "mov 8(%rax),%rdi: rec"},
	{code: []byte{0x65, 0x48, 0x89, 0x3c, 0x25, 0, 0, 0, 0}, text: "mov %rdi,%gs:running", fill: fillRunning},
	{code: []byte{0x48, 0x8b, 0x47, 0x08}, text: "mov 8(%rdi),%rax: the probed address"},
	{code: []byte{0x48, 0xff, 0xc0}, text: "inc %rax"},
	{code: []byte{0x48, 0x89, 0x86, 0x80, 0, 0, 0}, text: "mov %rax,0x80(%rsi): ip"},
	{code: []byte{0x48, 0xc7, 0x86, 0x88, 0, 0, 0, 0x10, 0, 0, 0}, text: "movq $0x10,0x88(%rsi): cs"},
	{code: []byte{0x48, 0xc7, 0x46, 0x78, 0xff, 0xff, 0xff, 0xff}, text: "movq $-1,0x78(%rsi): orig_ax"},
	{code: []byte{0x48, 0x83, 0x86, 0x98, 0, 0, 0, 0x08}, text: "addq $8,0x98(%rsi): sp, where ss was pushed before it", ss: true},
	{code: []byte{0xff, 0x17}, text: "call *(%rdi)"},
	{code: []byte{0x65, 0x48, 0xc7, 0x04, 0x25, 0, 0, 0, 0, 0, 0, 0, 0}, text: "movq $0,%gs:running", fill: fillRunning, at: 5},
	{code: []byte{0xc3}, text: "ret"},
}

// detourFor is detourCode for a frame with the ss word or without.
func detourFor(ss bool) (parts []gpart) {
	for _, p := range detourCode {
		if ss || !p.ss {
			parts = append(parts, p)
		}
	}
	return parts
}

// siteCode is kprobe_ftrace_handler(regs): ip, behind the fentry site, is the
// key, and where execution goes on unless the handler returns non-zero.
var siteCode = []gpart{
	{code: []byte{0x48, 0x8b, 0x8f, 0x80, 0, 0, 0}, text: "mov 0x80(%rdi),%rcx: ip"},
	{code: []byte{0x89, 0xc8}, text: "mov %ecx,%eax"},
	{code: []byte{0x25, 0xf0, 0xff, 0x03, 0x00}, text: "and $0x3fff0,%eax"},
	{code: []byte{0x48, 0xba, 0, 0, 0, 0, 0, 0, 0, 0}, text: "movabs $table,%rdx", fill: fillTable},
	{code: []byte{0x48, 0x01, 0xd0}, text: "add %rdx,%rax"},
	{code: []byte{0x48, 0x8b, 0x10}, text: "mov (%rax),%rdx: the pair's key"},
	{code: []byte{0x48, 0x31, 0xca}, text: "xor %rcx,%rdx"},
	{code: []byte{0x65, 0x48, 0x0b, 0x14, 0x25, 0, 0, 0, 0}, text: "or %gs:running,%rdx", fill: fillRunning},
	{code: []byte{0x0f, 0x85, 0, 0, 0, 0}, text: "jne to Go", fill: fillGo},
	{code: []byte{0x48, 0x89, 0xfe}, text: "mov %rdi,%rsi"},
	{code: []byte{0x48, 0x8b, 0x78, 0x08}, text: "mov 8(%rax),%rdi: rec"},
	{code: []byte{0x65, 0x48, 0x89, 0x3c, 0x25, 0, 0, 0, 0}, text: "mov %rdi,%gs:running", fill: fillRunning},
	{code: []byte{0x48, 0x83, 0xe9, 0x04}, text: "sub $4,%rcx"},
	{code: []byte{0x48, 0x89, 0x8e, 0x80, 0, 0, 0}, text: "mov %rcx,0x80(%rsi): ip, one behind the site's address"},
	{code: []byte{0x56}, text: "push %rsi"},
	{code: []byte{0xff, 0x17}, text: "call *(%rdi)"},
	{code: []byte{0x5e}, text: "pop %rsi"},
	{code: []byte{0x65, 0x48, 0x8b, 0x14, 0x25, 0, 0, 0, 0}, text: "mov %gs:running,%rdx", fill: fillRunning},
	{code: []byte{0x48, 0x8b, 0x52, 0x08}, text: "mov 8(%rdx),%rdx: the site"},
	{code: []byte{0x48, 0x83, 0xc2, 0x05}, text: "add $5,%rdx"},
	{code: []byte{0x85, 0xc0}, text: "test %eax,%eax"},
	{code: []byte{0x48, 0x0f, 0x45, 0x96, 0x80, 0, 0, 0}, text: "cmovne 0x80(%rsi),%rdx: where the handler left ip"},
	{code: []byte{0x48, 0x89, 0x96, 0x80, 0, 0, 0}, text: "mov %rdx,0x80(%rsi)"},
	{code: []byte{0x65, 0x48, 0xc7, 0x04, 0x25, 0, 0, 0, 0, 0, 0, 0, 0}, text: "movq $0,%gs:running", fill: fillRunning, at: 5},
	{code: []byte{0xc3}, text: "ret"},
}

// takeParts take an instance off the free list, which ends with one that is
// its own next. They are one block, and so nobody takes the same.
var takeParts = []gpart{
	{code: []byte{0x48, 0x8b, 0x47, 0x10}, text: "mov 16(%rdi),%rax: the first free ri"},
	{code: []byte{0x48, 0x8b, 0x50, 0x18}, text: "mov 24(%rax),%rdx: its next"},
	{code: []byte{0x48, 0x89, 0x57, 0x10}, text: "mov %rdx,16(%rdi)"},
	{code: []byte{0x48, 0x39, 0xd0}, text: "cmp %rdx,%rax"},
	{code: []byte{0x0f, 0x84, 0, 0, 0, 0}, text: "je missed: the list's end", fill: fillMissed},
}

// entryCode is pre_handler_kretprobe(rec, regs) without an entry handler; the
// second part, storeCode, keeps the return address and puts the trampoline in
// its place.
var entryCode = takeParts

var storeCode = []gpart{
	{code: []byte{0x48, 0x8b, 0x8e, 0x98, 0, 0, 0}, text: "mov 0x98(%rsi),%rcx: sp"},
	{code: []byte{0x48, 0x8b, 0x11}, text: "mov (%rcx),%rdx"},
	{code: []byte{0x48, 0x89, 0x10}, text: "mov %rdx,(%rax): the return address"},
	{code: []byte{0x45, 0x31, 0xc0}, text: "xor %r8d,%r8d"},
	{code: []byte{0x48, 0x81, 0xfa, 0, 0, 0, 0}, text: "cmp $trampoline,%rdx", fill: fillTramp},
	{code: []byte{0x41, 0x0f, 0x94, 0xc0}, text: "sete %r8b"},
	{code: []byte{0x49, 0x09, 0xc8}, text: "or %rcx,%r8"},
	{code: []byte{0x4c, 0x89, 0x40, 0x08}, text: "mov %r8,8(%rax): the frame, odd where an older ri shares it"},
	{code: []byte{0x48, 0xc7, 0x01, 0, 0, 0, 0}, text: "movq $trampoline,(%rcx)", fill: fillTramp},
	{code: []byte{0x65, 0x48, 0x8b, 0x0c, 0x25, 0, 0, 0, 0}, text: "mov %gs:task,%rcx", fill: fillTask},
	{code: []byte{0x48, 0xba, 0, 0, 0, 0, 0, 0, 0, 0}, text: "movabs $heads,%rdx", fill: fillTable},
	{code: []byte{0x48, 0x8d, 0x0c, 0xca}, text: "lea (%rdx,%rcx,8),%rcx"},
	{code: []byte{0x48, 0x8b, 0x11}, text: "mov (%rcx),%rdx"},
	{code: []byte{0x48, 0x89, 0x50, 0x18}, text: "mov %rdx,24(%rax): behind it the task's others"},
	{code: []byte{0x48, 0x89, 0x01}, text: "mov %rax,(%rcx)"},
	{code: []byte{0x31, 0xc0}, text: "xor %eax,%eax"},
	{code: []byte{0xc3}, text: "ret"},
}

// askingCode is pre_handler_kretprobe with an entry handler, which is asked
// whether to follow the call.
var askingCode = joinParts(takeParts, []gpart{
	{code: []byte{0x50}, text: "push %rax"},
	{code: []byte{0x56}, text: "push %rsi"},
	{code: []byte{0x57}, text: "push %rdi"},
	{code: []byte{0x48, 0x8b, 0x57, 0x20}, text: "mov 32(%rdi),%rdx"},
	{code: []byte{0x48, 0x89, 0xc7}, text: "mov %rax,%rdi"},
	{code: []byte{0xff, 0xd2}, text: "call *%rdx: entry_handler(ri, regs)"},
	{code: []byte{0x5f}, text: "pop %rdi"},
	{code: []byte{0x5e}, text: "pop %rsi"},
	{code: []byte{0x59}, text: "pop %rcx"},
	{code: []byte{0x85, 0xc0}, text: "test %eax,%eax"},
	{code: []byte{0x48, 0x89, 0xc8}, text: "mov %rcx,%rax"},
	{code: []byte{0x0f, 0x84, 0, 0, 0, 0}, text: "je store", fill: fillStore},
	{code: []byte{0x48, 0x8b, 0x57, 0x10}, text: "mov 16(%rdi),%rdx"},
	{code: []byte{0x48, 0x89, 0x51, 0x18}, text: "mov %rdx,24(%rcx)"},
	{code: []byte{0x48, 0x89, 0x4f, 0x10}, text: "mov %rcx,16(%rdi): ri is free again"},
	{code: []byte{0x31, 0xc0}, text: "xor %eax,%eax"},
	{code: []byte{0xc3}, text: "ret"},
})

// missedCode has Go count a return that is missed for want of an instance.
var missedCode = []gpart{
	{code: []byte{0x48, 0x89, 0x7e, 0x78}, text: "mov %rdi,0x78(%rsi): rec, in orig_ax"},
	{code: []byte{0x48, 0x89, 0xf7}, text: "mov %rsi,%rdi"},
	{code: []byte{0x31, 0xc0}, text: "xor %eax,%eax"},
	{code: []byte{0xe9, 0, 0, 0, 0}, text: "jmp to Go", fill: fillMissedGo},
}

// A return finds its ri, gets the frame ready, calls the handler, puts the
// return address where the trampoline takes it from, and frees ri. Rethook's
// trampoline (arch_rethook_trampoline_callback) and the one before it
// (trampoline_handler) have frames of their own (trampoline.go). It is for a
// task whose newest ri is of this frame and shares it with none; a task
// without any has one of no frame.

var returnFind = []gpart{
	{code: []byte{0x65, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0}, text: "mov %gs:task,%rax", fill: fillTask},
	{code: []byte{0x48, 0xb9, 0, 0, 0, 0, 0, 0, 0, 0}, text: "movabs $heads,%rcx", fill: fillTable},
	{code: []byte{0x4c, 0x8d, 0x04, 0xc1}, text: "lea (%rcx,%rax,8),%r8"},
	{code: []byte{0x49, 0x8b, 0x00}, text: "mov (%r8),%rax: the newest ri"},
}

var (
	rethookFrame = gpart{code: []byte{0x48, 0x8d, 0x8f, 0xa8, 0, 0, 0}, text: "lea 0xa8(%rdi),%rcx: the frame"}
	plainFrame   = gpart{code: []byte{0x48, 0x8d, 0x8f, 0x98, 0, 0, 0}, text: "lea 0x98(%rdi),%rcx: the frame"}
)

var returnCheck = []gpart{
	{code: []byte{0x48, 0x33, 0x48, 0x08}, text: "xor 8(%rax),%rcx"},
	{code: []byte{0x65, 0x48, 0x0b, 0x0c, 0x25, 0, 0, 0, 0}, text: "or %gs:running,%rcx", fill: fillRunning},
	{code: []byte{0x0f, 0x85, 0, 0, 0, 0}, text: "jne to Go", fill: fillGo},
	{code: []byte{0x48, 0xc7, 0x87, 0x88, 0, 0, 0, 0x10, 0, 0, 0}, text: "movq $0x10,0x88(%rdi): cs"},
	{code: []byte{0x48, 0xc7, 0x47, 0x78, 0xff, 0xff, 0xff, 0xff}, text: "movq $-1,0x78(%rdi): orig_ax"},
}

var (
	rethookReady = []gpart{
		{code: []byte{0x48, 0x8b, 0x10}, text: "mov (%rax),%rdx: the return address"},
		{code: []byte{0x48, 0x89, 0x97, 0x80, 0, 0, 0}, text: "mov %rdx,0x80(%rdi): ip"},
		{code: []byte{0x48, 0x83, 0x87, 0x98, 0, 0, 0, 0x10}, text: "addq $16,0x98(%rdi): sp, as the caller has it"},
	}
	plainReady = []gpart{
		{code: []byte{0x48, 0xc7, 0x87, 0x80, 0, 0, 0, 0, 0, 0, 0}, text: "movq $trampoline,0x80(%rdi): ip", fill: fillTramp},
		{code: []byte{0xfa}, text: "cli: the trampoline's popfq ends that"},
	}
)

var returnCall = []gpart{
	{code: []byte{0x48, 0x8b, 0x48, 0x10}, text: "mov 16(%rax),%rcx: rec"},
	{code: []byte{0x57}, text: "push %rdi"},
	{code: []byte{0x41, 0x50}, text: "push %r8"},
	{code: []byte{0x50}, text: "push %rax"},
	{code: []byte{0x65, 0x48, 0x89, 0x0c, 0x25, 0, 0, 0, 0}, text: "mov %rcx,%gs:running", fill: fillRunning},
	{code: []byte{0x48, 0x89, 0xfe}, text: "mov %rdi,%rsi"},
	{code: []byte{0x48, 0x89, 0xc7}, text: "mov %rax,%rdi"},
	{code: []byte{0xff, 0x51, 0x18}, text: "call *24(%rcx): handler(ri, regs)"},
	{code: []byte{0x65, 0x48, 0xc7, 0x04, 0x25, 0, 0, 0, 0, 0, 0, 0, 0}, text: "movq $0,%gs:running", fill: fillRunning, at: 5},
	{code: []byte{0x58}, text: "pop %rax"},
	{code: []byte{0x41, 0x58}, text: "pop %r8"},
	{code: []byte{0x5f}, text: "pop %rdi"},
	{code: []byte{0x48, 0x8b, 0x10}, text: "mov (%rax),%rdx: the return address"},
}

var (
	rethookBack = []gpart{
		{code: []byte{0x48, 0x89, 0x97, 0xa8, 0, 0, 0}, text: "mov %rdx,0xa8(%rdi): over the mark"},
		{code: []byte{0x48, 0x8b, 0x8f, 0x90, 0, 0, 0}, text: "mov 0x90(%rdi),%rcx: flags"},
		{code: []byte{0x48, 0x89, 0x8f, 0xa0, 0, 0, 0}, text: "mov %rcx,0xa0(%rdi): over ss, to return with"},
	}
	plainBack = []gpart{
		{code: []byte{0x48, 0x89, 0x97, 0x98, 0, 0, 0}, text: "mov %rdx,0x98(%rdi): over sp"},
	}
)

var returnFree = []gpart{
	{code: []byte{0x48, 0x8b, 0x50, 0x18}, text: "mov 24(%rax),%rdx"},
	{code: []byte{0x49, 0x89, 0x10}, text: "mov %rdx,(%r8): the task's others"},
	{code: []byte{0x48, 0x8b, 0x48, 0x10}, text: "mov 16(%rax),%rcx: rec"},
	{code: []byte{0x48, 0x8b, 0x51, 0x10}, text: "mov 16(%rcx),%rdx"},
	{code: []byte{0x48, 0x89, 0x50, 0x18}, text: "mov %rdx,24(%rax)"},
	{code: []byte{0x48, 0x89, 0x41, 0x10}, text: "mov %rax,16(%rcx): ri is free again"},
	{code: []byte{0xc3}, text: "ret"},
}

var (
	rethookCode = joinParts(returnFind, []gpart{rethookFrame}, returnCheck, rethookReady, returnCall, rethookBack, returnFree)
	plainCode   = joinParts(returnFind, []gpart{plainFrame}, returnCheck, plainReady, returnCall, plainBack, returnFree)
)

// chainCode is aggr_pre_handler(rec, regs): the members' records stand behind
// the aggregate's own, the newest first and a zero last. One that returns
// non-zero is the last to run; opt_pre_handler does without that test.
var chainCode = []gpart{
	{code: []byte{0x53}, text: "push %rbx"},
	{code: []byte{0x55}, text: "push %rbp"},
	{code: []byte{0x48, 0x89, 0xf5}, text: "mov %rsi,%rbp"},
	{code: []byte{0x48, 0x8d, 0x5f, recSize}, text: "lea 64(%rdi),%rbx"},
	{code: []byte{0x48, 0x8b, 0x3b}, text: "1: mov (%rbx),%rdi"},
	{code: []byte{0x48, 0x89, 0xee}, text: "mov %rbp,%rsi"},
	{code: []byte{0xff, 0x17}, text: "call *(%rdi)"},
	{code: []byte{0x48, 0x83, 0xc3, 0x08}, text: "add $8,%rbx"},
	{code: []byte{0x85, 0xc0}, text: "test %eax,%eax", stops: true},
	{code: []byte{0x75, 0x06}, text: "jne 2f", stops: true},
	{code: []byte{0x48, 0x83, 0x3b, 0x00}, text: "cmpq $0,(%rbx)"},
	{code: []byte{0x75, 0xea}, text: "jne 1b", stops: true},
	{code: []byte{0x75, 0xee}, text: "jne 1b", goes: true},
	{code: []byte{0x5d}, text: "2: pop %rbp"},
	{code: []byte{0x5b}, text: "pop %rbx"},
	{code: []byte{0xc3}, text: "ret"},
}

// chainFor is chainCode with the test or without.
func chainFor(stops bool) (parts []gpart) {
	for _, p := range chainCode {
		if !p.stops && !p.goes || p.stops == stops {
			parts = append(parts, p)
		}
	}
	return parts
}

func joinParts(lists ...[]gpart) (all []gpart) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// fills are the values of a function's fields: addresses, of which those that
// a jump leads to are turned into displacements.
type fills map[field]x86.Addr

// place lays instructions out at an address.
func place(parts []gpart, at x86.Addr, f fills) []byte {
	var code []byte
	for i := range parts {
		p := &parts[i]
		code = append(code, p.code...)
		end := at.Add(int64(len(code)))
		b := code[len(code)-len(p.code):]
		v := f[p.fill]
		switch p.fill {
		case fillTable:
			binary.LittleEndian.PutUint64(b[len(b)-8:], uint64(v))
		case fillRunning, fillTask, fillTramp, fillStepIP, fillStepFlags:
			from := p.at
			if from == 0 {
				from = len(b) - 4
			}
			binary.LittleEndian.PutUint32(b[from:], uint32(v))
		case fillGo, fillMissed, fillStore, fillMissedGo:
			binary.LittleEndian.PutUint32(b[len(b)-4:], uint32(v.Sub(end)))
		}
	}
	return code
}
