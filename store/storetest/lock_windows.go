package storetest

import (
	"fmt"
	"os"
	"syscall"
)

// lockFolder returns an error: on Windows, only configured servers are supported.
func lockFolder(string) (*os.File, error) {
	return nil, fmt.Errorf("%w: private servers on Windows; set TEST_DATABASE_URL", errMissing)
}

func ownSession() *syscall.SysProcAttr { return nil }
