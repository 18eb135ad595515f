package config

import (
	"reflect"
	"strings"
)

// field is one setting of a Config: its key and its addressable value.
type field struct {
	key   string
	value reflect.Value
}

// fields lists the settings in order. Fields of a struct type are sections.
func fields(c *Config) []field {
	return walk("", reflect.ValueOf(c).Elem(), nil)
}

func walk(prefix string, v reflect.Value, out []field) []field {
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		if name == "" || name == "-" {
			continue
		}
		key := join(prefix, name)
		if v.Field(i).Kind() == reflect.Struct {
			out = walk(key, v.Field(i), out)
			continue
		}
		out = append(out, field{key, v.Field(i)})
	}
	return out
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// Keys lists every setting, as "section.key".
func Keys() []string {
	c := Default()
	fs := fields(&c)
	keys := make([]string, len(fs))
	for i, f := range fs {
		keys[i] = f.key
	}
	return keys
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
	return strings.NewReplacer(".", "-", "_", "-").Replace(key)
}
