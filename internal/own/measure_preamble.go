package own

import "encoding/binary"

// lookupName gives is_cfi_preamble_symbol the name of an address's symbol.
const lookupName = "lookup_symbol_name"

// preamble calls is_cfi_preamble_symbol about two names: the function that looks names up is
// written over, so that it gives them. With the arguments of its comparison swapped, the test is
// true for the beginning of a prefix, and false for a name that begins with the prefix.
func (m *measuring) preamble() error {
	at := m.function(lookupName)
	if at == 0 || !m.Has("is_cfi_preamble_symbol") || m.scratch == nil {
		return ErrNotThere
	}
	const (
		code  = 20
		whole = "__cfi_x"
		part  = "__"
	)
	old := make([]byte, code)
	if err := m.m.ReadMem(at, old); err != nil {
		return ErrNotThere
	}
	defer func() { _ = m.m.WriteText(at, old) }()
	ask := func(name string) (bool, error) {
		var word [8]byte
		copy(word[:], name)
		b := binary.LittleEndian.AppendUint64([]byte{0x48, 0xb8}, binary.LittleEndian.Uint64(word[:])) // movabs name,%rax
		b = append(b, 0x48, 0x89, 0x06, 0x31, 0xc0, 0xc3)                                              // mov %rax,(%rsi); xor %eax,%eax; ret
		if err := m.m.WriteText(at, b); err != nil {
			return false, err
		}
		return m.truth("is_cfi_preamble_symbol", uint64(m.Addr))
	}
	begins, err := ask(whole)
	if err != nil {
		return err
	}
	begun, err := ask(part)
	if err != nil || begins == begun {
		return err
	}
	m.say("Check.CFISymbols", true, "is_cfi_preamble_symbol knows names")
	m.say("Check.CFISwapped", begun, "is_cfi_preamble_symbol of a symbol %s and one %s", whole, part)
	return nil
}
