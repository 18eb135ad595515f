package cli

import (
	"fmt"
	"reflect"

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

// settingFlags returns a pointer to a struct with a flag for every setting, with the name
// or alias that config.FlagName returns. Help shows the most common ones only. The fields
// are *string, nil if not given; package config parses and validates them.
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
		seen[key] = true
		name := "name"
		if _, renamed := reflect.StructTag(tag).Lookup(name); renamed {
			name = "aliases"
		}
		flags = append(flags, reflect.StructField{
			Name: fmt.Sprintf("Flag%d", len(flags)), Type: reflect.TypeFor[*string](),
			Tag: reflect.StructTag(fmt.Sprintf("key:%q %s:%q group:\"Settings:\" %s", key, name, config.FlagName(key), tag)),
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

// values returns the settings given as flags, by key.
func (g *globals) values() map[string]string {
	out := map[string]string{}
	flags := reflect.ValueOf(g.Settings[0]).Elem()
	for i := range flags.NumField() {
		if text, _ := reflect.TypeAssert[*string](flags.Field(i)); text != nil {
			out[flags.Type().Field(i).Tag.Get("key")] = *text
		}
	}
	return out
}
