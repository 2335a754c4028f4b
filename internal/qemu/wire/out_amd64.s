//go:build linux

#include "textflag.h"

// func outBytes(port uint16, b []byte)
TEXT ·outBytes(SB), NOSPLIT, $0-32
	MOVWQZX port+0(FP), DX
	MOVQ    b_base+8(FP), SI
	MOVQ    b_len+16(FP), CX
	CLD
	REP
	OUTSB
	RET
