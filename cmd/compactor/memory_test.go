package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store/storetest"
)

// memory holds the measurements of compactor bench memory, in the program as it is shipped,
// whatever this test is built with.
type memory struct {
	Peak   int64 `json:"peak_bytes"`
	Bytes  int64 `json:"bytes"`
	Before int64 `json:"tokens_before"`
	After  int64 `json:"tokens_after"`
}

// summarized returns a function that has a session of so many megabytes summarized by a
// worker process of its own.
func summarized(tb testing.TB) func(megabytes int) memory {
	tb.Helper()
	dsn := storetest.DB(tb, "memory", func(context.Context, string) error { return nil })
	environ := slices.DeleteFunc(os.Environ(), func(kv string) bool { // the program sees to that itself
		return strings.HasPrefix(kv, "GOGC=") || strings.HasPrefix(kv, "GOMEMLIMIT=")
	})
	environ = append(environ, "DATABASE_URL="+dsn, "REDIS_URL="+storetest.RealRedis(tb))
	program := os.Getenv("TEST_BINARY") // of a check that has built it
	if program == "" {
		program = filepath.Join(tb.TempDir(), "compactor")
		if out, err := exec.CommandContext(tb.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
			tb.Fatalf("build: %v\n%s", err, out)
		}
	}
	return func(megabytes int) (r memory) {
		bench := exec.CommandContext(tb.Context(), program, "bench", "memory", "--summary", "--json",
			"--megabytes", strconv.Itoa(megabytes), "--messages", strconv.Itoa(200*megabytes))
		bench.Env, bench.Stderr = environ, os.Stderr
		out, err := bench.Output()
		if err != nil {
			tb.Fatalf("%v\n%s", err, out)
		}
		if err := json.Unmarshal(out, &r); err != nil {
			tb.Fatalf("%v\n%s", err, out)
		}
		tb.Logf("%d MB at peak for %d MB, %d tokens become %d", r.Peak>>20, r.Bytes>>20, r.Before, r.After)
		// The policy of the bench compacts to 50,000 tokens, however many there were.
		if r.Bytes < int64(megabytes)<<20 || r.Peak == 0 || r.Before < 1_000_000 || r.After > 50_000 {
			tb.Errorf("%+v", r)
		}
		return r
	}
}

func TestALargeSessionIsSummarizedByItsOwnProcess(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the program")
	}
	summarized(t)(5)
}

// BenchmarkHugeSessionMemory reports the worker's memory at its peak for a session of
// 100 MB, which is to stay below 300 MB, and how many times as much that is as for a
// session of 10 MB.
func BenchmarkHugeSessionMemory(b *testing.B) {
	run := summarized(b)
	var small, huge memory
	for b.Loop() {
		small, huge = run(10), run(100)
	}
	b.ReportMetric(float64(huge.Peak)/1e6, "peak-MB")
	b.ReportMetric(float64(huge.Peak)/float64(max(small.Peak, 1)), "x-tenth")
}
