package booted

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/boot"
	"kprobelab/errno"
	"kprobelab/internal/integration/oracle"
	"kprobelab/internal/mailbox"
	"kprobelab/internal/qemu"
	"kprobelab/kimage"
	"kprobelab/kimage/vmcore"
)

const root = "../../.."

// qemuHere returns the QEMU of the system, or of the checkout. Nothing is fetched.
func qemuHere(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a boot takes ten seconds")
	}
	f, err := qemu.Find(t.Context(), func() (string, error) {
		return filepath.Join(root, ".cache/tools/qemu.sh"), nil
	})
	if err != nil {
		t.Skipf("no QEMU here (make conformance fetches one): %v", err)
	}
	return f.Path
}

// machine is one with that kernel and the program of many system calls.
func machine(t *testing.T, kernel string) *boot.Options {
	t.Helper()
	program := qemuHere(t)
	k, err := boot.Open(oracle.Image(t, kernel), nil)
	require.NoError(t, err)
	calls, err := boot.Files(root+"/testdata/calls.elf", "/bin/calls")
	require.NoError(t, err)
	return &boot.Options{
		QEMU: program, Kernel: k, CPU: kimage.DefaultCPU, CPUs: 1, Megabytes: 128,
		Files: calls, Limit: 10 * time.Minute,
	}
}

// calls runs the program of many system calls.
func calls(g *boot.Guest, input string) (string, *mailbox.Outcome, error) {
	var out strings.Builder
	o, err := g.Do(mailbox.Command{Kind: mailbox.Exec, Args: []string{"/bin/calls"}, Input: []byte(input)}, func(_ int, b []byte) error {
		out.Write(b)
		return nil
	})
	return out.String(), o, err
}

// The program writes the same on each kernel, each time, and the end of its stderr comes
// after all of its stdout.
func TestProgramIsTheSameEverywhere(t *testing.T) {
	want, err := os.ReadFile(root + "/testdata/calls.txt")
	require.NoError(t, err)
	for kernel, name := range oracle.Kernels {
		t.Run(name, func(t *testing.T) {
			o := machine(t, kernel)
			require.NoError(t, boot.Boot(t.Context(), o, func(g *boot.Guest) error {
				for range 2 {
					out, outcome, err := calls(g, "not read")
					if err != nil {
						return err
					}
					require.Equal(t, string(want), out)
					require.Equal(t, 7, outcome.Code())
				}
				return nil
			}))
		})
	}
}

// saved boots and saves a machine.
func saved(t *testing.T, o *boot.Options, file string, format boot.Format) {
	t.Helper()
	require.NoError(t, boot.Boot(t.Context(), o, func(g *boot.Guest) error {
		_, err := g.Save(&boot.Dump{File: file, Format: format})
		return err
	}))
}

// A dump is at the stop point, has its kernel's release, and has init's mailbox. A dump of one CPU
// is the same the next time.
func TestDump(t *testing.T) {
	for name, cpus := range map[string]int{"one_cpu": 1, "two_cpus": 2} {
		t.Run(name, func(t *testing.T) { dump(t, cpus) })
	}
}

func dump(t *testing.T, cpus int) {
	o := machine(t, "oracle")
	o.CPUs = cpus
	dir := t.TempDir()
	here, err := os.Getwd()
	require.NoError(t, err)
	beside, err := filepath.Rel(here, dir) // QEMU stands elsewhere
	require.NoError(t, err)
	plain, packed := filepath.Join(dir, "plain"), filepath.Join(beside, "packed")
	saved(t, o, plain, boot.ELF)
	saved(t, o, packed, boot.Zstd)
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, list, 2, "no temporary file stays")

	var memory [2][]byte
	for i, file := range []string{plain, packed} {
		c, err := vmcore.Open(file)
		require.NoError(t, err)
		defer c.Close()
		require.Len(t, c.CPUs(), cpus)
		at := -1
		for n, cpu := range c.CPUs() {
			if cpu.Regs.IP == uint64(o.Kernel.StopPoint) {
				at = n
			}
		}
		require.GreaterOrEqual(t, at, 0, "one CPU is at the stop point")
		require.Contains(t, string(c.RawVMCoreInfo()), "OSRELEASE=6.1.")
		for _, r := range c.RAM() {
			b := make([]byte, vmcore.PageSize)
			for phys := r.Phys; phys < r.End(); phys += vmcore.PageSize {
				require.NoError(t, c.ReadPhys(phys, b))
				memory[i] = append(memory[i], b...)
			}
		}
	}
	if cpus == 1 {
		require.True(t, bytes.Equal(memory[0], memory[1]), "the same boot has the same memory")
	}
	header := bytes.Index(memory[0], []byte("kmailbox"))
	for header >= 0 && header%vmcore.PageSize != 0 {
		next := bytes.Index(memory[0][header+1:], []byte("kmailbox"))
		require.GreaterOrEqual(t, next, 0)
		header += 1 + next
	}
	require.GreaterOrEqual(t, header, 0)
	_, err = mailbox.Site(memory[0][header:])
	require.NoError(t, err)
}

