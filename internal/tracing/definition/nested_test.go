package definition_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/tracing/definition"
	"kprobelab/profile"
)

// TestNested reads the casts and calls that 7.3 puts around an expression. Each case has the
// operations, or the refusal with its place.
func TestNested(t *testing.T) {
	for name, tc := range map[string]struct {
		arg    string
		codes  []definition.Code
		offs   []int64
		id     definition.ID
		no     errno.Errno
		column int // in the argument
	}{
		"current":                {arg: "$current", codes: []definition.Code{definition.OpCurrent, definition.OpStoreRaw}},
		"current_member":         {arg: "$current->pid", codes: []definition.Code{definition.OpCurrent, definition.OpStoreMem}, offs: []int64{0, 4}},
		"current_two_members":    {arg: "$current->mm->flags", codes: []definition.Code{definition.OpCurrent, definition.OpDeref, definition.OpStoreMem}, offs: []int64{0, 8, 16}},
		"current_dot":            {arg: "$current.pid", id: definition.BadVar, no: errno.EINVAL},
		"currently":              {arg: "$currently", id: definition.BadVar, no: errno.EINVAL},
		"cast_name":              {arg: "(task_struct)file->pid", codes: []definition.Code{definition.OpArg, definition.OpStoreMem}, offs: []int64{0, 4}},
		"cast_register":          {arg: "(task_struct)%di->pid", codes: []definition.Code{definition.OpReg, definition.OpStoreMem}, offs: []int64{0, 4}},
		"cast_brackets":          {arg: "(task_struct)(%di)->pid", codes: []definition.Code{definition.OpReg, definition.OpStoreMem}, offs: []int64{0, 4}},
		"cast_deref":             {arg: "(task_struct)+8(%di)->pid", codes: []definition.Code{definition.OpReg, definition.OpDeref, definition.OpStoreMem}, offs: []int64{0, 8, 4}},
		"cast_container_of":      {arg: "(task_struct,pid)%di->mm", codes: []definition.Code{definition.OpReg, definition.OpStoreMem}, offs: []int64{0, 4}},
		"cast_of_cast":           {arg: "(mm_struct)((task_struct)%di->mm)->flags", codes: []definition.Code{definition.OpReg, definition.OpDeref, definition.OpStoreMem}, offs: []int64{0, 8, 16}},
		"cast_in_deref":          {arg: "+8((task_struct)%di->mm)", codes: []definition.Code{definition.OpReg, definition.OpDeref, definition.OpStoreMem}, offs: []int64{0, 8, 8}},
		"cast_no_field":          {arg: "(task_struct)%di", id: definition.TypecastReqField, no: errno.EINVAL, column: 16},
		"cast_brackets_no_field": {arg: "(task_struct)(%di)", id: definition.TypecastReqField, no: errno.EINVAL, column: 18},
		"cast_unclosed":          {arg: "(task_struct", id: definition.DerefOpenBrace, no: errno.EINVAL, column: 12},
		"cast_value_unclosed":    {arg: "(task_struct)(%di->pid", id: definition.DerefOpenBrace, no: errno.EINVAL, column: 13},
		"cast_unknown":           {arg: "(nothing)%di->pid", id: definition.NoPtrStrct, no: errno.EINVAL, column: 1},
		"cast_no_member":         {arg: "(task_struct)%di->x", id: definition.NoBTFField, no: errno.ENOENT, column: 18},
		"cast_symbol_offset":     {arg: "(task_struct)@init_task+8->pid", id: definition.TypecastSymOffset, no: errno.EINVAL, column: 13},
		"cast_arrow_in_option":   {arg: "(task_struct,mm->flags)%di->pid", id: definition.TypecastBadArrow, no: errno.EINVAL, column: 15},
		"cast_bit_in_option":     {arg: "(task_struct,bit)%di->pid", id: definition.TypecastNotAligned, no: errno.EINVAL, column: 13},
		"per_cpu_ptr":            {arg: "this_cpu_ptr(%di)", codes: []definition.Code{definition.OpReg, definition.OpPerCPU, definition.OpStoreRaw}},
		"per_cpu_read":           {arg: "this_cpu_read(%di)", codes: []definition.Code{definition.OpReg, definition.OpPerCPU, definition.OpStoreMem}},
		"per_cpu_symbol":         {arg: "this_cpu_read(@runqueues)", codes: []definition.Code{definition.OpSymbol, definition.OpImm, definition.OpPerCPU, definition.OpStoreMem}},
		"per_cpu_unclosed":       {arg: "this_cpu_ptr(%di", id: definition.DerefOpenBrace, no: errno.EINVAL, column: 16},
		"per_cpu_comm":           {arg: "this_cpu_ptr($comm)", id: definition.CommCantDeref, no: errno.EINVAL, column: 13},
		"eight_levels": {arg: "+0(+0(+0(+0(+0(+0(+0(+0(%di))))))))",
			codes: []definition.Code{definition.OpReg, definition.OpDeref, definition.OpDeref, definition.OpDeref, definition.OpDeref, definition.OpDeref, definition.OpDeref, definition.OpDeref, definition.OpStoreMem}},
		"nine_levels": {arg: "+0(+0(+0(+0(+0(+0(+0(+0(+0(%di)))))))))", id: definition.TooManyNested, no: errno.E2BIG, column: 24},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := profile.Named("7.3")
			d, err := definition.Parse(definition.LineOf("p:e", "fn", "a="+tc.arg), fakeKernel{}, &c.Tracing)
			if tc.no != 0 {
				var e *definition.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, tc.id.Text(&c.Tracing), e.ID.Text(&c.Tracing))
				require.Equal(t, tc.no, e.Errno)
				require.Equal(t, tc.column, e.Column-len("p:e fn a="))
				return
			}
			require.NoError(t, err)
			var codes []definition.Code
			var offs []int64
			for _, op := range d.Args[0].Code {
				codes, offs = append(codes, op.Code), append(offs, op.Offset)
			}
			require.Equal(t, append(tc.codes, definition.OpEnd), codes)
			if tc.offs != nil {
				require.Equal(t, append(tc.offs, 0), offs)
			}
		})
	}
}

