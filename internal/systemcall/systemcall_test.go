package systemcall_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/systemcall"
	"kprobelab/profile"
)

// functions is a kernel that has these functions.
func functions(names ...string) func(string) bool {
	return func(function string) bool { return slices.Contains(names, function) }
}

// Every release that is modelled has one naming, or two before 4.17; what is asked about its functions
// comes back as the call.
func TestNamingsOfReleases(t *testing.T) {
	want := map[string][]string{
		"2.6.18": {"sys_"}, "2.6.32": {"sys_"}, "3.2": {"sys_"}, "3.10": {"sys_", "SyS_"}, "4.4": {"sys_", "SyS_"}, "4.14": {"sys_", "SyS_"},
	}
	for _, name := range profile.All() {
		t.Run(name, func(t *testing.T) {
			prefixes := want[name]
			if prefixes == nil {
				prefixes = []string{"__x64_sys_"}
			}
			release, ok := profile.ParseVersion(name)
			require.True(t, ok)
			var got, all []string
			for _, n := range systemcall.Namings {
				if since(t, release, n.Since) && !(n.Until != "" && since(t, release, n.Until)) {
					got = append(got, n.Prefix)
					for _, call := range []string{"getppid", "read", "newstat"} {
						all = append(all, n.Prefix+call)
					}
				}
			}
			require.Equal(t, prefixes, got)
			has := functions(all...)
			for call, entry := range map[string]string{"read": "read", "stat": "newstat", "newstat": "newstat"} {
				function, ok := systemcall.Function(systemcall.Entry(call), has)
				require.True(t, ok)
				require.Equal(t, prefixes[0]+entry, function)
				back, ok := systemcall.Call(function, has)
				require.True(t, ok)
				require.Equal(t, entry, back)
			}
			_, ok = systemcall.Function("absent", has)
			require.False(t, ok)
		})
	}
}

// since reports whether a release is not before another one.
func since(t *testing.T, r profile.Version, first string) bool {
	if first == "" {
		return true
	}
	f, ok := profile.ParseVersion(first)
	require.True(t, ok)
	return slices.Compare([]int{r.Major, r.Minor, r.Patch}, []int{f.Major, f.Minor, f.Patch}) >= 0
}

func TestFunctionsThatAreNoCall(t *testing.T) {
	has := functions("__x64_sys_getppid", "sys_fillrect", "__ia32_sys_getppid")
	for name, function := range map[string]string{
		"a function of another naming": "sys_fillrect", "32-bit programs' function": "__ia32_sys_getppid",
		"the inner function": "__se_sys_getppid", "the bare name": "getppid",
	} {
		_, ok := systemcall.Call(function, has)
		require.False(t, ok, name)
	}
}

func TestNow(t *testing.T) {
	for old, now := range map[string]string{"sys_open": "__x64_sys_open", "SyS_open": "__x64_sys_open"} {
		got, since, ok := systemcall.Now(old)
		require.True(t, ok)
		require.Equal(t, now, got)
		require.Equal(t, "4.17", since)
	}
	_, _, ok := systemcall.Now("vfs_open")
	require.False(t, ok)
}

func TestSecondNames(t *testing.T) {
	for name, want := range map[string]bool{"SyS_open": true, "compat_SyS_open": true, "sys_open": false, "compat_sys_open": false, "__x64_sys_open": false, "SySop": false} {
		require.Equal(t, want, systemcall.Alias(name), name)
	}
}
