#!/usr/bin/env python3
# The line protocol in Python: a decoder that knows three instructions.
import sys
for line in iter(sys.stdin.readline, ""):
    b = bytes.fromhex(line)
    if b[0] == 0x90: print("1 none")
    elif b[0] == 0xC3: print("1 ret")
    elif b[0] == 0xEB: print("2 jmp", 2 + b[1])     # wrong: a displacement has a sign
    else: print("0 -")
    sys.stdout.flush()
