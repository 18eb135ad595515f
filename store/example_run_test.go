package store_test

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store/storetest"
)

// TestExamples runs the examples, which cannot have an Output comment: go test would
// run them on machines without a database too.
func TestExamples(t *testing.T) {
	dsn := storetest.DB(t, "examples "+migrations.Fingerprint(), func(ctx context.Context, dsn string) error {
		_, err := migrations.Up(ctx, dsn, migrations.DefaultSchema)
		return err
	})
	t.Setenv("DATABASE_URL", dsn)
	for _, example := range []struct {
		name, want string
		run        func()
	}{
		{"Store_View", "appended [1 2]\nrevision 0\nm1 user\nm2 assistant\n", ExampleStore_View},
		{"Store_History", "1 user\n2 assistant\n", ExampleStore_History},
	} {
		if got := printed(t, example.run); got != example.want {
			t.Errorf("Example%s prints\n%s\nwant\n%s", example.name, got, example.want)
		}
	}
}

// printed returns the text that run writes to standard output.
func printed(t *testing.T, run func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	run()
	os.Stdout = stdout
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
