package ci

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert/yaml"
	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/internal/tools/conformance/sections"
)

const version = "1.2.3"

// release is a folder with the file of a release, as make dist names it, and its checksum.
type release struct{ url, sum string }

func newRelease(t *testing.T) release {
	if runtime.GOOS != "linux" {
		t.Skip("the shell is for runners of Linux")
	}
	for _, tool := range []string{"curl", "bash", "sha256sum", "tar", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("there is no " + tool + " here")
		}
	}
	releasing.Lock()
	defer releasing.Unlock()
	if made.sum != "" {
		return made
	}
	dir := releases
	program := filepath.Join(dir, "kprobelab")
	out, err := exec.Command("go", "build", "-overlay", withLoader(t), "-tags", tags(), "-o", program, "../../../cmd/kprobelab").CombinedOutput()
	require.NoError(t, err, string(out))
	b, err := os.ReadFile(program)
	require.NoError(t, err)
	name := filepath.Join(dir, "kprobelab-"+version+"-linux-amd64.tar.gz")
	f, err := os.Create(name)
	require.NoError(t, err)
	sum := sha256.New()
	z, err := gzip.NewWriterLevel(io.MultiWriter(f, sum), gzip.BestSpeed)
	require.NoError(t, err)
	w := tar.NewWriter(z)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "kprobelab-" + version + "/kprobelab", Mode: 0o755, Size: int64(len(b))}))
	_, err = w.Write(b)
	require.NoError(t, errors.Join(err, w.Close(), z.Close(), f.Close()))
	made = release{"file://" + dir, hex.EncodeToString(sum.Sum(nil))}
	return made
}

// withLoader builds the loader of BPF programs, and an overlay that has it where make build puts it.
func withLoader(t *testing.T) string {
	loader, overlay := filepath.Join(releases, "loader.elf"), filepath.Join(releases, "overlay.json")
	build := exec.Command("go", "build", "-o", loader, "../../../internal/bpfloader")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS=linux", "GOARCH=amd64")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	place, err := filepath.Abs("../../../bpf/loader.elf")
	require.NoError(t, err)
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{place: loader}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, text, 0o600))
	return overlay
}

// tags are the build's: the loader, and the engine's where the tests have it.
func tags() string {
	if strings.Contains(os.Getenv("GOFLAGS"), "unicorn") {
		return "bpfloader,unicorn"
	}
	return "bpfloader"
}

// made is the release of all tests, in the folder releases.
var (
	releasing sync.Mutex
	made      release
	releases  string
)

func TestMain(m *testing.M) {
	var err error
	if releases, err = os.MkdirTemp("", "kprobelab-release"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(releases)
	os.Exit(code)
}

// lock is a lock of kernels, from which the key of the cache is made.
const lock = `{"version":1,"kernels":[{"word":"6.1","release":"6.1.0-56-cloud-amd64","sha256":"51349501a3d1ff83836437d2b365fd2d57f2feb8642d315e5181dec23d4c3275","cpu":"qemu64","cpus":1,"memory_mib":128}]}
`

// project is a checkout of a user's: a lock, a list of probes of which one attaches nowhere, two kernels.
func project(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"kernels.lock": lock, "probes.txt": "vfs_read\nnosuch\n", "one.elf": string(kprobelab.GuestELF()), "two.elf": string(kprobelab.GuestELF()), "three.elf": string(kprobelab.GuestELF()),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// sh runs a script in a folder, with an environment of its own, and returns what it prints and its exit code.
func sh(t *testing.T, dir string, env map[string]string, shell []string, script string) (string, int) {
	t.Helper()
	cmd := exec.Command(shell[0], append(shell[1:], script)...)
	cmd.Dir = dir
	for _, k := range slices.Sorted(maps.Keys(env)) {
		cmd.Env = append(cmd.Env, k+"="+env[k])
	}
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(out), exit.ExitCode()
	}
	require.NoError(t, err, string(out))
	return string(out), 0
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(b)
}

// suites is what CI hosts read of JUnit.
type suites struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
}

