package api

import (
	"context"
	"net/http"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/store"
)

// bulk registers the operations that undo many runs, or compact many sessions again.
func (a *api) bulk() {
	const get, post = http.MethodGet, http.MethodPost
	register(a, operation{
		scope: reads, method: get, path: "/v1/bulk/{kind}", id: "list-bulk",
		summary: "List bulk undos or recompactions, the newest first",
	}, listBulk)
	register(a, operation{
		scope: reads, method: get, path: "/v1/bulk/{kind}/{id}", id: "get-bulk",
		summary: "The progress of a bulk operation, how its runs ended, and what it left alone",
	}, getBulk)
	register(a, operation{
		scope: reads, method: get, path: "/v1/bulk/{kind}/{id}/refusals", id: "list-bulk-refusals",
		summary: "List what a bulk operation left alone, and why",
	}, listRefusals)
	register(a, operation{
		scope: operates, method: post, path: "/v1/bulk/{kind}", id: "start-bulk",
		summary: "Undo runs, or compact sessions again, that match; or count them",
	}, startBulk)
	register(a, operation{
		scope: operates, method: post, path: "/v1/bulk/{kind}/{id}/resume", id: "resume-bulk",
		summary: "Go on with a bulk operation",
	}, resumeBulk)
	register(a, operation{
		scope: operates, method: post, path: "/v1/bulk/{kind}/{id}/cancel", id: "cancel-bulk",
		summary: "End a bulk operation before its time",
	}, cancelBulk)
}

// BulkKind is the parameter of paths of bulk operations.
type BulkKind struct {
	Kind string `path:"kind" enum:"undo,compact"`
}

// BulkPath is the parameter of paths below a bulk operation.
type BulkPath struct {
	BulkKind
	ID int64 `path:"id" minimum:"1" doc:"The number of the bulk operation."`
}

type listBulkIn struct {
	BulkKind
	Newest
}

func listBulk(ctx context.Context, c *caller, in *listBulkIn) (*body[list[store.BulkOperation]], error) {
	number := func(b store.BulkOperation) int64 { return b.ID }
	return newest(c, in.Newest, number, func(before int64, limit int) ([]store.BulkOperation, error) {
		return c.store.Operator.Bulks(ctx, in.Kind, before, limit)
	})
}

// shownFirst is the number of runs or sessions that a preview names.
const shownFirst = 5

// shownRefusals is the number of refusals beside a bulk operation.
const shownRefusals = 20

func getBulk(ctx context.Context, c *caller, in *BulkPath) (*body[store.BulkReport], error) {
	return answer(c.store.Operator.BulkReport(ctx, in.Kind, in.ID, shownRefusals))
}

type listRefusalsIn struct {
	BulkPath
	Newest
}

func listRefusals(ctx context.Context, c *caller, in *listRefusalsIn) (*body[list[store.BulkRefusal]], error) {
	if _, err := c.store.Operator.Bulk(ctx, in.Kind, in.ID); err != nil {
		return nil, err
	}
	number := func(r store.BulkRefusal) int64 { return r.Run }
	return newest(c, in.Newest, number, func(before int64, limit int) ([]store.BulkRefusal, error) {
		return c.store.Operator.BulkRefusals(ctx, in.ID, before, limit)
	})
}

type startBulkIn struct {
	BulkKind
	Preview
	Body struct {
		All         bool           `json:"all,omitempty" doc:"Runs of all tenants."`
		Filter      store.RunMatch `json:"filter" required:"false" doc:"The runs, or the sessions by their last run; at least one of its parts."`
		Cascade     bool           `json:"cascade,omitempty" doc:"Of undo: also undo later runs of the same sessions."`
		From        string         `json:"from,omitempty" enum:"log,view" doc:"Of compact: the messages to read; log by default."`
		AllowGrowth bool           `json:"allow_growth,omitempty" doc:"Of compact: apply results that save less than the policy's minimum, too."`
		StopAt      float64        `json:"stop_at,omitempty" exclusiveMinimum:"0" maximum:"1" doc:"Of compact: as of sweeps."`
		Note        string         `json:"note,omitempty" doc:"Why, for those who look later."`
	}
}

type startBulkOut struct {
	Undo    *store.BulkUndoPreview    `json:"undo,omitempty" doc:"What an undo would be about."`
	First   []reports.Run             `json:"first,omitempty" doc:"Of the preview of an undo: the first runs, the newest first."`
	Compact *store.BulkCompactPreview `json:"compact,omitempty" doc:"What a recompaction would be about."`
	Bulk    *store.BulkReport         `json:"bulk,omitempty" doc:"The operation that was started. While an undo is open, resume goes on with it."`
}

func startBulk(ctx context.Context, c *caller, in *startBulkIn) (*body[startBulkOut], error) {
	if err := c.whom(in.Body.All); err != nil {
		return nil, err
	}
	if err := in.Body.Filter.Validate(); err != nil {
		return nil, invalid("body.filter", "%s", err)
	}
	st, out := c.all().Operator, startBulkOut{}
	var id int64
	var err error
	switch b := in.Body; {
	case in.only() && in.Kind == store.BulkUndo:
		p, err := st.PreviewBulkUndo(ctx, c.tenant, b.Filter)
		if err != nil {
			return nil, err
		}
		out.Undo = &p
		rows, err := st.Reader.FirstToUndo(ctx, c.tenant, b.Filter, shownFirst)
		for _, r := range rows {
			out.First = append(out.First, reports.NewRun(r))
		}
		return answer(out, err)
	case in.only():
		p, err := st.PreviewBulkCompact(ctx, c.tenant, b.Filter)
		out.Compact = &p
		return answer(out, err)
	case in.Kind == store.BulkUndo:
		if id, err = st.StartBulkUndo(ctx, c.tenant, b.Filter, b.Cascade, b.Note, c.by()); err == nil {
			err = goOn(ctx, st, id)
		}
	default:
		id, err = st.StartBulkCompact(ctx, c.tenant, b.Filter, store.Options{From: b.From, AllowGrowth: b.AllowGrowth}, b.StopAt, b.Note, c.by())
	}
	if err != nil {
		return nil, err
	}
	r, err := st.BulkReport(ctx, in.Kind, id, shownRefusals)
	out.Bulk = &r
	return answer(out, err)
}

// goOn undoes runs of a bulk undo for as long as a request waits.
func goOn(ctx context.Context, st store.Operator, id int64) error {
	for until := time.Now().Add(config.MaxWait); time.Now().Before(until); {
		if step, err := st.NextBulkUndo(ctx, id); err != nil || step.Run == 0 {
			return err
		}
	}
	return nil
}

func resumeBulk(ctx context.Context, c *caller, in *BulkPath) (*body[store.BulkReport], error) {
	st := c.all().Operator
	err := error(nil)
	if in.Kind == store.BulkUndo {
		err = goOn(ctx, st, in.ID)
	} else {
		err = st.ResumeBulkCompact(ctx, in.ID, c.by())
	}
	if err != nil {
		return nil, err
	}
	return answer(st.BulkReport(ctx, in.Kind, in.ID, shownRefusals))
}

func cancelBulk(ctx context.Context, c *caller, in *BulkPath) (*body[store.BulkReport], error) {
	st := c.all().Operator
	if _, err := c.store.Operator.Bulk(ctx, in.Kind, in.ID); err != nil {
		return nil, err
	}
	if err := st.CancelBulk(ctx, in.Kind, in.ID, c.by()); err != nil {
		return nil, err
	}
	return answer(st.BulkReport(ctx, in.Kind, in.ID, shownRefusals))
}