// The kernel accepts or refuses definitions, and their hits are in the trace.
func TestTrace(t *testing.T) {
	o := machine(t, "oracle")
	require.NoError(t, boot.Boot(t.Context(), o, func(g *boot.Guest) error {
		require.ErrorIs(t, g.Trace("p vfs_read\np no_such_function\n", nil), boot.ErrDefinition)
		require.ErrorIs(t, g.Trace("p no_such_function", nil), errno.ENOENT)
		require.NoError(t, g.Trace("# a comment\n\np:files/open do_sys_openat2 file=+0(%si):ustring\nr:returned do_sys_openat2 $retval\n", nil))
		if _, _, err := calls(g, ""); err != nil {
			return err
		}
		trace, err := g.Traced()
		require.NoError(t, err)
		require.Regexp(t, `renamed-\d+ .*open: \(do_sys_openat2\+0x0/0x[0-9a-f]+\) file="missing"`, trace)
		require.Regexp(t, `renamed-\d+ .*returned: \(.* <- do_sys_openat2\) arg1=0xfffffffffffffffe`, trace)
		return nil
	}))
}

// What init cannot do, it says, and it goes on.
func TestCommandsThatFail(t *testing.T) {
	o := machine(t, "oracle")
	o.Files = append(o.Files, boot.Regular("/no/module.ko", 0o644, []byte("not a module")))
	require.NoError(t, boot.Boot(t.Context(), o, func(g *boot.Guest) error {
		for name, c := range map[string]struct {
			command mailbox.Command
			want    errno.Errno
		}{
			"missing_program": {mailbox.Command{Kind: mailbox.Exec, Args: []string{"/missing"}}, errno.ENOENT},
			"missing_folder":  {mailbox.Command{Kind: mailbox.Exec, Args: []string{"/bin/calls"}, Dir: "/missing"}, errno.ENOENT},
			"no_program":      {mailbox.Command{Kind: mailbox.Exec, Args: []string{"/proc/version"}}, errno.EACCES},
			"missing_task":    {mailbox.Command{Kind: mailbox.Spawn, Args: []string{"/missing"}}, errno.ENOENT},
			"no_module":       {mailbox.Command{Kind: mailbox.Insmod, Args: []string{"/no/module.ko"}}, errno.ENOEXEC},
			"missing_module":  {mailbox.Command{Kind: mailbox.Insmod, Args: []string{"/no/such.ko"}}, errno.ENOENT},
			"missing_file":    {mailbox.Command{Kind: mailbox.Read, Args: []string{"/missing"}}, errno.ENOENT},
			"a_folder":        {mailbox.Command{Kind: mailbox.Write, Args: []string{"/proc"}}, errno.EISDIR},
			"unknown_command": {mailbox.Command{Kind: 77, Args: []string{"x"}}, errno.ENOSYS},
		} {
			outcome, err := g.Do(c.command, func(int, []byte) error { return errors.New("it has output") })
			if err != nil {
				return err
			}
			require.Equal(t, c.want, outcome.Errno, name)
		}
		require.NoError(t, g.Write("/tmp/file", "one\n"))
		require.NoError(t, g.Write("/tmp/file", "two\n"))
		text, err := g.Read("/tmp/file")
		require.NoError(t, err)
		require.Equal(t, "one\ntwo\n", text)
		return nil
	}))
}

// A kernel that does not reach its init gives the reason in one sentence.
func TestKernelsThatDoNotBoot(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*boot.Options)
		why    string
	}{
		"no_init":             {func(o *boot.Options) { o.Append = "rdinit=/missing root=/dev/nothing" }, "the kernel panicked: VFS: Unable to mount root fs"},
		"no_such_cpu":         {func(o *boot.Options) { o.CPU = "no-such-model" }, "QEMU does not start the machine: unable to find CPU model"},
		"no_feature_of_a_cpu": {func(o *boot.Options) { o.CPU = "qemu64,nosuch=on" }, "QEMU does not start the machine: .*nosuch"},
		"damaged_kernel":      {func(o *boot.Options) { clear(o.Kernel.BzImage[len(o.Kernel.BzImage)/2:]); o.Limit = 20 * time.Second }, "the kernel has not come to its init|the machine ended before"},
		"too_short":           {func(o *boot.Options) { o.Limit = time.Second }, "the kernel has not come to its init after 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			o := machine(t, "oracle")
			c.change(o)
			err := boot.Boot(t.Context(), o, func(*boot.Guest) error { return nil })
			var why *boot.Error
			require.ErrorAs(t, err, &why)
			require.Regexp(t, c.why, why.Error())
			require.Equal(t, strings.HasSuffix(name, "_cpu"), errors.Is(err, boot.ErrCPU))
			require.NotContains(t, why.Error(), "\n")
		})
	}
}
