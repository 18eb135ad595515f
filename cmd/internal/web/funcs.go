package web

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"net/url"
	"path"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/policies"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

// parse returns a template for each page, of the file of its name with parts.html and all results.
func (s *site) parse() map[string]*template.Template {
	base := template.Must(template.New("").Funcs(s.funcs()).ParseFS(files, "templates/parts.html"))
	if found, _ := fs.Glob(files, "templates/results-*.html"); len(found) > 0 {
		template.Must(base.ParseFS(files, found...))
	}
	names, _ := fs.Glob(files, "templates/*.html") // the pattern is valid
	out := map[string]*template.Template{}
	for _, file := range names {
		if name := strings.TrimSuffix(path.Base(file), ".html"); name != "parts" && !strings.HasPrefix(name, "results-") {
			out[name] = template.Must(template.Must(base.Clone()).ParseFS(files, file))
		}
	}
	return out
}

// assetsVersion returns a name that changes with the assets.
func assetsVersion() string {
	sum := sha256.New()
	_ = fs.WalkDir(files, "assets", func(name string, _ fs.DirEntry, _ error) error { // of embedded files
		raw, _ := files.ReadFile(name)
		_, _ = sum.Write(raw)
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

// funcs are the functions of templates. Texts go through text or lines, unless they are names that the program gives.
func (s *site) funcs() template.FuncMap {
	return template.FuncMap{
		"nonce": func() string { return s.nonce }, "token": func() string { return s.token },
		"asset": func(name string) string { return api.PagesPath + "assets/" + s.version + "/" + name },
		"post": func() template.HTMLAttr {
			const to = `method="post" action="` + api.PagesPath + `do" hx-post="` + api.PagesPath + `do" hx-target="next .result" hx-sync="drop"`
			return template.HTMLAttr(to + ` hx-swap="innerHTML" hx-nonce="` + s.nonce + `"`) //nolint:gosec // of constants
		},
		"dict": dict, "number": number, "list": func(v ...any) []any { return v }, "op": api.Path, "session": sessionURL, "run": func(id any) string { return api.PagesPath + "run?run=" + fmt.Sprint(id) },
		"link": link,
		"ends": func(by string) template.HTML { // an event, and a command as one
			event, command, ok := strings.Cut(template.HTMLEscapeString(term.Clean(by)), "compactor ")
			if ok {
				event += "<code>compactor " + command + "</code>"
			}
			return template.HTML(event) //nolint:gosec // escaped
		},
		"text": term.Clean, "lines": term.CleanLines, "sh": shell,
		"tok": func(v any) template.HTML { return quantity(number(v), "tok", "tokens") }, "num": func(v any) template.HTML { return quantity(number(v), "", "") },
		"exact": func(v any) string { return term.Count(int64(number(v))) }, "money": money, "micros": func(v any) string { return money(number(v) / 1e6) },
		"pct": func(v any) string { return strconv.FormatFloat(math.Round(number(v)*1000)/10, 'f', -1, 64) + " %" },
		"share": func(part, whole any) float64 {
			if number(whole) == 0 {
				return 0
			}
			return math.Round(100e3*number(part)/number(whole)) / 1e3
		},
		"add": func(a, b any) float64 { return number(a) + number(b) }, "sub": func(a, b any) float64 { return number(a) - number(b) },
		"mul": func(a, b any) float64 { return number(a) * number(b) }, "kinds": func() any { return outcomeKinds },
		"ago": func(t any) template.HTML { return when(t, time.Now()) }, "dur": func(seconds any) string {
			return term.Duration(time.Duration(number(seconds) * float64(time.Second)))
		},
		"plural": func(n any, one, many string) string { return term.Plural(int64(number(n)), one, many) },
		"title": func(s string) string {
			if s == "" {
				return s
			}
			return strings.ToUpper(s[:1]) + strings.ReplaceAll(s[1:], "_", " ")
		},
		"seqs": seqs, "words": func(s string) string { return strings.ReplaceAll(s, "_", " ") },
		"exactly":   func(n any) string { return strconv.FormatInt(int64(number(n)), 10) },
		"pauseLine": pauseLine, "ver": func(n int) string {
			if n == 0 {
				return ""
			}
			return "@" + strconv.Itoa(n)
		},
		"setting": policies.Setting, "match": func(m map[string]string) string { return policy.Match(m).String() },
	}
}

// dict returns a map of names and values in turn.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

// link returns the address of a page with a query of names and values in turn, without those that are empty.
func link(page string, query ...any) string {
	v := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		if value := fmt.Sprint(query[i+1]); value != "" {
			v.Set(query[i].(string), value)
		}
	}
	if len(v) == 0 {
		return api.PagesPath + page
	}
	return api.PagesPath + page + "?" + v.Encode()
}

// sessionURL returns the address of the page of a session.
func sessionURL(tenant, id string) string { return link("session", "tenant", tenant, "id", id) }

// plainRunes are the runes of words that a shell takes as they are.
const plainRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,"

// shell returns a command line, with the words quoted that need it.
func shell(words ...any) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		word := fmt.Sprint(w)
		if word != "" && strings.Trim(word, plainRunes) == "" {
			b.WriteString(word)
			continue
		}
		b.WriteString("'" + strings.ReplaceAll(term.Clean(word), "'", `'\''`) + "'")
	}
	return b.String()
}

