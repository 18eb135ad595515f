package text

import (
	"regexp"
	"testing"
)

// FuzzPattern: an automaton matches the texts that package regexp matches.
func FuzzPattern(f *testing.F) {
	for expr, s := range map[string]string{
		`(?i)\b(?:owner|editor)\s+(?:has\s+)?releas(?:ed|es)`: "the EDITOR has released it", `(?i)risk|straße`: "ri\u017f\u212a", `(?:(?:red|blue)\s+){1,3}paint[xyz]?`: "red blue paint",
		`(?im)^\s*(?:(?-i:Draft)|note):\s`: "a\nNOTE: b", `a(?:bc|b?d)*e+|[^x]yz`: "abdee", `(?i)σήμερα|ДА\b|ǆ`: "ΣΉΜΕΡΑ да ǅ", `(?s).*?end{0}x|(?:a|)(?:bb|c)d`: "\nx bbd",
		`(?m)\B^|a$`: "b\na\n", `\Aa|b\z`: "\xffb", `\PL+`: "日1",
	} {
		f.Add(expr, s)
	}
	f.Fuzz(func(t *testing.T, expr, s string) {
		if _, err := regexp.Compile(expr); err != nil || len(expr) > 200 {
			return
		}
		p := Pattern(expr)()
		if got, want := p.MatchString(s), p.Regexp.MatchString(s); got != want {
			t.Errorf("%q on %q: %t, and %t by package regexp", expr, s, got, want)
		}
	})
}
