package script

// assignMemory makes the code that changes an integer in the target's memory.
func (c *compiler) assignMemory(to Memory, x intFn, op Op, old bool) intFn {
	addr, size, user, near := c.int(to.Addr), to.Size, to.User, to.Near
	switch size {
	case 1, 2, 4, 8:
	default:
		bug("a store of %d bytes", size)
	}
	bit, bits := to.Bit, to.Bits
	if bits == 0 {
		bit, bits = 0, 8*size
	}
	mask := ^uint64(0) >> (64 - bits) << bit
	whole := op == Set && !old && bits == 8*size
	return func(t *Thread) int64 {
		v := x(t)
		at := uint64(addr(t))
		b := t.word[:size]
		var all uint64
		before := int64(0)
		if !whole {
			t.read(at, b, user, near)
			all = uint64(integer(b, false))
			before = int64(all & mask >> bit)
		}
		after := t.operate(op, before, v, near)
		all = all&^mask | uint64(after)<<bit&mask
		for i := range b {
			b[i] = byte(all >> (8 * i))
		}
		if t.Context == nil || !t.Context.Write(at, b, user) {
			t.fault("write", at, near)
		}
		if old {
			return before
		}
		return after
	}
}

// assignRegister makes the code that changes a register of the hit.
func assignRegister(n int, x intFn, op Op, near string, old bool) intFn {
	return func(t *Thread) int64 {
		v := x(t)
		var before int64
		if t.Context != nil {
			before = int64(t.Context.Register(n))
		}
		after := t.operate(op, before, v, near)
		if t.Context == nil || !t.Context.SetRegister(n, uint64(after)) {
			t.Fail(near, "register access fault")
		}
		if old {
			return before
		}
		return after
	}
}
