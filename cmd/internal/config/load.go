package config

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	_ "time/tzdata" // zones for images that have none

	"go.yaml.in/yaml/v3"

	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

const (
	envPrefix = "COMPACTOR_"
	envFile   = "COMPACTOR_CONFIG"
	localFile = "compactor.yaml"
)

// LoadOptions holds the sources to read.
type LoadOptions struct {
	// Path is the file of --config, which must exist. If empty, COMPACTOR_CONFIG
	// names the file; without that, the first of ./compactor.yaml and
	// $XDG_CONFIG_HOME/compactor/config.yaml ($HOME/.config without the variable)
	// that exists is read.
	Path string
	// Environ has the form of os.Environ. An empty variable counts as not set, as
	// compose files pass unset variables as empty ones.
	Environ []string
	// Flags are settings from the command line, by key ("database.url").
	Flags map[string]string
	// FlagNames are the names of flags, by key, that differ from FlagName.
	FlagNames map[string]string
	// Dir is the folder of ./compactor.yaml; "" is the working directory.
	Dir string
	// Registry, if set, validates the strategies and parameters of the policy's pipeline.
	Registry *plan.Registry
}

// Load reads all sources. The error joins one *SettingError for each problem; the Config
// returned with it holds the valid values and is for messages only.
func Load(o LoadOptions) (Config, error) {
	c, d := read(o, policy.Default())
	if preset, err := policy.PresetNamed(c.Policy.Preset); err == nil {
		// The sources override the preset as they override the defaults.
		over := preset.Over(policy.Default())
		c, d = read(o, over)
		for key, says := range map[string]bool{
			"policy.pipeline": true, "policy.start_tokens": over.StartTokens > 0, "policy.target_tokens": over.TargetTokens > 0,
		} {
			if _, given := c.origins[key]; says && !given {
				c.origins[key] = Origin{Source: FromPreset, Name: preset.Name}
			}
		}
	}
	c.Policy = c.Policy.Fit(func(key string) bool {
		o, given := c.origins["policy."+key]
		return given && o.Source != FromPreset
	})
	if len(d.faults) == 0 {
		c.validate(&d.faults, o.Registry)
	} else {
		// An invalid value has kept its default, so the other values can be checked.
		c.validate(&d.faults, nil)
	}
	return c, d.faults.err()
}

// read reads all sources over the defaults, with p as the default policy.
func read(o LoadOptions, p policy.Policy) (Config, *decoder) {
	c := Default()
	c.Policy = p
	c.origins = map[string]Origin{}
	d := &decoder{origins: c.origins, byKey: map[string]reflect.Value{}}
	for _, f := range fields(&c) {
		d.byKey[f.key] = f.value
	}
	env := map[string]string{}
	for _, kv := range o.Environ {
		if k, v, ok := strings.Cut(kv, "="); ok && v != "" {
			env[k] = v
		}
	}
	c.file = d.file(o, env)
	c.Traces.Unused = d.environment(env)
	d.flags(o.Flags, o.FlagNames)
	return c, d
}

// file finds and reads the configuration file and returns its path, "" for none.
func (d *decoder) file(o LoadOptions, env map[string]string) string {
	path, required := o.Path, true
	if path == "" {
		path = env[envFile]
	}
	candidates := []string{path}
	if path == "" {
		required = false
		candidates = []string{filepath.Join(o.Dir, localFile)}
		if home := env["XDG_CONFIG_HOME"]; home != "" {
			candidates = append(candidates, filepath.Join(home, "compactor", "config.yaml"))
		} else if home := env["HOME"]; home != "" {
			candidates = append(candidates, filepath.Join(home, ".config", "compactor", "config.yaml"))
		}
	}
	for _, path := range candidates {
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && !required {
			continue
		}
		d.origin = Origin{Source: FromFile, Name: path}
		if err != nil {
			d.faults.addf(Origin{}, "", "read the configuration: %v", err)
			return path
		}
		d.document(b)
		return path
	}
	return ""
}

// document decodes the single YAML document of a file.
func (d *decoder) document(b []byte) {
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return // empty, or comments alone
	case err != nil:
		d.faults.addf(d.origin, "", "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		return
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		d.faults.addf(d.origin, "", "more than one YAML document")
	}
	d.section("", doc.Content[0])
}

// environment reads the variables. An unknown one with the prefix is an error, unless
// Kubernetes sets it for a service named compactor. It returns Traces.Unused.
func (d *decoder) environment(env map[string]string) (unused string) {
	service := regexp.MustCompile(`^COMPACTOR_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)$`)
	known := map[string]bool{envFile: true, "COMPACTOR_NO_FETCH": true} // the latter is read by dev/stack
	for _, key := range slices.Sorted(maps.Keys(d.byKey)) {
		names := EnvNames(key)
		for _, name := range slices.Backward(names) {
			known[name] = true
			if v, ok := env[name]; ok {
				d.text(Origin{Source: FromEnv, Name: name}, key, v)
			}
		}
	}
	unused = d.tracesVariables(env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !strings.HasPrefix(name, envPrefix) || known[name] || service.MatchString(name) {
			continue
		}
		hint := didYouMean(policy.Nearest(name, slices.Sorted(maps.Keys(known))))
		d.faults.addf(Origin{Source: FromEnv, Name: name}, "", "unknown variable%s", cmp.Or(hint, " (`compactor config example` lists the settings)"))
	}
	return unused
}

// EnvNames returns the environment variables that set a key, in descending precedence.
// The two connections have names that are common on hosting platforms, too.
func EnvNames(key string) []string {
	names := []string{"COMPACTOR_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))}
	switch key {
	case "database.url":
		names = append(names, "DATABASE_URL")
	case "redis.url":
		names = append(names, "REDIS_URL")
	}
	return names
}

// FlagName returns the command-line flag that sets a key, without its dashes:
// "database-max-conns" for database.max_conns.
func FlagName(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, ".", "-"), "_", "-")
}

// flags reads the settings given as flags.
func (d *decoder) flags(flags, names map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		o := Origin{Source: FromFlag, Name: cmp.Or(names[key], FlagName(key))}
		if _, ok := d.byKey[key]; !ok {
			d.faults.addf(o, key, "unknown key")
			continue
		}
		d.text(o, key, flags[key])
	}
}

// text sets a key from a variable or flag: strings unchanged, other types decoded as YAML.
func (d *decoder) text(o Origin, key, text string) {
	target := d.byKey[key]
	d.origin = o
	d.origins[key] = o
	maps.DeleteFunc(d.origins, func(k string, _ Origin) bool { return strings.HasPrefix(k, key+"[") || strings.HasPrefix(k, key+".") })
	if target.Kind() == reflect.String {
		target.SetString(text)
		return
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
		doc = yaml.Node{Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}}}
	}
	if err := d.value(key, doc.Content[0], target); err != nil {
		d.faults.addf(o, key, "%s: %v", shown(doc.Content[0], target), err)
	}
}
