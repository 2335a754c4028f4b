package bpftrace

func (c *checker) aggregate(n *node) *Type {
	c.toMap(n)
	least, most := 1, 1
	switch n.text {
	case "count":
		least, most = 0, 0
	case "hist":
		most = 2
	case "lhist":
		least, most = 4, 4
	}
	k := map[string]Kind{"hist": Hist, "lhist": Lhist, "count": Count, "sum": Sum, "min": Min, "max": Max, "avg": Avg, "stats": Stats}[n.text]
	t := &Type{Kind: k, Size: 8, Signed: true}
	if !c.count(n, least, most) {
		return t
	}
	if most > 0 {
		c.arg(n, 0, Integer, false)
	}
	switch k {
	case Sum, Min, Max:
		t.Signed = n.kids[0].typ.Signed
	case Hist:
		if len(n.kids) == 2 && c.arg(n, 1, Integer, true) {
			if v, _ := c.number(n.kids[1]); v < 0 || v > 5 {
				c.error(n.at, "hist: bits %d must be 0..5", v)
			}
		}
	case Lhist:
		c.linear(n)
	}
	return t
}

func (c *checker) linear(n *node) {
	for i := 1; i < 4; i++ {
		if !c.arg(n, i, Integer, true) {
			return
		}
	}
	if !c.final {
		return
	}
	low, _ := c.number(n.kids[1])
	high, _ := c.number(n.kids[2])
	step, _ := c.number(n.kids[3])
	if step <= 0 {
		c.error(n.at, "lhist() step must be >= 1 (%d provided)", step)
	} else if b := int32((high - low) / step); b > 1000 {
		c.error(n.at, "lhist() too many buckets, must be <= 1000 (would need %d)", b)
	}
	if low < 0 {
		c.error(n.at, "lhist() min must be non-negative (provided min %d)", low)
	}
	if low > high {
		c.error(n.at, "lhist() min must be less than max (provided min %d and max %d)", low, high)
	}
	if high-low < step {
		c.error(n.at, "lhist() step is too large for the given range (provided step %d for range %d)", step, high-low)
	}
}

func (c *checker) mapFunction(n *node) *Type {
	switch n.text {
	case "delete":
		c.alone(n)
		c.deletion(n)
		return none
	case "has_key":
		if c.count(n, 2, 2) {
			m := n.kids[0]
			switch a := c.maps[m.text]; {
			case m.op != nMap:
				c.error(m.at, "has_key() expects the first argument to be a map")
			case len(m.kids) > 0:
				c.error(m.at, "has_key() expects the first argument to be a map. Not a map value expression.")
			case a != nil && a.key != nil && a.key.Kind == None:
				c.error(m.at, "has_key() only accepts maps that have keys. No scalar maps e.g. `@a = 1;`")
			case a != nil && a.key != nil:
				c.newKey(a, c.keyType(n.kids[1].typ, n.kids[1]), n.kids[1].at)
			}
		}
		return integer(1, false)
	case "clear", "zero":
		c.alone(n)
		if c.count(n, 1, 1) {
			if m := n.kids[0]; m.op != nMap {
				c.error(n.at, "%s() expects a map to be provided", n.text)
			} else if len(m.kids) > 0 {
				c.error(n.at, "The map passed to %s() should not be indexed by a key", n.text)
			}
		}
		return none
	case "len":
		if c.count(n, 1, 1) {
			switch m := n.kids[0]; {
			case m.op == nMap && len(m.kids) > 0:
				c.error(n.at, "The map passed to len() should not be indexed by a key")
			case m.op != nMap && !m.typ.isStack():
				c.error(n.at, "len() expects a map or stack to be provided")
			}
		}
		return int64T
	}
	c.alone(n)
	if !c.count(n, 1, 3) {
		return none
	}
	if c.o.Language.newest() {
		c.printedArgs(n)
	}
	m := n.kids[0]
	switch {
	case m.op == nMap:
		c.warnPrint(n)
		if len(m.kids) > 0 {
			if len(n.kids) > 1 {
				c.error(n.at, "Single-value (i.e. indexed) map print cannot take additional arguments.")
			} else if m.typ.multiple() {
				c.error(n.at, "Map type %s cannot print the value of individual keys. You must print the whole map.", m.typ)
			}
		}
		for i := 1; i < len(n.kids) && c.final; i++ {
			c.arg(n, i, Integer, true)
		}
	case m.typ.Kind != None && m.typ.Kind != StackMode && m.typ.Kind != TimestampMode && !m.typ.Args:
		if len(n.kids) != 1 {
			c.error(n.at, "Non-map print() only takes 1 argument, %d found", len(n.kids))
		}
	case c.final:
		c.error(n.at, "%s type passed to print() is not printable", m.typ)
	}
	return none
}

const deleteError = "delete() expects a map for the first argument and a key for the second argument e.g. `delete(@my_map, 1);`"

func (c *checker) deletion(n *node) {
	if !c.count(n, 1, 2) {
		return
	}
	m := n.kids[0]
	if m.op != nMap {
		c.error(m.at, "%s", deleteError)
		return
	}
	a := c.maps[m.text]
	switch {
	case len(n.kids) == 1 && len(m.kids) > 0:
		n.kids = append(n.kids, m.kids[0])
		m.kids = nil
	case len(n.kids) == 1:
		if c.final && a != nil && a.key != nil && a.key.Kind != None {
			c.error(m.at, "%s", deleteError)
		}
	case len(m.kids) > 0:
		c.error(m.at, "delete() expects a map with no keys for the first argument")
	case a != nil && a.key != nil:
		c.newKey(a, c.keyType(n.kids[1].typ, n.kids[1]), n.kids[1].at)
	}
}
