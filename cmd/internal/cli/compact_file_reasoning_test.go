package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// thoughtful returns a history of that many turns in a format, whose answers have signed
// reasoning: SIG-1, SIG-2, ….
func thoughtful(format string, turns int) string {
	var out []string
	for i := 1; i <= turns; i++ {
		q, a, sig := fmt.Sprintf("question %d, and some more words", i), fmt.Sprintf("answer %d, and some more words", i), fmt.Sprintf("SIG-%d-", i)
		switch format {
		case "anthropic":
			out = append(out, fmt.Sprintf(`{"role":"user","content":%q}`, q),
				fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":%q},{"type":"text","text":%q}]}`, sig, a))
		case "responses":
			out = append(out, fmt.Sprintf(`{"type":"message","role":"user","content":%q}`, q),
				fmt.Sprintf(`{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":%q}`, i, sig),
				fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}`, a))
		default:
			out = append(out, fmt.Sprintf(`{"role":"user","content":%q}`, q),
				fmt.Sprintf(`{"role":"assistant","content":%q,"reasoning_details":[{"type":"reasoning.encrypted","data":%q}]}`, a, sig))
		}
	}
	key := "messages"
	if format == "responses" {
		key = "input"
	}
	return fmt.Sprintf(`{"model":"MODEL",%q:[%s]}`, key, strings.Join(out, ","))
}

// Models that bind reasoning to what precedes it refuse, or drop, what a compaction would
// otherwise keep with the newest messages.
func TestCompactFileKeepsNoSignedReasoningBehindAChange(t *testing.T) {
	t.Parallel()
	for format, models := range map[string][2]string{
		"anthropic": {"claude-fable-5-1", "claude-sonnet-4-5"}, "responses": {"gpt-6.2-astra", "gpt-5"}, "chat": {"anthropic/claude-opus-5.5", "anthropic/claude-opus-4.1"},
	} {
		for _, strategy := range []string{"summarization:target_count=4", "keep_last_n_messages:n=6"} {
			for i, model := range models {
				dir := t.TempDir()
				in, out := filepath.Join(dir, "in.json"), filepath.Join(dir, "out.json")
				if err := os.WriteFile(in, []byte(strings.ReplaceAll(thoughtful(format, 30), "MODEL", model)), 0o600); err != nil {
					t.Fatal(err)
				}
				args := []string{"compact-file", in, "--model", model, "--format", format, "--strategy", strategy, "--to", format, "--out", out}
				r := invoke(t, []string{"HOME=" + dir}, args...).want(t, 0)
				written, err := os.ReadFile(out)
				if err != nil {
					t.Fatal(err)
				}
				bound := i == 0
				if left := strings.Count(string(written), "SIG-"); (left == 0) != bound || strings.Contains(r.stdout, "signed reasoning") != bound {
					t.Errorf("%s for %s by %s: %d signatures are left\n%s\n%s", format, model, strategy, left, r.stdout, written)
				}
				if !strings.Contains(string(written), "answer 30") {
					t.Errorf("%s for %s by %s: the last answer is gone\n%s", format, model, strategy, written)
				}
			}
		}
	}
}