// number returns the value of any number, or of a pointer to one; 0 for none.
func number(v any) float64 {
	x := reflect.ValueOf(v)
	for x.Kind() == reflect.Pointer {
		if x.IsNil() {
			return 0
		}
		x = x.Elem()
	}
	switch {
	case !x.IsValid():
		return 0
	case x.CanInt():
		return float64(x.Int())
	case x.CanUint():
		return float64(x.Uint())
	case x.CanFloat():
		return x.Float()
	}
	return 0
}

// short returns a number with three digits.
func short(n float64) string {
	for _, u := range []struct {
		of   float64
		name string
	}{{1e9, "B"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(n) >= u.of*0.9995 {
			v := n / u.of
			digits := 2 - int(math.Max(0, math.Floor(math.Log10(math.Abs(v)+0.0005))))
			text := strconv.FormatFloat(v, 'f', max(0, digits), 64)
			if strings.Contains(text, ".") {
				text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
			}
			return text + u.name
		}
	}
	return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64)
}

// quantity returns a number with its unit, and exactly in its title.
func quantity(n float64, unit, units string) template.HTML {
	out := `<span title="` + term.Count(int64(n)) + " " + units + `">` + short(n)
	if unit != "" {
		out += `<span class="unit">` + unit + `</span>`
	}
	return template.HTML(out + "</span>") //nolint:gosec // of numbers and constants
}

// money returns an amount in the unit that prices are in.
func money(v any) string {
	n := number(v)
	switch {
	case n == 0:
		return "0"
	case math.Abs(n) < 1:
		return strconv.FormatFloat(n, 'g', 3, 64)
	}
	return strconv.FormatFloat(n, 'f', 2, 64)
}

// when returns a time as the distance to now, with the time itself in its title.
func when(t any, now time.Time) template.HTML {
	var at time.Time
	switch v := t.(type) {
	case time.Time:
		at = v
	case *time.Time:
		if v != nil {
			at = *v
		}
	case string:
		at, _ = time.Parse(time.RFC3339Nano, v) // else none
	}
	if at.IsZero() {
		return `<span class="dim">never</span>`
	}
	d, text := now.Sub(at), ""
	switch {
	case d < 0 && -d < time.Second, d >= 0 && d < time.Second:
		text = "now"
	case d < 0:
		text = "in " + seconds(-d)
	default:
		text = seconds(d) + " ago"
	}
	stamp := at.UTC().Format(time.RFC3339)
	return template.HTML(`<time class="nw" datetime="` + stamp + `" title="` + stamp + `">` + text + `</time>`) //nolint:gosec // of times
}

// seconds returns a duration without parts of a second.
func seconds(d time.Duration) string {
	if d < time.Minute {
		return strconv.Itoa(int(d.Seconds())) + "s"
	}
	return term.Duration(d)
}

// seqs returns ranges as they are stored in the form of people: "2 to 25, 27".
func seqs(stored string) string {
	const most = 6
	ranges, err := chat.ParseRanges(stored)
	if err != nil {
		return stored
	}
	var parts []string
	for i, r := range ranges {
		if i == most {
			return strings.Join(parts, ", ") + " and " + term.Plural(len(ranges)-most, "more range", "more ranges")
		}
		part := strconv.FormatInt(int64(r.Lo), 10)
		if r.Hi > r.Lo+1 {
			part += " to " + strconv.FormatInt(int64(r.Hi-1), 10)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}
