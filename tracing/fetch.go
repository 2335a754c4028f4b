package tracing

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/tracing/event"
	"kprobelab/x86"
)

func itoa(n int) string { return strconv.Itoa(n) }

func putWord(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }

// recorder makes one record: the arguments are fetched into the fixed part, and
// text is appended after it (process_fetch_insn, store_trace_args).
type recorder struct {
	t    *Tracing
	regs *x86.PtRegs
	// entry has the words that a return probe kept at the entry.
	entry []byte
	tp    *probe
	rec   []byte
	// end is where the next text goes.
	end int
	// overflow: the text did not fit, and there is no record.
	overflow bool
	faults   faults
}

const (
	// maxString bounds a fetched text, its NUL included (MAX_STRING_SIZE).
	maxString = 4096
	// stringChunk is how much of a text is read at a time.
	stringChunk = 256
	pageSize    = 4096
	// userEnd is the end of user addresses (TASK_SIZE_MAX).
	userEnd = 0x7ffffffff000
)

// arguments fetches all; they begin at head.
func (r *recorder) arguments(head int) {
	r.end = head + r.tp.def.Size
	clear(r.rec[head:r.end])
	for i := range r.tp.def.Args {
		r.argument(r.tp.code[i], head+r.tp.def.Args[i].Offset)
	}
}

// argument runs the program of one argument; the value goes to dest.
func (r *recorder) argument(code []definition.Op, dest int) {
	if s, ok := r.text(&code[0]); ok {
		r.put(dest, s)
		return
	}
	val, i := r.load(&code[0]), 1
	from := val // what the last dereference was of
	for ; isDeref(&code[i]); i++ {
		from = val
		var ok bool
		if val, ok = r.deref(&code[i], val); !ok {
			return
		}
	}
	store, rest := &code[i], code[i+1:]
	count := 1
	for j := range rest {
		if rest[j].Code == definition.OpLoop {
			count = rest[j].Param
		}
	}
	for n := range count {
		if n > 0 && isText(store) {
			// The next pointer of an array of them.
			from += 8
			var ok bool
			if !isDeref(&code[i-1]) {
				return
			}
			if val, ok = r.deref(&code[i-1], from); !ok {
				return
			}
		}
		r.store(store, val, dest)
		if rest[0].Code == definition.OpBitfield {
			shift(r.rec[dest:], &rest[0])
		}
		dest += store.Size
		if !isText(store) {
			val += uint64(store.Size)
		}
	}
}

func isDeref(op *definition.Op) bool {
	return op.Code == definition.OpDeref || op.Code == definition.OpUDeref || op.Code == definition.OpPerCPU
}

func isText(op *definition.Op) bool {
	return op.Code == definition.OpStoreString || op.Code == definition.OpStoreUString
}

// text is what the program loads where that is a text of the host's: the task's
// name, or one in the definition.
func (r *recorder) text(op *definition.Op) (string, bool) {
	switch op.Code {
	case definition.OpComm:
		return r.t.comm, true
	case definition.OpData:
		return op.Data, true
	}
	return "", false
}

// load is the first operation.
func (r *recorder) load(op *definition.Op) uint64 {
	switch op.Code {
	case definition.OpReg:
		return r.regs.At(op.Param)
	case definition.OpStackP:
		return r.regs.SP
	case definition.OpStack:
		return r.t.stackWord(r.regs, op.Param)
	case definition.OpRetval:
		return r.regs.AX
	case definition.OpImm:
		return op.Imm
	case definition.OpCurrent:
		return r.t.currentTask()
	case definition.OpArg:
		return r.t.argument(r.regs, op.Param)
	case definition.OpEntryData:
		for n, arg := range r.tp.entryArgs {
			if arg == op.Param && len(r.entry) >= 8*n+8 {
				return binary.LittleEndian.Uint64(r.entry[8*n:])
			}
		}
	}
	return 0
}

// argument is a function's argument by its number from 0, as it is at the
// entry: six in registers, then the stack above the return address.
func (t *Tracing) argument(regs *x86.PtRegs, n int) uint64 {
	switch n {
	case 0:
		return regs.DI
	case 1:
		return regs.SI
	case 2:
		return regs.DX
	case 3:
		return regs.CX
	case 4:
		return regs.R8
	case 5:
		return regs.R9
	}
	return t.stackWord(regs, n-5)
}

// currentTask is the address of the task_struct that the CPU's variable has, 0
// where there is none.
func (t *Tracing) currentTask() uint64 {
	if t.taskAt == 0 || !t.read(uint64(t.m.GSBase(t.m.CPU())+t.taskAt), t.word[:], false) {
		return 0
	}
	return binary.LittleEndian.Uint64(t.word[:])
}

