// Package toolname reads the names of tools, such as mcp__shop__cancel_order: their words, and whether these say that the
// tool changes something or only looks. Its functions are pure and safe for concurrent use.
package toolname

import (
	"slices"
	"strings"
	"unicode"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Short returns the name of a tool without what is before its last dot.
func Short(tool string) string { return tool[strings.LastIndexByte(tool, '.')+1:] }

// Acts reports whether a tool changes something, by the words of its name.
func Acts(name string) bool { return !Looks(name) && slices.ContainsFunc(Words(name), IsActVerb) }

// Looks reports whether a tool only looks, by the words of its name: one looks, it does not begin with what
// acts, and nothing that acts is joined to it, as in find_and_close.
func Looks(name string) bool {
	words := Words(name)
	for i, w := range words {
		if (w == "and" || w == "then" || w == "or") && i+1 < len(words) && actVerbs[words[i+1]] {
			return false
		}
	}
	rest := words[1:]
	return lookVerbs[words[0]] || (!plainVerbs[words[0]] || len(rest) < 2) && slices.ContainsFunc(rest, func(w string) bool { return lookVerbs[w] })
}

// Takes reports whether the name of a tool says that it gets a thing for the user, such as a ride, and not what is
// known of it.
func Takes(name string) bool {
	words := Words(name)
	return words[0] == "get" && slices.ContainsFunc(words[1:], func(w string) bool { return takenNouns[w] })
}

var takenNouns = text.Set(`ride rides cab taxi lift ticket tickets seat seats table room refund loan coupon`)

// Words returns the words of a name in camelCase, snake_case or kebab-case, in lower
// case, without what is before its last dot and before the last two underscores.
func Words(name string) []string {
	name = Short(name)
	if i := strings.LastIndex(name, "__"); i > 0 {
		name = name[i+2:]
	}
	var out []string
	start := 0
	for i, r := range name {
		if i > start && (unicode.IsUpper(r) || !unicode.IsLetter(r)) {
			out = append(out, strings.ToLower(name[start:i]))
			start = i
		}
		if !unicode.IsLetter(r) {
			start = i + 1
		}
	}
	return append(out, strings.ToLower(name[min(start, len(name)):]))
}
