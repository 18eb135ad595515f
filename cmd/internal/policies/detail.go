package policies

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Detail is a version of a policy with its differences to others.
type Detail struct {
	store.PolicyVersion
	// Settings are those that differ from the defaults, which they are changed from.
	Settings []policy.Change `json:"settings" doc:"Settings that differ from the defaults: from a default to its own."`
	Before   int             `json:"before,omitempty" doc:"The version before, with which changes compares."`
	Changes  []policy.Change `json:"changes,omitempty" doc:"Settings that the version before had otherwise."`
	File     string          `json:"file" doc:"A policy file that leads to the settings of the version."`
}

// Detail returns the version that the reference names with its differences.
func (r Ref) Detail(ctx context.Context, st *store.Store) (d Detail, err error) {
	if d.PolicyVersion, err = r.Load(ctx, st); err != nil {
		return d, err
	}
	defaults, err := policy.Spec(policy.Default())
	if err == nil {
		d.Settings, err = policy.Diff(defaults, d.Spec)
	}
	if err == nil {
		d.File, err = fileOf(d)
	}
	if err != nil || d.Version < 2 {
		return d, err
	}
	before, err := st.Policy(ctx, d.Name, d.Version-1)
	if errors.Is(err, store.ErrNotFound) {
		return d, nil
	}
	if err == nil {
		d.Before = before.Version
		d.Changes, err = policy.Diff(before.Spec, d.Spec)
	}
	if a, b := policy.Match(before.Match).String(), policy.Match(d.Match).String(); err == nil && a != b {
		d.Changes = append([]policy.Change{{Key: "match", From: a, To: b}}, d.Changes...)
	}
	return d, err
}

// fileOf returns a policy file with the settings of a version: its own ones, or all that differ from the defaults.
func fileOf(d Detail) (string, error) {
	type entry struct {
		key   string
		value any
	}
	head := []entry{{"name", d.Name}}
	if len(d.Match) > 0 {
		head = append(head, entry{"match", d.Match})
	}
	if d.Note != "" {
		head = append(head, entry{"note", d.Note})
	}
	extends, settings := d.Extends, d.Settings
	if len(d.Given) == 0 || extends == "" {
		extends = BaseNone
	} else {
		all, err := policy.Diff(nil, d.Spec)
		if err != nil {
			return "", err
		}
		settings = slices.DeleteFunc(all, func(c policy.Change) bool { return Inherited(d.PolicyVersion, c.Key) })
	}
	head = append(head, entry{"extends", extends})
	tree := map[string]any{}
	for _, c := range settings {
		var value any
		if c.To == "" || json.Unmarshal([]byte(c.To), &value) != nil {
			continue
		}
		at, keys := tree, strings.Split(c.Key, ".")
		for _, k := range keys[:len(keys)-1] {
			inner, ok := at[k].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[k] = inner
			}
			at = inner
		}
		at[keys[len(keys)-1]] = value
	}
	for _, k := range slices.Sorted(maps.Keys(tree)) {
		head = append(head, entry{k, tree[k]})
	}
	var out strings.Builder
	for _, e := range head {
		raw, err := yaml.Marshal(map[string]any{e.key: e.value})
		if err != nil {
			return "", err
		}
		out.Write(raw)
	}
	return out.String(), nil
}

// Setting returns a setting as a YAML file would have it, "none" for one that is not set, or
// is zero, and the setting that counts instead.
func Setting(key, raw string) string {
	if slices.Contains([]string{"", "0", `"0s"`}, raw) {
		switch key {
		case "start_tokens":
			return "none (start counts)"
		case "target_tokens":
			return "none (target counts)"
		case "window_tokens":
			return "none (that of the model counts)"
		}
		return "none"
	}
	var text string
	if json.Unmarshal([]byte(raw), &text) != nil || text == "" {
		return term.Clean(raw)
	}
	if d, err := time.ParseDuration(text); err == nil {
		return policy.Days(d)
	}
	return term.Clean(text)
}
