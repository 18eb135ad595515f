package web_test

import (
	"strconv"

	"github.com/sessionstore/compactor/store"
)

// decided returns a run that wrote a summary, one that changed nothing, both of the tenant airline-desk, and its session with the largest view.
func (f *fleet) decided() (applied, skipped, large string) {
	f.Helper()
	sessions, _, err := f.st.Operator.Sessions(f.Context(), store.SessionFilter{Tenant: "airline-desk", Limit: 200})
	if err != nil {
		f.Fatal(err)
	}
	var most store.SessionRow
	for _, s := range sessions {
		if s.LiveTokens > most.LiveTokens {
			most = s
		}
	}
	k := store.Key{Tenant: "airline-desk", Session: most.Session}
	id, err := f.st.Request(f.Context(), k, store.TriggerOperator, "ada", store.Options{Pipeline: []store.Step{{Strategy: "keep_last_n_messages", Params: map[string]any{"n": 500}}}})
	if err != nil {
		f.Fatal(err)
	}
	if r, err := f.st.WaitRun(f.Context(), id); err != nil || r.Status != "skipped" {
		f.Fatalf("%+v, %v", r, err)
	}
	runs, err := f.st.Operator.Runs(f.Context(), store.RunFilter{Key: store.Key{Tenant: k.Tenant}, Status: "applied", Limit: 200})
	if err != nil || len(runs) == 0 {
		f.Fatal(runs, err)
	}
	return strconv.FormatInt(runs[0].ID, 10), strconv.FormatInt(id, 10), most.Session
}
