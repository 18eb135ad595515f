package store_test

import (
	"context"
	"testing"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store/storetest"
)

// TestExamples runs the examples and compares their output. They have no Output
// comment, with which go test would run them on machines without a database, too; this
// test is skipped there.
func TestExamples(t *testing.T) {
	migrate := func(ctx context.Context, dsn string) error {
		_, err := migrations.Up(ctx, dsn, migrations.DefaultSchema)
		return err
	}
	for _, example := range []struct {
		name, want string
		run        func()
	}{
		{"Store_View", "appended [1 2]\nrevision 0\nm1 {\"role\":\"user\",\"content\":\"Hello\"}\nm2 {\"role\":\"assistant\",\"content\":\"Hi.\"}\n", ExampleStore_View},
		{"Store_History", "1 user\n2 assistant\n", ExampleStore_History},
	} {
		t.Run(example.name, func(t *testing.T) {
			t.Setenv("DATABASE_URL", storetest.DB(t, "examples "+migrations.Fingerprint(), migrate))
			if got := storetest.Printed(t, example.run); got != example.want {
				t.Errorf("Example%s prints\n%s\nwant\n%s", example.name, got, example.want)
			}
		})
	}
}
