package config

import (
	"errors"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

// PolicyFile is a named policy: a file with the keys below and those of the configuration's
// policy, but for its schedule.
type PolicyFile struct {
	// Name is that of the policy; default replaces the policy of the configuration.
	Name string `yaml:"name"`
	// Match says which sessions have the policy. Without it, only those do that name it.
	Match policy.Match `yaml:"match"`
	// Note says why, for the history.
	Note string `yaml:"note"`
	// Extends names the policy with the settings that the file leaves out; see ReadPolicyOver.
	Extends string `yaml:"extends"`

	Policy policy.Policy `yaml:"-"`
	// Given are the keys of the settings that the file gives.
	Given []string `yaml:"-"`
}

var policyName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// ReadPolicy is ReadPolicyOver for a file that extends the default settings.
func ReadPolicy(path string, b []byte, registry *plan.Registry) (PolicyFile, error) {
	return ReadPolicyOver(path, b, registry, func(PolicyFile) (policy.Policy, error) { return policy.Default(), nil })
}

// ReadPolicyOver reads the content of a policy file. Settings that it does not give have the
// values of its preset, or else those of base, fitted to what it gives. base is called with the file's name and its
// base, and returns a policy that may be changed. The error joins one *SettingError for each
// problem, with the path and the line.
func ReadPolicyOver(path string, b []byte, registry *plan.Registry, base func(f PolicyFile) (policy.Policy, error)) (PolicyFile, error) {
	f, first := readPolicy(path, b, policy.Default())
	over, err := base(f)
	if err != nil {
		over = policy.Default()
	}
	release(&over, first.origins)
	if preset, err := policy.PresetNamed(f.Policy.Preset); err == nil {
		over = preset.Over(over)
	}
	f, d := readPolicy(path, b, over)
	f.Policy = f.Policy.Fit(func(key string) bool { _, given := d.origins[key]; return given })
	origin := func(key string) Origin {
		if o := (Config{origins: d.origins}).Origin(key); o.Source == FromFile {
			return o
		}
		return Origin{Source: FromFile, Name: path} // a value that does not fit what the file says
	}
	if err != nil {
		d.faults.addf(origin("extends"), "extends", "%s", err)
	}
	f.validate(&d.faults, d.origins, origin, registry)
	if len(d.faults) > 0 {
		registry = nil
	}
	validatePolicy(f.Policy, "", d.faults.checker(origin), registry)
	for key := range d.origins {
		if key, _, _ = strings.Cut(key, "["); !slices.Contains([]string{"name", "match", "note", "extends"}, key) {
			f.Given = append(f.Given, key)
		}
	}
	slices.Sort(f.Given)
	f.Given = slices.Compact(f.Given)
	return f, d.faults.err()
}

// release removes the settings of a policy that would replace settings that are given.
func release(p *policy.Policy, given map[string]Origin) {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { _, ok := given[key]; return ok })
	}
	if has("start", "start_tokens") && !has("triggers") {
		p.Triggers = nil
	}
	if has("start", "target") && !has("start_tokens", "target_tokens") {
		p.StartTokens, p.TargetTokens = 0, 0
	}
}

func readPolicy(path string, b []byte, p policy.Policy) (PolicyFile, *decoder) {
	f := PolicyFile{Policy: p}
	d := &decoder{origin: Origin{Source: FromFile, Name: path}, origins: map[string]Origin{}, byKey: map[string]reflect.Value{}}
	for _, x := range append(walk("", reflect.ValueOf(&f).Elem(), nil), walk("", reflect.ValueOf(&f.Policy).Elem(), nil)...) {
		d.byKey[x.key] = x.value
	}
	d.document(b)
	return f, d
}

// validate checks the name and the match, and that every setting has an effect.
func (f PolicyFile) validate(fs *faults, given map[string]Origin, at func(key string) Origin, registry *plan.Registry) {
	if !policyName.MatchString(f.Name) {
		fs.addf(at("name"), "name", "%q: want 1 to 63 lower-case letters, digits, _ and -, beginning with a letter or digit", f.Name)
	}
	if f.Name == policy.DefaultName && len(f.Match) > 0 {
		fs.addf(at("match"), "match", "want none: the policy default is that of all sessions that no other one matches")
	}
	for key, value := range f.Match {
		if key == "" || value == "" {
			fs.addf(at("match["+key+"]"), "match["+key+"]", "%q: want a key and a text", value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if why := f.dead(key, registry); why != "" {
			fs.addf(given[key], key, "has no effect: %s", why)
		}
	}
}

// dead returns why a setting of the file has no effect, "" if it may have one.
func (f PolicyFile) dead(key string, registry *plan.Registry) string {
	absolute := f.Policy.StartTokens > 0 && f.Policy.TargetTokens > 0
	extractive := f.Policy.Summary.Writer == policy.WriterExtractive
	switch {
	case slices.Contains([]string{"cron", "timezone", "debounce", "max_delay"}, key):
		return "schedules are those of the configuration (policy." + key + ")"
	case f.Policy.Guards.ServiceManaged && strings.HasPrefix(key, "guards.") && key != "guards.service_managed":
		return "guards.service_managed leaves the sessions alone"
	case key == "start" && len(f.Policy.Triggers) > 0 && !f.Policy.NamesStart():
		return "triggers say when a session is due; a condition can compare with start"
	case (key == "start" || key == "target") && absolute:
		return key + "_tokens replaces it"
	case strings.HasPrefix(key, "summary.") && !f.summarizes(registry):
		return "no step of the pipeline writes summaries"
	case extractive && slices.Contains([]string{"summary.instruction", "summary.max_cost", "summary.max_parts", "summary.pre_trim", "summary.cooldown_no_model"}, key):
		return "summary.writer is extractive, so no model is called"
	}
	return ""
}

// summarizes reports whether a step, or a strategy nested in one, writes summaries or
// extracts. One that is not known may.
func (f PolicyFile) summarizes(registry *plan.Registry) bool {
	if registry == nil {
		return true
	}
	bare := registry.With(nil)
	return slices.ContainsFunc(f.Policy.Pipeline, func(s policy.Step) bool {
		_, err := bare.New(s.Strategy, s.Params)
		sized := !reflect.DeepEqual(bare.Fill(s.Strategy, s.Params, policy.Values{Summary: 1}), bare.Fill(s.Strategy, s.Params, policy.Values{Summary: 2}))
		return sized || errors.Is(err, plan.ErrNoSummarizer) || errors.Is(err, plan.ErrUnknownStrategy)
	})
}
