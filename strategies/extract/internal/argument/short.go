package argument

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// graphQL is a document of GraphQL: what it is, and the first field that it asks for or changes.
var graphQL = text.Pattern(`^(?:#[^\n]*\n\s*)*(query|mutation)\b\s*\w*\s*(?:\([^{]*\)\s*)?\{\s*(?:\w+\s*:\s*)?(\w+)`)

// pageRef is the place of an element in a page of a browser, which says nothing of another one.
var pageRef = text.Pattern(`^(?:[a-z]\d+)+$`)

// Short returns copies of the first MaxCount values that are one short line, without their rows, of a document of GraphQL its first field.
func Short(fs []Field) []Field {
	var out []Field
	for _, f := range fs {
		v := strings.TrimSpace(f.Value)
		if m := graphQL().FindStringSubmatch(v); m != nil {
			f.Key, v = m[1], m[2]
		}
		if f.Key == "ref" && pageRef().MatchString(v) || f.Key == "yield_time_ms" || f.Key == "max_output_tokens" { // how a shell is waited for
			continue
		}
		if v == "" || v == "null" || text.Longer(v, MaxShort) || !prose.IsPrintable(v) || text.Longer(f.Key, MaxKey) || !prose.IsPrintable(f.Key) {
			continue
		}
		if out = append(out, Field{Key: strings.Clone(f.Key), Value: strings.Clone(v), Object: f.Object, Path: strings.Clone(f.Path), List: strings.Clone(f.List)}); len(out) == MaxCount {
			break
		}
	}
	return out
}

const (
	// MaxCount is the number of values that Short returns.
	MaxCount = 16
	// MaxShort is the number of characters of a short value.
	MaxShort = 120
)
