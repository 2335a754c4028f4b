package cmdline

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v3"

	"kprobelab/internal/terminal"
)

// tool is a program with a command of each kind: one with flags, one that runs a program, one that reads its options as
// getopt_long does, one with commands of its own.
func tool(out io.Writer, ran *[]string) *App {
	action := func(_ context.Context, c *cli.Command) error {
		*ran = append([]string{c.FullName(), c.String("name"), c.String("script")}, c.Args().Slice()...)
		return nil
	}
	flags := func() []cli.Flag {
		return []cli.Flag{
			&cli.StringFlag{Name: "name", Aliases: []string{"n"}, Usage: "the `NAME` of it"},
			&cli.StringFlag{Name: "script", Aliases: []string{"e"}, Value: "none", DefaultText: "none", Usage: "a script"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "say more"},
			&cli.BoolFlag{Name: "scripted", Hidden: true},
			&cli.IntFlag{Name: "count", HideDefault: true, Usage: "how many"},
			&cli.DurationFlag{Name: "wait", Usage: "how long"},
		}
	}
	a := &App{
		Command: &cli.Command{
			Name: "tool", Usage: "does things", Version: "1.2", Writer: out, ErrWriter: out, Description: "First.\n\nSecond.\n",
			Commands: []*cli.Command{
				{Name: "plain", ArgsUsage: "[WORD]", Usage: "does one thing", Flags: flags(), Action: action,
					Description: "One\nparagraph.\n\n.Another one -x.\n\nExamples:\n   tool plain\n     more of it\n   tool plain x\n\n'Last.\n"},
				{Name: "launch", ArgsUsage: "PROGRAM [ARGS]", Usage: "runs a program", Flags: flags(), Action: action},
				{Name: "getopt", ArgsUsage: "WORDS", Usage: "as a tool has it", Flags: flags(), Action: action},
				{Name: "group", Usage: "has commands", Action: OnlyCommands, Commands: []*cli.Command{{Name: "first", Usage: "is one", Action: action}, {Name: "second", Usage: "is two", Action: action}}},
			},
		},
		Groups:   []Group{{"Do", []string{"plain", "launch", "getopt"}}, {"Other", []string{"group", completionName}}},
		Programs: []string{"launch"}, Permuted: []string{"getopt"}, Shells: map[string]string{"fish": "a fish\n", "bash": "a bash\n"},
	}
	a.Commands = append(a.Commands, a.CompletionCommand(out, "completes", ""))
	a.Prepare()
	return a
}

// typed runs a command line, and returns what the command got, the output and the error's text.
func typed(t *testing.T, line string) (ran []string, out, failed string) {
	t.Helper()
	var b strings.Builder
	a := tool(&b, &ran)
	args, err := a.Permute(append([]string{"tool"}, strings.Fields(line)...))
	if err == nil {
		err = a.Run(context.Background(), args)
	}
	if err != nil {
		failed = err.Error()
		var f *Failure
		require.ErrorAs(t, err, &f)
		require.Equal(t, ExitUsage, f.Code)
	}
	return ran, b.String(), failed
}

// Options stand where people write them, and a program's own stay its own.
func TestOptionsAmongOperands(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"flags_of_the_program":     {"launch -n x prog -n y --name z", "tool launch|x|none|prog|-n|y|--name|z"},
		"dashes_before_it":         {"launch -v -- prog -- -n", "tool launch||none|prog|--|-n"},
		"no_program":               {"launch -v", "tool launch||none"},
		"value_at_the_letter":      {"getopt a -nx b", "tool getopt|x|none|a|b"},
		"letters_together":         {"getopt a -vn x", "tool getopt|x|none|a"},
		"letter_that_ends_it":      {"getopt -vex a", "tool getopt||x|a"},
		"begin_of_a_name":          {"getopt a --na=x", "tool getopt|x|none|a"},
		"begin_of_two_names":       {"getopt --script x a", "tool getopt||x|a"},
		"shown_before_hidden":      {"getopt a --scri x", "tool getopt||x|a"},
		"minus_is_an_operand":      {"getopt - -v", "tool getopt||none|-"},
		"dashes_end_the_options":   {"getopt -- -v", "tool getopt||none|-v"},
		"not_of_another_command":   {"plain a", "tool plain||none|a"},
		"value_that_looks_like_it": {"getopt -n -v a", "tool getopt|-v|none|a"},
	} {
		t.Run(name, func(t *testing.T) {
			ran, _, failed := typed(t, c.line)
			require.Empty(t, failed)
			require.Equal(t, c.want, strings.Join(ran, "|"))
		})
	}
}

