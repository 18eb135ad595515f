package storetest

import (
	"fmt"
	"os"
	"syscall"
)

// lockFolder: there are no private servers on Windows, only named ones.
func lockFolder(string) (*os.File, error) {
	return nil, fmt.Errorf("%w: private servers on Windows; set TEST_DATABASE_URL", errMissing)
}

func ownSession() *syscall.SysProcAttr { return nil }
