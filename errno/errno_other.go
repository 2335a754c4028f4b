//go:build !linux

package errno

// isHost is false here: other systems number their errors otherwise.
func isHost(Errno, error) bool { return false }
