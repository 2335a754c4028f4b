// Package guestkernel tests the guest kernel in testdata: that it has the
// sections, tables and functions its README lists, and that its sources build
// to the same bytes.
package guestkernel