func junit(t *testing.T, dir, name string) (s suites) {
	t.Helper()
	require.NoError(t, xml.Unmarshal([]byte(read(t, dir, name)), &s))
	return s
}

// action is what the test reads of a composite action.
type action struct {
	Inputs map[string]struct {
		Default  string
		Required bool
	}
	Runs struct {
		Using string
		Steps []struct {
			Name, ID, Shell, Uses, Run string
			Env, With                  map[string]string
		}
	}
}

var expression = regexp.MustCompile(`\$\{\{ *([a-z0-9._]+) *\}\}`)

// runner runs the steps of the action as GitHub's runner does.
type runner struct {
	t    *testing.T
	dir  string
	temp string
	// inputs are the caller's; steps are the outputs by "steps.ID.outputs.NAME".
	inputs, steps map[string]string
	cache         map[string]string
	log           string
	summary       string
}

func (r *runner) value(text string) string {
	return expression.ReplaceAllStringFunc(text, func(e string) string {
		name := expression.FindStringSubmatch(e)[1]
		v, ok := r.steps[name]
		if input, is := strings.CutPrefix(name, "inputs."); is {
			v, ok = r.inputs[input]
		}
		require.True(r.t, ok, "%s has no value", e)
		return v
	})
}

// run returns the exit code of the first step that fails.
func (r *runner) run(a *action) int {
	path := os.Getenv("PATH")
	folder, err := filepath.Abs("../../../ci/github-action")
	require.NoError(r.t, err)
	for name, in := range a.Inputs {
		if _, ok := r.inputs[name]; !ok {
			require.False(r.t, in.Required, name)
			r.inputs[name] = in.Default
		}
	}
	for _, s := range a.Runs.Steps {
		if s.Uses != "" {
			r.cache = map[string]string{}
			for k, v := range s.With {
				r.cache[k] = r.value(v)
			}
			continue
		}
		files := map[string]string{}
		for _, name := range []string{"GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"} {
			files[name] = filepath.Join(r.temp, name)
			require.NoError(r.t, os.WriteFile(files[name], nil, 0o600))
		}
		env := map[string]string{
			"PATH": path, "HOME": r.temp, "CI": "true", "GITHUB_ACTIONS": "true", "RUNNER_TEMP": r.temp, "RUNNER_OS": "Linux", "GITHUB_WORKSPACE": r.dir,
			"GITHUB_ACTION_PATH": folder,
		}
		maps.Copy(env, files)
		for k, v := range s.Env {
			env[k] = r.value(v)
		}
		require.Equal(r.t, "bash", s.Shell)
		out, code := sh(r.t, r.dir, env, []string{"bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"}, r.value(s.Run))
		r.log += out
		for line := range strings.Lines(read(r.t, r.temp, "GITHUB_OUTPUT")) {
			name, v, ok := strings.Cut(strings.TrimSpace(line), "=")
			require.True(r.t, ok, line)
			r.steps["steps."+s.ID+".outputs."+name] = v
		}
		for line := range strings.Lines(read(r.t, r.temp, "GITHUB_PATH")) {
			path = strings.TrimSpace(line) + ":" + path
		}
		r.summary += read(r.t, r.temp, "GITHUB_STEP_SUMMARY")
		if code != 0 {
			return code
		}
	}
	return 0
}

func newRunner(t *testing.T, dir string, at release, inputs map[string]string) *runner {
	r := &runner{t: t, dir: dir, temp: t.TempDir(), steps: map[string]string{}, inputs: map[string]string{"url": at.url, "version": version, "sha256": at.sum}}
	maps.Copy(r.inputs, inputs)
	return r
}

func githubAction(t *testing.T) *action {
	a := &action{}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "../../../ci/github-action", "action.yml")), a))
	require.Equal(t, "composite", a.Runs.Using)
	return a
}

