package redact

import (
	"slices"
	"strings"
	"testing"
)

func TestRedactHidesContexts(t *testing.T) {
	t.Parallel()
	for _, c := range slices.Concat(connections(), files(), commandLines(), requests(), spoken(), tokens(), introducedSecrets(), rareSigns(), farValues()) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before, after, _ := strings.Cut(c.in, "%")
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

func TestRedactKeepsTraps(t *testing.T) {
	t.Parallel()
	for _, in := range traps() {
		if got, found := Redact(in); got != in || found.Total() != 0 {
			t.Errorf("%q became %q", in, got)
		}
	}
}
