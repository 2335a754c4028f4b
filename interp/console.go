package interp

// console holds the bytes that the guest wrote to the console port. Several tasks may print at
// once, and a kernel's printk keeps each line whole, so a task's line is held back until it ends.
type console struct {
	text  []byte
	lines [][]byte // by task
}

const (
	consoleSize = 16 << 20
	lineSize    = 256
)

func (k *console) put(task int, b byte) {
	for task >= len(k.lines) {
		k.lines = append(k.lines, nil)
	}
	l := &k.lines[task]
	*l = append(*l, b)
	if b == '\n' || len(*l) == lineSize {
		k.end(l)
	}
}

func (k *console) end(l *[]byte) {
	n := min(len(*l), consoleSize-len(k.text))
	k.text = append(k.text, (*l)[:n]...)
	*l = (*l)[:0]
}

// take returns and removes all written bytes, unfinished lines included.
func (k *console) take() []byte {
	for i := range k.lines {
		k.end(&k.lines[i])
	}
	b := k.text
	k.text = nil
	return b
}
