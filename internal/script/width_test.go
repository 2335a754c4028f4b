package script

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Property: what these make of a number is what the made expression computes of a variable with it.
func TestNumbersOfFewerBits(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		v, bits := rapid.Int64().Draw(r, "v"), rapid.IntRange(1, 64).Draw(r, "bits")
		n, bit := rapid.Int64().Draw(r, "n"), rapid.IntRange(0, 64-bits).Draw(r, "bit")
		signed := rapid.Bool().Draw(r, "signed")
		held := &Var{Name: "held", Type: Int}
		made := func(of func(x Expr) Expr) {
			_, err := ran(t, &Program{Vars: []*Var{held}}, &Handler{Body: Block{
				Do{X: Assign{To: Global{held}, Op: Set, X: Number(v)}},
				If{Cond: Binary{Op: Ne, X: of(Global{held}), Y: of(Number(v))}, Then: Fail{X: Text("differs")}},
			}})
			require.NoError(r, err)
		}
		made(func(x Expr) Expr { return Plus(x, n) })
		made(func(x Expr) Expr { return Low(x, bits) })
		made(func(x Expr) Expr { return Signed(x, bits) })
		made(func(x Expr) Expr { return Field(x, bit, bits, signed) })
		require.Equal(r, Number(uint64(v)<<(64-bits)>>(64-bits)), Low(Number(v), bits))
		require.Equal(r, Extend(v>>bit, bits), int64(Field(Number(v), bit, bits, true).(Number)))
	})
}
