package config

import (
	"cmp"
	"net/url"
	"strings"
)

// Traces holds where spans are sent, as OTLP over HTTP. All else about them, such as sampling and
// headers with credentials, is set by OpenTelemetry's own variables, which its SDK reads.
type Traces struct {
	// Endpoint is the URL of a collector; TracesOff or "" for none.
	Endpoint Secret `yaml:"endpoint"`
	// Unused says why a collector that OpenTelemetry's variables name is not used; "" if none is left out.
	Unused string `yaml:"-" json:"-"`
}

// TracesOff is a value of Traces.Endpoint without a collector.
const TracesOff = "off"

// URL returns the URL to which spans are posted, "" for none: a collector without a path takes them at
// /v1/traces.
func (t Traces) URL() string {
	u, err := url.Parse(t.Endpoint.Reveal())
	if err != nil || u.Host == "" {
		return ""
	}
	if strings.Trim(u.Path, "/") == "" {
		u = u.JoinPath("v1/traces")
	}
	return u.String()
}

// tracesVariables reads the variables that name a collector for all programs. Where they suit other
// programs only, they are not used, and the reason is returned: no command fails for them.
func (d *decoder) tracesVariables(env map[string]string) (unused string) {
	const all, own, protocol, ownProtocol = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	for name, off := range map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "none"} {
		if strings.EqualFold(env[name], off) {
			d.text(Origin{Source: FromEnv, Name: name}, "traces.endpoint", TracesOff)
			return ""
		}
	}
	if d.origins["traces.endpoint"].Source == FromEnv { // COMPACTOR_TRACES_ENDPOINT
		return ""
	}
	name, value := own, env[own]
	if value == "" {
		name = all
		if value = env[all]; value == "" {
			return ""
		}
	}
	if fault := endpointFault(value); fault != "" {
		return name + " is not used: want " + fault
	}
	if p := cmp.Or(env[ownProtocol], env[protocol], "http/protobuf"); p != "http/protobuf" {
		return name + " is not used: spans are sent as http/protobuf, and the variables ask for another protocol; set traces.endpoint"
	}
	if u, err := url.Parse(value); name == all && err == nil { // which all kinds of telemetry share
		value = u.JoinPath("v1/traces").String()
	}
	d.text(Origin{Source: FromEnv, Name: name}, "traces.endpoint", value)
	return ""
}

// endpointFault returns what is wanted in place of an endpoint, "" if it can be used.
func endpointFault(endpoint string) string {
	u, err := url.Parse(endpoint)
	switch {
	case endpoint == "" || endpoint == TracesOff:
		return ""
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "the URL of a collector of OTLP over HTTP, such as http://127.0.0.1:4318, or off"
	case u.User != nil || u.RawQuery != "":
		return "a URL without credentials: they belong into OTEL_EXPORTER_OTLP_HEADERS"
	}
	return ""
}
