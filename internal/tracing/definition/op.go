package definition

// Code is an operation of a fetch program (enum fetch_op).
type Code int

// The operations. A program begins with one that loads a value, goes on with
// dereferences, stores, modifies, may loop, and ends.
const (
	// OpNop is a slot that is not used.
	OpNop Code = iota

	// OpReg loads register Param, a byte offset in struct pt_regs.
	OpReg
	// OpStack loads stack word Param; OpStackP the stack pointer.
	OpStack
	OpStackP
	// OpRetval loads the return value.
	OpRetval
	// OpImm loads Imm.
	OpImm
	// OpComm and OpData load the address of the task's name, and of Data.
	OpComm
	OpData
	// OpArg loads the function's argument number Param, from 0.
	OpArg
	// OpEntryData loads what the argument number Param was at the entry.
	OpEntryData
	// OpCurrent loads the address of the task's task_struct.
	OpCurrent
	// OpFile loads the address at which the probed file's offset Imm is mapped.
	OpFile
	// OpSymbol names in Data the symbol whose address the next operation, an
	// OpImm, gets.
	OpSymbol

	// OpDeref and OpUDeref load 8 bytes at the value plus Offset, OpUDeref from
	// user memory.
	OpDeref
	OpUDeref
	// OpPerCPU makes of the value, which is the address of a per-CPU variable,
	// the address of this CPU's.
	OpPerCPU

	// OpStoreRaw stores Size bytes of the value; OpStoreMem and OpStoreUMem
	// those at the value plus Offset.
	OpStoreRaw
	OpStoreMem
	OpStoreUMem
	// OpStoreString and OpStoreUString store the text at the value plus
	// Offset, OpStoreSymstr the symbol that the value is in.
	OpStoreString
	OpStoreUString
	OpStoreSymstr

	// OpBitfield shifts what was stored, a number of Size bytes, left and right.
	OpBitfield
	// OpLoop repeats the store Param times.
	OpLoop
	// OpEnd ends the program.
	OpEnd
)

// Op is one operation (struct fetch_insn). Which fields count is with the Codes.
type Op struct {
	Code   Code
	Param  int
	Imm    uint64
	Offset int64
	Size   int
	Data   string
	// Left and Right are shifts in bits.
	Left, Right uint8
}

// maxOps is the number of slots of a program, its end included
// (FETCH_INSN_MAX).
const maxOps = 16

// program is a fetch program in the making: the slot that was written last.
type program struct {
	ops [maxOps]Op
	at  int
}

func newProgram() *program {
	p := &program{}
	p.ops[maxOps-1].Code = OpEnd
	return p
}

func (p *program) op() *Op { return &p.ops[p.at] }

// next goes to the next slot; false where that is the last one, which is kept
// for the end.
func (p *program) next() bool {
	p.at++
	return p.at != maxOps-1
}

// spare goes to the next slot; false where that is the end's.
func (p *program) spare() bool {
	p.at++
	return p.ops[p.at].Code == OpNop
}

// finish ends the program.
func (p *program) finish() []Op {
	p.at++
	p.ops[p.at] = Op{Code: OpEnd}
	return append([]Op(nil), p.ops[:p.at+1]...)
}
