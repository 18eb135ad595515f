package config

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFormerKeysAreReadWithANotice(t *testing.T) {
	t.Parallel()
	former := map[string]string{"jobs.rest": "policy.cooldown", "worker.beat": "worker.heartbeat", "worker.slots": "worker.concurrency"}
	dir, path := write(t, "jobs:\n  rest: 3m\nworker:\n  beat: 5s\n")
	c, err := Load(LoadOptions{Dir: dir, deprecated: former, Environ: []string{"COMPACTOR_WORKER_SLOTS=7"}})
	if err != nil {
		t.Fatal(err)
	}
	if c.Policy.Cooldown != 3*time.Minute || c.Worker.Heartbeat != 5*time.Second || c.Worker.Concurrency != 7 {
		t.Errorf("%v, %v, %d", c.Policy.Cooldown, c.Worker.Heartbeat, c.Worker.Concurrency)
	}
	want := []string{
		path + ":2: jobs.rest is deprecated, use policy.cooldown",
		path + ":4: worker.beat is deprecated, use worker.heartbeat",
		"env COMPACTOR_WORKER_SLOTS: worker.slots is deprecated, use worker.concurrency",
	}
	if diff := cmp.Diff(want, c.Notices()); diff != "" {
		t.Error(diff)
	}
	if got := c.Origin("worker.heartbeat").String(); got != path+":4" {
		t.Errorf("the heartbeat comes from %s", got)
	}
	c, err = Load(LoadOptions{Dir: dir, deprecated: former, Environ: []string{"COMPACTOR_WORKER_SLOTS=7", "COMPACTOR_WORKER_CONCURRENCY=8"}})
	if err != nil || c.Worker.Concurrency != 8 {
		t.Errorf("the key of now does not go before the former one: %d, %v", c.Worker.Concurrency, err)
	}
	dir, path = write(t, "worker:\n  beat: 5s\n  heartbeat: 6s\n")
	_, err = Load(LoadOptions{Dir: dir, deprecated: former})
	if want := path + ":3: worker.heartbeat: given twice, first in line 2"; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Every former key leads to one that exists, and is none itself.
func TestFormerKeysLeadSomewhere(t *testing.T) {
	t.Parallel()
	for old, now := range deprecated() {
		if slices.Contains(Keys(), old) || !slices.Contains(Keys(), now) {
			t.Errorf("%s → %s", old, now)
		}
	}
}
