package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// apt runs the package manager of Debian and Ubuntu without root: it reads the lists of
// packages and downloads, and installs nothing.
type apt struct {
	look func(name string) (string, error)
	dir  string // holds its settings and the downloads
}

// aptPackages lists the packages of a server. Those of Postgres depend on the version.
var aptPackages = map[string][]string{
	"redis-server": {"redis-server", "redis-tools"},
	"pgbouncer":    {"pgbouncer"},
}

// fetchApt unpacks the packages of a server, and the libraries that the machine lacks, into
// the folder root. It returns its name in the cache. If the lists of packages of the machine
// are missing, as in many containers, or outdated, it downloads others into a temporary folder.
func (f *finder) fetchApt(ctx context.Context, scratch, root, name string, major int) (string, error) {
	if _, err := f.look("apt-get"); err != nil {
		return "", fmt.Errorf("fetch %s without apt-get: %w", name, errors.ErrUnsupported)
	}
	if f.aptHasLists() {
		a := &apt{look: f.look, dir: filepath.Join(scratch, "apt")}
		if err := a.prepare(false); err != nil {
			return "", err
		}
		if folder, err := f.unpack(ctx, a, root, name, major); err == nil || ctx.Err() != nil {
			return folder, err
		}
	}
	a := &apt{look: f.look, dir: filepath.Join(scratch, "apt-updated")}
	if err := errors.Join(os.RemoveAll(root), a.prepare(true)); err != nil {
		return "", err
	}
	f.notice("downloading apt's lists of packages, about 10 MB, into a temporary folder")
	out, err := a.run(ctx, "apt-get", "update", "-q") // succeeds although sources fail
	if err != nil {
		return "", err
	}
	if lists, _ := filepath.Glob(filepath.Join(a.dir, "state/lists/*_Packages*")); len(lists) == 0 {
		return "", fmt.Errorf("apt-get update: %s", strings.Join(slices.Compact(aptFailure.FindAllString(out, -1)), ", "))
	}
	return f.unpack(ctx, a, root, name, major)
}

// aptHasLists reports whether this machine has lists of packages.
func (f *finder) aptHasLists() bool {
	lists, _ := filepath.Glob(f.lists)
	return len(lists) > 0
}

// unpack downloads and unpacks the packages.
func (f *finder) unpack(ctx context.Context, a *apt, root, name string, major int) (string, error) {
	folder, packages := name, aptPackages[name]
	if name == "postgres" {
		server, err := a.postgres(ctx, major)
		if err != nil {
			return "", err
		}
		folder, packages = "postgres-"+strings.TrimPrefix(server, "postgresql-"), []string{server}
	}
	all, size, err := a.resolve(ctx, packages)
	if err != nil {
		return "", err
	}
	things := strings.Join(packages, " and ")
	if n := len(all) - len(packages); n > 0 {
		things += fmt.Sprintf(" with %d libraries", n)
	}
	f.announce(things, size, "apt's sources", folder)
	if _, err := a.run(ctx, "apt-get", append([]string{"download", "-q"}, all...)...); err != nil {
		return "", err
	}
	files, _ := filepath.Glob(filepath.Join(a.dir, "*.deb"))
	for _, file := range files {
		if _, err := a.run(ctx, "dpkg-deb", "-x", file, root); err != nil {
			return "", err
		}
	}
	for _, binary := range []string{"usr/lib/postgresql/*/bin/postgres", "usr/lib/postgresql/*/bin/initdb", "usr/*bin/" + name} {
		paths, _ := filepath.Glob(filepath.Join(root, binary))
		for _, path := range paths {
			if _, err := runVersion(ctx, path); err != nil {
				return "", err
			}
		}
	}
	return folder, nil
}

