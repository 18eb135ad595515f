package llm

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

// keySource holds the key of a model, empty for none. It reads the key from a file again
// for each request, so that a new key needs no restart. Safe for concurrent use.
type keySource struct {
	file string

	mu   sync.Mutex
	last string
}

// openKey finds the key of a profile. The error names its location, never its value.
func openKey(p Profile, env func(string) (string, bool)) (*keySource, error) {
	k := &keySource{file: p.KeyFile}
	var err error
	switch {
	case p.KeyFile != "":
		if k.last, err = readKey(p.KeyFile); err != nil {
			return nil, fmt.Errorf("key_file %s: %w", p.KeyFile, err)
		}
	case p.KeyEnv != "":
		var value string
		if env != nil {
			value, _ = env(p.KeyEnv)
		}
		if k.last, err = checkKey(value); err != nil {
			return nil, fmt.Errorf("key_env %s: %w", p.KeyEnv, err)
		}
	}
	return k, nil
}

// key returns the current key: the last one if its file cannot be read.
func (k *keySource) key() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file != "" {
		if value, err := readKey(k.file); err == nil {
			k.last = value
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
	return checkKey(string(raw))
}

// checkKey returns a key without surrounding white space, or an error if it cannot be part
// of a header.
func checkKey(value string) (string, error) {
	value = strings.TrimSpace(value)
	if value == "" {
		return "", errors.New("holds no key")
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < '!' || r > '~' }) {
		return "", errors.New("the key contains invalid characters")
	}
	return value, nil
}
