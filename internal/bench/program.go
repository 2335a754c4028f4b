package bench

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"

	"kprobelab/internal/assemble"
	"kprobelab/x86"
)

// programBase is the address of the file's first byte in memory.
const programBase x86.Addr = 0x400000

// Where in the file the functions that are probed begin, a line of the cache apart, and the
// code.
const (
	functions   = 0x1000
	functionGap = 0x40
	codeAt      = 0x1200
)

// userCode is the instruction that a function begins with: a uprobe treats each another way.
type userCode int

const (
	stepped userCode = iota
	push
	nop5
	nop10
)

var userBodies = [...][]byte{
	stepped: {0x48, 0x89, 0xe0, 0xc3},             // mov %rsp,%rax; ret
	push:    {0x55, 0x5d, 0xc3},                   // push %rbp; pop %rbp; ret
	nop5:    {0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3}, // nopl 0(%rax,%rax,1); ret
	nop10:   {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0xc3},
}

// offset returns the offset of the function in the file.
func (k userCode) offset() int { return functions + int(k)*functionGap }

func (k userCode) addr() x86.Addr { return programBase + x86.Addr(k.offset()) }

// programText is the program: PROGRAM FUNCTION CALLS WAY, the first two in decimal. It calls the
// function so often, in a child that it debugs where WAY is d, and writes two numbers of
// eight bytes: the debugger's hits, and the context switches of both processes.
//
// A hit of the debugger's: it waits for the trap, reads the registers, moves ip back, writes
// them, puts the byte back, steps, waits, puts the int3 in again, and lets the child go on.
const programText = `
	mov 16(%rsp),%rsi
	call number
	mov %rax,%r15
	mov 24(%rsp),%rsi
	call number
	mov %rax,%r12
	mov 32(%rsp),%rsi
	movzbl (%rsi),%r13d
	sub $1024,%rsp
	xor %r14d,%r14d
	cmp $100,%r13d
	je debugger
	call work
report:
	mov $98,%eax		# getrusage
	xor %edi,%edi
	lea 64(%rsp),%rsi
	syscall
	mov $98,%eax
	mov $-1,%rdi
	lea 256(%rsp),%rsi
	syscall
	mov 192(%rsp),%rax
	add 200(%rsp),%rax
	add 384(%rsp),%rax
	add 392(%rsp),%rax
	mov %r14,(%rsp)
	mov %rax,8(%rsp)
	mov $1,%eax		# write
	mov $1,%edi
	mov %rsp,%rsi
	mov $16,%edx
	syscall
	xor %edi,%edi
	jmp exit
bad:
	mov $1,%edi
exit:
	mov $60,%eax
	syscall
work:
	call *%r15
	dec %r12
	jne work
	ret
number:
	xor %eax,%eax
digit:
	movzbl (%rsi),%edx
	test %edx,%edx
	je parsed
	imul $10,%rax,%rax
	lea -48(%rax,%rdx,1),%rax
	inc %rsi
	jmp digit
parsed:
	ret
debugger:
	mov $57,%eax		# fork
	syscall
	test %eax,%eax
	js bad
	jne parent
	xor %edi,%edi		# PTRACE_TRACEME
	call ptrace
	mov $39,%eax		# getpid
	syscall
	mov %eax,%edi
	mov $19,%esi		# SIGSTOP
	mov $62,%eax		# kill
	syscall
	call work
	xor %edi,%edi
	jmp exit
parent:
	mov %eax,%ebp
	call wait
	mov $1,%edi		# PTRACE_PEEKTEXT
	mov %r15,%rdx
	lea 16(%rsp),%r10
	call ptrace
	mov 16(%rsp),%rbx
insert:
	mov %rbx,%r10
	and $-256,%r10
	or $0xcc,%r10
	mov $4,%edi		# PTRACE_POKETEXT
	mov %r15,%rdx
	call ptrace
	mov $7,%edi		# PTRACE_CONT
	xor %edx,%edx
	xor %r10d,%r10d
	call ptrace
	call wait
	mov 24(%rsp),%eax
	and $0x7f,%eax
	je report
	cmp $0x7f,%eax
	jne bad
	inc %r14
	mov $12,%edi		# PTRACE_GETREGS
	lea 64(%rsp),%r10
	call ptrace
	subq $1,192(%rsp)
	mov $13,%edi		# PTRACE_SETREGS
	lea 64(%rsp),%r10
	call ptrace
	mov $4,%edi
	mov %r15,%rdx
	mov %rbx,%r10
	call ptrace
	mov $9,%edi		# PTRACE_SINGLESTEP
	xor %edx,%edx
	xor %r10d,%r10d
	call ptrace
	call wait
	jmp insert
ptrace:
	mov $101,%eax
	mov %ebp,%esi
	syscall
	ret
wait:
	mov $61,%eax		# wait4
	mov %ebp,%edi
	lea 32(%rsp),%rsi
	xor %edx,%edx
	xor %r10d,%r10d
	syscall
	ret
`

// programELF is the ELF file: one segment, which cannot be written, as uprobes want it.
func programELF() ([]byte, error) {
	text := make([]byte, codeAt)
	for k, body := range userBodies {
		copy(text[userCode(k).offset():], body)
	}
	b, err := assemble.Code(programText, programBase+codeAt)
	if err != nil {
		return nil, fmt.Errorf("the program: %w", err)
	}
	text = append(text, b...)
	const header, segment = 64, 56
	size := uint64(len(text))
	var head bytes.Buffer
	for _, part := range []any{
		elf.Header64{
			Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
			Entry: uint64(programBase) + codeAt, Phoff: header, Ehsize: header, Phentsize: segment, Phnum: 1,
		},
		elf.Prog64{
			Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: uint64(programBase), Paddr: uint64(programBase), Filesz: size, Memsz: size, Align: 0x1000,
		},
	} {
		if err := binary.Write(&head, binary.LittleEndian, part); err != nil {
			return nil, err
		}
	}
	copy(text, head.Bytes())
	return text, nil
}
