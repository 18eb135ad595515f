package storetest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// stackd is the command that leases servers to test processes.
const stackd = "./cmd/internal/dev/stack/stackd"

// lease is a server that is available while the connection is open.
type lease struct {
	url  string
	conn net.Conn
}

// release ends the lease.
func (l *lease) release() { _ = l.conn.Close() }

// acquire leases a server, by a request that stackd describes, from the stackd of this
// checkout. It starts stackd if it is not running.
func acquire(server string) (*lease, error) {
	conn, in, err := dial()
	if err != nil {
		return nil, err
	}
	l, err := request(conn, in, server)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return l, nil
}

func request(conn net.Conn, in *bufio.Reader, request string) (*lease, error) {
	server, _, _ := strings.Cut(request, " ")
	// It may have to be fetched; the go command ends tests after ten minutes.
	if err := conn.SetDeadline(time.Now().Add(9 * time.Minute)); err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintln(conn, request); err != nil {
		return nil, err
	}
	for replies := json.NewDecoder(in); ; {
		var reply struct {
			Notice, URL, Error string
			Missing            bool
		}
		if err := replies.Decode(&reply); err != nil {
			return nil, fmt.Errorf("lease %s: %w", server, err)
		}
		switch {
		case reply.Notice != "":
			show(reply.Notice)
		case reply.Missing:
			return nil, fmt.Errorf("%w: %s", errMissing, reply.Error)
		case reply.Error != "":
			return nil, errors.New(reply.Error)
		default:
			return &lease{url: reply.URL, conn: conn}, conn.SetDeadline(time.Time{})
		}
	}
}

// show writes a line to the terminal, as the go command hides the output of tests that pass, or
// without one to standard error.
func show(line string) {
	out, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		out = os.Stderr
	} else {
		defer out.Close()
	}
	fmt.Fprintln(out, line)
}

// dial connects to stackd and waits for its greeting. It holds the lock of the folder
// meanwhile, without which stackd does not end.
func dial() (net.Conn, *bufio.Reader, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, nil, err
	}
	// One stackd per user and checkout, as the code of checkouts may differ.
	sum := sha256.Sum256([]byte(root))
	dir := filepath.Join(os.TempDir(), "compactor-test-"+strconv.Itoa(os.Getuid())+"-"+hex.EncodeToString(sum[:4]))
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	defer lock.Close()
	if conn, in, err := greet(dir); err == nil {
		return conn, in, nil
	}
	return launch(root, dir)
}

// greet connects and waits for the greeting.
func greet(dir string) (net.Conn, *bufio.Reader, error) {
	conn, err := net.DialTimeout("unix", filepath.Join(dir, "control.sock"), time.Minute)
	if err != nil {
		return nil, nil, err
	}
	in := bufio.NewReader(conn)
	if err = conn.SetDeadline(time.Now().Add(time.Minute)); err == nil {
		_, err = in.ReadString('\n')
	}
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, in, nil
}

// launch builds stackd and starts it in a session of its own, as other test processes may
// use it after this one has ended.
func launch(root, dir string) (net.Conn, *bufio.Reader, error) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return nil, nil, fmt.Errorf("%w: the go command, to build %s", errMissing, stackd)
	}
	binary := filepath.Join(dir, "stackd")
	build := exec.Command(tool, "build", "-buildvcs=false", "-o", binary, stackd)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("build %s: %w: %s", stackd, err, bytes.TrimSpace(out))
	}
	log, err := os.Create(filepath.Join(dir, "stackd.log"))
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	// Not the output of this process: the go command would wait until stackd closes it.
	cmd := exec.Command(binary, "-dir", dir)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = root, log, log, ownSession()
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	if err := cmd.Process.Release(); err != nil {
		return nil, nil, err
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		conn, in, err := greet(dir)
		if err == nil {
			return conn, in, nil
		}
		if time.Now().After(deadline) {
			lines, _ := os.ReadFile(log.Name())
			return nil, nil, fmt.Errorf("stackd does not answer: %w; its log: %s", err, bytes.TrimSpace(lines))
		}
	}
}

// startDir is the folder in which the process started: for tests, that of the package.
var startDir, _ = os.Getwd()

// moduleRoot returns the folder of go.mod.
func moduleRoot() (string, error) {
	for dir := startDir; ; dir = filepath.Dir(dir) {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%w: the module of %s, above %s", errMissing, stackd, startDir)
		}
	}
}