// What is wrong with a command line is one sentence in plain words, with the name that may have been meant.
func TestErrorsOfACommandLine(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"flag":                {"plain --nosuch", "there is no flag --nosuch; try tool plain --help"},
		"slip_of_a_flag":      {"plain --verbos", "there is no flag --verbos; did you mean --verbose?"},
		"letter":              {"plain -q", "there is no flag -q; try tool plain --help"},
		"no_value":            {"plain --name", "--name needs a value; try tool plain --help"},
		"no_number":           {"plain --count x", `--count: "x" is not a number in its range; try tool plain --help`},
		"no_time":             {"plain --wait x", `--wait: "x" is not a time, such as 500ms or 10s; try tool plain --help`},
		"command":             {"plian", `there is no command "plian"; did you mean "plain"?`},
		"far_from_a_command":  {"nosuch", `there is no command "nosuch"; try tool --help`},
		"command_with_a_flag": {"nosuch --count 1", `there is no command "nosuch"; try tool --help`},
		"inner_command":       {"group frist", `there is no command "frist"; did you mean "first"?`},
		"help_of_none":        {"help nosuch", `there is no command "nosuch"; try tool --help`},
		"getopt_letter":       {"getopt -vq", "-q is no option of getopt; two dashes (--) end the options; try tool getopt --help"},
		"getopt_no_value":     {"getopt a -n", "-n needs a value; try tool getopt --help"},
		"getopt_long":         {"getopt a --name", "--name needs a value; try tool getopt --help"},
		"shell":               {"completion csh", "completion takes one shell: bash, zsh or fish"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, failed := typed(t, c.line)
			require.Equal(t, c.want, failed)
		})
	}
}

// Help comes however it is asked for, of the whole program by groups.
func TestHelp(t *testing.T) {
	_, all, failed := typed(t, "")
	require.Empty(t, failed)
	require.Contains(t, all, "\nDo:\n   plain       does one thing\n   launch      runs a program\n")
	require.Contains(t, all, "Usage:\n   tool [FLAGS] COMMAND\n\nFirst.\n\nSecond.\n")
	want := `tool plain - does one thing

Usage:
   tool plain [FLAGS] [WORD]

One paragraph.

.Another one -x.

Examples:
   tool plain
     more of it
   tool plain x

'Last.

Flags:
   --name, -n NAME         the NAME of it
   --script, -e STRING     a script (default: none)
   --verbose, -v           say more
   --count INT             how many
   --wait DURATION         how long
   --help, -h              show help
`
	for _, line := range []string{"plain --help", "help plain", "help help plain", "help --all plain", "plain x -h"} {
		_, out, failed := typed(t, line)
		require.Empty(t, failed, line)
		require.Equal(t, want, out, line)
	}
	_, out, failed := typed(t, "group")
	require.Empty(t, failed)
	require.Contains(t, out, "Commands:\n   first   is one\n   second  is two\n")
}

// A help that does not fit a screen is cut, and says how to get all of it; two programs in one process have their own.
func TestHelpThatDoesNotFit(t *testing.T) {
	var ran []string
	var short, whole strings.Builder
	one, two := tool(&short, &ran), tool(&whole, &ran)
	for _, a := range []*App{one, two} {
		a.Command.Command("plain").Description = "First.\n\n" + strings.Repeat("Many words.\n\n", 60) + "Examples:\n" + strings.Repeat("   tool plain\n", 20)
	}
	require.NoError(t, two.Run(context.Background(), []string{"tool", "help", "--all", "plain"}))
	require.NoError(t, one.Run(context.Background(), []string{"tool", "help", "plain"}))
	require.NotContains(t, short.String(), "Many words")
	require.Equal(t, shortExamples, strings.Count(short.String(), "   tool plain\n"))
	require.Contains(t, short.String(), "\n   --count --help --name --script --verbose --wait\n")
	require.True(t, strings.HasSuffix(short.String(), "\ntool help --all plain tells all of it.\n"), short.String())
	require.Equal(t, 60, strings.Count(whole.String(), "Many words"))
}

