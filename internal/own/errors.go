package own

import "errors"

// Classes of failure, for errors.Is.
var (
	// ErrNotThere: the image does not have the function as a symbol of its own,
	// or has several of that name.
	ErrNotThere = errors.New("the image has no such function")
	// ErrNoAnswer: the function did not return, because it faulted, slept or went
	// on for too long. The error wraps the machine's, which says where.
	ErrNoAnswer = errors.New("the image's function did not answer")
	// ErrReplaced: the function was not asked, because the question is about code in
	// the place of which there is a stand-in.
	ErrReplaced = errors.New("there is a stand-in in its place here")
	// ErrNonsense: the function returned what it cannot mean.
	ErrNonsense = errors.New("the image's function answered nonsense")
)