// stackWord is a word of the stack, 0 where that is not the task's stack.
func (t *Tracing) stackWord(regs *x86.PtRegs, n int) uint64 {
	at := regs.SP + 8*uint64(n)
	if at/x86.ThreadSize != regs.SP/x86.ThreadSize || !t.read(at, t.word[:], false) {
		return 0
	}
	return binary.LittleEndian.Uint64(t.word[:])
}

// read reads memory (probe_mem_read, probe_mem_read_user). With user set it
// reads user memory only; without, either: on this processor a user address is
// never one of the kernel's.
func (t *Tracing) read(addr uint64, b []byte, user bool) bool {
	if end := addr + uint64(len(b)); user && (end > userEnd || end < addr) {
		return false
	}
	return t.m.ReadMem(x86.Addr(addr), b) == nil
}

func (r *recorder) deref(op *definition.Op, val uint64) (uint64, bool) {
	if op.Code == definition.OpPerCPU {
		return val + uint64(r.t.m.GSBase(r.t.m.CPU())), true
	}
	at, user := val+uint64(op.Offset), op.Code == definition.OpUDeref
	ok := r.t.read(at, r.t.word[:], user)
	if !ok {
		r.faults.number(at, user)
	}
	return binary.LittleEndian.Uint64(r.t.word[:]), ok
}

// store puts a value into the record. Where memory cannot be read, a number is
// 0 (in a kernel, what the record held before), and a text is a fault.
func (r *recorder) store(op *definition.Op, val uint64, dest int) {
	at := val + uint64(op.Offset)
	switch op.Code {
	case definition.OpStoreRaw:
		putWord(r.t.word[:], val)
		copy(r.rec[dest:], r.t.word[:op.Size])
	case definition.OpStoreMem, definition.OpStoreUMem:
		if !r.t.read(at, r.rec[dest:dest+op.Size], op.Code == definition.OpStoreUMem) {
			clear(r.rec[dest : dest+op.Size])
			r.faults.number(at, op.Code == definition.OpStoreUMem)
		}
	case definition.OpStoreString, definition.OpStoreUString:
		r.guestText(at, dest, op.Code == definition.OpStoreUString)
	case definition.OpStoreSymstr:
		r.put(dest, r.t.symbol(val, true))
	}
}

// guestText appends the text at an address.
func (r *recorder) guestText(at uint64, dest int, user bool) {
	n := 0
	for n < maxString {
		size := min(stringChunk, maxString-n, pageSize-int((at+uint64(n))%pageSize))
		if r.end+n+size > len(r.rec) {
			r.overflow = true
			return
		}
		b := r.rec[r.end+n : r.end+n+size]
		if !r.t.read(at+uint64(n), b, user) {
			r.loc(dest, 0)
			r.faults.text(at, user)
			return
		}
		if i := bytes.IndexByte(b, 0); i >= 0 {
			size := n + i + 1
			if size == 1 && at < userEnd && r.t.c.EmptyUserFaults {
				size = 0
			}
			r.loc(dest, size)
			return
		}
		n += size
	}
	r.rec[r.end+n-1] = 0
	r.loc(dest, n)
}

// put appends a text of the host's.
func (r *recorder) put(dest int, s string) {
	s = s[:min(len(s), maxString-1)]
	if r.end+len(s)+1 > len(r.rec) {
		r.overflow = true
		return
	}
	copy(r.rec[r.end:], s)
	r.rec[r.end+len(s)] = 0
	r.loc(dest, len(s)+1)
}

// loc makes the field at dest point to the n bytes at the record's end; n is 0
// for a fault.
func (r *recorder) loc(dest, n int) {
	binary.LittleEndian.PutUint32(r.rec[dest:], event.Loc(r.end, n))
	r.end += n
	r.faults.stored(n)
}

// shift takes a bitfield out of its container.
func shift(b []byte, op *definition.Op) {
	switch op.Size {
	case 1:
		b[0] = b[0] << op.Left >> op.Right
	case 2:
		v := binary.LittleEndian.Uint16(b)
		binary.LittleEndian.PutUint16(b, v<<op.Left>>op.Right)
	case 4:
		v := binary.LittleEndian.Uint32(b)
		binary.LittleEndian.PutUint32(b, v<<op.Left>>op.Right)
	default:
		v := binary.LittleEndian.Uint64(b)
		putWord(b, v<<op.Left>>op.Right)
	}
}
