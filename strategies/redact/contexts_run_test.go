package redact

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func allContexts() []context {
	return slices.Concat(connections(), files(), commandLines(), requests(), spoken(), tokens(), introducedSecrets(), rareSigns(), farValues(), listedKeys(), loggedPasswords())
}

func TestRedactHidesContexts(t *testing.T) {
	t.Parallel()
	for _, c := range allContexts() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before, after := c.around()
			for _, in := range []string{before + c.secret + after, "Some text.\n\n" + before + c.secret + after + "\n\nAnd on."} {
				got, found := Redact(in)
				if strings.Contains(got, c.secret) || found.Total() == 0 {
					t.Errorf("%q became %q", in, got)
				}
				if again, found := Redact(got); again != got || found.Total() != 0 {
					t.Errorf("%q became %q when redacted again", got, again)
				}
			}
		})
	}
}

// TestRedactKeepsJSON masks the contexts where a tool and a model put them: in strings of JSON, within others.
func TestRedactKeepsJSON(t *testing.T) {
	t.Parallel()
	for _, c := range allContexts() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before, after := c.around()
			text, secret := before+c.secret+after, c.secret
			for range 4 {
				quoted, _ := json.Marshal(secret)
				secret = string(quoted[1 : len(quoted)-1])
				doc, _ := json.Marshal(map[string]any{"at": 1, "command": text, "next": []string{"b"}})
				text = string(doc)
				got, found := Redact(text)
				if strings.Contains(got, secret) || found.Total() == 0 || !json.Valid([]byte(got)) {
					t.Errorf("%s\nbecame\n%s", text, got)
				}
				if again, found := Redact(got); again != got || found.Total() != 0 {
					t.Errorf("%s\nbecame\n%s\nwhen redacted again", got, again)
				}
			}
		})
	}
}

func TestRedactKeepsTraps(t *testing.T) {
	t.Parallel()
	for _, trap := range traps() {
		quoted, _ := json.Marshal(map[string]string{"content": trap})
		for _, in := range []string{trap, string(quoted)} {
			if got, found := Redact(in); got != in || found.Total() != 0 {
				t.Errorf("%q became %q", in, got)
			}
		}
	}
}
