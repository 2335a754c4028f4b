// Package merge prints the results of all shards of a command as one run of the command prints them, to the byte: text, JSON, TSV,
// JUnit. It is kprobelab merge as a library.
//
//	r, err := shard.Open("", files)
//	defer r.Close()
//	code, err := merge.Print(r, &merge.Options{Out: os.Stdout, Err: os.Stderr})
//
// It must not know command lines and terminals, and how an item's result is made.
package merge
