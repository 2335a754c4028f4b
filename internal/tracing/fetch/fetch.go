package fetch

import (
	"bytes"
	"encoding/binary"

	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/tracing/event"
	"kprobelab/x86"
)

// Source reads memory, stacks, tasks and symbols for a program: of the kernel that was hit, or of the process.
type Source interface {
	// Read reads memory (probe_mem_read, probe_mem_read_user); user: it is to be a program's.
	Read(addr uint64, b []byte, user bool) bool
	// StackWord is the n-th word of the stack, 0 where that is not the task's stack.
	StackWord(regs *x86.PtRegs, n int) uint64
	// PerCPU is where the CPU's variables are, Current the address of its task_struct; 0
	// where there are none.
	PerCPU() uint64
	Current() uint64
	// Comm is the task's name.
	Comm() string
	// Symbol is an address as %pS prints it.
	Symbol(addr uint64) string
}

// MaxString bounds a fetched text, its NUL included (MAX_STRING_SIZE).
const MaxString = 4096

const (
	// stringChunk is how much of a text is read at a time.
	stringChunk = 256
	pageSize    = 4096
)

// Recorder makes one record: the arguments are fetched into the fixed part, and
// text is appended after it.
type Recorder struct {
	Source
	Regs *x86.PtRegs
	// Entry has the words that a return probe kept at the entry, of the arguments
	// EntryArgs.
	Entry     []byte
	EntryArgs []int
	// FileBase is the address of the probed file's beginning in memory.
	FileBase uint64
	// EmptyFaults: an empty text of a program's memory is a fault.
	EmptyFaults bool

	// Rec is the record, End where the next text goes.
	Rec []byte
	End int
	// Overflow: a text did not fit.
	Overflow bool
	Faults   Faults
	word     [8]byte
}

// Argument runs the program of one argument; the value goes to dest.
func (r *Recorder) Argument(code []definition.Op, dest int) {
	switch code[0].Code {
	case definition.OpComm:
		r.put(dest, r.Comm())
		return
	case definition.OpData:
		r.put(dest, code[0].Data)
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
			shift(r.Rec[dest:], &rest[0])
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

// load is the first operation.
func (r *Recorder) load(op *definition.Op) uint64 {
	switch op.Code {
	case definition.OpReg:
		return r.Regs.At(op.Param)
	case definition.OpStackP:
		return r.Regs.SP
	case definition.OpStack:
		return r.StackWord(r.Regs, op.Param)
	case definition.OpRetval:
		return r.Regs.AX
	case definition.OpImm:
		return op.Imm
	case definition.OpFile:
		return r.FileBase + op.Imm
	case definition.OpCurrent:
		return r.Current()
	case definition.OpArg:
		return Param(r.Source, r.Regs, op.Param)
	case definition.OpEntryData:
		for n, arg := range r.EntryArgs {
			if arg == op.Param && len(r.Entry) >= 8*n+8 {
				return binary.LittleEndian.Uint64(r.Entry[8*n:])
			}
		}
	}
	return 0
}

// Param is a function's parameter by its number from 0, as it is at the entry:
// six in registers, then the stack above the return address.
func Param(s Source, regs *x86.PtRegs, n int) uint64 {
	if n < x86.RegArgs {
		return regs.Arg(n)
	}
	return s.StackWord(regs, n-x86.RegArgs+1)
}

func (r *Recorder) deref(op *definition.Op, val uint64) (uint64, bool) {
	if op.Code == definition.OpPerCPU {
		return val + r.PerCPU(), true
	}
	at, user := val+uint64(op.Offset), op.Code == definition.OpUDeref
	ok := r.Read(at, r.word[:], user)
	if !ok {
		r.Faults.number(at, user)
	}
	return binary.LittleEndian.Uint64(r.word[:]), ok
}

// store puts a value into the record. Where memory cannot be read, a number is
// 0 (in a kernel, what the record held before), and a text is a fault.
func (r *Recorder) store(op *definition.Op, val uint64, dest int) {
	at := val + uint64(op.Offset)
	switch op.Code {
	case definition.OpStoreRaw:
		binary.LittleEndian.PutUint64(r.word[:], val)
		copy(r.Rec[dest:], r.word[:op.Size])
	case definition.OpStoreMem, definition.OpStoreUMem:
		if !r.Read(at, r.Rec[dest:dest+op.Size], op.Code == definition.OpStoreUMem) {
			clear(r.Rec[dest : dest+op.Size])
			r.Faults.number(at, op.Code == definition.OpStoreUMem)
		}
	case definition.OpStoreString, definition.OpStoreUString:
		r.text(at, dest, op.Code == definition.OpStoreUString)
	case definition.OpStoreSymstr:
		r.put(dest, r.Symbol(val))
	}
}

// text appends the text at an address.
func (r *Recorder) text(at uint64, dest int, user bool) {
	n := 0
	for n < MaxString {
		size := min(stringChunk, MaxString-n, pageSize-int((at+uint64(n))%pageSize))
		if r.End+n+size > len(r.Rec) {
			r.Overflow = true
			return
		}
		b := r.Rec[r.End+n : r.End+n+size]
		if !r.Read(at+uint64(n), b, user) {
			r.loc(dest, 0)
			r.Faults.text(at, user)
			return
		}
		if i := bytes.IndexByte(b, 0); i >= 0 {
			size := n + i + 1
			if size == 1 && at < uint64(x86.UserEnd) && r.EmptyFaults {
				size = 0
			}
			r.loc(dest, size)
			return
		}
		n += size
	}
	r.Rec[r.End+n-1] = 0
	r.loc(dest, n)
}

// put appends a text of the host's.
func (r *Recorder) put(dest int, s string) {
	s = s[:min(len(s), MaxString-1)]
	if r.End+len(s)+1 > len(r.Rec) {
		r.Overflow = true
		return
	}
	copy(r.Rec[r.End:], s)
	r.Rec[r.End+len(s)] = 0
	r.loc(dest, len(s)+1)
}

// loc makes the field at dest point to the n bytes at the record's end; n is 0
// for a fault.
func (r *Recorder) loc(dest, n int) {
	binary.LittleEndian.PutUint32(r.Rec[dest:], event.Loc(r.End, n))
	r.End += n
	r.Faults.stored(n)
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
		binary.LittleEndian.PutUint64(b, v<<op.Left>>op.Right)
	}
}
