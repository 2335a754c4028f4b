package source

import "strings"

// basic is an integer's type in the words of C, in any of their orders, nil for a text of other words: debugging
// information has each in one order alone, and with "int" where C leaves it out.
func basic(text string) *Type {
	count := map[string]int{}
	for _, w := range strings.Fields(text) {
		switch w {
		case "const", "volatile":
		case "signed", "unsigned", "char", "short", "int", "long":
			count[w]++
		default:
			return nil
		}
	}
	t := &Type{Kind: Base, Size: 4, Name: text, Signed: count["unsigned"] == 0}
	switch {
	case len(count) == 0:
		return nil
	case count["char"] > 0:
		t.Size, t.Char = 1, true
	case count["short"] > 0:
		t.Size = 2
	case count["long"] > 0:
		t.Size = 8
	}
	return t
}
