package extract

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestDigestMasksASecretInAllPlaces(t *testing.T) {
	t.Parallel()
	secret := "winter" + "2031"
	for _, redacted := range []bool{false, true} {
		d := New(Options{Redacted: redacted})
		d.Add(&chat.Message{Role: chat.RoleUser, Content: chat.TextContent("please fix test: " + secret + " in src/a.go")})
		d.Add(calls("", "c1", "shell", "command", `migrate "--target-token" `+secret, "env", "export DB_PASSWORD=\""+secret+"\""))
		if got := d.Text(2000); strings.Contains(got, secret) || !strings.Contains(got, "src/a.go") {
			t.Errorf("redacted %t: %q", redacted, got)
		}
	}
}
