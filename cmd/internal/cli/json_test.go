package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/store"
)

// The keys that `sessions --json` and `runs --json` write are part of the interface.
func TestKeysOfListedRowsAreStable(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.January, 31, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		row  any
		keys []string
	}{
		"session": {reports.WithStart(config.Default(), store.SessionRow{}), []string{
			"tenant", "session", "model", "messages", "messages_in_view", "total_tokens", "view_tokens", "context_tokens",
			"start_tokens", "due", "suspect", "revision", "last_message_at", "policy", "cursor",
		}},
		"run": {reports.NewRun(store.RunRow{
			ErrorCode: "c", Error: "e", Revision: 1, Undoes: 1, Steps: json.RawMessage(`[{}]`), PolicyHash: "h", Policy: "p", PolicyVersion: 1, Worker: "w", QueuedAt: at,
			StartedAt: &at, EndedAt: &at, Options: json.RawMessage(`{}`), Model: "m", Calls: 1, InputTokens: 1, OutputTokens: 1, CostMicros: 1, Fired: "f",
		}), []string{
			"run", "tenant", "session", "trigger", "kind", "requested_by", "status", "outcome", "error_code", "error", "in_force", "revision",
			"undoes", "messages_before", "messages_after", "tokens_before", "tokens_after", "utilization", "policy_hash", "policy", "policy_version", "worker", "attempts",
			"snoozes", "failures", "queued_at", "started_at", "ended_at", "options", "model", "model_calls", "input_tokens", "output_tokens",
			"cost_micros", "fired", "steps",
		}},
	} {
		b, err := json.Marshal(c.row)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{}
		for _, key := range c.keys {
			want[key] = true
		}
		have := map[string]bool{}
		for key := range got {
			have[key] = true
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
