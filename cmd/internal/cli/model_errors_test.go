package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
)

// What a server refused is shown wherever the run is, which says that an extract stands in for
// the model's summary. Neither it nor anything else shows a time for what was imported without.
func TestARefusalOfAModelIsShown(t *testing.T) {
	t.Parallel()
	server := llmtest.New(llmtest.Step{Behaviour: llmtest.ModelNotFound, Times: 9})
	url, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	db := database(t)
	invoke(t, db, "import", file(t, "s.jsonl", themes("chat", 12))).want(t, 0)
	startWorker(t, append(db, "COMPACTOR_CONFIG="+file(t, "c.yaml", `
policy:
  summary: {on_failure: extractive}
llm:
  models: [{name: gpt-9, base_url: "`+url+`", window_tokens: 32000}]
`)), nil)
	r := decode[reports.Run](t, invoke(t, db, "compact", "chat", "--from=view", "--json", "--strategy=handoff:protect_last_n=2,tail_token_budget=200,max_summary_tokens=400").want(t, 0))
	const code, said = "model_not_found", `model_not_found, invalid_request_error: The model "gpt-9" does not exist or you do not have access to it.`
	if r.Outcome != "applied" || r.ErrorCode != code {
		t.Errorf("%+v", r)
	}
	invoke(t, db, "runs", "chat").want(t, 0, "applied: "+code)
	invoke(t, db, "runs", "--run=1").want(t, 0, "no model wrote the summary: "+code, "written by", "no model: an extract (the model failed: "+code+")", "failed call", code+": gpt-9 answered 404", said)
	if calls := decode[reports.Run](t, invoke(t, db, "runs", "--run=1", "--json").want(t, 0)).CallRows; len(calls) != 1 || calls[0].HTTPStatus != 404 || calls[0].ServerError != said {
		t.Errorf("%+v", calls)
	}
	invoke(t, db, "policy", "explain", "chat").want(t, 0, "last run", ": applied: "+code, code+": gpt-9 answered 404", said)
	invoke(t, db, "stats").want(t, 0, "MODEL FAILED")
	if a := decode[statsJSON](t, invoke(t, db, "stats", "--json").want(t, 0)).LastHour; len(a.Outcomes) != 1 || a.Outcomes[0].ModelFailed != 1 {
		t.Errorf("%+v", a)
	}

	year := time.Now().UTC().Format("2006-")
	if prompt := server.Requests()[0].User; strings.Contains(prompt, year) {
		t.Errorf("the prompt has a date: %s", prompt)
	}
	for _, m := range decode[struct{ Messages []store.MessageRow }](t, invoke(t, db, "view", "chat", "--all", "--json").want(t, 0)).Messages {
		if (m.Kind == "summary") == m.CreatedAt.IsZero() || strings.Contains(string(m.Message), year) {
			t.Errorf("%s %s: %s %s", m.Kind, m.ID, m.CreatedAt, m.Message)
		}
	}
	if out := invoke(t, db, "export", "chat").want(t, 0).stdout; strings.Count(out, "created_at") > 1 { // of the summary
		t.Errorf("export has times: %s", out)
	}
}

func TestAModelThatIsNotReachedIsShownWithTheCause(t *testing.T) {
	t.Parallel()
	env := append(database(t), "COMPACTOR_CONFIG="+file(t, "c.yaml", `
policy:
  summary: {on_failure: extractive}
llm:
  retry: {base: 1ms, max: 1ms}
  models: [{name: gone, base_url: "http://127.0.0.1:9/v1", window_tokens: 32000}]
`))
	invoke(t, env, "import", file(t, "s.jsonl", themes("chat", 12))).want(t, 0)
	startWorker(t, env, nil)
	invoke(t, env, "compact", "chat", "--from=view", "--strategy=handoff:protect_last_n=2,tail_token_budget=200,max_summary_tokens=400").want(t, 0, "unavailable")
	invoke(t, env, "runs", "--run=1").want(t, 0, "failed call", "dial tcp 127.0.0.1:9: connect: connection refused")
	damage(t, env, "DELETE FROM model_cooldowns") // as if it were over
	invoke(t, env, "doctor").want(t, 0, "! gone@127.0.0.1:9: no key required; the last call failed: unavailable: dial tcp 127.0.0.1:9: connect: connection refused")
}

func TestSmallLimitsAreShownWithTheirDigits(t *testing.T) {
	t.Parallel()
	for micros, want := range map[int64]string{0: "0.00", 1: "0.000001", 1000: "0.001", 10_000: "0.01", 20_500_000: "20.50", 1_234_567: "1.234567"} {
		if got := money(micros); got != want {
			t.Errorf("%d: %s, want %s", micros, got, want)
		}
	}
	env := append(database(t), "USER=ada")
	invoke(t, env, "limit", "set", "--tenant=acme", "--cost-per-day=0.001").want(t, 0, "cost in a day  0.00  0.001")
	invoke(t, env, "import", file(t, "s.jsonl", themes("chat", 2)), "--tenant=acme").want(t, 0)
	st := openStore(t, env)
	run, err := st.Request(t.Context(), store.Key{Tenant: "acme", Session: "chat"}, store.TriggerOperator, "", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := st.Worker.Claim(t.Context(), run, "w", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	id, _, _, err := st.Worker.AskSummary(t.Context(), store.SummaryCall{Run: run, Fence: c.Fence, Key: "k", PromptHash: "p"})
	if err == nil {
		err = st.Worker.AnswerSummary(t.Context(), id, store.SummaryAnswer{Model: "m", Attempts: 1, Input: 1000, CostMicros: 2000, Estimated: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	invoke(t, env, "limit", "list").want(t, 0, "cost in a day  0.002  0.001", "acme: the tokens and the cost of 1 call in the last day are estimates, as the server reported none")
}
