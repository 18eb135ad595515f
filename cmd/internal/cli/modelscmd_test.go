package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

func TestModels(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "compactor.yaml")
	if err := os.WriteFile(file, []byte("models:\n  - {prefix: house, window: 32000, factor: 1.3}\npolicy:\n  windows: {tiny: 9000}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	invoke(t, nil, "models", "--config", file).want(t, 0,

		"claude-opus-5            1,000,000  Claude        o200k_base      1.5  table\n",
		"gpt-4                        8,192  OpenAI        cl100k_base   exact  table\n",
		"house                       32,000  other         o200k_base      1.3  settings\n", "table of 2026-11-22")
	type output struct {
		Date    string `json:"table_date"`
		Models  []modelJSON
		Learned []store.Calibration
	}
	for model, want := range map[string]modelJSON{
		"gpt-4":                  {Window: 8192, WindowFrom: "table", Family: "OpenAI", Encoding: "cl100k_base", Factor: 1},
		"anthropic/claude-4-new": {Window: 200_000, WindowFrom: "table", Family: "early Claude", Encoding: "o200k_base", Factor: 1.23, Estimated: true},
		"house-2":                {Window: 32_000, WindowFrom: "settings", Family: "other", Encoding: "o200k_base", Factor: 1.3, Estimated: true},
		"tiny":                   {Window: 9000, WindowFrom: "policy", Family: "other", Encoding: "o200k_base", Factor: 1.2, Estimated: true},
		"unlisted":               {Window: 128_000, WindowFrom: "unknown", Family: "other", Encoding: "o200k_base", Factor: 1.2, Estimated: true},
	} {
		got := decode[output](t, invoke(t, nil, "models", model, "--json", "--config", file).want(t, 0))
		want.Model = model
		if diff := cmp.Diff([]modelJSON{want}, got.Models); diff != "" || got.Date == "" || got.Learned == nil {
			t.Errorf("%+v\n%s", got, diff)
		}
	}
}

func TestWhatReportsHaveTaughtIsShown(t *testing.T) {
	t.Parallel()
	db := database(t)
	invoke(t, db, "models").want(t, 0)
	invoke(t, db, "doctor").want(t, 0, "✓ table of models: of 2026-11-22, 0 models in the settings", "✓ reported usage: none")
	st, err := store.Open(t.Context(), store.Config{URL: strings.TrimPrefix(db[0], "DATABASE_URL=")})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	// The start of the policy bounds what can be learned.
	err = st.Scheduler.SavePolicy(t.Context(), "p", []byte(`{}`), []store.Threshold{{DueTokens: 96_000}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []string{"default", "acme"} {
		k := store.Key{Tenant: tenant, Session: "s"}
		for i := range map[string]int{"default": 12, "acme": 2}[tenant] {
			m := chat.Message{ID: fmt.Sprint(i), Role: chat.RoleUser, Content: chat.TextContent("hello")}
			_, _, err := st.Append(t.Context(), k, "openai/gpt-4o", []store.NewMessage{{Message: m, Tokens: 2000, Counter: "test"}})
			if err == nil {
				_, err = st.ReportUsage(t.Context(), k, chat.Tokens(30_000+2500*(i+1)), 0)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	unknown := chat.Message{Role: chat.RoleUser, Content: chat.TextContent("hello")}
	if _, _, err := st.Append(t.Context(), store.Key{Session: "u"}, "house-7b", []store.NewMessage{{Message: unknown}}); err != nil {
		t.Fatal(err)
	}
	invoke(t, db, "models", "gpt-4o").want(t, 0, "default  gpt-4o       12    30,000   1.25  0.0 %")
	invoke(t, db, "models", "--all-tenants").want(t, 0, "acme     gpt-4o        2")
	invoke(t, db, "models", "gpt-4").want(t, 0, "cl100k_base")
	invoke(t, db, "doctor").want(t, 0,
		"✓ gpt-4o of tenant default: a prompt has 30,000 tokens and 1.25 for each one counted: 12 reports, 0.0 % off in the median",
		"✓ gpt-4o of tenant acme: 2 reports, too few yet",
		"house-7b: this model is not known: its window is taken as 128,000 tokens")
}
