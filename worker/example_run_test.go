package worker_test

import (
	"context"
	"testing"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store/storetest"
)

// TestExample runs the example and compares its output. It has no Output comment, with which
// go test would run it on machines without a database, too; this test is skipped there.
func TestExample(t *testing.T) {
	t.Setenv("DATABASE_URL", storetest.DB(t, "worker-"+migrations.Fingerprint(), func(ctx context.Context, dsn string) error {
		_, err := migrations.Up(ctx, dsn, migrations.DefaultSchema)
		return err
	}))
	t.Setenv("REDIS_URL", storetest.Redis(t))
	if got, want := storetest.Printed(t, Example), "applied\nm1\nm2\nm6\n"; got != want {
		t.Errorf("the example prints\n%s\nwant\n%s", got, want)
	}
}