func TestGitHubAction(t *testing.T) {
	at, a := newRelease(t), githubAction(t)
	t.Run("check", func(t *testing.T) {
		dir := project(t)
		r := newRunner(t, dir, at, map[string]string{"kernels": "./one.elf ./two.elf", "probes": "probes.txt"})
		require.Equal(t, 1, r.run(a), r.log)
		require.Contains(t, r.log, "\n::error file=probes.txt,line=2,title=nosuch does not attach::")
		require.Regexp(t, `^kprobelab-[0-9a-f]{32}-1/1$`, r.cache["key"])
		require.Equal(t, "~/.cache/kprobelab/kernels", r.cache["path"])
		require.Equal(t, suites{4, 2}, junit(t, dir, "kprobelab-results/check.xml"))
		require.Contains(t, r.summary, "### kprobelab check\n\n    [1]")
		require.Contains(t, r.summary, "    nosuch")
		require.Contains(t, read(t, dir, "kprobelab-results/check.txt"), "2 of 4 attach")
	})
	t.Run("shards", func(t *testing.T) {
		one, dir := project(t), project(t)
		kernels := map[string]string{"kernels": "./one.elf ./two.elf ./three.elf", "probes": "probes.txt"}
		whole := newRunner(t, one, at, maps.Clone(kernels))
		require.Equal(t, 1, whole.run(a), whole.log)
		merge := func() (*runner, int) {
			kernels["shard"] = "merge"
			r := newRunner(t, dir, at, kernels)
			return r, r.run(a)
		}
		for _, s := range []string{"1/3", "3/3", "2/3"} {
			if s == "2/3" {
				r, code := merge()
				require.Equal(t, 3, code)
				require.Contains(t, r.log, "shard 2/3 is missing; run again: kprobelab check --shard 2/3 --kernel ./one.elf ")
			}
			kernels["shard"] = s
			r := newRunner(t, dir, at, kernels)
			require.Zero(t, r.run(a), r.log)
			require.Contains(t, r.cache["key"], "-"+s)
		}
		r, code := merge()
		require.Equal(t, 1, code)
		for _, file := range []string{"kprobelab-results/check.txt", "kprobelab-results/check.xml"} {
			require.Equal(t, read(t, one, file), read(t, dir, file))
		}
		require.Equal(t, whole.summary, r.summary)
	})
	t.Run("exec", func(t *testing.T) {
		kernels := dump(t, "6.1") + " " + dump(t, "newest")
		dir := project(t)
		r := newRunner(t, dir, at, map[string]string{"kernels": kernels, "tool": `/bin/sh -c 'echo "a  b"; exit 3'`})
		require.Equal(t, 3, r.run(a), r.log)
		require.Contains(t, r.log, "\na  b\n")
		require.Contains(t, r.log, "\n::error title=kprobelab exec::exit code 3; the table is in the log\n")
		require.Equal(t, suites{2, 2}, junit(t, dir, "kprobelab-results/exec.xml"))
		require.Contains(t, r.summary, "### kprobelab exec\n")
	})
	t.Run("object", func(t *testing.T) {
		kernels := dump(t, "6.1") + " " + dump(t, "newest")
		one, dir := project(t), project(t)
		for _, dir := range []string{one, dir} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "tool.bpf.o"), sections.Object("kprobe/nosuch"), 0o600))
		}
		whole := newRunner(t, one, at, map[string]string{"kernels": kernels, "object": "tool.bpf.o"})
		require.Equal(t, 1, whole.run(a), whole.log)
		require.Contains(t, whole.log, "\n::error file=tool.bpf.o")
		require.Equal(t, suites{2, 2}, junit(t, one, "kprobelab-results/load.xml"))
		require.Contains(t, whole.summary, "### kprobelab load\n")
		for _, s := range []string{"2/2", "1/2"} {
			r := newRunner(t, dir, at, map[string]string{"kernels": kernels, "object": "tool.bpf.o", "shard": s})
			require.Zero(t, r.run(a), r.log)
		}
		merged := newRunner(t, dir, at, map[string]string{"kernels": kernels, "object": "tool.bpf.o", "shard": "merge"})
		require.Equal(t, 1, merged.run(a), merged.log)
		require.Equal(t, whole.summary, merged.summary)
	})
	t.Run("wrong_checksum", func(t *testing.T) {
		r := newRunner(t, project(t), release{at.url, strings.Repeat("0", 64)}, map[string]string{"kernels": "./one.elf"})
		require.Equal(t, 3, r.run(a))
		require.Contains(t, r.log, "kprobelab-1.2.3-linux-amd64.tar.gz is not the file with the checksum 000")
	})
	t.Run("no_release", func(t *testing.T) {
		r := newRunner(t, project(t), release{at.url + "/nosuch", at.sum}, map[string]string{"kernels": "./one.elf"})
		require.Equal(t, 3, r.run(a))
		require.Contains(t, r.log, "/nosuch/kprobelab-1.2.3-linux-amd64.tar.gz cannot be fetched")
	})
	t.Run("no_lock", func(t *testing.T) {
		dir := project(t)
		require.NoError(t, os.Remove(filepath.Join(dir, "kernels.lock")))
		r := newRunner(t, dir, at, map[string]string{"kernels": "./one.elf"})
		require.Equal(t, 3, r.run(a))
		require.Contains(t, r.log, "kprobelab kernels lock RELEASE... pins some")
	})
}

