package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

const (
	// probeTimeout bounds a Probe, longer than the checks of readiness.
	probeTimeout = 2 * checkTimeout
	// maxProbe bounds the answer that a Probe reads.
	maxProbe = 64 << 10
)

// Probe asks the process with this listener on this machine whether it lives or, with ready, whether
// it is ready for work. The error names each check that failed.
func Probe(ctx context.Context, listen string, ready bool) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return err
	}
	switch host { // all interfaces
	case "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	path := "/healthz"
	if ready {
		path = "/readyz"
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+path, http.NoBody)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // without the proxy of the environment
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	var answer readiness
	if err := json.NewDecoder(io.LimitReader(response.Body, maxProbe)).Decode(&answer); err != nil || answer.Status == "" {
		return fmt.Errorf("%s answers %s: is it compactor?", listen, response.Status)
	}
	fault := fmt.Errorf("status %s", answer.Status)
	for _, c := range answer.Checks {
		if !c.OK {
			fault = errors.Join(fault, fmt.Errorf("%s: %s", c.Name, c.Error))
		}
	}
	return fault
}
