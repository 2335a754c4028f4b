package decoder

import (
	"strings"
	"sync"
)

// documents has the manual of each extension, and of each mnemonic that has another
// one, with = before it.
var documents = sync.OnceValue(func() map[string]string {
	text, err := opcodeFiles.ReadFile("opcodes/references.txt")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	list := map[string]string{}
	for line := range strings.Lines(string(text)) {
		at := strings.LastIndex(line, ": ")
		if line[0] == '#' || at < 0 {
			continue
		}
		for _, name := range strings.Fields(line[at+2:]) {
			if list[name] != "" {
				panic("BUG: opcodes/references.txt has " + name + " twice")
			}
			list[name] = line[:at]
		}
	}
	return list
})

// conditionPages are the pages that describe an instruction with all its conditions.
var conditionPages = []struct{ prefix, suffix, page string }{
	{"cfcmov", "", "CFCMOVcc"}, {"fcmov", "", "FCMOVcc"}, {"cmov", "", "CMOVcc"}, {"setzu", "", "SETZUcc"}, {"set", "", "SETcc"},
	{"ccmp", "", "CCMPscc"}, {"ctest", "", "CTESTscc"}, {"cmp", "xadd", "CMPccXADD"}, {"j", "", "Jcc"},
}

// page is the name of the page that describes a mnemonic.
func page(mnemonic string) string {
	switch mnemonic {
	case "jmp", "jmpf", "jmpabs", "setssbsy":
		return strings.ToUpper(mnemonic)
	}
	for _, c := range conditionPages {
		if strings.HasPrefix(mnemonic, c.prefix) && strings.HasSuffix(mnemonic, c.suffix) && len(mnemonic) <= len(c.prefix)+len(c.suffix)+4 {
			return c.page
		}
	}
	return strings.ToUpper(mnemonic)
}

// reference names the row's source: a manual and the instruction's page.
func reference(r *row) string {
	document, ok := documents()["="+r.mnemonic]
	if !ok {
		document = documents()[r.ext]
	}
	return document + ", " + page(r.mnemonic)
}
