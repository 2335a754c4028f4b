package bounded

import (
	"errors"
	"fmt"
)

// ErrNoRoom is memory that the system does not give.
var ErrNoRoom = errors.New("the system gives no more memory")

// roomFrom is the size of an allocation, in bytes, from which on Room checks it.
const roomFrom = 32 << 20

// Room fails with ErrNoRoom where an allocation of n bytes would not fit (a limit of the address space): Go would end the
// process, without a sentence.
func Room(n int64) error {
	if n < roomFrom || hasRoom(n) {
		return nil
	}
	return fmt.Errorf("%w: %s are wanted", ErrNoRoom, size(n))
}
