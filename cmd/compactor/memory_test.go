package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store/storetest"
)

// A session of 100 MB is summarized within 300 MB of memory: the peak of the worker
// process, which is the program as it is shipped, whatever this test is built with.
func TestAHugeSessionIsSummarizedInLittleMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("stores 100 MB")
	}
	dsn := storetest.DB(t, "memory", func(context.Context, string) error { return nil })
	environ := slices.DeleteFunc(os.Environ(), func(kv string) bool { // the program sees to that itself
		return strings.HasPrefix(kv, "GOGC=") || strings.HasPrefix(kv, "GOMEMLIMIT=")
	})
	environ = append(environ, "DATABASE_URL="+dsn, "REDIS_URL="+storetest.RealRedis(t))
	program := filepath.Join(t.TempDir(), "compactor")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	bench := exec.CommandContext(t.Context(), program, "bench", "memory", "--summary", "--json")
	bench.Env, bench.Stderr = environ, os.Stderr
	out, err := bench.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var r struct {
		Peak   int64 `json:"peak_bytes"`
		Octets int64 `json:"octets"`
		Before int64 `json:"tokens_before"`
		After  int64 `json:"tokens_after"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%d MB at peak for %d MB, %d tokens become %d", r.Peak>>20, r.Octets>>20, r.Before, r.After)
	if r.Octets < 100<<20 || r.Peak > 300<<20 || r.Peak == 0 || r.After >= r.Before/100 {
		t.Errorf("%+v", r)
	}
}
