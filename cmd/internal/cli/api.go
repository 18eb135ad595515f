package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/cmd/internal/web"
	"github.com/sessionstore/compactor/store"
)

type apiCmd struct{ roleFlags }

func (c *apiCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	return c.run(ctx, e, cfg, roles{api: true})
}

// apiRole returns the role that serves the API of a database, with an open listener. There is none
// where it is off, and, unless it is to be served alone, with several databases or where another
// process has the default address.
func apiRole(ctx context.Context, apps []*App, alone bool, wait time.Duration) (Role, bool, error) {
	a := apps[0]
	c := a.Config
	if len(apps) > 1 {
		if alone {
			return Role{}, false, wrong("several databases are configured: --database NAME says which one to serve")
		}
		a.Logger.WarnContext(ctx, "no API: it serves one database (`compactor api --database NAME`)")
		return Role{}, false, nil
	}
	if c.API.Listen == config.APIOff {
		if alone {
			return Role{}, false, wrong("api.listen is %s", config.APIOff)
		}
		return Role{}, false, nil
	}
	var s *api.Server
	var err error
	away := waitForPostgres(ctx, a.Logger, wait, func(context.Context) error {
		if s, err = a.listen(ctx); errors.Is(err, store.ErrUnavailable) {
			return err
		}
		return nil
	})
	switch {
	case away != nil:
		return Role{}, false, away
	case err == nil:
		return Role{"api", s.Run}, true, nil
	case !alone && errors.Is(err, syscall.EADDRINUSE) && c.Origin("api.listen").Source == config.FromDefault:
		a.Logger.WarnContext(ctx, "no API: the address is in use; give this process one of its own (api.listen), or off", "address", c.API.Listen)
		return Role{}, false, nil
	case errors.Is(err, store.ErrNotMigrated):
		return Role{}, false, err
	}
	return Role{}, false, &exitError{exitUsage, fmt.Errorf("api.listen: %s: %w", c.API.Listen, err)}
}

// listen returns a server of the API, with its dashboard and an open listener.
func (a *App) listen(ctx context.Context) (*api.Server, error) {
	o := api.Options{
		Config: a.Config, Store: a.Store, Planner: a.Planner, Registry: a.Planner.Registry, Logger: a.Logger,
		Version: newBuildVersion(debug.ReadBuildInfo()).Version, Tracer: a.tracer,
	}
	if a.Config.API.Dashboard {
		o.Pages = web.Pages(web.Options{
			Version: o.Version, HideTexts: a.Config.API.HideTexts, SignOut: a.Config.API.SignOut, Secure: a.Config.API.TLSCert != "",
		})
	}
	if a.metrics != nil {
		o.Observe = a.metrics.Requested
	}
	return api.Listen(ctx, o)
}

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make a key of the API, and print it once."`
	List   keyListCmd   `cmd:"" default:"1" help:"List the keys."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key."`
	Rotate keyRotateCmd `cmd:"" help:"Replace a key by a new one with the same rights."`
}

type keyCreateCmd struct {
	Name       string        `arg:"" optional:"" help:"What its requests are recorded with; by default its scope and the time."`
	Scope      string        `required:"" enum:"read,append,operate,admin" help:"What it may do: read, append, operate or admin; each includes those before it."`
	AllTenants bool          `help:"For all tenants."`
	IfNone     bool          `help:"Only if there is no key yet, not even a revoked one."`
	Expires    time.Duration `placeholder:"DURATION" help:"How long it is valid, such as 90d; without it, until it is revoked."`
	Note       string        `placeholder:"TEXT" help:"What it is for."`
	Output     string        `enum:"messages,item" default:"messages" help:"What /v1/responses/compact answers: messages, or an item for this server alone."`
}

// keyJSON is a key with its secret, which is shown once.
type keyJSON struct {
	Key string `json:"key"`
	store.APIKey
}

