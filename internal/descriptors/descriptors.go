//go:build linux

package descriptors

import "syscall"

// need is how many more files than are open now a command may want at once.
const need = 6

// exitImage is the exit code for a file that cannot be read.
const exitImage = 3

const sentence = "kprobelab: this process may open too few files: raise its limit (ulimit -n) to 16 or more\n"

const oPath = 0x200000 // O_PATH, which package syscall has not

func init() {
	if !enough() {
		_, _ = syscall.Write(2, []byte(sentence)) // without standard error there is no other place for the sentence
		syscall.Exit(exitImage)
	}
}

// enough tries it, for it is not known what is open already.
func enough() bool {
	var fds [need]int
	for n := range fds {
		fd, err := syscall.Open("/", oPath|syscall.O_CLOEXEC, 0)
		if err == syscall.EMFILE {
			closeAll(fds[:n])
			return false
		}
		fds[n] = fd
	}
	closeAll(fds[:])
	return true
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = syscall.Close(fd)
	}
}
