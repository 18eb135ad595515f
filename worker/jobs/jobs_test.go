package jobs_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/sessionstore/compactor/worker/jobs"
)

func TestOnlyTasksOfTheInstallationAreRead(t *testing.T) {
	t.Parallel()
	const ours = jobs.Installation("compactor:a")
	for raw, want := range map[string][]int64{
		`{"v":1,"in":"compactor:a","runs":[7]}`:   {7},
		`{"v":1,"in":"compactor:a","runs":[7,9]}`: {7, 9},
	} {
		if ids, err := ours.ReadRuns(asynq.NewTask(jobs.TypeRun, []byte(raw))); err != nil || !slices.Equal(ids, want) {
			t.Errorf("%s: runs %v, %v", raw, ids, err)
		}
	}
	for name, task := range map[string]*asynq.Task{
		"another type":              asynq.NewTask("mail:send", []byte(`{"v":1,"in":"compactor:a","runs":[7]}`)),
		"another installation":      asynq.NewTask(jobs.TypeRun, []byte(`{"v":1,"in":"compactor:b","runs":[7]}`)),
		"no installation":           asynq.NewTask(jobs.TypeRun, []byte(`{"v":1,"runs":[7]}`)),
		"a payload of the future":   asynq.NewTask(jobs.TypeRun, []byte(`{"v":2,"in":"compactor:a","runs":[7]}`)),
		"no runs":                   asynq.NewTask(jobs.TypeRun, []byte(`{"v":1,"in":"compactor:a"}`)),
		"a run that is no id":       asynq.NewTask(jobs.TypeRun, []byte(`{"v":1,"in":"compactor:a","runs":[7,0]}`)),
		"a payload that is no JSON": asynq.NewTask(jobs.TypeRun, []byte("\x00")),
	} {
		if ids, err := ours.ReadRuns(task); !errors.Is(err, jobs.ErrForeign) {
			t.Errorf("%s: runs %v, %v, want ErrForeign", name, ids, err)
		}
	}
}

func TestQueuesOfInstallationsDiffer(t *testing.T) {
	t.Parallel()
	owner := map[string]jobs.Installation{"default": "another program", "interactive": "another program", "bulk": "another program"}
	for _, in := range []jobs.Installation{"compactor:a", "compactor:b", "staging:a"} {
		queues := in.Queues()
		for _, trigger := range []string{"operator", "event", "application", "nightly"} {
			if queues[in.QueueFor(trigger)] == 0 {
				t.Errorf("%s: no worker reads queue %s of trigger %s", in, in.QueueFor(trigger), trigger)
			}
		}
		for queue := range queues {
			if other, taken := owner[queue]; taken {
				t.Errorf("%s and %s share queue %s", in, other, queue)
			}
			owner[queue] = in
		}
	}
}
