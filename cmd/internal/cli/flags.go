package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sessionstore/compactor/cmd/internal/config"
)

// globals holds the flags of every command.
type globals struct {
	ConfigFile string `name:"config" placeholder:"FILE" help:"Configuration file; default: $$COMPACTOR_CONFIG, ./compactor.yaml, or the one in the user's configuration folder."`
	Database   string `name:"database" placeholder:"NAME" help:"Of several databases in the configuration, the one to work on."`
	JSON       bool   `name:"json" help:"Write the result as one JSON object."`

	// Settings holds the one struct that settingFlags returns.
	Settings kong.Plugins `embed:""`
}

// Validate checks the flags and arguments with a tag range:"LEAST,MOST"; without MOST there is no limit.
// The tag want says otherwise which numbers are valid.
func (*grammar) Validate(command *kong.Context) error {
	node := command.Selected()
	if node == nil {
		return nil
	}
	var faults []error
	values := slices.Clone(node.Positional)
	for _, f := range command.Flags() {
		values = append(values, f.Value)
	}
	for _, v := range values {
		least, most, ranged := strings.Cut(v.Tag.Get("range"), ",")
		if !ranged || !v.Set {
			continue
		}
		n, text := v.Target.Int(), strconv.FormatInt(v.Target.Int(), 10)
		if v.Flag != nil {
			text = "--" + v.Name + ": " + text
		}
		low, _ := strconv.ParseInt(least, 10, 64)
		high, err := strconv.ParseInt(most, 10, 64)
		want := least + " to " + most
		if err != nil {
			high, want = math.MaxInt64, least+" or more"
		}
		if n < low || n > high {
			faults = append(faults, fmt.Errorf("%s: want %s", text, cmp.Or(v.Tag.Get("want"), want)))
		}
	}
	return errors.Join(faults...)
}

// allTenants is the flag --all-tenants.
type allTenants bool

// tenant returns the configured tenant, "" for all of them.
func (all allTenants) tenant(cfg config.Config) string { return when(!bool(all), cfg.Tenant) }

// confirmFlags are the flags of commands that change much.
type confirmFlags struct {
	Yes    bool `help:"Do not ask." xor:"confirm"`
	DryRun bool `help:"Show what would change, and change nothing." xor:"confirm"`
}

// confirmed reports whether changes are to be made; without any, there is no question.
func (c confirmFlags) confirmed(e *Env, changes int, question string) (bool, error) {
	switch {
	case changes == 0 || c.DryRun:
		return false, nil
	case c.Yes:
		return true, nil
	case !e.asks || e.JSON:
		return false, wrong("not confirmed: standard input is not a terminal; --yes does not ask, --dry-run changes nothing")
	}
	ok, err := e.ask(question)
	if err == nil && !ok {
		e.say("nothing was changed")
	}
	return ok, err
}

// agreed shows a preview, asks, and reports whether to go on. Otherwise --json gets the preview.
func (c confirmFlags) agreed(e *Env, changes int, question string, preview any, show func()) (bool, error) {
	if !e.JSON {
		show()
	}
	ok, err := c.confirmed(e, changes, question)
	if err == nil && !ok && e.JSON {
		err = e.json(preview)
	}
	return ok, err
}

// settingFlags returns a pointer to a struct with a flag for every setting, with the name that
// config.FlagName returns, and those that have a shorter name, too. Help shows the most common
// ones only. The fields are *string, nil if not given; package config parses and validates them.
func settingFlags() any {
	shown := []struct{ key, tag string }{
		{"database.url", `placeholder:"URL" help:"Postgres; default: $$DATABASE_URL."`},
		{"redis.url", `placeholder:"URL" help:"Redis; default: $$REDIS_URL."`},
		{"database.schema", `placeholder:"NAME" help:"Schema that holds all tables."`},
		{"tenant", `placeholder:"NAME" help:"Tenant to work on."`},
		{"policy.start_tokens", `name:"start" placeholder:"TOKENS" help:"Compact sessions above this many tokens; requires --target."`},
		{"policy.target_tokens", `name:"target" placeholder:"TOKENS" help:"Compact them to this many tokens."`},
		{"log.level", `placeholder:"LEVEL" help:"debug, info, warn or error."`},
		{"log.format", `placeholder:"FORMAT" help:"auto, json or text."`},
	}
	var flags []reflect.StructField
	seen := map[string]bool{}
	add := func(key, tag string) {
		if seen[key] {
			return
		}
		if _, short := reflect.StructTag(tag).Lookup("name"); !short {
			seen[key] = true
			tag = fmt.Sprintf("name:%q %s", config.FlagName(key), tag)
		}
		flags = append(flags, reflect.StructField{
			Name: fmt.Sprintf("Flag%d", len(flags)), Type: reflect.TypeFor[*string](),
			Tag: reflect.StructTag(fmt.Sprintf("key:%q group:\"Settings:\" %s", key, tag)),
		})
	}
	for _, s := range shown {
		add(s.key, s.tag)
	}
	for _, key := range config.Keys() {
		add(key, `hidden:""`)
	}
	return reflect.New(reflect.StructOf(flags)).Interface()
}

// values returns the settings given as flags, and the names of those, by key.
func (g *globals) values() (out, names map[string]string) {
	out, names = map[string]string{}, map[string]string{}
	flags := reflect.ValueOf(g.Settings[0]).Elem()
	for i := range flags.NumField() {
		if text, _ := reflect.TypeAssert[*string](flags.Field(i)); text != nil {
			tag := flags.Type().Field(i).Tag
			out[tag.Get("key")], names[tag.Get("key")] = *text, tag.Get("name")
		}
	}
	return out, names
}
