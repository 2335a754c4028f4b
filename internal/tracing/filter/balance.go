package filter

import (
	"kprobelab/errno"
	"kprobelab/internal/tracing/word"
)

// balance is the first pass over the text: it checks parentheses and quotes (calc_stack), and
// returns the apparent number of terms.
func (p *parser) balance() (int, error) {
	open, terms, quoteAt := 1, 0, 0
	var quote byte
	inTerm := false
	for i := 0; i < len(p.text); i++ {
		c := p.text[i]
		switch {
		case word.IsSpace(c):
			continue
		case quote != 0:
			if c == quote {
				quote = 0
			}
			continue
		case c == '\'' || c == '"':
			quote, quoteAt = c, i
		case (c == '|' || c == '&') && p.at(i+1) == c:
			inTerm = false
			continue
		case c == '(':
			inTerm = false
			open++
			continue
		case c == ')':
			inTerm = false
			if open == 1 {
				return 0, p.fail(errno.EPERM, msgTooManyClose, i)
			}
			open--
			continue
		}
		if !inTerm {
			terms++
			inTerm = true
		}
	}
	if quote != 0 {
		return 0, p.fail(errno.ESRCH, msgMissingQuote, quoteAt)
	}
	if open != 1 {
		return 0, p.fail(errno.ENOENT, msgTooManyOpen, p.badOpen())
	}
	return terms, nil
}

// badOpen finds the parenthesis that is not closed, from the end.
func (p *parser) badOpen() int {
	level := 0
	var quote byte
	for i := len(p.text) - 1; i > 0; i-- {
		switch c := p.text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '(':
			if level == 0 {
				return i
			}
			level--
		case c == ')':
			level++
		case c == '\'' || c == '"':
			quote = c
		}
	}
	return 0
}

// isAlnum is the kernel's, which reads Latin-1.
func isAlnum(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' ||
		c >= 0xc0 && c != 0xd7 && c != 0xf7
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