func (c *keyCreateCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	tenant := e.flags["tenant"]
	if c.AllTenants != (tenant == "") {
		return wrong("give --tenant or --all-tenants: whom a key reaches has no default")
	}
	k := store.NewKey{Name: cmp.Or(c.Name, c.Scope+"-"+e.now().UTC().Format("20060102-150405")), Scope: c.Scope, Tenant: tenant, Note: c.Note}
	k.Output = c.Output
	if c.Expires < 0 {
		return wrong("--expires: %s: want more than 0", c.Expires)
	} else if c.Expires > 0 {
		k.ExpiresAt = e.now().Add(c.Expires)
	}
	if c.IfNone {
		if exist, err := st.Admin.HasKeys(ctx); err != nil || exist {
			e.note("there are keys; nothing was made")
			return err
		}
	}
	created, secret, err := st.Admin.CreateKey(ctx, k, e.by())
	if err != nil {
		return err
	}
	if bound, err := st.MayBeOperator(ctx); err != nil {
		return err
	} else if tenant != "" && !bound {
		e.note("a server with this login refuses keys of one tenant: `compactor migrate up` creates the role operator; grant it to the login")
	}
	return e.showKey(keyJSON{secret, created})
}

// showKey shows a new key.
func (e *Env) showKey(k keyJSON) error {
	return e.show(k, func() {
		e.say("%s", k.Key)
		e.note("key %s, scope %s, %s; it is not shown again", k.Name, k.Scope, tenantOfKey(k.APIKey))
	})
}

// tenantOfKey names the tenant that a key reaches.
func tenantOfKey(k store.APIKey) string {
	if k.Tenant == nil {
		return "all tenants"
	}
	return "tenant " + term.Clean(*k.Tenant)
}

type keyListCmd struct {
	All bool `help:"Also those that are revoked or expired."`
}

func (c *keyListCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	keys, err := st.Admin.Keys(ctx, e.flags["tenant"], c.All)
	if err != nil {
		return err
	}
	return list(e, "keys", keys, "there are no keys: the API is open on this machine, and refuses to listen to others", columns[store.APIKey]{
		{"id", term.ID("KEY"), nil},
		{"name", term.Text("NAME"), nil},
		{"prefix", term.Text("BEGINS"), nil},
		{"scope", term.Text("SCOPE"), nil},
		{"tenant", term.Text("REACHES"), func(k store.APIKey) any { return tenantOfKey(k) }},
		{"last_used_at", term.Num("USED"), func(k store.APIKey) any {
			if k.LastUsedAt == nil {
				return "never"
			}
			return e.since(*k.LastUsedAt)
		}},
		{"expires_at", term.Text("ENDS"), func(k store.APIKey) any {
			switch {
			case k.RevokedAt != nil:
				return "revoked " + timeText(*k.RevokedAt)
			case k.ExpiresAt != nil:
				return timeText(*k.ExpiresAt)
			}
			return ""
		}},
		{"note", term.Text("NOTE"), nil},
	})
}

type keyRevokeCmd struct {
	Key string `arg:"" help:"Its name, or its number in the list."`
}

func (c *keyRevokeCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	id, err := st.Admin.RevokeKey(ctx, e.flags["tenant"], c.Key, e.by())
	if err != nil {
		return err
	}
	return e.show(map[string]any{"revoked": id}, func() {
		e.say("key %d is revoked; servers that know it accept it for a few seconds more", id)
	})
}

type keyRotateCmd struct {
	Key   string        `arg:"" help:"Its name, or its number in the list."`
	Grace time.Duration `placeholder:"DURATION" help:"How long the old key is accepted still, at most 30d."`
}

func (c *keyRotateCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	k, secret, err := st.Admin.RotateKey(ctx, e.flags["tenant"], c.Key, c.Grace, e.by())
	if err != nil {
		return err
	}
	return e.showKey(keyJSON{secret, k})
}
