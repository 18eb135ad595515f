package argument

import (
	"slices"
	"strings"
	"unicode"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Form returns a value with one digit for each number and one letter for each word: 18:45 as 0:0.
func Form(v string) string {
	return wordRuns().ReplaceAllString(digitRuns().ReplaceAllString(v, "0"), "a")
}

var (
	digitRuns = text.Pattern(`\d+`)
	wordRuns  = text.Pattern(`\p{L}+`)
)

// Format returns values as text, without those that are in known. Values of a list follow
// their key, those of an object in an object the key of that. Briefly, what has letters has no key, and
// other values have its last word. A value of got stands in place of what was asked for under its key.
func Format(fs, known, got []Field, briefly bool) string {
	var parts []string
	key, path := "", ""
	if len(fs) > 0 && fs[0].Key != "" { // which tells what it is about
		path = fs[0].Path
	}
	for _, f := range fs {
		if slices.ContainsFunc(known, f.Is) {
			continue
		}
		k := strings.ReplaceAll(f.Key, "_", " ")
		shown := k
		if briefly {
			shown = k[strings.LastIndexByte(k, ' ')+1:]
			if vagueKeys[strings.ToLower(shown)] || slices.ContainsFunc(fs, func(o Field) bool { return o.Key != f.Key && strings.HasSuffix(o.Key, shown) }) {
				shown = k // pickup date, dropoff date
			}
			switch {
			case IsClock(f.Value):
				if shown = ofTime(k); slices.ContainsFunc(fs, func(o Field) bool { return o.Key != f.Key && ofTime(strings.ReplaceAll(o.Key, "_", " ")) == shown }) {
					shown = k
				}
			case (len(f.Value) > len("false") || strings.HasSuffix(k, " name")) && strings.ContainsFunc(f.Value, unicode.IsLetter) && !isCode(f.Value):
				shown = routeLabel().FindString(k)
			case strings.EqualFold(f.Value, "true") || strings.EqualFold(f.Value, "false"):
				shown = k // shared ride True
			}
		}
		if f.Path != path {
			if key, path = "", f.Path; path == "" && len(parts) > 0 { // what follows is none of its values
				parts[len(parts)-1] += ";"
			} else if path != "" {
				shown = strings.TrimSpace(strings.ReplaceAll(path, "_", " ") + ": " + shown)
			}
		}
		value := f.Value
		if i := slices.IndexFunc(got, f.Became); i >= 0 {
			value = got[i].Value + " (asked " + f.Value + ")"
		}
		if k == key && key != "" {
			parts[len(parts)-1] += " " + value
		} else {
			key = k
			parts = append(parts, strings.TrimSpace(shown+" "+value))
		}
	}
	return strings.ReplaceAll(strings.Join(parts, ", "), ";, ", "; ")
}

// IsClock reports whether a value is a time of the day.
func IsClock(v string) bool { return clock().MatchString(v) }

// clock is a time of the day.
var clock = text.Pattern(`^\d{1,2}:\d\d(?::\d\d)?$`)

// ofTime returns the key of a time of the day without the words that its value tells, unless these are all:
// "leaving" of "leaving time".
func ofTime(key string) string {
	words := strings.Fields(key)
	for len(words) > 1 && vagueKeys[strings.ToLower(words[len(words)-1])] {
		words = words[:len(words)-1]
	}
	return strings.Join(words, " ")
}

// routeLabel is the part of a key that tells from where to where.
var routeLabel = text.Pattern(`^(?i:from|to|origin|destination|departure|arrival|source|target)\b`)

// isCode reports whether a value is one word with a digit and capitals only: HAT123.
func isCode(v string) bool {
	return strings.ContainsFunc(v, unicode.IsDigit) && strings.ToUpper(v) == v && !strings.ContainsAny(v, " :@/")
}

// vagueKeys are last words of keys that say nothing without those before them.
var vagueKeys = text.Set(`time allowed options number type language length available count id seating status night day days est four`)
