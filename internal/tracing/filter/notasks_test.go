package filter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/tracing/event"
)

// TestFiltersWhereNothingTellsTheTask: a comparison with the running task is refused, others are
// not, and an event's own field of such a name still works.
func TestFiltersWhereNothingTellsTheTask(t *testing.T) {
	unknown := *fields
	unknown.Filters = &event.Filters{NoTasks: true}
	own := unknown
	own.Fields = append([]event.Field{{Name: "comm", Type: "u8", Offset: 16, Size: 1}}, fields.Fields...)
	for name, c := range map[string]struct {
		text    string
		of      *event.Format
		refused bool
	}{
		"comm":                 {`comm == "sh"`, &unknown, true},
		"COMM":                 {`COMM ~ "s*"`, &unknown, true},
		"common_pid":           {"common_pid == 1", &unknown, true},
		"common_pid_in_parens": {"u8 == 1 && (s8 == 2 || common_pid != 0)", &unknown, true},
		"not_comm":             {`!(comm == "sh")`, &unknown, true},
		"cpu":                  {"cpu == 0", &unknown, false},
		"a_field_of_the_event": {"u8 == 1", &unknown, false},
		"common_flags":         {"common_flags == 1", &unknown, false},
		"the_events_own_comm":  {"comm == 1", &own, false},
		"tasks_are_known":      {`comm == "sh" && common_pid == 1`, fields, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(c.text, c.of)
			if c.refused {
				require.ErrorIs(t, err, errno.EINVAL)
				require.ErrorContains(t, err, "task")
				return
			}
			require.NoError(t, err)
		})
	}
}
