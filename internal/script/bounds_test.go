package script

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// A function, and a handler, has no more locals than the bound; strings of all its calls fit the memory.
func TestFramesThatAreTooLarge(t *testing.T) {
	locals := func(n int, typ Type) []Type {
		list := make([]Type, n)
		for i := range list {
			list[i] = typ
		}
		return list
	}
	limits := Limits{StringSize: 16, Entries: 8, Nesting: 5, Memory: 16 << 20}
	for name, typ := range map[string]Type{"numbers": Int, "strings": String} {
		t.Run(name, func(t *testing.T) {
			for place, program := range map[string]func(n int) *Program{
				"function": func(n int) *Program {
					return &Program{Limits: limits, Funcs: []*Func{{Name: "f", Result: Int, Locals: locals(n, typ), Body: Block{}}}}
				},
				"handler": func(n int) *Program {
					return &Program{Limits: limits, Handlers: []*Handler{{Locals: locals(n, typ), Body: Block{}}}}
				},
			} {
				_, err := Compile(program(bounded.ScriptFrame))
				require.NoError(t, err, place)
				_, err = Compile(program(bounded.ScriptFrame + 1))
				var large *ErrTooLarge
				require.ErrorAs(t, err, &large, place)
				require.EqualError(t, err, "a function has too many variables", place)
			}
		})
	}
	limits.StringSize = 1 << 15
	_, err := Compile(&Program{Limits: limits, Handlers: []*Handler{{Locals: locals(64, String), Body: Block{}}}})
	require.EqualError(t, err, "strings take more than 16 MiB of memory")
}
