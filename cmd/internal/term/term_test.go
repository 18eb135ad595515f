package term

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFormats(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ got, want string }{
		"a small count":               {Count(7), "7"},
		"a count of thousands":        {Count(12345), "12,345"},
		"a count of millions":         {Count(int64(1234567)), "1,234,567"},
		"a negative count":            {Count(-123456), "-123,456"},
		"a negative hundred":          {Count(-100), "-100"},
		"few tokens":                  {Tokens(950), "950"},
		"thousands of tokens":         {Tokens(12_345), "12.3k"},
		"hundreds of thousands":       {Tokens(123_456), "123k"},
		"a rounding across a unit":    {Tokens(999_999), "1.0M"},
		"millions of tokens":          {Tokens(1_234_567), "1.2M"},
		"lost tokens":                 {Tokens(-2_500), "-2.5k"},
		"bytes":                       {Bytes(512), "512 B"},
		"megabytes":                   {Bytes(1_234_567), "1.2 MB"},
		"no time":                     {Duration(0), "0s"},
		"microseconds":                {Duration(250 * time.Microsecond), "250µs"},
		"milliseconds":                {Duration(340 * time.Millisecond), "340ms"},
		"almost a second":             {Duration(999600 * time.Microsecond), "1.0s"},
		"seconds":                     {Duration(1234 * time.Millisecond), "1.2s"},
		"almost a minute":             {Duration(59960 * time.Millisecond), "1m"},
		"a day, without its hours":    {Duration(24 * time.Hour), "1d"},
		"less than half a percent":    {Percent(-1, 1000), "0 %"},
		"minutes":                     {Duration(125 * time.Second), "2m 5s"},
		"hours":                       {Duration(3*time.Hour + 10*time.Minute), "3h 10m"},
		"days":                        {Duration(52 * time.Hour), "2d 4h"},
		"time backwards":              {Duration(-time.Second), "-1.0s"},
		"a share":                     {Percent(3, 8), "38 %"},
		"a share of nothing":          {Percent(0, 0), "–"},
		"one":                         {Plural(1, "session", "sessions"), "1 session"},
		"many":                        {Plural(1200, "session", "sessions"), "1,200 sessions"},
		"text that fits":              {Truncate("abc", 3), "abc"},
		"text that does not fit":      {Truncate("abcd", 3), "ab…"},
		"wide text that does not fit": {Truncate("日本語", 4), "日…"},
		"no room":                     {Truncate("abc", 0), ""},
		"controls are escaped":        {Clean("a\x1b[31mb\nc\td\x00\u202ee\a"), `a\x1b[31mb c d\x00\u202ee\a`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.got != tc.want {
				t.Errorf("got %q, want %q", tc.got, tc.want)
			}
		})
	}
}

type tokens int64

func sample(o Output) *Table {
	t := o.Table(Text("session"), Num("tokens"), Text("title"), Num("took"))
	t.Row("s-1", tokens(12345), "a title that goes on and on until it is cut", 1500*time.Millisecond)
	t.Row("s-22", uint8(7), Styled{"failed", o.Red})
	t.Row("evil\x1b[2J", nil, "日本", errors.New("x"))
	return t
}

