package reference

import (
	"testing"
)

// A value that only tells how data or text is written is no reference; a message is.
func TestForms(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]bool{
		`json:"lamp_id,omitempty"`: true, "%s: %v": true, "- %s": true, "%d of %d": true,
		"failed to light the lamp: %v": false, "lamp_id": false, "100%": false, "/src/lamp.go": false,
	} {
		if isForm(v) != want {
			t.Errorf("%q: %v", v, !want)
		}
	}
}
