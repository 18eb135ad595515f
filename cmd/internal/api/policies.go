package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/policies"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/summary"
)

// policies registers the operations on policies.
func (a *api) policies() {
	const get, post = http.MethodGet, http.MethodPost
	file := func(b *huma.RequestBody) func(*huma.Operation) {
		b.Content = map[string]*huma.MediaType{"application/yaml": {}, "application/json": {Schema: &huma.Schema{Type: huma.TypeObject}}}
		return func(op *huma.Operation) { op.RequestBody, op.SkipValidateBody = b, true } // as it may be YAML
	}
	register(a, operation{
		scope: reads, method: get, path: "/v1/policies", id: "list-policies",
		summary: "List the policies in force, with their sessions, and how far the sessions follow",
	}, listPolicies)
	register(a, operation{
		scope: reads, method: get, path: "/v1/policies/{policy}", id: "get-policy",
		summary: "A version of a policy, with all settings and what it changed",
	}, getPolicy)
	register(a, operation{
		scope: reads, method: get, path: "/v1/policies/{policy}/history", id: "get-policy-history",
		summary: "All versions of a policy, and which were in force",
	}, policyHistory)
	register(a, operation{
		scope: admins, method: post, path: "/v1/policies", id: "apply-policy", summary: "Put a policy file in force, or show what that changes",
		more: file(&huma.RequestBody{Description: "A policy file, as YAML or JSON."}),
	}, applyPolicy)
	tried := &huma.RequestBody{Description: "A policy file, as YAML or JSON; without one, each session's own policy counts."}
	register(a, operation{
		scope: operates, method: post, path: "/v1/policies/test", id: "test-policy", more: file(tried),
		summary: "Plan runs on sessions under a policy file, and make none",
	}, tryPolicy)
	tried.Required = false // which is that of all raw bodies
	register(a, operation{
		scope: admins, method: post, path: "/v1/policies/{policy}/rollback", id: "rollback-policy",
		summary: "Put an earlier version of a policy in force again, or show what that changes",
	}, rollbackPolicy)
	register(a, operation{
		scope: admins, method: post, path: "/v1/policies/{policy}/disable", id: "disable-policy",
		summary: "Take a policy out of force, or show what that changes",
	}, disablePolicy)
	register(a, operation{
		scope: operates, method: http.MethodPut, path: "/v1/policies/{policy}/sessions/{session}", id: "assign-policy",
		summary: "Give a session a policy, whatever matches it",
	}, assignPolicy)
}

// PolicyPath is the parameter of paths below a policy.
type PolicyPath struct {
	Policy string `path:"policy" doc:"The name of the policy."`
}

type policyList struct {
	Items    []policies.Row        `json:"items"`
	Progress *store.PolicyProgress `json:"progress,omitempty" doc:"How far the sessions of all tenants follow the last change; not for a key of one tenant."`
}

type listPoliciesIn struct {
	// A text: the framework gives the default to a false one.
	Counts string `query:"counts" enum:"true,false" default:"true" doc:"Count their sessions, which reads all sessions."`
}

func listPolicies(ctx context.Context, c *caller, in *listPoliciesIn) (*body[policyList], error) {
	rows, err := policies.List(ctx, c.store, c.tenant, in.Counts != "false")
	if err != nil {
		return nil, err
	}
	if c.tenant != "" {
		return answer(policyList{Items: rows}, nil)
	}
	progress, err := c.store.PolicyProgress(ctx)
	return answer(policyList{rows, &progress}, err)
}

type getPolicyIn struct {
	PolicyPath
	Version int `query:"version" minimum:"0" doc:"0, the default, for the version in force."`
}

func getPolicy(ctx context.Context, c *caller, in *getPolicyIn) (*body[policies.Detail], error) {
	return answer(policies.Ref{Name: in.Policy, Version: in.Version}.Detail(ctx, c.store))
}

func policyHistory(ctx context.Context, c *caller, in *PolicyPath) (*body[policies.History], error) {
	return answer(policies.HistoryOf(ctx, c.store, in.Policy))
}

