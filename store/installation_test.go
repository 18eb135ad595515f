package store

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/migrations"
)

func TestInstallationsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	add := func(what string, s *Store) {
		t.Helper()
		name := must(s.Installation(t.Context()))(t)
		if other, taken := names[name]; taken {
			t.Errorf("%s and %s have the name %s", what, other, name)
		}
		names[name] = what
		if !strings.HasPrefix(name, s.schema+":") {
			t.Errorf("%s: the name %s does not begin with the schema %s", what, name, s.schema)
		}
	}
	first, dsn := openDSN(t)
	add("a schema", first)
	add("a copy of its database", open(t))
	must(migrations.Up(t.Context(), dsn, "staging"))(t)
	staging := must(Open(t.Context(), Config{URL: dsn, Schema: "staging"}))(t)
	t.Cleanup(staging.Close)
	add("another schema of its database", staging)
	k := Key{Session: "s"}
	must2(first.Append(t.Context(), k, "", talk("m", 2)))(t)
	must2(staging.Append(t.Context(), k, "", talk("n", 3)))(t)
	if own, other := liveSeqs(t, first, k), liveSeqs(t, staging, k); len(own) != 2 || len(other) != 3 {
		t.Errorf("%v and %v, want a session in each schema", own, other)
	}
	noError(t, first.Admin.DropSchema(t.Context()))
	must(migrations.Up(t.Context(), dsn, migrations.DefaultSchema))(t)
	add("a new schema in its place", first)
}
