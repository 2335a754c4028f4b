// Package colour colours text for a terminal.
//
// It must not know what is printed, nor where.
package colour

// Style colours text, or does not.
type Style bool

// Wrap puts the text between the escape sequence of these attributes and the one that ends them.
func (s Style) Wrap(code, text string) string {
	if !s {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Red is the style of errors.
func (s Style) Red(text string) string { return s.Wrap("31", text) }

// Bold is the style of heads.
func (s Style) Bold(text string) string { return s.Wrap("1", text) }

// Cyan is the style of what a handler prints.
func (s Style) Cyan(text string) string { return s.Wrap("36", text) }