// change previews steps, and makes them unless it is a dry run.
func (c *caller) change(ctx context.Context, dryRun bool, steps []policies.Step, err error) (*body[policies.Changes], error) {
	if err != nil {
		return nil, err
	}
	changes, err := policies.Preview(ctx, c.all(), steps)
	if err == nil && !dryRun && len(steps) > 0 {
		err = changes.Apply(ctx, c.all(), steps, c.by())
	}
	return answer(changes, err)
}

type applyPolicyIn struct {
	Preview
	RawBody []byte
}

func applyPolicy(ctx context.Context, c *caller, in *applyPolicyIn) (*body[policies.Changes], error) {
	files, err := c.policyFile(ctx, in.RawBody)
	if err != nil {
		return nil, err
	}
	steps, _, err := policies.Applying(ctx, c.all(), c.server.o.Config, files)
	return c.change(ctx, in.only(), steps, err)
}

// policyFile reads a policy file.
func (c *caller) policyFile(ctx context.Context, raw []byte) ([]policies.File, error) {
	registry := c.server.o.Registry.With(summary.New(summary.Options{}))
	files, err := policies.Read(ctx, c.all(), c.server.o.Config, registry, policies.Source{Path: "body", Raw: raw})
	if err != nil {
		p := invalid("body", "%s", err)
		for _, f := range policies.Faults(err) {
			p.Errors = append(p.Errors, Fault{Field: strings.TrimSuffix("body."+f.Key, "."), Detail: f.Text})
		}
		return nil, p.first()
	}
	return files, nil
}

type tryPolicyIn struct {
	Session []string `query:"session,explode" maxItems:"100" doc:"Plan on these sessions, each given so."`
	Sample  int      `query:"sample" minimum:"1" maximum:"100" default:"20" doc:"Without session: on so many, chosen at random among those that the file matches."`
	RawBody []byte
}

type triedPolicy struct {
	Sessions []reports.Preview   `json:"sessions"`
	Totals   reports.TrialTotals `json:"totals" doc:"left counts the sessions that there was no time for, in 30 seconds."`
}

func tryPolicy(ctx context.Context, c *caller, in *tryPolicyIn) (*body[triedPolicy], error) {
	out := triedPolicy{Sessions: []reports.Preview{}}
	t := reports.Trial{
		Config: c.server.o.Config, Registry: c.server.o.Registry, Tenant: c.tenant, Sessions: in.Session, Sample: in.Sample,
		Within: config.MaxWait, Each: func(p reports.Preview) { out.Sessions = append(out.Sessions, p) },
	}
	if len(in.RawBody) > 0 {
		files, err := c.policyFile(ctx, in.RawBody)
		if err != nil {
			return nil, err
		}
		t.File = &files[0].PolicyFile
	}
	err := c.server.compacts(func() (err error) {
		out.Totals, err = t.Run(ctx, c.store)
		return err
	})
	return answer(out, err)
}

type rollbackPolicyIn struct {
	PolicyPath
	Preview
	Body *struct {
		To int `json:"to,omitempty" minimum:"1" doc:"The version; by default the one that was in force before."`
	}
}

func rollbackPolicy(ctx context.Context, c *caller, in *rollbackPolicyIn) (*body[policies.Changes], error) {
	steps, _, err := policies.RollingBack(ctx, c.store, c.server.o.Config, in.Policy, given(in.Body).To)
	return c.change(ctx, in.only(), steps, err)
}

type disablePolicyIn struct {
	PolicyPath
	Preview
}

func disablePolicy(ctx context.Context, c *caller, in *disablePolicyIn) (*body[policies.Changes], error) {
	steps, err := policies.Disabling(ctx, c.store, c.server.o.Config, in.Policy)
	return c.change(ctx, in.only(), steps, err)
}

type assignPolicyIn struct {
	PolicyPath
	SessionPath
}

func assignPolicy(ctx context.Context, c *caller, in *assignPolicyIn) (*body[store.SessionRow], error) {
	st, k := c.of(in.Session)
	if err := st.SetPolicy(ctx, k, in.Policy); err != nil {
		return nil, fmt.Errorf("assign policy: %w", err)
	}
	return answer(st.Session(ctx, k))
}
