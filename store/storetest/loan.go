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
	"time"
)

// stackd is the command that lends servers.
const stackd = "./cmd/internal/dev/stack/stackd"

// lease is a server lent to us for as long as the connection is open.
type lease struct {
	url  string
	conn net.Conn
}

// release ends the lease.
func (l *lease) release() { _ = l.conn.Close() }

// acquire asks the lender of this checkout for a server, starting the lender
// where none runs.
func acquire(want string) (*lease, error) {
	conn, in, err := dial()
	if err != nil {
		return nil, err
	}
	l, err := request(conn, in, want)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return l, nil
}

func request(conn net.Conn, in *bufio.Reader, want string) (*lease, error) {
	if err := conn.SetDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintln(conn, want); err != nil {
		return nil, err
	}
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("ask stackd for %s: %w", want, err)
	}
	var reply struct {
		URL     string
		Error   string
		Missing bool
	}
	switch err := json.Unmarshal(line, &reply); {
	case err != nil:
		return nil, fmt.Errorf("ask stackd for %s: %w", want, err)
	case reply.Missing:
		return nil, fmt.Errorf("%w: %s", errMissing, reply.Error)
	case reply.Error != "":
		return nil, errors.New(reply.Error)
	}
	return &lease{url: reply.URL, conn: conn}, conn.SetDeadline(time.Time{})
}

// dial returns a connection that the lender has greeted. It holds the lock of
// the folder meanwhile: the lender ends only with the lock in hand.
func dial() (net.Conn, *bufio.Reader, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, nil, err
	}
	// One lender for each user and checkout: other checkouts may hold other code.
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
	conn, err := net.DialTimeout("unix", filepath.Join(dir, "control.sock"), 5*time.Second)
	if err != nil {
		return nil, nil, err
	}
	in := bufio.NewReader(conn)
	if err = conn.SetDeadline(time.Now().Add(5 * time.Second)); err == nil {
		_, err = in.ReadString('\n')
	}
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, in, nil
}

// launch builds the lender and starts it in a session of its own: it outlives
// us when other test processes still use it.
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
	// Not our output: the go command waits for whoever holds it.
	cmd := exec.Command(binary, "-dir", dir)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = root, log, log, ownSession()
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	if err := cmd.Process.Release(); err != nil {
		return nil, nil, err
	}
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		conn, in, err := greet(dir)
		if err == nil {
			return conn, in, nil
		}
		if time.Now().After(deadline) {
			said, _ := os.ReadFile(log.Name())
			return nil, nil, fmt.Errorf("stackd does not answer: %w; its log: %s", err, bytes.TrimSpace(said))
		}
	}
}

// started is where the process began: go test starts it in the folder of its
// package.
var started, _ = os.Getwd()

// moduleRoot returns the folder that holds go.mod.
func moduleRoot() (string, error) {
	for dir := started; ; dir = filepath.Dir(dir) {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%w: no module above %s, to build %s from", errMissing, started, stackd)
		}
	}
}
