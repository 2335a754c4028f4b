//go:build ignore

// Command btftidy rewrites a .BTF section so that it is the same whenever it is built.
//
// gcc 12 lists functions in the order of a hash over its own pointers, which
// differs from run to run, and puts the source file's whole path among the
// strings. Here the functions are sorted by name, and only they and the types
// they need are kept.
//
//	go run btftidy.go IN OUT
package main

import (
	"bytes"
	"fmt"
	"os"
	"sort"

	"github.com/cilium/ebpf/btf"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: btftidy IN OUT")
		os.Exit(2)
	}
	if err := tidy(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "btftidy:", err)
		os.Exit(1)
	}
}

func tidy(in, out string) error {
	raw, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	funcs, err := functions(spec)
	if err != nil {
		return err
	}
	var b btf.Builder
	for _, f := range funcs {
		if _, err := b.Add(f); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	raw, err = b.Marshal(nil, nil)
	if err != nil {
		return err
	}
	return os.WriteFile(out, raw, 0o644)
}

// functions lists them by name, each once.
func functions(spec *btf.Spec) ([]*btf.Func, error) {
	var list []*btf.Func
	for t, err := range spec.All() {
		if err != nil {
			return nil, err
		}
		if f, ok := t.(*btf.Func); ok {
			list = append(list, f)
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list, nil
}
