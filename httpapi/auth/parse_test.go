package auth

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseRefuses(t *testing.T) {
	good := line("token", alice, "ka", "alice")
	with := func(old, replacement string) string { return file(strings.Replace(good, old, replacement, 1)) }
	const (
		needDigest = "accounts[0]: tokenSha256 must be the SHA-256 of the token in 64 hex digits"
		needNames  = "accounts[0]: there is an unknown field; the fields are tokenSha256, subject, address, credentials, name"
		needName   = "accounts[0]: name must be a string of 1 to 64 printable characters"
	)
	for content, want := range map[string]string{
		`[]`:                                      "must be an object",
		`{}`:                                      "version must be 1",
		`{"version":2,"accounts":[]}`:             "version must be 1",
		`{"version":"1","accounts":[]}`:           "version must be 1",
		`{"version":1.0,"accounts":[]}`:           "version must be 1",
		`{"version":1}`:                           "accounts must be a list; for no accounts write []",
		`{"version":1,"accounts":null}`:           "accounts must be a list; for no accounts write []",
		`{"version":1,"accounts":{}}`:             "accounts must be a list; for no accounts write []",
		`{"version":1,"accounts":[],"canary":1}`:  "there is an unknown field; the fields are version, accounts",
		`{"version":1,"version":1,"accounts":[]}`: "the field version is present twice",
		`{"version":1,"Accounts":[]}`:             "there is an unknown field; the fields are version, accounts",
		file(`"canary"`):                          "accounts[0]: must be an object",
		file(good, good):                          "accounts[1]: tokenSha256 is the same as in accounts[0]; a token stands for one account",
		file(good, strings.Replace(good, hash("token"), strings.ToUpper(hash("token")), 1)): "accounts[1]: tokenSha256 is the same as in accounts[0]; a token stands for one account",
		file(good, `{"canary":1}`):                          strings.Replace(needNames, "[0]", "[1]", 1),
		with(`"name"`, `"canary"`):                          needNames,
		with(`"name"`, `"Name"`):                            needNames,
		with(`"name"`, `"address"`):                         "accounts[0]: the field address is present twice",
		with(`"tokenSha256"`, `"name"`):                     "accounts[0]: the field name is present twice",
		with(hash("token"), "canary"):                       needDigest,
		with(hash("token"), hash("token")+"00"):             needDigest,
		with(hash("token"), "sha256:"+hash("token")[7:]):    needDigest,
		with(`"`+hash("token")+`"`, `17`):                   needDigest,
		with(`"`+hash("token")+`"`, `null`):                 needDigest,
		with(hash("token"), hash("")):                       "accounts[0]: tokenSha256 is the hash of an empty text; the token was empty when the hash was computed",
		with(hash("token"), hash("\n")):                     "accounts[0]: tokenSha256 is the hash of an empty text; the token was empty when the hash was computed",
		with(`"name":"alice"`, `"subject":""`):              "accounts[0]: subject must be a string of 1 to 255 printable bytes",
		with(`"name":"alice"`, `"subject":["canary"]`):      "accounts[0]: subject must be a string of 1 to 255 printable bytes",
		with(`"name":"alice"`, `"subject":"a\u0000canary"`): "accounts[0]: subject must be a string of 1 to 255 printable bytes",
		file(strings.Replace(good, `"name":"alice"`, `"subject":"s"`, 1), strings.Replace(line("t2", bob, "kb", "alice"), `"name":"alice"`, `"subject":"s"`, 1)): "accounts[1]: subject is the same as in accounts[0]; a subject stands for one account",
		with(alice, "0xcanary"):                                      "accounts[0]: address must be 0x and 40 hex digits",
		with(`"`+alice+`"`, `5`):                                     "accounts[0]: address must be 0x and 40 hex digits",
		with(`"alice"`, `""`):                                        needName,
		with(`"alice"`, `7`):                                         needName,
		with(`"alice"`, `"a\nb"`):                                    needName,
		with(`"alice"`, `"a\u202eb"`):                                needName,
		with(`"alice"`, `"`+strings.Repeat("x", 65)+`"`):             needName,
		with(`"apiKey":"ka",`, `"apiKey":"ka","address":"`+bob+`",`): "accounts[0]: credentials name another address than the one beside them",
		with(`"ka"`, `{"canary":[[[1]]]}`):                           "accounts[0]: credentials are nested at most 4 deep",
		with(`"s-ka"`, `"`+strings.Repeat("x", 2048)+`"`):            "accounts[0]: credentials are at most 2048 bytes long",
		with(`{"apiKey":"ka","secret":"s-ka"}`, `{}`):                "accounts[0]: credentials are empty",
		with(`{"apiKey":"ka","secret":"s-ka"}`, `"canary"`):          `accounts[0]: credentials must be an object such as {"apiKey":…,"secret":…,"passphrase":…}`,
		strings.Replace(file(good), `,"credentials":{"apiKey":"ka","secret":"s-ka"}`, ``, 1): `accounts[0]: credentials must be an object such as {"apiKey":…,"secret":…,"passphrase":…}`,
	} {
		entries, err := parse([]byte(content))
		if err == nil || err.Error() != want {
			t.Errorf("%s\n got the error %v\nwant the error %s\n(%d entries)", content, err, want, len(entries))
		}
	}
}

