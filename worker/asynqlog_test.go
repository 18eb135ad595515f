package worker

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLinesThatAsynqRepeatsAreHandedOnOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		l := &asynqLogger{Logger: slog.New(slog.NewTextHandler(&b, nil))}
		for i := range 10 * 60 {
			l.Error(fmt.Sprintf("Dequeue error: dial attempt %d", i))
			l.Warn(fmt.Sprintf("Could not remove task id=%d", i))
			l.Debug("All queues are empty")
			<-time.After(time.Second)
		}
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if len(lines) != 20 {
			t.Errorf("%d lines in ten minutes, want one a minute of each of two kinds:\n%s", len(lines), b.String())
		}
		if last := lines[len(lines)-1]; !strings.Contains(last, "id=540") || !strings.Contains(last, "repeated=59") {
			t.Errorf("the last line: %s", last)
		}
		for i := range 3 * asynqKinds {
			l.Warn(fmt.Sprintf("kind %d", i))
		}
		if len(l.kinds) > asynqKinds {
			t.Errorf("%d kinds kept", len(l.kinds))
		}
	})
}