// Lines are filled to the columns of the help, by characters and not by bytes.
func TestWrapping(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"fits":     {strings.Repeat("é", HelpColumns), strings.Repeat("é", HelpColumns)},
		"letters":  {strings.Repeat("é", 30) + " " + strings.Repeat("x", 40), strings.Repeat("é", 30) + " " + strings.Repeat("x", 40)},
		"breaks":   {strings.Repeat("é", 40) + " " + strings.Repeat("x", 40), strings.Repeat("é", 40) + "\n  " + strings.Repeat("x", 40)},
		"one_long": {strings.Repeat("x", 100) + " y", strings.Repeat("x", 100) + "\n  y"},
		"nothing":  {"", ""},
	} {
		require.Equal(t, c.want, wrapped(c.text, "", "  "), name)
	}
}

// Nothing of a text is a command of roff's.
func TestManual(t *testing.T) {
	var ran []string
	var b strings.Builder
	require.NoError(t, tool(io.Discard, &ran).WriteMan(&b))
	require.Contains(t, b.String(), ".TH TOOL 1 \"\" \"tool 1.2\"\n.nh\n.SH NAME\ntool \\- does things\n")
	require.Contains(t, b.String(), "\\&.Another one \\-x.\n")
	require.Contains(t, b.String(), ".PP\n.nf\n   tool plain\n     more of it\n   tool plain x\n.fi\n")
	require.Contains(t, b.String(), "\\&'Last.\n")
	require.Contains(t, b.String(), ".TP\n\\-\\-script, \\-e STRING\na script")
	require.NotContains(t, b.String(), "scripted")
	require.Contains(t, b.String(), ".SS second\n")
}

// known completes the values of --name and operands.
type known struct{}

func (known) Value(r *Completion, _ *cli.Command, flag, typed string) {
	if flag == "name" {
		r.Choose([]Choice{{"Anna", "the first"}, {"anton", ""}, {"Bert", ""}}, typed)
		r.Files()
	}
}

func (known) Operand(r *Completion, cmd *cli.Command, typed string) {
	r.Offer(cmd.Name+typed, strings.Join(append(r.Operands, r.Flags["name"]...), ","))
}

func TestComplete(t *testing.T) {
	for name, c := range map[string]struct{ words, want string }{
		"commands":             {"bash|", "plain\tdoes one thing|launch\truns a program|getopt\tas a tool has it|group\thas commands|completion\tcompletes|"},
		"command":              {"bash|pl", "plain\tdoes one thing|"},
		"inner":                {"bash|group|s", "second\tis two|"},
		"none":                 {"bash|nosuch|x", ""},
		"flag":                 {"zsh|plain|--s", "--script\ta script|"},
		"help":                 {"zsh|plain|--he", "--help\tshow help|"},
		"value":                {"fish|plain|--name|an", "Anna\tthe first|anton\t|:files|"},
		"value_at_the_flag":    {"fish|plain|--name=B", "--name=Bert\t|:files|"},
		"value_as_bash_has_it": {"bash|plain|--name|=|B", "Bert\t|:files|"},
		"value_still_empty":    {"bash|plain|--name|=", "Anna\tthe first|anton\t|Bert\t|:files|"},
		"operand":              {"bash|plain|a|--name|b|-v|x", "plainx\ta,b|"},
		"program":              {"bash|launch|x", "launchx\t|"},
		"of_the_program":       {"bash|launch|prog|x", ":files|"},
		"flag_of_the_program":  {"bash|launch|prog|--name|B", ":files|"},
		"shell":                {"bash|completion|", "bash\t|fish\t|"},
		"no_words":             {"bash", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var ran []string
			var b strings.Builder
			tool(io.Discard, &ran).Complete(&b, strings.Split(c.words, "|"), known{})
			require.Equal(t, c.want, strings.ReplaceAll(b.String(), "\n", "|"))
		})
	}
	_, out, failed := typed(t, "completion fish")
	require.Empty(t, failed)
	require.Equal(t, "a fish\n", out)
}

