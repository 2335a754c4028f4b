package kimage

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
	"kprobelab/x86"
)

var errGone = errors.New("left out")

// bootedDump opens a dump as openDump has it before its tables are read.
func bootedDump(t *testing.T, kernel string) (*dump, x86.Addr) {
	img, err := Open(dumps.File(t, kernel), nil)
	require.NoError(t, err)
	d := &dump{img: img, core: img.core}
	require.NoError(t, d.findSpace())
	head, ok := img.symbolAddr("init_task")
	require.True(t, ok)
	return d, head
}

// TestTasksFoundWithoutBTF: each member that the code and the tasks of a booted kernel show is where its BTF says, and the list of tasks is
// the same.
func TestTasksFoundWithoutBTF(t *testing.T) {
	for _, kernel := range dumps.Kernels {
		t.Run(kernel, func(t *testing.T) {
			d, head := bootedDump(t, kernel)
			want, err := d.describedTaskPlaces()
			require.NoError(t, err)
			got, err := d.searchTasks(head)
			require.NoError(t, err)
			require.Equal(t, want, got.places)
			require.ElementsMatch(t, taskMembers, slices.Collect(maps.Keys(got.places)))

			d.img.taskPlaces = got.places
			list, err := d.tasks()
			require.NoError(t, err)
			require.Equal(t, d.img.tasks, list)
		})
	}
}

// TestTasksAreNotGuessed: if a function that shows a member is missing, or memory of the tasks is,
// there is no list.
func TestTasksAreNotGuessed(t *testing.T) {
	d, head := bootedDump(t, "6.1")
	for _, gone := range []string{"try_to_wake_up", "get_task_mm", "thread_group_cputime", "do_exit", "__schedule", "__switch_to_asm"} {
		t.Run(gone, func(t *testing.T) {
			without := &Image{kind: d.img.kind, segments: d.img.segments, sections: d.img.sections}
			var kept []Symbol
			for _, s := range d.img.Symbols() {
				if s.Name != gone && (gone != "do_exit" || s.Name != "exit_notify") {
					kept = append(kept, s)
				}
			}
			without.index.chain(kept)
			require.NotEmpty(t, (&dump{img: without}).touched("wake_up_process", "try_to_wake_up"))
			_, err := (&dump{img: without, core: d.core, space: d.space}).searchTasks(head)
			require.ErrorContains(t, err, "0 places fit")
		})
	}
	t.Run("tasks_in_pages_that_are_gone", func(t *testing.T) {
		init := d.img.tasks[0].Addr
		_, err := (&dump{img: d.img, core: d.core, live: func(at x86.Addr, b []byte) error {
			if at.Sub(init) > -int64(len(b)) && at.Sub(init) < maxTaskStruct {
				return errGone
			}
			return d.space.Read(at, b)
		}}).searchTasks(head)
		require.Error(t, err)
	})
}
