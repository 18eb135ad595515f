package builtin

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// vector is one case of the conformance vectors: the input of a reference system and its
// result.
type vector struct {
	System   string   `json:"-"`
	ID       string   `json:"id"`
	Tags     []string `json:"tags"`
	Strategy struct {
		Type   string      `json:"type"`
		Params plan.Params `json:"params"`
	} `json:"strategy"`
	Messages []json.RawMessage `json:"messages"`
	// Breaks names the invariants that the reference itself breaks here.
	Breaks []string        `json:"reference_breaks"`
	Expect json.RawMessage `json:"expect"`
	// Raw is the whole line, repetitions written out.
	Raw json.RawMessage `json:"-"`
}

// chat reads the messages of a vector that are in the chat-completions format.
func (v *vector) chat() ([]chat.Message, error) {
	out := make([]chat.Message, len(v.Messages))
	for i, raw := range v.Messages {
		if err := json.Unmarshal(raw, &out[i]); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	return out, nil
}

// param reads one parameter, or returns def where there is none.
func param[T any](v *vector, name string, def T) T {
	given, ok := v.Strategy.Params[name]
	if !ok {
		return def
	}
	raw, err := json.Marshal(given)
	if err == nil {
		err = json.Unmarshal(raw, &def)
	}
	if err != nil {
		panic(fmt.Sprintf("case %s: parameter %s: %v", v.ID, name, err))
	}
	return def
}

// errSkipped is returned by a checker for a case that need not count.
var errSkipped = errors.New("skipped")

// checkers say where this package disagrees with a vector, by "system/type". A
// system whose name stands alone checks all its types.
var checkers = map[string]func(*vector) error{}

func TestConformance(t *testing.T) {
	t.Parallel()
	dir, given := os.LookupEnv("CONFORMANCE_DIR")
	if !given {
		dir = "testdata/conformance"
	}
	for _, system := range []string{"agent_framework", "hermes", "timbal"} {
		t.Run(system, func(t *testing.T) {
			files := vectorFiles(t, dir, system)
			if len(files) == 0 && given {
				t.Skipf("no vectors of %s in CONFORMANCE_DIR, %q", system, dir)
			}
			if len(files) == 0 {
				t.Fatalf("no vectors of %s in %q", system, dir)
			}
			agree, disagree, skipped := 0, 0, 0
			for _, file := range files {
				for _, v := range readVectors(t, file, system) {
					err := v.check()
					switch {
					case err == nil:
						agree++
					case errors.Is(err, errSkipped):
						skipped++
					default:
						if disagree++; disagree <= 20 {
							t.Errorf("%s %s (%s): %v", system, v.ID, v.Strategy.Type, err)
						}
					}
				}
			}
			fmt.Printf("conformance %s: %d cases, %d agree, %d disagree, %d skipped\n", system, agree+disagree+skipped, agree, disagree, skipped)
			if disagree > 20 {
				t.Errorf("%d more", disagree-20)
			}
		})
	}
}

// check runs the checker of a case; a panic disagrees.
func (v *vector) check() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	for _, key := range []string{v.System + "/" + v.Strategy.Type, v.System} {
		if check := checkers[key]; check != nil {
			return check(v)
		}
	}
	return fmt.Errorf("nothing checks %s", v.Strategy.Type)
}

// keepsInvariants runs strategies behind the guard.
func keepsInvariants(s *sessiontest.Session, strategies ...plan.Strategy) error {
	var fail failures
	s.Run(&fail, pipeline.Pipeline{Steps: strategies}, false)
	if err := cmp.Or(fail.err, s.Invariants(true)); err != nil {
		return fmt.Errorf("behind the guard: %w", err)
	}
	return nil
}

// failures keeps the first failure of a run.
type failures struct{ err error }

func (f *failures) Fatalf(format string, args ...any) {
	f.err = cmp.Or(f.err, fmt.Errorf(format, args...))
}

// vectorFiles returns the files of a system's vectors, plain or compressed.
func vectorFiles(t *testing.T, dir, system string) []string {
	t.Helper()
	var files []string
	for _, ending := range []string{"*.jsonl", "*.jsonl.gz"} {
		found, err := filepath.Glob(filepath.Join(dir, system+ending))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// readLines returns the contents of a file, decompressed where its name ends in ".gz".
func readLines(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if !strings.HasSuffix(file, ".gz") {
		return io.ReadAll(f)
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return io.ReadAll(z)
}

func readVectors(t *testing.T, file, system string) []*vector {
	t.Helper()
	data, err := readLines(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []*vector
	for i, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		v := &vector{System: system}
		var whole any
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		err := d.Decode(&whole)
		if v.Raw = line; err == nil && bytes.Contains(line, []byte(`"$rep"`)) {
			v.Raw, err = plainJSON(repeated(whole))
		}
		if err == nil {
			err = json.Unmarshal(v.Raw, v)
		}
		if err != nil {
			t.Fatalf("%s, line %d: %v", file, i+1, err)
		}
		out = append(out, v)
	}
	return out
}

// repeated writes out every {"$rep": [prefix, pattern, count, suffix]}.
func repeated(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = repeated(v[i])
		}
	case map[string]any:
		if rep, ok := v["$rep"].([]any); ok && len(v) == 1 && len(rep) == 4 {
			n, _ := rep[2].(json.Number).Int64()
			return rep[0].(string) + strings.Repeat(rep[1].(string), int(n)) + rep[3].(string)
		}
		for k := range v {
			v[k] = repeated(v[k])
		}
	}
	return v
}

// plainJSON is v as JSON with nothing escaped that need not be.
func plainJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
