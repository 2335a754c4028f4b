package x86

// PtRegs is the register frame that probes see, word for word in the kernel's
// struct pt_regs (arch/x86/include/asm/ptrace.h): 21 eight-byte words, so a
// frame on a guest stack can be looked at in place.
type PtRegs struct {
	R15, R14, R13, R12 uint64
	BP, BX             uint64
	R11, R10, R9, R8   uint64
	AX, CX, DX, SI, DI uint64
	OrigAX             uint64
	IP                 uint64
	CS                 uint64
	Flags              uint64
	SP                 uint64
	SS                 uint64
}

// PtRegsSize is the size of the frame in bytes.
const PtRegsSize = 168

// RegArgs is the number of a function's integer arguments that are in registers.
const RegArgs = 6

// Arg returns a function's integer argument n, from 0 on, at its entry, as regs_get_kernel_argument
// does (System V ABI: di, si, dx, cx, r8, r9). It panics for n of RegArgs and more: these are on
// the stack, 8 bytes each, from SP+8 on.
func (r *PtRegs) Arg(n int) uint64 {
	return *[RegArgs]*uint64{&r.DI, &r.SI, &r.DX, &r.CX, &r.R8, &r.R9}[n]
}

// Selectors of code and data, as regs.CS and regs.SS read in kernel mode and in user mode.
const (
	KernelCS = 0x10
	KernelDS = 0x18
	// UserCS and UserDS are the selectors of a 64-bit program.
	UserCS = 0x33
	UserDS = 0x2b
)

// EFLAGS bits (SDM Vol. 1, "EFLAGS Register").
const (
	FlagCF = 1 << 0
	// FlagFixed always reads as one.
	FlagFixed = 1 << 1
	FlagPF    = 1 << 2
	FlagAF    = 1 << 4
	FlagZF    = 1 << 6
	FlagSF    = 1 << 7
	// FlagTF raises #DB after each instruction.
	FlagTF = 1 << 8
	// FlagIF lets maskable interrupts in.
	FlagIF = 1 << 9
	FlagDF = 1 << 10
	FlagOF = 1 << 11
	// FlagRF is set in what a fault saves.
	FlagRF = 1 << 16
	FlagAC = 1 << 18
)

// Reg returns a pointer to the general register with the processor's number:
// ax cx dx bx sp bp si di r8 … r15 (SDM Vol. 2, "Register Operand Encoding").
// Numbers above 15 wrap.
func (r *PtRegs) Reg(n int) *uint64 {
	switch n & 15 {
	case 0:
		return &r.AX
	case 1:
		return &r.CX
	case 2:
		return &r.DX
	case 3:
		return &r.BX
	case 4:
		return &r.SP
	case 5:
		return &r.BP
	case 6:
		return &r.SI
	case 7:
		return &r.DI
	case 8:
		return &r.R8
	case 9:
		return &r.R9
	case 10:
		return &r.R10
	case 11:
		return &r.R11
	case 12:
		return &r.R12
	case 13:
		return &r.R13
	case 14:
		return &r.R14
	default:
		return &r.R15
	}
}
