package ring

// Swap exchanges the contents of two buffers with the same number of CPUs: records, sizes and
// counters. Iterators begin anew, and waiting readers are woken. Two calls must not run at once.
func (b *Buffer) Swap(o *Buffer) {
	for i, c := range b.cpus {
		c.swap(o.cpus[i])
	}
	b.Wake()
	o.Wake()
}

func (c *cpu) swap(d *cpu) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	c.content, d.content = d.content, c.content
	next := max(c.generation, d.generation) + 1
	c.generation, d.generation = next, next
}
