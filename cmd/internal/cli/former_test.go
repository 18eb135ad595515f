package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/sessionstore/compactor/worker/jobs"
)

func TestTasksOfFormerVersionsAreDrained(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.config.Scheduler.RedeliverAfter = time.Hour
	p.config.Policy.Cron = "@yearly"
	names := p.backlog(30)
	p.sweep()
	sweeps, err := p.store.Scheduler.OpenSweeps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	page, _, err := p.store.Scheduler.SweepPage(t.Context(), sweeps[0].ID, len(names), time.Hour)
	if err != nil || len(page) != len(names) {
		t.Fatalf("%d runs are queued, %v", len(page), err)
	}

	redis, err := ParseRedis(p.config)
	if err != nil {
		t.Fatal(err)
	}
	client, inspector := asynq.NewClient(redis), asynq.NewInspector(redis)
	t.Cleanup(func() { _, _ = client.Close(), inspector.Close() })
	enqueue := func(id, typ, queue string, payload any, o ...asynq.Option) {
		t.Helper()
		raw, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Enqueue(asynq.NewTask(typ, raw), append(o, asynq.TaskID(id), asynq.Queue(queue))...); err != nil {
			t.Fatal(err)
		}
	}
	type former struct {
		Version int   `json:"v"`
		Run     int64 `json:"run"`
	}
	for i, d := range page {
		var o []asynq.Option
		if i%3 == 1 {
			o = append(o, asynq.ProcessIn(time.Hour))
		}
		id := fmt.Sprintf("run:%d:1", d.Run)
		enqueue(id, jobs.TypeRun, "bulk", former{1, d.Run}, o...)
		if i%3 == 2 {
			if err := inspector.ArchiveTask("bulk", id); err != nil {
				t.Fatal(err)
			}
		}
	}
	// These are others': of a program, of an installation with more runs, of one whose run of this
	// number was delivered more often, or by another trigger.
	run := page[0].Run
	foreign := map[string]string{"run:9999:1": "bulk", fmt.Sprintf("run:%d:7", run): "bulk", fmt.Sprintf("run:%d:1", run): "default"}
	for id, queue := range foreign {
		var f former
		if _, err := fmt.Sscanf(id, "run:%d:", &f.Run); err != nil {
			t.Fatal(err)
		}
		f.Version = 1
		enqueue(id, jobs.TypeRun, queue, f)
	}
	for i := range 200 {
		id, queue := fmt.Sprintf("mail-%d", i), []string{"default", "interactive", "bulk"}[i%3]
		foreign[id] = queue
		enqueue(id, "mail:send", queue, map[string]string{"to": strings.Repeat("x", i)})
	}

	p.start(schedules, works)
	p.awaitRest()
	p.wantOneEffect()
	for id, queue := range foreign {
		if task, err := inspector.GetTaskInfo(queue, id); err != nil || task.State != asynq.TaskStatePending {
			t.Errorf("another's task %s in %s: %v, %v", id, queue, task, err)
		}
	}
	for _, d := range page {
		if task, err := inspector.GetTaskInfo("bulk", fmt.Sprintf("run:%d:1", d.Run)); err == nil {
			t.Errorf("task %s is left, %s", task.ID, task.State)
		}
	}
}
