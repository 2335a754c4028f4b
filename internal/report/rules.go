package report

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"kprobelab/kprobes/rule"
)

// ruleRow is one line of the list of rules.
type ruleRow struct {
	ID rule.ID   `json:"id"`
	Of rule.Kind `json:"of"`
	// Errno is the kernel's error number by name, "" if there is none.
	Errno  string `json:"errno"`
	Rule   string `json:"rule"`
	Source string `json:"source"`
}

// rules are all that an Explanation can name, in the kernel's order.
func rules() (list []ruleRow) {
	for _, kind := range []rule.Kind{rule.Registration, rule.OutOfLine, rule.Optimization} {
		for _, r := range rule.Of(kind) {
			row := ruleRow{ID: r, Of: kind, Rule: r.Why(), Source: r.Source()}
			if r.Errno() != 0 {
				row.Errno = r.Errno().Name()
			}
			list = append(list, row)
		}
	}
	return list
}

// WriteRules lists every rule that an Explanation can name.
func WriteRules(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "REASON\tOF\tERRNO\tRULE  [SOURCE]")
	for _, r := range rules() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s  [%s]\n", r.ID, r.Of, r.Errno, r.Rule, r.Source)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "\nNo caller sees the errno of an optimization rule: the probe keeps its int3.")
	return err
}

// WriteRulesJSON is WriteRules with one JSON object for each rule.
func WriteRulesJSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, r := range rules() {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
