package report

import (
	"fmt"
	"io"

	"kprobelab/decoder"
	"kprobelab/kimage"
)

// WriteDifferences lists where two readers of a view's instructions differ, by the name of the image, and returns at how many
// addresses.
func WriteDifferences(w io.Writer, name string, v kimage.View, both *decoder.Both) int {
	first, second := both.Readers()
	list := both.Differences()
	for _, d := range list {
		place := d.At.String()
		if s, ok := v.SymbolAt(d.At); ok {
			place = fmt.Sprintf("%s+%#x (%v)", s.Name, uint64(d.At.Sub(s.Addr)), d.At)
		}
		fmt.Fprintf(w, "%s: %s: % x: %v: %v; %v: %v\n", name, place, d.Code, first, d.First, second, d.Second)
	}
	fmt.Fprintf(w, "%s: %v and %v were compared %d times and differ at %s\n", name, first, second, both.Compared(), Addresses(len(list)))
	return len(list)
}

// Addresses says in words how many addresses there are.
func Addresses(n int) string {
	switch n {
	case 0:
		return "no address"
	case 1:
		return "one address"
	}
	return fmt.Sprintf("%d addresses", n)
}