// job is what the test reads of a job of GitLab's. A script's lines may have references.
type job struct {
	Extends      string
	Variables    map[string]string
	BeforeScript []string `yaml:"before_script"`
	Script       []any
	Artifacts    struct{ Reports map[string]string }
}

var reference = regexp.MustCompile(`!reference \[([^,\]]+), script\]`)

// gitlab runs a job of the template as GitLab's runner does: all lines in one shell, which ends with the first that fails.
func gitlab(t *testing.T, dir, name string, at release, variables map[string]string) (string, int) {
	t.Helper()
	text := reference.ReplaceAllString(read(t, "../../../ci/gitlab", "kprobelab.yml"), `"@$1"`)
	jobs := map[string]*job{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &jobs))
	env := map[string]string{"PATH": os.Getenv("PATH"), "HOME": t.TempDir(), "CI": "true", "GITLAB_CI": "true", "CI_PROJECT_DIR": dir}
	var lines []string
	var add func(j *job)
	add = func(j *job) {
		for _, l := range j.Script {
			if to, ok := strings.CutPrefix(l.(string), "@"); ok {
				add(jobs[to])
				continue
			}
			lines = append(lines, l.(string))
		}
	}
	j := jobs[name]
	base := jobs[j.Extends]
	lines = append(lines, base.BeforeScript...)
	add(j)
	require.Equal(t, map[string]string{"junit": "kprobelab-results/*.xml"}, j.Artifacts.Reports)
	for _, list := range []map[string]string{base.Variables, j.Variables, {"KPROBELAB_URL": at.url, "KPROBELAB_VERSION": version, "KPROBELAB_SHA256": at.sum}, variables} {
		for k, v := range list {
			env[k] = strings.ReplaceAll(v, "$CI_PROJECT_DIR", dir)
		}
	}
	return sh(t, dir, env, []string{"bash", "-c"}, "set -eo pipefail\n"+strings.Join(lines, "\n"))
}

func TestGitLabTemplate(t *testing.T) {
	at := newRelease(t)
	one, dir := project(t), project(t)
	kernels := map[string]string{"KERNELS": "./one.elf ./two.elf ./three.elf", "PROBES": "probes.txt"}
	whole, code := gitlab(t, one, ".kprobelab", at, kernels)
	require.Equal(t, 1, code, whole)
	require.Contains(t, whole, "3 of 6 attach")
	require.Equal(t, suites{6, 3}, junit(t, one, "kprobelab-results/check.xml"))

	for _, i := range []string{"1", "2", "3"} {
		kernels["CI_NODE_INDEX"], kernels["CI_NODE_TOTAL"] = i, "3"
		out, code := gitlab(t, dir, ".kprobelab", at, kernels)
		require.Zero(t, code, out)
	}
	out, code := gitlab(t, dir, ".kprobelab-merge", at, nil)
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "3 of 6 attach")
	require.Equal(t, read(t, one, "kprobelab-results/check.xml"), read(t, dir, "kprobelab-results/check.xml"))

	out, code = gitlab(t, project(t), ".kprobelab", release{at.url, strings.Repeat("0", 64)}, kernels)
	require.NotZero(t, code, out)

	t.Run("exec", func(t *testing.T) {
		dir := project(t)
		out, code := gitlab(t, dir, ".kprobelab", at, map[string]string{"KERNELS": dump(t, "6.1"), "TOOL": `/bin/sh -c 'echo "a  b"; exit 3'`})
		require.Equal(t, 3, code, out)
		require.Contains(t, out, "a  b\n")
		require.Equal(t, suites{1, 1}, junit(t, dir, "kprobelab-results/exec.xml"))
	})
}