func TestTable(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		out  Output
		want string
	}{
		"a pipe gets everything and no escape sequence": {
			want: "" +
				"session      tokens  title                                        took\n" +
				"s-1          12,345  a title that goes on and on until it is cut  1.5s\n" +
				"s-22              7  failed\n" +
				"evil\\x1b[2J          日本                                            x\n",
		},
		"a terminal gets styles and rows that fit": {
			out: Output{TTY: true, Color: true, Width: 40},
			want: "" +
				"\x1b[1msession\x1b[0m      \x1b[1mtokens\x1b[0m  \x1b[1mtitle\x1b[0m          \x1b[1mtook\x1b[0m\n" +
				"s-1          12,345  a title that…  1.5s\n" +
				"s-22              7  \x1b[31mfailed\x1b[0m\n" +
				"evil\\x1b[2J          日本              x\n",
		},
		"a terminal too narrow for any row keeps the numbers": {
			out: Output{TTY: true, Width: 5},
			want: "" +
				"session     tokens  title       took\n" +
				"s-1         12,345  a title t…  1.5s\n" +
				"s-22             7  failed\n" +
				"evil\\x1b[…          日本           x\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			tc.out.W = &b
			if err := sample(tc.out).Write(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNarrowTableLeavesOptionalColumnsOutAndCutsNoNumbers(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	table := Output{W: &b, TTY: true, Width: 40}.Table(Text("SESSION"), Num("TOKENS"), Text("KIND").IfRoom(), Num("AGE"), Text("TRIGGER").IfRoom())
	table.Row("a-session-with-a-long-name-of-its-own", "7,608 → 1,204", "undo", 90*time.Second, "application")
	if err := table.Write(); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"SESSION                   TOKENS     AGE\n" +
		"a-session-with-a…  7,608 → 1,204  1m 30s\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestPairs(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	o := Output{W: &b, Color: true}
	if err := o.Pairs([2]any{"sessions", 1200}, [2]any{"ok", Styled{"yes", o.Green}}); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[2msessions\x1b[0m  1,200\n\x1b[2mok\x1b[0m        \x1b[32myes\x1b[0m\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		total int64
		run   func(*Progress)
		want  string
	}{
		"a line at every quarter": {400, func(p *Progress) {
			for range 400 {
				p.Add(1)
			}
			p.Done("2.0s")
			p.Done("again")
		}, "import: 0 % (0 of 400)\nimport: 25 % (100 of 400)\nimport: 50 % (200 of 400)\nimport: 75 % (300 of 400)\nimport: 400, 2.0s\n"},
		"a leap over quarters is one line": {400, func(p *Progress) {
			p.Set(350)
			p.Set(10)
			p.Done("")
		}, "import: 0 % (0 of 400)\nimport: 75 % (350 of 400)\nimport: 350 of 400\n"},
		"an unknown total is told at the end": {0, func(p *Progress) {
			p.Add(1234)
			p.Done("")
		}, "import: 1,234\n"},
		"more than the total is the total": {10, func(p *Progress) {
			p.Add(50)
			p.Done("")
		}, "import: 0 % (0 of 10)\nimport: 10\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			tc.run(Output{W: &b}.Progress("import", tc.total))
			if diff := cmp.Diff(tc.want, b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProgressOnATerminalLeavesOneLine(t *testing.T) {
	t.Parallel()
	for _, total := range []int64{0, 40} {
		var b bytes.Buffer
		p := Output{W: &b, TTY: true, Width: 60}.Progress("sweep", total)
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() { p.Add(1) })
		}
		wg.Wait()
		p.Done("1.0s")
		last := b.String()[strings.LastIndexByte(b.String(), '\r')+1:]
		if last != "sweep: 40, 1.0s\n" {
			t.Errorf("total %d: last line %q", total, last)
		}
		if strings.Count(b.String(), "\n") != 1 {
			t.Errorf("total %d: %q", total, b.String())
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := JSON(&b, map[string]any{"a": "<b>", "n": 1}); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "{\n  \"a\": \"<b>\",\n  \"n\": 1\n}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDetectSeesNoTerminalInBuffersAndFiles(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, o := range []Output{Detect(&bytes.Buffer{}, nil), Detect(f, []string{"TERM=xterm"})} {
		if o.TTY || o.Color || o.Width != 0 {
			t.Errorf("%+v", o)
		}
	}
}

func TestLogger(t *testing.T) {
	t.Parallel()
	log := func(o Output, level, format string) string {
		var b bytes.Buffer
		o.W = &b
		o.Logger(level, format).Info("run done", "run_id", 7, "took", 1250*time.Millisecond)
		return b.String()
	}
	if got := log(Output{}, "info", "auto"); !strings.Contains(got, `"msg":"run done","run_id":7,"took_ms":1250}`) {
		t.Errorf("a pipe gets %q", got)
	}
	if got := log(Output{TTY: true}, "info", "auto"); !strings.Contains(got, "INF run done run_id=7 took=1.25s\n") {
		t.Errorf("a terminal gets %q", got)
	}
	if got := log(Output{}, slog.LevelWarn.String(), "json"); got != "" {
		t.Errorf("info on level warn: %q", got)
	}
}
