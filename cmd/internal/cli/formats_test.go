package cli

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/formats"
)

const rollout = `{"timestamp":"2026-01-02T03:04:05Z","type":"session_meta","payload":{"id":"roll","cwd":"/x","base_instructions":{"text":"You code."}}}
{"timestamp":"2026-01-02T03:04:05Z","type":"turn_context","payload":{"model":"gpt-4o"}}
{"timestamp":"2026-01-02T03:04:06Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}}
{"timestamp":"2026-01-02T03:04:07Z","type":"response_item","payload":{"type":"reasoning","summary":[],"encrypted_content":"HUSH"}}
{"timestamp":"2026-01-02T03:04:07Z","type":"response_item","payload":{"type":"function_call","name":"look","arguments":"{}","call_id":"c1"}}
{"timestamp":"2026-01-02T03:04:08Z","type":"response_item","payload":{"type":"function_call_output","output":"found","call_id":"c1"}}
{"timestamp":"2026-01-02T03:04:09Z","type":"event_msg","payload":{"type":"token_count"}}
`

func TestImportAndExportOfOtherFormats(t *testing.T) {
	t.Parallel()
	db := database(t)
	path := file(t, "rollout.jsonl", rollout)
	want := Imported{
		Sessions: 1, Messages: 4, New: 4, Counters: []string{"o200k_base"}, Formats: map[string]int{"codex": 1},
		Other:   map[string]int{"event_msg:token_count": 1, "joined": 1, "turn_context": 1},
		Dropped: map[string]int{"session codex": 1}, Failures: []Failure{},
		First: map[string]string{"turn_context": path + ": line 2", "joined": path + ": line 5", "event_msg:token_count": path + ": line 7"},
	}
	if diff := cmp.Diff(want, importedOf(t, invoke(t, db, "import", "--json", "--same-owner", path).want(t, 0)), noTime); diff != "" {
		t.Error(diff)
	}
	invoke(t, db, "import", "--format=codex", "--same-owner", path).want(t, 0, "formats      codex 1", "no messages  event_msg:token_count 1, joined to a message 1, turn_context 1")
	invoke(t, db, "view", "roll").want(t, 0, "gpt-4o", "You code.", "found")

	// An export can be imported again unchanged; lost content is reported.
	r := invoke(t, db, "export", "roll", "--format=codex", "--same-owner").want(t, 0, "lost in codex: id 4")
	invoke(t, db, "import", "--session-prefix=again/", file(t, "r.jsonl", r.stdout)).want(t, 0, "formats      codex 1")
	view := func(id string) []string {
		var out []string
		for _, m := range decode[struct{ Messages []store.MessageRow }](t, invoke(t, db, "view", "--json", id).want(t, 0)).Messages {
			out = append(out, string(m.Role)+" "+m.CreatedAt.String())
		}
		return out
	}
	if diff := cmp.Diff(view("roll"), view("again/roll")); diff != "" {
		t.Error(diff)
	}
	r = invoke(t, db, "export", "roll", "--format=anthropic", "--same-owner").want(t, 0, "lost in anthropic: created_at 4, id 4, reasoning 1")
	if strings.Contains(r.stdout, "HUSH") || !strings.Contains(r.stdout, `"tool_use"`) {
		t.Error(r.stdout)
	}
	out := t.TempDir() + "/out.json"
	summary := decode[struct{ Losses map[string]int }](t, invoke(t, db, "export", "roll", "--format=sharegpt", "-o", out, "--json").want(t, 0))
	if summary.Losses["created_at"] != 4 {
		t.Errorf("%+v", summary)
	}
	invoke(t, db, "import", "--session-prefix=share/", out).want(t, 0, "formats   sharegpt 1")

	// Reasoning goes whole, at either end.
	if r := invoke(t, db, "export", "roll", "--drop-reasoning").want(t, 0, "lost in chat: reasoning 1"); strings.Contains(r.stdout, "HUSH") {
		t.Error(r.stdout)
	}
	invoke(t, db, "import", "--drop-reasoning", "--session-prefix=plain/", path).want(t, 0, "reasoning 1")
	if r := invoke(t, db, "export", "plain/roll").want(t, 0); strings.Contains(r.stdout, "HUSH") {
		t.Error(r.stdout)
	}

	// Reasoning that is bound to its owner leaves him only by his word. An import says so too, and knows what it has.
	for _, how := range []string{"--view", "--log"} {
		if r := invoke(t, db, "export", "roll", how).want(t, 0, "lost in chat: signed reasoning 1"); strings.Contains(r.stdout, "HUSH") {
			t.Error(r.stdout)
		}
		if r := invoke(t, db, "export", "roll", how, "--same-owner").want(t, 0); !strings.Contains(r.stdout, "HUSH") {
			t.Error(r.stdout)
		}
	}
	got := importedOf(t, invoke(t, db, "import", "--json", path).want(t, 0))
	if got.New != 0 || got.Dropped["signed reasoning"] != 1 {
		t.Errorf("imported again: %+v", got)
	}
	invoke(t, db, "import", "--session-prefix=other/", path).want(t, 0, "signed reasoning 1")
	if r := invoke(t, db, "export", "other/roll", "--same-owner").want(t, 0); strings.Contains(r.stdout, "HUSH") {
		t.Error(r.stdout)
	}

	// A log with an invalid message is no session, and two are no file.
	broken := file(t, "broken.jsonl", rollout+"{\"type\":\"response_item\",\"payload\":{\"type\":\"message\"}}\n")
	invoke(t, db, "import", "--keep-going", "--session-prefix=broken/", broken).want(t, exitUsage, "broken.jsonl: line 8", "item: role")
	invoke(t, db, "view", "broken/roll").want(t, exitNotFound)
	invoke(t, db, "export", "--all-sessions", "--format=pi").want(t, exitUsage, "a file holds one session")
	invoke(t, db, "import", "--from-sql=x", "--query=x", "--format=pi").want(t, exitUsage, "--format: cannot be combined with --from-sql")
}

func TestTheFlagsNameEveryFormat(t *testing.T) {
	t.Parallel()
	field, _ := reflect.TypeFor[importCmd]().FieldByName("Format")
	if got, want := field.Tag.Get("enum"), "auto,"+strings.Join(formats.Names(), ","); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	invoke(t, nil, "export", "s", "--format=kimi").want(t, exitUsage, "--format: format kimi is only read; want one of chat, responses")
}