func TestPlainShell(t *testing.T) {
	at := newRelease(t)
	script, err := filepath.Abs("../../../ci/plain.sh")
	require.NoError(t, err)
	lines := 0
	for line := range strings.Lines(read(t, "../../../ci", "plain.sh")) {
		if !strings.HasPrefix(line, "#") {
			lines++
		}
	}
	require.LessOrEqual(t, lines, 10, "ten lines")
	kernel := dump(t, "6.1")
	dir := project(t)
	env := map[string]string{"PATH": os.Getenv("PATH"), "HOME": t.TempDir(), "CI": "true", "URL": at.url, "VERSION": version, "SHA256": at.sum, "KERNELS": kernel, "PROBES": "probes.txt", "TOOL": "/bin/echo hi"}
	out, code := sh(t, dir, env, []string{"sh"}, script)
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "hi\n")
	require.Equal(t, suites{2, 1}, junit(t, dir, "check.xml"))
	require.Equal(t, suites{1, 0}, junit(t, dir, "exec.xml"))
	env["SHA256"] = strings.Repeat("0", 64)
	_, code = sh(t, project(t), env, []string{"sh"}, script)
	require.NotZero(t, code)
}

// Rule: every comparison that make starts either has shards, and lists its items without fetching anything, wherever the checkout is,
// or says that it has none.
func TestShardsOfComparisons(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no sh here")
	}
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	asks := regexp.MustCompile(`(?m)^(conformance[a-z-]*|transparency-uprobes-booted):.*\n\t@(?:\$\((shards|alone)\))?(scripts/[a-z-]+)(\$.*)?\.sh$`).FindAllStringSubmatch(read(t, root, "Makefile"), -1)
	require.Greater(t, len(asks), 20)
	blank := filepath.Join(t.TempDir(), "a b") // kbuild takes no such path
	require.NoError(t, os.Symlink(root, blank))
	env := func(more ...string) map[string]string {
		m := map[string]string{"PATH": os.Getenv("PATH"), "HOME": t.TempDir(), "http_proxy": "http://127.0.0.1:9"}
		for _, v := range more {
			name, value, _ := strings.Cut(v, "=")
			m[name] = value
		}
		return m
	}
	for _, m := range asks {
		target, kind, script := m[1], m[2], m[3]+".sh"
		switch {
		case kind == "shards":
			out, code := sh(t, root, env("LIST=1"), []string{"sh", "-c"}, "exec sh '"+filepath.Join(blank, script)+"'")
			require.Zero(t, code, "%s: %s", target, out)
			require.Regexp(t, `^([A-Z]+=[a-z0-9.-]+(\t[A-Z]+=[a-z0-9.-]+)?\n){2,}$`, out, target)
			out, code = sh(t, root, env("SHARD=1/2"), []string{"sh", "-c"}, "exec sh "+script)
			require.Equal(t, 2, code, target)
			require.Equal(t, "SHARD goes with make: make "+target+" SHARD=1/2\n", out)
		case kind == "":
			require.Equal(t, "conformance-all", target, "%s has neither $(shards) nor $(alone) in the Makefile", target)
		}
	}
	kernels := func(more ...string) string {
		out, code := sh(t, root, env(append(more, "LIST=1")...), []string{"sh", "-c"}, "exec sh scripts/conformance.sh")
		require.Zero(t, code, out)
		return out
	}
	require.Equal(t, "KERNEL=a b/c\n", kernels("KERNEL=a b/c"))
	require.Equal(t, "RELEASES=6.1\nRELEASES=6.12\n", kernels("RELEASES=6.1 6.12"))
	require.Equal(t, "SUITES=sid\tFLAVOURS=amd64\nSUITES=sid\tFLAVOURS=rt-amd64\n", kernels("SUITES=sid", "FLAVOURS=amd64 rt-amd64"))
	out, code := sh(t, root, env("LIST=1", "DRAWN=3", "SEED=7", "SUITES=bookworm trixie"), []string{"sh", "-c"}, "exec sh scripts/conformance-configs.sh")
	require.Zero(t, code, out)
	require.Equal(t, 4, strings.Count(out, "\tDRAWN=2\tCONFIGS=drawn-7-"), out)

	if _, err := exec.LookPath("make"); err == nil {
		out, code := sh(t, root, env("MAKEFLAGS=", "MAKELEVEL=0"), []string{"sh", "-c"}, "exec make -s -n conformance-trace -o build SHARD=1/2")
		require.Zero(t, code, out)
		require.Contains(t, out, ".cache/shards -target conformance-trace scripts/conformance-trace.sh\n")
		out, code = sh(t, root, env("MAKEFLAGS=", "MAKELEVEL=0"), []string{"sh", "-c"}, "exec make -s -n conformance-stap -o deps SHARD=1/2")
		require.NotZero(t, code)
		require.Contains(t, out, "make conformance-stap asks one kernel and has no SHARD: another machine takes another SEED, KERNEL or DUMPS")
	}
}

