package cli

import (
	"fmt"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/worker/jobs"
)

// queues counts the tasks of the installation.
func (x *doctorReport) queues(client redis.UniversalClient, name jobs.Installation) {
	inspector := asynq.NewInspectorFromRedisClient(client)
	waiting, left := 0, 0
	existing, err := inspector.Queues()
	for _, queue := range existing {
		var info *asynq.QueueInfo
		if name.Queues()[queue] == 0 || err != nil {
			continue
		}
		if info, err = inspector.GetQueueInfo(queue); err == nil {
			waiting, left = waiting+info.Pending+info.Active, left+info.Retry+info.Archived
		}
	}
	if err != nil {
		x.add("redis", "queues", checkFail, err.Error(), "")
		return
	}
	status, detail := checkOK, fmt.Sprintf("installation %s: %s", name, term.Plural(int64(waiting), "task", "tasks"))
	if left > 0 {
		status, detail = checkWarn, fmt.Sprintf("%s, and %s that no worker of it could finish", detail, term.Count(int64(left)))
	}
	x.add("redis", "queues", status, detail, "the log of the workers says why: Postgres was away, or another installation has this name (redis.installation)")
}
