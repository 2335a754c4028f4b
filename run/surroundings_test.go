package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/hostfiles"
)

func TestFilesThatATestOfGoWrites(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		want  []string
	}{
		"none":               {[]string{"-test.v=true", "-test.timeout=10m0s"}, nil},
		"coverage":           {[]string{"-test.coverprofile=/tmp/b/c.out", "-test.gocoverdir=/tmp/b/cov"}, []string{"/tmp/b/cov in /tmp/b/cov", "/tmp/b/c.out in /tmp/b"}},
		"relative":           {[]string{"-test.trace=t.out"}, []string{"/pkg/t.out in /pkg"}},
		"outputdir":          {[]string{"-test.memprofile=m.out", "-test.outputdir=out", "-test.cpuprofile=/c"}, []string{"/c in /", "/pkg/out/m.out in /pkg/out"}},
		"gocoverdir_is_not":  {[]string{"-test.outputdir=/out", "-test.gocoverdir=cov"}, []string{"/pkg/cov in /pkg/cov"}},
		"upwards":            {[]string{"-test.trace=../t"}, []string{"/t in /"}},
		"empty":              {[]string{"-test.coverprofile="}, nil},
		"of_the_program":     {[]string{"coverprofile=x", "-coverprofile=x", "-test.run=coverprofile=x"}, nil},
		"testlog_stays":      {[]string{"-test.testlogfile=/tmp/b/testlog.txt"}, nil},
		"the_last_one_given": {[]string{"-test.trace=a", "-test.trace=b"}, []string{"/pkg/b in /pkg"}},
	} {
		var got []string
		for _, o := range goOuts(c.flags, "/pkg") {
			require.Equal(t, o.Guest, o.Host, name)
			require.True(t, o.there(func(string) bool { return true }), name)
			require.False(t, o.there(func(string) bool { return false }), name)
			got = append(got, o.Guest+" in "+o.folder())
		}
		require.Equal(t, c.want, got, name)
	}
	require.True(t, Out{Guest: "/x"}.there(nil), "a file of --out has to be there")
}

func TestWhichProgramsAreTestsOfGo(t *testing.T) {
	for want, lines := range map[bool][][]string{
		true:  {{"/tmp/go-build1/b001/a.test", "-test.paniconexit0", "-test.timeout=10m0s"}},
		false: {{"/a.test"}, {"/a.test", "-v", "-test.v"}, {"/usr/bin/true", "-test.v"}, {"/a.testing", "-test.v"}},
	} {
		for _, args := range lines {
			require.Equal(t, want, isGoTest(args), args)
		}
	}
}

func TestFoldersAroundAProgram(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, hostfiles.Write(dir, []hostfiles.File{{Path: "/", Mode: 0o755 | 1<<31}, {Path: "/" + name, Mode: 1<<31 | 0o755}, {Path: "/" + name + "/f", Mode: 0o644, Data: []byte(text)}}))
	}
	for _, name := range []string{"testdata", "testdata/.hidden", "testdata/sub", "other", ".git", "target"} {
		write(name, name)
	}
	require.NoError(t, hostfiles.Write(dir+"/target/CACHEDIR.TAG", []hostfiles.File{{Mode: 0o644}}))
	require.NoError(t, hostfiles.Write(dir+"/p", []hostfiles.File{{Mode: 0o644}}))
	t.Chdir(dir)
	t.Setenv("GOTRACEBACK", "all")
	t.Setenv("SECRET", "1")
	for name, c := range map[string]struct {
		args  []string
		whole bool
		want  []string
	}{
		"a program":       {[]string{"/bin/x"}, false, nil},
		"whole":           {[]string{"/bin/x"}, true, []string{"/other/f", "/p", "/testdata/f", "/testdata/sub/f"}},
		"a test of Go":    {[]string{"/x.test", "-test.v"}, false, []string{"/p", "/testdata/.hidden/f", "/testdata/f", "/testdata/sub/f"}},
		"a test of whole": {[]string{"/x.test", "-test.v"}, true, []string{"/other/f", "/p", "/testdata/f", "/testdata/sub/f"}},
	} {
		s := &hostfiles.Set{}
		around, err := Surround(s, c.args, c.whole)
		require.NoError(t, err, name)
		var got []string
		for _, f := range s.Files() {
			if f.Mode.IsRegular() {
				require.Greater(t, len(f.Path), len(dir), name)
				got = append(got, f.Path[len(dir):])
			}
		}
		require.Equal(t, c.want, got, name)
		switch {
		case c.want == nil:
			require.Equal(t, Surroundings{}, around, name)
		case c.args[0] == "/x.test":
			require.Equal(t, []string{"GOTRACEBACK=all", "PWD=" + dir}, around.Env, name)
		default:
			require.Equal(t, Surroundings{Dir: dir, Env: []string{"PWD=" + dir}}, around, name)
		}
	}
}

func TestEnvironmentOfTheHost(t *testing.T) {
	host := []string{"CARGO_B=2", "CARGO_A=1", "CARGO=c", "HOME=/root", "EMPTY=", "ODD=a=b"}
	for text, want := range map[string][]string{
		"A=b": {"A=b"}, "A=": {"A="}, "A=*": {"A=*"}, "HOME": {"HOME=/root"}, "EMPTY": {"EMPTY="}, "ODD": {"ODD=a=b"},
		"NONE": nil, "CARGO_*": {"CARGO_A=1", "CARGO_B=2"}, "CARGO*": {"CARGO=c", "CARGO_A=1", "CARGO_B=2"},
	} {
		got, err := Environment([]string{text}, host)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "=x", "*", "A*B", "*=x", "A**"} {
		_, err := Environment([]string{text}, host)
		require.ErrorContains(t, err, "want NAME=VALUE", text)
	}
	require.Equal(t, []string{"A=3", "B=2"}, Latest([]string{"A=1", "B=2", "A=3"}))
}
