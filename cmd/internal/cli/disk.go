package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
)

// diskJSON is the disk space of the tables and its budget.
type diskJSON struct {
	store.DiskUse
	Budget int64 `json:"budget_bytes"`
}

// String returns "95.0 GB of 100 GB, 5.2 GB of them freed by the archive".
func (d diskJSON) String() string {
	text := fmt.Sprintf("%s of %s", term.Bytes(d.Bytes), term.Bytes(d.Budget))
	if d.Freed > 0 {
		text += fmt.Sprintf(", %s of them freed by the archive", term.Bytes(d.Freed))
	}
	return text
}

// diskUse returns the disk space, nil without a budget or for a connection that is bound to a tenant.
func diskUse(ctx context.Context, st *store.Store, c scheduler.Config) (*diskJSON, error) {
	if c.DiskBudget == 0 {
		return nil, nil
	}
	use, err := st.Scheduler.DiskUse(ctx)
	if errors.Is(err, store.ErrForbidden) {
		return nil, nil
	}
	return &diskJSON{use, int64(c.DiskBudget)}, err
}

// disk compares the disk space of the tables with its budget.
func (x *doctorReport) disk(ctx context.Context, st *store.Store, c scheduler.Config) error {
	use, err := diskUse(ctx, st, c)
	const section, name = "postgres", "disk budget"
	switch {
	case err != nil || use == nil:
	case use.Bytes <= use.Budget:
		detail := use.String()
		if use.Freed > 0 {
			detail += ", which Postgres uses again after a vacuum"
		}
		x.add(section, name, checkOK, detail, "")
	case use.Bytes-use.Freed <= c.DiskMark():
		x.add(section, name, checkWarn, use.String(), "Postgres uses freed space again after a vacuum; VACUUM FULL of message_body returns it to the disk, and locks the table meanwhile")
	case use.More:
		x.add(section, name, checkWarn, use.String()+", and more can be archived", "the leading scheduler does so every ten minutes: is one running?")
	default:
		x.add(section, name, checkWarn, use.String()+"; all that left the view more than a day ago is archived",
			"more disk, a policy with retention.purge_after, or VACUUM FULL of message_body, which returns freed space to the disk and locks the table meanwhile")
	}
	return err
}
