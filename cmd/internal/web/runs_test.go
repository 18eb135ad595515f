package web_test

import (
	"strconv"

	"github.com/sessionstore/compactor/store"
)

// decided returns a run of the tenant airline-desk that wrote a summary, or one that was applied, and the numbers of it and of one that
// changed nothing.
func (f *fleet) decided() (of store.RunRow, applied, skipped string) {
	f.Helper()
	runs, err := f.st.Operator.Runs(f.Context(), store.RunFilter{Key: store.Key{Tenant: "airline-desk"}, Limit: 200})
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range runs {
		switch {
		case r.Status == "skipped":
			skipped = strconv.FormatInt(r.ID, 10)
		case r.Status == "applied" && (of.ID == 0 || r.Calls > of.Calls):
			of = r
		}
	}
	return of, strconv.FormatInt(of.ID, 10), skipped
}
