package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"path"

	"kprobelab/kimage"
)

// Symbol is one line of kallsyms as it is shown. The tags are the columns'
// names in JSON and TSV alike.
type Symbol struct {
	Addr Addr `json:"addr"`
	// Size in bytes, as kallsyms computes it.
	Size uint64 `json:"size"`
	// Type is nm's letter.
	Type string `json:"type"`
	Name string `json:"name"`
	// Module is the owning module, "" for the kernel image.
	Module string `json:"module"`
}

// Symbols lists the image's symbols whose name matches the shell pattern, in
// kallsyms' order; an empty pattern matches all. A malformed pattern is
// path.ErrBadPattern.
func Symbols(img *kimage.Image, pattern string) ([]Symbol, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, err
	}
	var list []Symbol
	for _, s := range img.Symbols() {
		if pattern != "" {
			if ok, _ := path.Match(pattern, s.Name); !ok {
				continue
			}
		}
		list = append(list, Symbol{
			Addr: known(s.Addr), Size: s.Size,
			Type: string(s.Type), Name: s.Name, Module: s.Module,
		})
	}
	return list, nil
}

// WriteSymbols writes one line a symbol as /proc/kallsyms does: address, type,
// name, and the module in brackets.
func WriteSymbols(w io.Writer, list []Symbol) error {
	b := bufio.NewWriter(w)
	for _, s := range list {
		fmt.Fprintf(b, "%016x %s %s", uint64(s.Addr.Addr), s.Type, s.Name)
		if s.Module != "" {
			fmt.Fprintf(b, "\t[%s]", s.Module)
		}
		b.WriteByte('\n')
	}
	return b.Flush()
}

// WriteSymbolsTSV writes a header and one row a symbol.
func WriteSymbolsTSV(w io.Writer, list []Symbol) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "addr\tsize\ttype\tname\tmodule")
	for _, s := range list {
		fmt.Fprintf(b, "%s\t%d\t%s\t%s\t%s\n", s.Addr, s.Size, s.Type, s.Name, s.Module)
	}
	return b.Flush()
}

// WriteSymbolsJSON writes one JSON object a line.
func WriteSymbolsJSON(w io.Writer, list []Symbol) error {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	for i := range list {
		if err := enc.Encode(&list[i]); err != nil {
			return err
		}
	}
	return b.Flush()
}
