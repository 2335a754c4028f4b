package shard_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"kprobelab/shard"
)

// A program of its own divides a list among machines, and merges what they have found.
func Example() {
	kernels := []string{"5.10", "6.1", "6.12", "7.3"}
	dir, err := os.MkdirTemp("", "shards-*")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	var files []string
	for _, word := range []string{"1/2", "2/2"} { // each on a machine
		part, err := shard.Parse(word)
		if err != nil {
			panic(err)
		}
		var out bytes.Buffer
		w, err := shard.Begin(&out, "v1", []string{"lengths", "--shard", word}, part, kernels, nil)
		if err != nil {
			panic(err)
		}
		for _, k := range shard.Of(part, kernels) {
			if err := w.Add(len(k)); err != nil {
				panic(err)
			}
		}
		if err := w.End(); err != nil {
			panic(err)
		}
		name := filepath.Join(dir, part.String()[:1])
		if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
			panic(err)
		}
		files = append(files, name)
	}
	r, err := shard.Open("v1", files)
	if err != nil {
		panic(err)
	}
	defer r.Close()
	err = shard.Each(r, func(length int) error {
		fmt.Println(length)
		return nil
	})
	fmt.Println(err)
	// Output:
	// 4
	// 3
	// 4
	// 3
	// <nil>
}
