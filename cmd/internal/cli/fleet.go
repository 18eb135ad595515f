package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

// run runs a command: on the database that is configured or, of several, on that of its session
// or on one after the other.
func (e *Env) run(ctx context.Context, command *kong.Context) error {
	group := command.Selected()
	for group.Group == nil && group.Parent != nil && group.Parent.Type == kong.CommandNode {
		group = group.Parent
	}
	groups := []string{"Database:", "Sessions:", "Fleet:", "Policies:"} // that work on a database
	if group.Group == nil || group.Name != "models" && !slices.Contains(groups, group.Group.Title) {
		return e.runOnce(command)
	}
	cfg, err := e.Config()
	if err != nil || len(cfg.Databases) == 0 {
		return e.runOnce(command) // which says what is wrong
	}
	fleet := cfg.Fleet()
	sessions, parent, one := about(command)
	switch {
	case one != "":
		return wrong("%s: several databases are configured: --database NAME says which one it is about [%s]", one, names(fleet))
	case len(sessions) > 0:
		found, err := e.having(ctx, fleet, sessions)
		if parent != "" && errors.Is(err, store.ErrNotFound) { // of a child that is created
			found, err = e.having(ctx, fleet, []string{parent})
		}
		if err != nil {
			return err
		}
		e.loaded = &found
		return e.runOnce(command)
	}
	return e.runOnAll(command, fleet)
}

// at returns the flag by which another command works on the database of this one, of several.
func (e *Env) at() string {
	if e.loaded == nil || e.loaded.Name() == "" {
		return ""
	}
	return " --database " + e.loaded.Name()
}

func names(fleet []config.Config) string {
	var out []string
	for _, c := range fleet {
		out = append(out, c.Name())
	}
	return strings.Join(out, " ")
}

// runOnce runs a command on the database of e.loaded.
func (e *Env) runOnce(command *kong.Context) error {
	err := command.Run(e)
	err, e.unwritten = errors.Join(err, e.unwritten), nil
	if e.store != nil {
		e.store.Close()
		e.store = nil
	}
	return err
}

// about returns the sessions that the arguments name and the parent that theirs is to have, or
// the argument that is for one database only: the number of a run, of a sweep or the like,
// and a file to read or to write.
func about(command *kong.Context) (sessions []string, parent, one string) {
	for _, p := range command.Path {
		var values []*kong.Value
		switch {
		case p.Positional != nil:
			values = append(values, p.Positional)
		case p.Flag != nil:
			values = append(values, p.Flag.Value)
		}
		for _, v := range values {
			list, _ := reflect.TypeAssert[[]string](v.Target)
			if text, ok := reflect.TypeAssert[string](v.Target); ok {
				list = []string{text}
			}
			switch v.Name {
			case "session":
				sessions = append(sessions, list...)
			case "parent":
				parent = strings.Join(list, "")
			case "file":
				if slices.Contains(list, "-") {
					one = "standard input" // which is read once
				}
			case "number", "sweep", "run", "id":
				one = v.Name
			}
		}
	}
	if name := command.Selected().Name; name == "import" || name == "export" {
		one = name
	}
	if len(sessions) > 0 {
		one = ""
	}
	return sessions, parent, one
}

// having returns the configuration of the database that has all of the sessions.
func (e *Env) having(ctx context.Context, fleet []config.Config, sessions []string) (config.Config, error) {
	var found []config.Config
	for _, c := range fleet {
		has, err := hasSessions(ctx, c, sessions)
		if err != nil {
			return config.Config{}, fmt.Errorf("database %s: %w", c.Name(), err)
		}
		if has {
			found = append(found, c)
		}
	}
	what := "session " + strings.Join(sessions, ", ")
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return config.Config{}, fmt.Errorf("%s: in none of the databases [%s]: %w", what, names(fleet), store.ErrNotFound)
	}
	return config.Config{}, wrong("%s: in several databases [%s]: --database NAME says which one it is about", what, names(found))
}

func hasSessions(ctx context.Context, c config.Config, sessions []string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	st, err := store.Open(ctx, StoreConfig(c))
	if err != nil {
		return false, err
	}
	defer st.Close()
	for _, id := range sessions {
		switch _, err := st.Session(ctx, key(c, id)); {
		case errors.Is(err, store.ErrNotFound):
			return false, nil
		case err != nil:
			return false, err
		}
	}
	return true, nil
}

// runOnAll runs a command on one database after the other. One that fails does not keep it from
// the others. As JSON, the result is an object with a key for each database.
func (e *Env) runOnAll(command *kong.Context, fleet []config.Config) error {
	results := map[string]json.RawMessage{}
	out := e.Out
	defer func() { e.Out = out }()
	var failed []error
	for i, c := range fleet {
		var result bytes.Buffer
		if e.JSON {
			e.Out.W = &result
		} else {
			if i > 0 {
				e.say("")
			}
			e.say("%s", out.Bold("database "+c.Name()))
		}
		e.loaded = &c
		if err := e.runOnce(command); err != nil {
			failed = append(failed, fmt.Errorf("database %s: %w", c.Name(), err))
		}
		if result.Len() > 0 {
			results[c.Name()] = bytes.TrimSpace(result.Bytes())
		}
	}
	err := errors.Join(failed...)
	if e.JSON {
		err = errors.Join(err, term.JSON(out.W, results))
	}
	return err
}