// TestNestedIsNew: 7.2 knows none of it, and has no limit of its own.
func TestNestedIsNew(t *testing.T) {
	c, _ := profile.Named("7.0")
	for _, arg := range []string{"$current", "(task_struct)file->pid", "this_cpu_ptr(%di)"} {
		_, err := definition.Parse(definition.LineOf("p:e", "fn", "a="+arg), fakeKernel{}, &c.Tracing)
		require.Error(t, err, arg)
	}
	_, err := definition.Parse(definition.LineOf("p:e", "fn", "a=+0(+0(+0(+0(+0(+0(+0(+0(+0(%di)))))))))"), fakeKernel{}, &c.Tracing)
	require.NoError(t, err)
}

// TestStarIsLogged: to 7.2 error_log has two entries.
func TestStarIsLogged(t *testing.T) {
	for kernel, want := range map[string]errno.Errno{"6.6": errno.EINVAL, "6.18": errno.EINVAL, "6.12": errno.EINVAL, "7.3": errno.EOPNOTSUPP} {
		c, _ := profile.Named(kernel)
		_, err := definition.Parse(definition.LineOf("p:e", "fn", "$arg*"), withoutTypes{}, &c.Tracing)
		var e *definition.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, want, e.Errno, kernel)
		require.Equal(t, want == errno.EINVAL, e.Earlier != nil, kernel)
		if e.Earlier != nil {
			require.Equal(t, definition.BadVar, e.ID)
			require.Equal(t, definition.NosupBTFArg, e.Earlier.ID)
		}
	}
}

func TestTooManyArgumentsAreLogged(t *testing.T) {
	words := []string{"p:e", "fn"}
	for range 129 {
		words = append(words, "%di")
	}
	for kernel, want := range map[string]definition.ID{"6.12": definition.NotLogged, "6.18": definition.TooManyArgs, "7.3": definition.TooManyArgs} {
		c, _ := profile.Named(kernel)
		_, err := definition.Parse(definition.LineOf(words...), fakeKernel{}, &c.Tracing)
		var e *definition.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, errno.E2BIG, e.Errno)
		require.Equal(t, want, e.ID, kernel)
	}
}
