package extract

import (
	"path"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/shell"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolname"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// configured reports whether a tool changes something by the Options, and whether they name it.
func (s *history) configured(tool string) (acts, known bool) {
	longest := func(patterns []string) int {
		n := 0
		for _, p := range patterns {
			whole, _ := path.Match(p, tool) // without a match if the pattern is invalid
			short, _ := path.Match(p, toolname.Short(tool))
			if whole || short {
				n = max(n, len(p))
			}
		}
		return n
	}
	act, look := longest(s.acts), longest(s.looks)
	return act >= look, act+look > 0
}

// actsByVerb reports whether a call changes something, by the words of its name or by its
// command.
func actsByVerb(name, command string) bool {
	if command != "" {
		return shell.Acts(command)
	}
	return toolname.Acts(name)
}

// writesData reports whether an argument is a statement of SQL or of GraphQL that changes something.
func writesData(fs []argument.Field) bool {
	return slices.ContainsFunc(fs, func(f argument.Field) bool { return shell.WritesData(text.Head(f.Value, maxHandleInput)) })
}

// writesByMethod reports whether an argument is the method of a request by HTTP that changes something.
func writesByMethod(fs []argument.Field) bool {
	return slices.ContainsFunc(fs, func(f argument.Field) bool {
		return strings.HasSuffix(strings.ToLower(f.Key), "method") && writingMethod().MatchString(f.Value)
	})
}

var writingMethod = text.Pattern(`(?i)^(?:POST|PUT|PATCH|DELETE)$`)

// isConfirmed reports whether the user has just agreed to what the assistant asked to confirm.
func (s *history) isConfirmed() bool {
	n := len(s.turns)
	return n > 1 && s.turns[n-1].calls == 0 && (confirming().MatchString(s.turns[n-2].lastText) || lastQuestion(s.turns[n-2].lastText) != "") && agreeing().MatchString(s.turns[n-1].request.head)
}

var (
	confirming = text.Pattern(`(?i)\b(?:correct|right|ok(?:ay)?) *\?\s*$|\b(?:confirm|go ahead|proceed|is (?:that|this|it|everything) (?:right|correct|ok(?:ay)?|fine))\b`)
	agreeing   = text.Pattern(`(?i)^\W*(?:(?:yes|ye|fine|yeah|yep|yup|sure|ok(?:ay)?|correct|right|perfect|great|good|please do|go ahead|that(?:'?s| is) (?:right|correct|good|fine|it|confirmed|perfect|great)|sounds good|confirm(?:ed)?|` +
		`ja|genau|gerne|oui|d'accord|claro|vale|sim|certo)\b|(?:s[ií]|да)(?:[ ,.!]|$)|好|是的|可以|はい|네)`)
)
