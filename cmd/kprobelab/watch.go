package main

import (
	"kprobelab/watch"
)

// watchFlag appends to watchpoints.
type watchFlag struct{ to *[]watch.Place }

// Set implements cli.Value.
func (f *watchFlag) Set(text string) error {
	p, err := watch.Parse(text)
	if err == nil {
		*f.to = append(*f.to, p)
	}
	return err
}

// String implements cli.Value.
func (f *watchFlag) String() string { return "" }

// Get implements cli.Value.
func (f *watchFlag) Get() any { return nil }
