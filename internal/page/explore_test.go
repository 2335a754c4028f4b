package page_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/page"
)

// hunt searches to the end in slices, and returns the answers' orders.
func hunt(t *testing.T, p *page.Page, q map[string]any) (orders []page.Order, last page.Explored) {
	t.Helper()
	q["do"] = "explore"
	ask(t, p, q, nil, &last)
	for slices := 0; last.Ended == ""; slices++ {
		require.Less(t, slices, 10_000)
		last = page.Explored{}
		ask(t, p, map[string]any{"do": "hunt", "runs": 100}, nil, &last)
		orders = append(orders, last.Orders...)
	}
	return orders, last
}

// scene is the scenario of a bug, as a question.
func scene(t *testing.T, p *page.Page, bug string) map[string]any {
	var e page.Explorable
	ask(t, p, map[string]any{"do": "explorable"}, nil, &e)
	for _, b := range e.Bugs {
		for _, s := range e.Scenarios {
			if b.Name == bug && b.Scenario == s.Name {
				require.NotEmpty(t, s.About)
				return map[string]any{"text": s.Text, "profile": b.Profile, "bug": bug, "bound": e.Bound}
			}
		}
	}
	require.Fail(t, "no bug "+bug)
	return nil
}

// A bug's bad orders are found and told; without the bug there is none.
func TestAnOrderThatBreaksIt(t *testing.T) {
	p := &page.Page{}
	q := scene(t, p, "34")
	orders, end := hunt(t, p, q)
	require.Positive(t, end.Bad)
	require.Contains(t, end.Ended, "end badly")
	var bad *page.Order
	var lanes []string
	for i, o := range orders {
		require.Equal(t, i, o.Number)
		require.LessOrEqual(t, o.From, len(lanes), "an order goes as the one before it up to a step of that one")
		lanes = append(lanes[:o.From:o.From], o.Lanes...)
		if o.Bad && bad == nil {
			bad = &orders[i]
			var whole page.Story
			ask(t, p, map[string]any{"do": "order", "number": o.Number, "whole": true}, nil, &whole)
			var got []string
			for _, s := range whole.Steps {
				got = append(got, s.Lane)
			}
			require.Equal(t, lanes, got)
		}
	}
	require.NotNil(t, bad)
	var s page.Story
	ask(t, p, map[string]any{"do": "order", "number": bad.Number}, nil, &s)
	require.True(t, s.Bad)
	require.Equal(t, bad.Verdict, s.Verdict)
	require.Equal(t, "34", s.Bug)
	require.Contains(t, fmt.Sprint(s.Steps), " write}")

	// By its link and by its file it is the same.
	for _, again := range []func() (q map[string]any, file []byte){
		func() (map[string]any, []byte) { return map[string]any{"do": "order", "link": s.Link}, nil },
		func() (map[string]any, []byte) { return map[string]any{"do": "order"}, []byte(s.File) },
	} {
		q, file := again()
		var other page.Story
		ask(t, &page.Page{}, q, file, &other)
		require.Equal(t, s, other)
	}
	var other page.Story
	ask(t, p, map[string]any{"do": "order"}, []byte(strings.Replace(s.File, "verdict "+s.Verdict, "verdict ok", 1)), &other)
	require.Equal(t, fmt.Sprintf("The file says ok, and the run has ended with %s here.", s.Verdict), other.Says)

	q["bug"] = ""
	_, end = hunt(t, p, q)
	require.Zero(t, end.Bad)
	require.Contains(t, end.Ended, "none ends badly")
}

// A search has bounds, and bad orders are kept although the good ones have filled their part.
func TestAHuntThatIsTooLarge(t *testing.T) {
	p := &page.Page{}
	var e page.Explorable
	ask(t, p, map[string]any{"do": "explorable"}, nil, &e)
	for _, s := range e.Scenarios {
		if s.Name == "four-hits" {
			orders, end := []page.Order(nil), page.Explored{}
			ask(t, p, map[string]any{"do": "explore", "text": s.Text, "bound": -1}, nil, &end)
			for range 30 {
				ask(t, p, map[string]any{"do": "hunt", "runs": 100}, nil, &end)
				orders = append(orders, end.Orders...)
			}
			require.Equal(t, 3000, end.Runs)
			require.LessOrEqual(t, len(orders), 300, "half of the room is for bad ones")
			return
		}
	}
	require.Fail(t, "no four-hits")
}

func TestHuntsThatCannotBe(t *testing.T) {
	p := &page.Page{}
	require.Contains(t, complaint(t, p, `{"do":"hunt"}`, nil), "no search has begun")
	require.Contains(t, complaint(t, p, `{"do":"order"}`, nil), "no search has begun")
	require.Contains(t, complaint(t, p, `{"do":"order","link":"AAAA"}`, nil), "the address has no whole schedule")
	require.Contains(t, complaint(t, p, `{"do":"order"}`, []byte("hello")), "no schedule")
	require.NotEmpty(t, complaint(t, p, `{"do":"explore","text":"hello"}`, nil))
	q := scene(t, p, "34")
	require.Contains(t, complaint(t, p, fmt.Sprintf(`{"do":"explore","text":%q,"bound":99}`, q["text"]), nil), "not one that the page has made")
	require.Contains(t, complaint(t, p, fmt.Sprintf(`{"do":"explore","text":%q,"bug":"x"}`, q["text"]), nil), `there is no bug "x"`)
	var end page.Explored
	q["do"] = "explore"
	ask(t, p, q, nil, &end)
	require.Contains(t, complaint(t, p, `{"do":"order","number":0}`, nil), "not one that the page has made")
}
