//go:build linux

#include "textflag.h"

// func dividesAndExits()
TEXT ·dividesAndExits(SB), NOSPLIT, $8-0
	MOVW $0x037B, 0(SP)              // all exceptions masked but that of a division by zero
	BYTE $0xDB; BYTE $0xE3           // fninit
	BYTE $0xD9; BYTE $0x2C; BYTE $0x24 // fldcw (%rsp)
	BYTE $0xD9; BYTE $0xE8           // fld1
	BYTE $0xD9; BYTE $0xEE           // fldz
	BYTE $0xDE; BYTE $0xF9           // fdivp: the exception is pending
	MOVL $231, AX                    // exit_group
	XORL DI, DI
	SYSCALL
	RET
