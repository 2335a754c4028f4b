package load

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/bpf/answer"
)

// TestTagsOfFunctions: a verdict, messages by their number, a level, flags that come and go, and programs that are not for this machine.
func TestTagsOfFunctions(t *testing.T) {
	e, err := expectedOf([]string{
		"comment:test_expect_msg=10=second", "comment:test_expect_msg=9=first {{[0-9]+}}.", "comment:test_expect_failure", "comment:test_log_level=2",
		"comment:test_prog_flags=BPF_F_TEST_STATE_FREQ", "comment:test_prog_flags=!BPF_F_TEST_REG_INVARIANTS", "comment:test_expect_msg_unpriv=1=never",
		"comment:test_arch=ARM64", "comment:test_arch=X86_64",
	})
	require.NoError(t, err)
	assert.True(t, e.fails)
	assert.True(t, e.verbose())
	assert.Empty(t, e.skipped)
	assert.Equal(t, []string{"test_rnd_hi32", "test_state_freq"}, e.flags)
	assert.Empty(t, e.differs(false, "0: x\nfirst 77.\nsecond\n"))
	assert.Contains(t, e.differs(true, "first 77. second"), "it fails: true expected, false here")
	assert.Contains(t, e.differs(false, "second first 77."), `the log has no "second"`)
	assert.Contains(t, e.differs(false, "first 77, second"), "the log has no \"first {{[0-9]+}}.\"")

	for tag, skipped := range map[string]bool{
		"comment:test_arch=ARM64": true, "comment:test_auxiliary": true, "comment:test_btf_path=x.o": true, "comment:test_prog_flags=0x4000": true,
		"comment:test_arch=X86_64": false, "comment:test_description=x": false, "other": false,
	} {
		e, err := expectedOf([]string{"comment:test_expect_success", tag})
		require.NoError(t, err)
		assert.Equal(t, skipped, e.skipped != "", tag)
	}
	newer, err := expectedOf([]string{"comment:12:test_expect_msg=b=2", "comment:9:test_expect_msg=a=1", "comment:8:test_expect_success", "comment:7:load_mode=jited"})
	require.NoError(t, err)
	assert.Empty(t, newer.skipped)
	assert.Empty(t, newer.differs(true, "a=1 b=2"))
	assert.NotEmpty(t, newer.differs(true, "b=2 a=1"))
	none, err := expectedOf([]string{"comment:test_expect_failure_unpriv", "comment:test_expect_msg=1=x"})
	require.NoError(t, err)
	assert.Nil(t, none)
	_, err = expectedOf([]string{"comment:test_expect_success", "comment:test_expect_msg=1={{(}}"})
	require.Error(t, err)
}

// TestMessagesThatMustBeAbsent: one that stands before the next message, or to the end of the log.
func TestMessagesThatMustBeAbsent(t *testing.T) {
	e, err := expectedOf([]string{
		"comment:test_expect_success", "comment:test_expect_msg=0=a", "comment:test_expect_not_msg=1=b", "comment:test_expect_msg=2=c", "comment:test_expect_not_msg=3=d",
	})
	require.NoError(t, err)
	assert.Empty(t, e.differs(true, "b a c b"))
	assert.Contains(t, e.differs(true, "a b c"), `has "b"`)
	assert.Contains(t, e.differs(true, "a c d"), `has "d"`)
}

// TestAnnotationsBesideLibbpf: where libbpf's answer is not the object's either, the difference is not this program's.
func TestAnnotationsBesideLibbpf(t *testing.T) {
	e, err := expectedOf([]string{"comment:test_expect_failure", "comment:test_expect_msg=0=R0 !read_ok"})
	require.NoError(t, err)
	judged := func(our *answer.Program, their *verdict) [2]string {
		what, cause := e.judge(our, their)
		return [2]string{what, cause}
	}
	assert.Equal(t, [2]string{}, judged(&answer.Program{Log: "R0 !read_ok"}, nil))
	assert.Empty(t, judged(&answer.Program{Loads: true}, &verdict{})[1])
	assert.NotEmpty(t, judged(&answer.Program{Loads: true}, &verdict{loads: true})[1])
	assert.Empty(t, judged(&answer.Program{Log: "R1"}, &verdict{log: "R0 !read_ok"})[1])
	assert.NotEmpty(t, judged(&answer.Program{Log: "R1"}, &verdict{log: "R1"})[1])
	assert.NotEmpty(t, judged(&answer.Program{Log: "R1"}, &verdict{log: "bpf_testmod"})[1])
	assert.Equal(t, "no answer here", judged(nil, nil)[0])
	assert.Equal(t, "not asked here", judged(&answer.Program{Unasked: true, Error: "x"}, nil)[1])
}
