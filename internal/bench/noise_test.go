package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNoise(t *testing.T) {
	quiet := Result{Path: "k", Handler: HandlerGo, NS: 364, Low: 358, High: 375}
	loud := Result{Path: "o", Handler: HandlerGo, NS: 100, Low: 90, High: 111}
	many := Result{Path: "b", Handler: HandlerGo, Others: 10, NS: 100, Low: 60, High: 100}
	free := Result{Path: "disabled", Handler: HandlerNone, NS: 0.1, Low: -0.4, High: 1.1}
	for _, tt := range []struct {
		name   string
		r      Report
		sounds string
	}{
		{"quiet", Report{Rounds: 101, Paths: []Result{quiet}, Floor: []Floor{{Name: "trap", NS: 240, Low: 235, High: 250}}}, ""},
		{"a_path_that_costs_nothing", Report{Rounds: 101, Paths: []Result{free}}, ""},
		{"nothing_measured", Report{Rounds: 1}, ""},
		{"one_round", Report{Rounds: 1, Paths: []Result{quiet}}, "too few rounds to compare: it takes 10"},
		{"loud_paths", Report{Rounds: 10, Paths: []Result{quiet, loud, many}}, "too noisy to compare: o (go), b (go, 10 others): half"},
		{"loud_floor", Report{Rounds: 10, Paths: []Result{quiet}, Floor: []Floor{{NS: 240, Low: 200, High: 260}}}, "too noisy to compare: the floor: half"},
		{"quartiles_at_the_limit", Report{Rounds: 10, Paths: []Result{{Path: "k", NS: 100, Low: 90, High: 110}}}, ""},
	} {
		n := tt.r.Noise()
		if tt.sounds == "" {
			require.Nil(t, n, tt.name)
			continue
		}
		require.NotNil(t, n, tt.name)
		require.Contains(t, n.String(), tt.sounds, tt.name)
	}
}
