package quota_test

import (
	"io"
	"net"
	"testing"

	"oddsgraph/httpapi/quota"
)

// connect returns both ends of a TCP connection through a listener without limits. The test closes them at its end.
func connect(t *testing.T) (client, served net.Conn) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := quota.Listen(inner, quota.ConnectionLimits{})
	t.Cleanup(func() { l.Close() })
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if served, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { served.Close() })
	return client, served
}

// TestCloseWrite checks that accepted connections have the method by which net/http ends a response to a request that it has not
// read completely. Without the method, the close resets the connection, and the client can lose the response.
func TestCloseWrite(t *testing.T) {
	client, served := connect(t)
	half, ok := served.(interface{ CloseWrite() error })
	if !ok {
		t.Fatalf("%T has no CloseWrite", served)
	}
	if err := half.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after CloseWrite the client read the error %v, want %v", err, io.EOF)
	}
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := served.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("after CloseWrite the server read %d bytes and the error %v, want 1 byte", n, err)
	}
}
