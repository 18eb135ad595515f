//go:build !nodev

package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
)

// behaviours lists the behaviours that a script may name.
func behaviours() string {
	var names []string
	for _, b := range llmtest.Behaviours() {
		names = append(names, string(b))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// readScript reads the script of a model; it is empty for the path "".
func readScript(path string) (llmtest.Script, error) {
	if path == "" {
		return llmtest.Script{}, nil
	}
	f, err := os.Open(path) //nolint:gosec // the user's own file
	if err != nil {
		return llmtest.Script{}, wrong("--model-script: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	parsed, err := llmtest.Parse(f)
	if err != nil {
		return parsed, wrong("--model-script: %s: %w", path, err)
	}
	return parsed, nil
}

// startScript starts a scripted model and makes it the only one of cfg.
func startScript(played llmtest.Script, cfg *config.Config) (*llmtest.Server, error) {
	server := played.Server()
	url, err := server.Start()
	if err != nil {
		return nil, fmt.Errorf("--model-script: %w", err)
	}
	cfg.LLM.Models = []llm.Profile{{
		Name: "scripted", BaseURL: url, Window: 128_000, MaxOutput: 16_000, Price: llm.Price{Input: 0.25, Cached: 0.025, Output: 2},
	}}
	// Shorten backoff and deadlines, so that the demo does not wait.
	cfg.LLM.Retry.Base, cfg.LLM.Retry.Max = 10*time.Millisecond, 100*time.Millisecond
	cfg.LLM.Deadline.Min, cfg.LLM.Deadline.Max = 3*time.Second, 3*time.Second
	cfg.LLM.Cooldown.Transient = time.Second
	return server, nil
}

// modelNames returns the names of the configured models.
func modelNames(cfg config.Config) string {
	names := make([]string, len(cfg.LLM.Models))
	for i, p := range cfg.LLM.Models {
		names[i] = p.ID()
	}
	return strings.Join(names, ", ")
}
