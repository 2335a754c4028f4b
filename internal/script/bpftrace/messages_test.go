package bpftrace

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// messages are scripts, each after ">", and what bpftrace 0.23.2 says of them (bpftrace --dry-run, a message that
// it repeats for each of its passes once): of declarations, of delete, macaddr, buffers, and of types that are not known.
//
//go:embed testdata/messages.txt
var messages string

func TestMessagesAreTheTools(t *testing.T) {
	blocks := strings.Split("\n"+messages, "\n> ")[1:]
	assert.Greater(t, len(blocks), 100)
	for _, block := range blocks {
		script, want, _ := strings.Cut(block, "\n")
		got := ""
		s, err := Analyze("stdin", script, &Options{}, nil)
		if err != nil {
			got = err.Error()
		} else {
			got = s.Warnings
		}
		assert.Equal(t, strings.TrimRight(want, "\n"), strings.TrimRight(got, "\n"), script)
	}
}
