package kimage

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
	"kprobelab/kimage/btf"
	"kprobelab/kimage/internal/structures"
	"kprobelab/x86"
)

var errGone = errors.New("left out")

// withoutBTF is the kernel of a dump that has no types.
func withoutBTF(img *Image, read func(x86.Addr, []byte) error) *structures.Kernel {
	k := img.inMemory(read)
	k.Types = func() *btf.Types { return &btf.Types{} }
	return k
}

// TestTasksFoundWithoutBTF: each member that the code and the tasks of a booted kernel show is where its BTF says, and the list of tasks is
// the same.
func TestTasksFoundWithoutBTF(t *testing.T) {
	for _, kernel := range dumps.Kernels {
		t.Run(kernel, func(t *testing.T) {
			img, err := Open(dumps.File(t, kernel), nil)
			require.NoError(t, err)
			want, ok := img.TaskLayout()
			require.True(t, ok)
			k := withoutBTF(img, img.ReadKernel)
			got, searched, ok := k.Layout()
			require.True(t, ok && searched)
			require.Equal(t, want, TaskLayout(got))

			described, searched, err := img.inMemory(img.ReadKernel).TaskPlaces()
			require.NoError(t, err)
			require.False(t, searched)
			places, searched, err := k.TaskPlaces()
			require.NoError(t, err)
			require.True(t, searched)
			require.Equal(t, described, places)

			img.taskPlaces = places
			list, err := img.TasksIn(img.ReadKernel)
			require.NoError(t, err)
			require.Equal(t, img.tasks, list)
		})
	}
}

// TestTasksAreNotGuessed: if a function that shows a member is missing, or memory of the tasks is,
// there is no list.
func TestTasksAreNotGuessed(t *testing.T) {
	img, err := Open(dumps.File(t, "6.1"), nil)
	require.NoError(t, err)
	for _, gone := range []string{"try_to_wake_up", "get_task_mm", "thread_group_cputime", "do_exit", "__schedule", "__switch_to_asm"} {
		t.Run(gone, func(t *testing.T) {
			without := &Image{kind: img.kind, segments: img.segments, sections: img.sections}
			var kept []Symbol
			for _, s := range img.Symbols() {
				if s.Name != gone && (gone != "do_exit" || s.Name != "exit_notify") {
					kept = append(kept, s)
				}
			}
			without.index.chain(kept)
			_, _, err := withoutBTF(without, img.ReadKernel).TaskPlaces()
			require.ErrorContains(t, err, "0 places fit")
		})
	}
	t.Run("tasks_in_pages_that_are_gone", func(t *testing.T) {
		init := img.tasks[0].Addr
		_, _, err := withoutBTF(img, func(at x86.Addr, b []byte) error {
			if at.Sub(init) > -int64(len(b)) && at.Sub(init) < 16<<10 { // more than a task_struct
				return errGone
			}
			return img.ReadKernel(at, b)
		}).TaskPlaces()
		require.Error(t, err)
	})
}

// Tasks that are not known are an error of their own.
func TestTasksThatAreNotKnown(t *testing.T) {
	nothing := func(x86.Addr, []byte) error { return errGone }
	img := &Image{}
	_, err := img.TasksIn(nothing)
	require.ErrorIs(t, err, ErrTasks)
	require.ErrorContains(t, err, "there is no init_task")
	img.index.chain([]Symbol{{Name: "init_task", Addr: firstObject, Type: 'D'}})
	d := &dump{img: img, Kernel: *img.inMemory(nothing)}
	require.NoError(t, d.findTaskPlaces())
	list, err := img.TasksIn(nothing)
	require.Empty(t, list)
	require.ErrorIs(t, err, ErrTasks)
	require.ErrorContains(t, err, "no type information about task_struct.tasks, and its offset cannot be found")
	require.ErrorContains(t, err, "CONFIG_DEBUG_INFO_BTF")
}