// blocks are the blocks of code of a language in docs/ci.md.
func blocks(t *testing.T, language string) (list []string) {
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(read(t, "../../../docs", "ci.md"), -1) {
		list = append(list, m[1])
	}
	return list
}

// Rule: the YAML of docs/ci.md is YAML; the shell of its Kubernetes job and of its Slurm array runs every shard, once.
func TestExamplesOfTheManual(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no sh here")
	}
	var job struct {
		Kind string
		Spec struct {
			Completions int
			Template    struct {
				Spec struct{ Containers []struct{ Command []string } }
			}
		}
	}
	for _, text := range blocks(t, "yaml") {
		var doc map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(text), &doc), text)
		if doc["kind"] == "Job" {
			require.NoError(t, yaml.Unmarshal([]byte(text), &job))
		}
	}
	require.Equal(t, "Job", job.Kind)
	arrays := blocks(t, "sh")
	require.Len(t, arrays, 1)

	dir := t.TempDir()
	stub := "#!/bin/sh\nwhile [ \"$1\" != --shard ]; do shift; done\necho \"$2\"\n"
	require.NoError(t, os.Mkdir(filepath.Join(dir, "kprobelab-1.2.3"), 0o700))
	for _, name := range []string{"kprobelab", "kprobelab-1.2.3/kprobelab"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(stub), 0o700))
	}
	env := map[string]string{"PATH": dir + ":" + os.Getenv("PATH"), "SLURM_SUBMIT_DIR": dir}
	for i := range job.Spec.Completions {
		env["JOB_COMPLETION_INDEX"] = fmt.Sprint(i)
		command := job.Spec.Template.Spec.Containers[0].Command
		out, code := sh(t, dir, env, command[:2], command[2])
		require.Zero(t, code, out)
		require.Equal(t, fmt.Sprintf("%d/%d\n", i+1, job.Spec.Completions), read(t, dir, fmt.Sprintf("%d.shard", i)))
	}
	for i := 1; i <= 16; i++ {
		env["SLURM_ARRAY_TASK_ID"] = fmt.Sprint(i)
		out, code := sh(t, dir, env, []string{"sh", "-c"}, arrays[0])
		require.Zero(t, code, out)
		require.Equal(t, fmt.Sprintf("%d/16\n", i), read(t, dir, fmt.Sprintf("%d.shard", i)))
	}
	require.Contains(t, arrays[0], "#SBATCH --array=1-16")
}

// dump links a booted kernel into a folder without a blank in its path: a list of kernels is words.
func dump(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".core")
	require.NoError(t, os.Symlink(runs.File(t, name), file))
	return file
}