// prepare writes the settings: no locks, no hooks, no user of its own, and for own lists
// other folders.
func (a *apt) prepare(own bool) error {
	settings := `Debug::NoLocking "true";
APT::Sandbox::User "root";
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Acquire::Retries "0";
Acquire::http::Timeout "15";
Acquire::https::Timeout "15";
Acquire::Languages "none";
Dir::Cache "` + filepath.Join(a.dir, "cache") + `";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "srcpkgcache.bin";
`
	if own {
		settings += `Dir::State "` + filepath.Join(a.dir, "state") + `";` + "\n"
	}
	for _, dir := range []string{"cache/archives/partial", "state/lists/partial"} {
		if err := os.MkdirAll(filepath.Join(a.dir, dir), 0o700); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(a.dir, "apt.conf"), []byte(settings), 0o600)
}

// run runs a tool in the folder and returns its output.
func (a *apt) run(ctx context.Context, tool string, args ...string) (string, error) {
	path, err := a.look(tool)
	if err != nil {
		return "", err
	}
	if tool != "dpkg-deb" {
		args = append([]string{"-c", filepath.Join(a.dir, "apt.conf")}, args...)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = a.dir, environ("")
	detach(cmd, nil, syscall.SIGTERM)
	out, err := run(ctx, cmd)
	if err != nil {
		return "", fmt.Errorf("%s: %w", tool, err)
	}
	return out, nil
}

// depends returns the names in the direct dependencies of packages that match.
func (a *apt) depends(ctx context.Context, match *regexp.Regexp, packages ...string) (names []string, err error) {
	out, err := a.run(ctx, "apt-cache", append([]string{"depends", "--important"}, packages...)...)
	for _, found := range match.FindAllStringSubmatch(out, -1) {
		names = append(names, found[1])
	}
	return names, err
}

var (
	aptServer  = regexp.MustCompile(`(?m)^ *Depends: (postgresql-\d+)$`)
	aptLibrary = regexp.MustCompile(`(?m)^ *Depends: (lib[^ ]+)$`)
	// aptFailure is the reason of a source that "apt-get update" could not read.
	aptFailure = regexp.MustCompile(`(Temporary|Could|Cannot|Connection|Unable|404) .*`)
	// aptURI is a line of --print-uris: URI, file, size and checksum.
	aptURI = regexp.MustCompile(`(?m)^'[^']+' ([^_ ]+)_[^ ]+\.deb (\d+)`)
)

// postgres returns the package of a version; for 0 of the newest, on which postgresql depends.
func (a *apt) postgres(ctx context.Context, major int) (string, error) {
	if major != 0 {
		return fmt.Sprintf("postgresql-%d", major), nil
	}
	names, err := a.depends(ctx, aptServer, "postgresql")
	if err != nil {
		return "", err
	}
	if len(names) == 0 || number(names[0]) < oldest {
		return "", fmt.Errorf("apt-cache: the package postgresql is older than %d: %v", oldest, names)
	}
	return names[0], nil
}

// resolve returns packages and the libraries they need that are not installed, and the size
// of their files.
func (a *apt) resolve(ctx context.Context, packages []string) (all []string, size int64, err error) {
	libraries, err := a.depends(ctx, aptLibrary, packages...)
	if err != nil {
		return nil, 0, err
	}
	// LLVM is for JIT, which is switched off.
	libraries = slices.DeleteFunc(libraries, func(name string) bool { return strings.HasPrefix(name, "libllvm") })
	list := []string{"install", "--print-uris", "-qq", "-y", "--no-install-recommends", "--no-upgrade"}
	out, err := a.run(ctx, "apt-get", append(list, libraries...)...)
	if err != nil {
		return nil, 0, err
	}
	servers, err := a.run(ctx, "apt-get", append([]string{"download", "--print-uris"}, packages...)...)
	for _, found := range aptURI.FindAllStringSubmatch(servers+"\n"+out, -1) {
		n, _ := strconv.ParseInt(found[2], 10, 64)
		all, size = append(all, found[1]), size+n
	}
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("apt-get: no packages of %v", packages)
	}
	return all, size, err
}
