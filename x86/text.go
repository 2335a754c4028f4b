package x86

// What kprobes writes into text.
const (
	// Int3 is the one-byte breakpoint (INT3_INSN_OPCODE).
	Int3 = 0xCC
	// Call32 and Jmp32 are the opcodes of call rel32 and jmp rel32
	// (CALL_INSN_OPCODE, JMP32_INSN_OPCODE).
	Call32 = 0xE8
	Jmp32  = 0xE9
	// Rel32Size is the size of either in bytes (CALL_INSN_SIZE,
	// JMP32_INSN_SIZE).
	Rel32Size = 5
)

// TaskCommLen is the size of a task's name with its NUL (TASK_COMM_LEN, include/linux/sched.h).
const TaskCommLen = 16

// ThreadSize is the size of a kernel stack in bytes, and its alignment
// (THREAD_SIZE, arch/x86/include/asm/page_64_types.h).
const ThreadSize = 16 << 10