func TestParseLimits(t *testing.T) {
	lines := make([]string, maxAccounts+1)
	for i := range lines {
		lines[i] = line(fmt.Sprint("token-", i), alice, "k", "x")
	}
	if entries, err := parse([]byte(file(lines[:maxAccounts]...))); err != nil || len(entries) != maxAccounts {
		t.Errorf("got %d entries and the error %v, want %d entries", len(entries), err, maxAccounts)
	}
	if _, err := parse([]byte(file(lines...))); err == nil || err.Error() != "there are more than 10000 accounts" {
		t.Errorf("one account too many: got the error %v", err)
	}
	path := filepath.Join(t.TempDir(), "accounts.json")
	write(t, path, file()+strings.Repeat(" ", maxSize))
	if _, err := Open(path, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "larger than 8388608 bytes") {
		t.Errorf("a file that is too large: got the error %v", err)
	}
}

func TestParseAccepts(t *testing.T) {
	content := `{"accounts": [{
		"credentials": {"key": "k", "secret": "s", "passphrase": "p", "signatureType": 2, "address": "0x00000000000000000000000000000000000000A1"},
		"address": "0x00000000000000000000000000000000000000A1",
		"tokenSha256": "` + strings.ToUpper(hash("token")) + `"
	}], "version": 1}`
	entries, err := parse([]byte(content))
	if err != nil || len(entries) != 1 {
		t.Fatal(err)
	}
	e := entries[0]
	if e.address != alice || e.name != "" || e.credentials.Wire() != `{"key": "k", "secret": "s", "passphrase": "p", "signatureType": 2, "address": "0x00000000000000000000000000000000000000A1"}` {
		t.Errorf("got the entry %+v with the credentials %s", e, e.credentials.Wire())
	}
}

func TestOpenRefusesOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "accounts.json")
	write(t, path, file())
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others can read: got the error %v, want one with chmod 600", err)
	}
}

// FuzzParse checks that the errors of parse contain only printable ASCII and "…". The entries of an accepted file must be complete,
// and no two entries may have the same identifiers: the same token and the same subject.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{file(), file(line("token", alice, "ka", "alice"), line("t2", bob, "kb", "")), `{"version":1,"accounts":[{"tokenSha256":[1]}]}`, `[[[`, `{"":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		entries, err := parse(content)
		if err != nil {
			for _, r := range err.Error() {
				if r > 0x7e && r != '…' || r < ' ' {
					t.Fatalf("the error %q contains the character %q", err, r)
				}
			}
			return
		}
		seen := map[identifiers]bool{}
		for _, e := range entries {
			if own, ok := e.credentials.Address(); !ok || own != e.address || len(e.address) != 42 || seen[e.identifiers] || !e.token && e.subject == "" {
				t.Fatalf("the entry %+v is incomplete, or is not the only entry with its identifiers", e)
			}
			seen[e.identifiers] = true
		}
	})
}
