package kprobes

// closed is the error of a machine that has been closed, where it can say so;
// otherwise a probe would be refused as if its text could not be read.
func (k *Kprobes) closed() error {
	if m, ok := k.m.(interface{ Closed() error }); ok {
		return m.Closed()
	}
	return nil
}
