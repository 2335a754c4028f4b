package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/integration/dumps/runs"
)

// Aliases of the library say what a program is known to do.
func TestAliasesOnBootedKernels(t *testing.T) {
	const script = `
global bytes, calls, returns, raw
probe vfs.open { if (target_set_pid(pid())) printf("open %s\n", pathname) }
probe vfs.read.return { if (pid() == target() && pathname == "/tmp/mnt/file") { bytes += bytes_read; if (bytes_read == 0 || ino == 0 || error_str != "") println("odd") } }
probe kprocess.exec { printf("exec %s %s\n", filename, args) }
probe kprocess.exec_complete { printf("executed %d %s\n", success, retstr) }
probe kprocess.create { if (pid() == target()) printf("fork %d\n", new_pid != pid()) }
probe signal.send { printf("signal %s to %s\n", sig_name, sig_pid == target() ? "it" : pid_name) }
probe syscall_any { if (name == "getdents64") calls++ }
probe syscall_any.return { if (name == "getdents64") returns++ }
probe syscall.getdents { raw++ }
probe scheduler.process_exit { printf("exit %d\n", target_set_pid(pid)) }
probe end { printf("%d bytes, %d calls more, %d returns\n", bytes, calls - raw, returns - raw) }
`
	const program = "mkdir /tmp/mnt; mount -t tmpfs none /tmp/mnt; echo hello > /tmp/mnt/file; read x < /tmp/mnt/file; ls /tmp; kill -USR1 1; umount /tmp/mnt; rmdir /tmp/mnt"
	for i, kernel := range dumps.Kernels {
		if i > 0 && testing.Short() {
			break
		}
		t.Run(kernel, func(t *testing.T) {
			lines := stapped(t, "-r", runs.File(t, kernel), "-c", inShell(program), "-e", script)
			for _, want := range []string{
				"open /tmp/mnt/file\n", "executed 1 0\n", "fork 1\n", "signal SIGUSR1 to init\n", "exit 1\n", "6 bytes, 0 calls more, 0 returns\n",
				`exec "/bin/busybox" ["/bin/busybox", "sh", "-c", "` + program[:20],
			} {
				found := false
				for _, l := range lines {
					found = found || l == want || want[len(want)-1] != '\n' && len(l) > len(want) && l[:len(want)] == want
				}
				require.True(t, found, "%q in %q", want, lines)
			}
			require.NotContains(t, lines, "odd\n")
		})
	}
}
