// Package shard divides the items of a command among machines (--shard I/N), and reads the results of all of them as one list
// (kprobelab merge).
//
// A shard's output is lines of JSON: a header, a line for each item with its result, and an end. The header is written before
// the work begins, so the output of a shard that died names the shard.
//
//	part, err := shard.Parse("2/3")
//	w, err := shard.Begin(out, version, words, part, names, form)
//	for _, name := range shard.Of(part, names) { … w.Add(result) }
//	w.End()
//
//	r, err := shard.Open(version, files)
//	shard.Each(r, func(result T) error { … })
//
// It must not know what an item is, how its result is made, and how the result is printed.
package shard
