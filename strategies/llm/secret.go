package llm

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
)

// mask stands where a secret would.
const mask = "xxxxx"

// Secret is a key. However it is printed, logged or encoded, it is masked; Reveal
// gives it. The zero value is no key.
type Secret struct {
	// value is behind a pointer, which is all that fmt prints of it where it asks no
	// method: for %#v, and for a field of something else.
	value *string
}

// NewSecret hides a key.
func NewSecret(value string) Secret { return Secret{&value} }

// Reveal returns the key. Only what puts it into a request calls it.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// String returns a mask, or nothing where there is no key.
func (s Secret) String() string {
	if s.Reveal() == "" {
		return ""
	}
	return mask
}

// LogValue is String, for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// keySource gives the key of a model. One from a file is read again for every
// call, so that a new key needs no restart. Safe for concurrent use.
type keySource struct {
	file string

	mu   sync.Mutex
	last Secret
}

// openKey finds the key of a profile. The error names the place, never the value.
func openKey(p Profile, env func(string) (string, bool)) (*keySource, error) {
	k := &keySource{file: p.KeyFile}
	var value string
	switch {
	case p.KeyFile != "":
		var err error
		if value, err = readKey(p.KeyFile); err != nil {
			return nil, fmt.Errorf("key_file %s: %w", p.KeyFile, err)
		}
	case p.KeyEnv != "":
		if env != nil {
			value, _ = env(p.KeyEnv)
		}
		value = strings.TrimSpace(value)
		if err := checkKey(value); err != nil {
			return nil, fmt.Errorf("key_env %s: %w", p.KeyEnv, err)
		}
	}
	k.last = NewSecret(value)
	return k, nil
}

// key returns the key now. A file that cannot be read leaves the last one.
func (k *keySource) key() Secret {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file != "" {
		if value, err := readKey(k.file); err == nil {
			k.last = NewSecret(value)
		}
	}
	return k.last
}

func readKey(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		if pathErr, ok := errors.AsType[*os.PathError](err); ok {
			return "", pathErr.Err
		}
		return "", err
	}
	value := strings.TrimSpace(string(raw))
	return value, checkKey(value)
}

// checkKey refuses what cannot stand in a header.
func checkKey(value string) error {
	if value == "" {
		return errors.New("holds no key")
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < '!' || r > '~' }) {
		return errors.New("the key contains invalid characters")
	}
	return nil
}
