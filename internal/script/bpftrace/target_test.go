package bpftrace

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/script"
	"kprobelab/internal/script/host/fake"
)

// hit returns the output of a probe's body at a call of f.
func hit(t *testing.T, point, body string) string {
	t.Helper()
	shared, err := fake.Kernel()
	require.NoError(t, err)
	made, err := Analyze("stdin", point+" { "+body+" }", &Options{}, &Kernel{Kernel: shared})
	var p *Problems
	if errors.As(err, &p) {
		return p.Text()
	}
	require.NoError(t, err)
	code, err := script.Compile(made.Program)
	require.NoError(t, err)
	var out bytes.Buffer
	thread, s := code.NewThread(&out), fake.New()
	thread.Context = s
	require.Len(t, made.Probes, 1)
	s.Hit = made.Probes[0]
	require.NoError(t, thread.Run(s.Hit.Handler))
	return out.String()
}

// Rule: memory is read by the types of BTF, arguments are 64 bits without a sign until they are cast (bpftrace(8), "Structs",
// "Type conversion").
func TestTargets(t *testing.T) {
	const thing = "$t = (struct thing *)arg0; "
	for name, c := range map[string]struct{ body, want string }{
		"argument_is_whole":            {`print(arg1);`, "12297829383904690174\n"},
		"argument_is_cast":             {`print((int32)arg1); print((uint8)arg2);`, "-2\n255\n"},
		"signed_member":                {thing + `print($t->n); print($t->in.neg);`, "-5\n-3\n"},
		"unsigned_member":              {thing + `print($t->in.low);`, "200\n"},
		"bit_fields_have_no_sign":      {thing + `print($t->lo); print($t->sb);`, "29\n6\n"},
		"pointer_is_followed":          {thing + `print($t->next->n); print($t->next->next == 0);`, "5\n1\n"},
		"pointer_is_dereferenced":      {thing + `print((*$t->next).n);`, "5\n"},
		"pointer_is_counted_on":        {thing + `print(($t + 1)->n); print((uint64)($t + 1) - arg0);`, "5\n64\n"},
		"element":                      {thing + `print($t->list[1]);`, "22\n"},
		"pointer_as_an_array":          {thing + `print($t[1].n);`, "5\n"},
		"member_of_an_unnamed_union":   {thing + `print($t->a); print($t->b);`, "305419896\n22136\n"},
		"characters_are_text":          {thing + `print($t->name);`, "name\n"},
		"text_at_a_pointer":            {thing + `print(str($t->text));`, "a \"text\"\n"},
		"text_of_a_program":            {thing + `print(str(uptr($t->next->text)));`, "program\n"},
		"text_with_room_for_its_end":   {`print(str(arg3, 4));`, "a \"\n"},
		"structure_is_kept":            {thing + `@in = $t->in; print(@in.neg); clear(@in);`, "-3\n"},
		"size_of_a_type":               {`print(sizeof(struct thing)); print(sizeof(((struct thing *)0)->name));`, "64\n8\n"},
		"offset_of_a_member":           {`print(offsetof(struct thing, next));`, "24\n"},
		"number_at_an_address":         {`print(*(int32 *)arg0); print(*(uint8 *)(arg0 + 16));`, "-5\n200\n"},
		"what_is_not_there_is_0":       {thing + `print($t->next->next->n);`, "0\n"},
		"register_by_its_name":         {`print(reg("dx"));`, "511\n"},
		"address_is_read_as_a_number":  {`print(*(arg0 + 40));`, "22\n"},
		"comparison_of_text":           {thing + `print($t->name == "name"); print(strncmp($t->name, "nano", 2));`, "1\n0\n"},
		"pointer_in_a_tuple":           {thing + `$x = ($t->n, $t->name); print($x);`, "(-5, name)\n"},
		"pointer_to_a_pointer":         {`print((*(struct thing **)(arg0 + 24))->n);`, "5\n"},
		"number_of_another_byte_order": {thing + `print(bswap($t->a));`, "2018915346\n"},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, hit(t, "kprobe:f", c.body)) })
	}
	assert.Equal(t, "-10\n16045690985392373750\n", hit(t, "kretprobe:f", "print((int32)retval); print(retval);"))
}

// Rule: what the types do not have is refused before anything runs.
func TestTargetsThatAreRefused(t *testing.T) {
	const thing = "$t = (struct thing *)arg0; "
	for body, want := range map[string]string{
		thing + `print($t->nosuch);`:         "ERROR: Struct/union of type 'struct thing' does not contain a field named 'nosuch'",
		thing + `print($t->n->x);`:           "ERROR: Can not access field 'x' on expression of type 'uint64'",
		thing + `print($t->list[2]);`:        "ERROR: the index 2 is out of bounds for array of size 2",
		`print(((struct nosuch *)arg0)->n);`: `ERROR: Cannot resolve unknown type "struct nosuch"`,
		`print(retval);`:                     "ERROR: The retval builtin can only be used with",
		`print(offsetof(struct thing, zz));`: "ERROR: 'struct thing' has no field named 'zz'",
		`print(args.n);`:                     "ERROR: The args builtin can only be used with",
	} {
		assert.Contains(t, hit(t, "kprobe:f", body), want, body)
	}
}