// The options of another tool are taken without effect, or refused with a reason.
func TestOptionsOfATool(t *testing.T) {
	const table = "tool 3.1\n# A comment.\nB=\nk\nemit-elf= nothing is compiled\n\n  S   there is no server \n"
	for name, c := range map[string]struct{ args, want string }{
		"without_effect": {"-B x -k", ""},
		"with_a_reason":  {"--emit-elf x", "--emit-elf is an option of other that cannot be had: nothing is compiled; try get --help"},
		"letter":         {"-S", "-S is an option of other that cannot be had: there is no server; try get --help"},
	} {
		t.Run(name, func(t *testing.T) {
			o := ReadTool("other", table)
			require.Equal(t, "tool 3.1", o.Version)
			cmd := &cli.Command{Name: "get", Flags: o.Flags(), HideVersion: true, Action: func(_ context.Context, c *cli.Command) error { return o.Refuses(c) }}
			for _, f := range cmd.Flags {
				require.True(t, hidden(f))
			}
			err := cmd.Run(context.Background(), append([]string{"get"}, strings.Fields(c.args)...))
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.want)
		})
	}
}

// Values of several flags come in the order of the command line; flags that exclude each other are named in the order of the rule.
func TestFlags(t *testing.T) {
	var list []string
	word := func(s string) (string, error) {
		if s == "bad" {
			return "", errors.New("bad")
		}
		return "<" + s + ">", nil
	}
	cmd := func() *cli.Command {
		return &cli.Command{Name: "x", Flags: []cli.Flag{
			&cli.GenericFlag{Name: "a", Value: Parsed(&list, word)}, &cli.GenericFlag{Name: "b", Value: Parsed(&list, word)}, &cli.BoolFlag{Name: "c"},
		}, Action: func(_ context.Context, c *cli.Command) error { return OneOf(c, "c", "a", "b") }}
	}
	require.NoError(t, cmd().Run(context.Background(), []string{"x", "-a", "1", "-b", "2", "-a", "3"}))
	require.Equal(t, []string{"<1>", "<2>", "<3>"}, list)
	require.EqualError(t, cmd().Run(context.Background(), []string{"x", "-b", "1", "-c"}), "--c and --b exclude each other")
}

// A command gets its limits unless it has flags of its own by these names; a limit of one that ends by itself is its error.
func TestLimits(t *testing.T) {
	own := &cli.Command{Name: "x", Flags: []cli.Flag{&cli.StringFlag{Name: "timeout"}}}
	Limits{Output: 3}.Apply(terminal.New(io.Discard, io.Discard), own)
	require.Len(t, own.Flags, 2)

	term := terminal.New(io.Discard, io.Discard)
	c := &cli.Command{Name: "x", ExitErrHandler: func(context.Context, *cli.Command, error) {}, Action: func(ctx context.Context, _ *cli.Command) error {
		_, _ = term.Out.Write([]byte("four"))
		<-ctx.Done()
		return nil
	}}
	Limits{Output: 3, Ends: true}.Apply(term, c)
	err := c.Run(context.Background(), []string{"x"})
	require.EqualError(t, err, "the output has reached --max-output 3, and the command had not ended")
	var limit *terminal.LimitError
	require.ErrorAs(t, err, &limit)
	require.NoError(t, term.Ended())
	require.EqualError(t, NotNegative(-1), "--timeout -1ns: a time cannot be negative")
}

// The form of an output is text unless a flag says otherwise; a command need not have both flags.
func TestForms(t *testing.T) {
	for args, want := range map[string]string{"x": "text", "x --json": "json", "x --tsv": "tsv"} {
		got := ""
		c := &cli.Command{Name: "x", Flags: []cli.Flag{&cli.BoolFlag{Name: "json"}, &cli.BoolFlag{Name: "tsv"}},
			Action: func(_ context.Context, c *cli.Command) error { got = Form(c, "text", "json", "tsv"); return nil }}
		require.NoError(t, c.Run(context.Background(), strings.Fields(args)))
		require.Equal(t, want, got)
	}
	require.Equal(t, "text", Form(&cli.Command{}, "text", "json", ""))
}
