package bench

import "encoding/binary"

// guestWords are the arguments that the loop passes to the guest kernel's functions.
var guestWords = []uint64{0, 5}

// loadWord are the beginnings of movabs to rdi, rsi, rdx, rcx, r8 and r9.
var loadWord = [...][]byte{{0x48, 0xbf}, {0x48, 0xbe}, {0x48, 0xba}, {0x48, 0xb9}, {0x49, 0xb8}, {0x49, 0xb9}}

// loopCode returns a function that makes a call rdi times, and the offset of the call's end in
// it. The call's displacement, the 4 bytes before that offset, is 0. The first six words are
// passed in registers and the others on the stack.
func loopCode(words []uint64) (code []byte, next int) {
	stacked := words[min(len(words), len(loadWord)):]
	pad := len(stacked) % 2 // the stack is aligned to 16 bytes at a call
	add := func(b ...byte) { code = append(code, b...) }
	word := func(w uint64) { code = binary.LittleEndian.AppendUint64(code, w) }

	add(0x53)             // push %rbx
	add(0x48, 0x89, 0xfb) // mov %rdi,%rbx
	again := len(code)
	if pad != 0 {
		add(0x50) // push %rax
	}
	for i := len(stacked) - 1; i >= 0; i-- {
		add(0x48, 0xb8) // movabs $word,%rax
		word(stacked[i])
		add(0x50) // push %rax
	}
	for i, w := range words[:len(words)-len(stacked)] {
		add(loadWord[i]...)
		word(w)
	}
	add(0x31, 0xc0)       // xor %eax,%eax: no vector registers, for variadics
	add(0xe8, 0, 0, 0, 0) // call target
	next = len(code)
	if n := len(stacked) + pad; n > 0 {
		add(0x48, 0x81, 0xc4) // add $n*8,%rsp
		add(word32(uint32(8 * n))...)
	}
	add(0x48, 0xff, 0xcb) // dec %rbx
	add(0x0f, 0x85)       // jne again
	add(word32(uint32(again - (len(code) + 4)))...)
	add(0x5b) // pop %rbx
	add(opRet)
	return code, next
}
