package api_test

import (
	"os"
	"os/exec"
	"testing"
)

// integrations is where the adapters are.
const integrations = "../../../deploy/integrations/"

// tries runs the program of an adapter, which drives the host's own packages, against the server.
func (s *server) tries(t *testing.T, adapter, key string, parts ...string) {
	t.Helper()
	run := exec.CommandContext(t.Context(), "node", append([]string{"try.mjs"}, parts...)...)
	run.Dir = client(t, integrations+adapter)
	run.Env = append(os.Environ(), "COMPACTOR_URL="+s.url, "COMPACTOR_KEY="+key)
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestIntegrationsAgentsSDK(t *testing.T) {
	s := newServer(t).works(t)
	s.tries(t, "openai-agents", s.key(t, "operate", "acme"), "turns", "items", "transactions", "guarded", "compaction", "unreachable")
}

func TestIntegrationsClaudeAgentSDK(t *testing.T) {
	s := newServer(t).works(t)
	s.tries(t, "claude-agent-sdk", s.key(t, "operate", "acme"), "readers", "calls", "imported", "unreachable", "cli")
}
