package e2e

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// offline is the name of an environment variable. startOffline sets it in the child process, which has only a loopback interface.
const offline = "RUN_OFFLINE"

func init() {
	if os.Getenv(offline) == "" || os.Getenv(asProgram) != "" {
		return
	}
	if err := raiseLoopback(); err != nil {
		panic("the loopback interface cannot be enabled: " + err.Error())
	}
}

// raiseLoopback enables the loopback interface of a new network namespace.
func raiseLoopback() error {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(socket)
	// request is a struct ifreq: the name of an interface, and its flags.
	var request struct {
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], "lo")
	request.flags = syscall.IFF_UP | syscall.IFF_RUNNING
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}

// startOffline starts the calling test again in a child process that has only a loopback interface. The parameter parallel limits
// how many subtests the child runs at a time, and env has additional environment variables. The child has a low priority, because
// it runs beside tests that measure durations. The returned function waits until the child ends. It is nil in the child itself, or
// if the kernel permits no network namespace. If the function is nil, the calling test must run its checks itself.
func startOffline(t *testing.T, parallel int, env ...string) (wait func() error) {
	t.Helper()
	if os.Getenv(offline) != "" {
		wantOffline(t)
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := "-test.run=^" + t.Name() + "$"
	if _, sub, ok := strings.Cut(flag.Lookup("test.run").Value.String(), "/"); ok {
		run += "/" + sub
	}
	args := []string{"-n", "5", exe, "-test.v", run, fmt.Sprint("-test.parallel=", parallel)}
	if deadline, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+time.Until(deadline).String())
	}
	cmd := exec.CommandContext(t.Context(), "nice", args...)
	cmd.Env = append(append(os.Environ(), env...), offline+"=1")
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.WaitDelay = 10 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if err := cmd.Start(); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
		t.Logf("the network is not cut off, because this process cannot create a network namespace (%v): only the browser blocks other hosts", err)
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	return cmd.Wait
}

// wantOffline fails the test if a network interface other than the loopback interface is up.
func wantOffline(t *testing.T) {
	t.Helper()
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			t.Fatalf("the network interface %s is up, want only the loopback interface", i.Name)
		}
	}
	t.Log("the network is cut off: this process and its children have only their own loopback interface")
}
