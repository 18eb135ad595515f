package cli

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

type versionCmd struct{}

// imageVersion is set by the linker where the build has no version control (deploy/Dockerfile).
var imageVersion string

// buildVersion describes how this binary was built.
type buildVersion struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Time     string `json:"time,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newBuildVersion(info *debug.BuildInfo, ok bool) buildVersion {
	v := buildVersion{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if ok && info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	v.Version = cmp.Or(imageVersion, v.Version)
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (*versionCmd) Run(e *Env) error {
	v := newBuildVersion(debug.ReadBuildInfo())
	return e.show(v, func() {
		e.say("compactor %s", v.Version)
		if v.Revision != "" {
			e.say("revision %s%s, %s", v.Revision, when(v.Modified, " (modified)"), v.Time)
		}
		e.say("%s %s", v.Go, v.Platform)
	})
}
