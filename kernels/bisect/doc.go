// Package bisect finds the kernel with which an answer changed, and asks few kernels for it: first one of each series, then the
// stable releases of the series that answers otherwise.
//
//	r, err := bisect.Find(ctx, []string{"6.1.172", "6.1.174", "6.12.90"}, bisect.Series, ask, nil)
//	// r.Before answers r.From, r.After answers r.To
//
// It must not know the questions, nor how a kernel is had.
package bisect
