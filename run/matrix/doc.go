// Package matrix does the same on several kernels side by side, keeps what each run has written, and compares the runs: the
// first kernel that ran is the base of all differences.
//
//	m, err := matrix.New([]string{"6.1", "6.12"})
//	m.Run(ctx, func(ctx context.Context, c *matrix.Cell) { … })
//	text, err := m.JUnit("./tool")
//
// It must not know how a kernel is found, what a plan is about, and what an exit code means, but for 0.
package matrix
