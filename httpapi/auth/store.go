package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"sync/atomic"

	"oddsgraph/httpapi/filewatch"
	"oddsgraph/internal/market"
)

// bucket is the first eight bytes of a digest. Accounts are looked up by bucket.
type bucket [8]byte

type tokenAccount struct {
	digest  digest
	account *Account
}

// table contains all accounts of one version of the file: accounts by token and subject (see identifiers), tokens by the bucket of
// the token's digest, and subjects by subject.
type table struct {
	accounts map[identifiers]*Account
	tokens   map[bucket][]tokenAccount
	subjects map[string]*Account
}

// find returns the account of a digest, or nil if there is none.
//
// Tokens are random, so a plain SHA-256 protects the tokens as well as a slow hash would. The look-up uses the first eight bytes of
// the digest to find a bucket, and compares all 32 bytes in constant time. The duration of the look-up may reveal how many of the
// first eight bytes of a guess are right. This does not help an attacker, because an attacker cannot choose a token by its hash.
func (t *table) find(d digest) *Account {
	for _, h := range t.tokens[bucket(d[:])] {
		if subtle.ConstantTimeCompare(h.digest[:], d[:]) == 1 {
			return h.account
		}
	}
	return nil
}

// Store contains the accounts of a file, or the accounts given to Fixed. It is safe for concurrent use.
type Store struct {
	file     *filewatch.File // nil for the accounts of Fixed
	table    atomic.Pointer[table]
	onRevoke func(*Account) // nil before OnRevoke
}

// Status is the state of a Store.
type Status struct {
	filewatch.Status
	// Accounts is the number of accounts in use.
	Accounts int
}

// Open reads an accounts file. It returns an error if users other than the owner can access the file; see
// filewatch.Options.Private.
func Open(path string, log *slog.Logger) (*Store, error) {
	s := &Store{}
	s.table.Store(&table{})
	file, err := filewatch.Open(filewatch.Options{
		What: "accounts file", Path: path, MaxSize: maxSize, Private: true, Log: log,
		Use: func(content []byte) error {
			entries, err := parse(content)
			if err != nil {
				return err
			}
			s.replace(entries)
			return nil
		},
		Gone: func() { s.replace(nil) },
	})
	if err != nil {
		return nil, err
	}
	s.file = file
	return s, nil
}

// Fixed returns a store of accounts that never change. Each account has a token and no subject.
func Fixed(accounts ...FixedAccount) *Store {
	s := &Store{}
	s.table.Store(&table{})
	entries := make([]entry, len(accounts))
	for i, a := range accounts {
		entries[i] = entry{identifiers: identifiers{token: true, digest: sha256.Sum256([]byte(a.Token))}, name: a.Name, address: a.Address, credentials: a.Credentials}
	}
	s.replace(entries)
	return s
}

// FixedAccount is an account of a store that Fixed returns.
type FixedAccount struct {
	Name, Token string
	Address     market.Address
	Credentials *market.Credentials
}

// Run polls the file every second until ctx ends. An invalid file changes nothing. If a poll does not find the file, Run
// revokes all accounts. If the accounts are fixed, Run returns at once.
func (s *Store) Run(ctx context.Context) {
	if s.file != nil {
		s.file.Run(ctx)
	}
}

// Reload reads the file now. If it returns an error, the accounts are unchanged. A callback of OnRevoke must not call Reload.
func (s *Store) Reload() error {
	if s.file == nil {
		return nil
	}
	return s.file.Reload()
}

// Status returns the state of the file and its accounts.
func (s *Store) Status() Status {
	status := Status{Accounts: len(s.table.Load().accounts)}
	if s.file != nil {
		status.Status = s.file.Status()
	}
	return status
}

// Lookup returns the account of a token. The duration of Lookup does not help to guess other tokens.
func (s *Store) Lookup(token string) (*Account, bool) {
	a := s.table.Load().find(sha256.Sum256([]byte(token)))
	return a, a != nil
}

// Subject returns the account for a subject of JWTs.
func (s *Store) Subject(subject string) (*Account, bool) {
	a, ok := s.table.Load().subjects[subject]
	return a, ok
}

// OnRevoke sets f. Run and Reload call f for every account that is revoked, and wait for f. When they call f, the account's
// sessions have ended, and Lookup no longer finds the account. Another valid account may have the same credentials, so f must
// tolerate that the credentials are still in use. Call OnRevoke before Run and Reload.
func (s *Store) OnRevoke(f func(*Account)) { s.onRevoke = f }

// replace replaces all accounts. An account whose token, subject, address and credentials are unchanged stays valid. Calls of
// replace never overlap.
func (s *Store) replace(entries []entry) {
	before := s.table.Load()
	next := &table{make(map[identifiers]*Account, len(entries)), make(map[bucket][]tokenAccount, len(entries)), map[string]*Account{}}
	unchanged := make(map[identifiers]bool, len(entries))
	for _, e := range entries {
		a := before.accounts[e.identifiers]
		switch {
		case a == nil || a.Address != e.address || a.Credentials.Wire() != e.credentials.Wire():
			a = newAccount(e)
		case a.Name != e.name:
			a, unchanged[e.identifiers] = a.renamed(e.name), true
		default:
			unchanged[e.identifiers] = true
		}
		next.accounts[e.identifiers] = a
		if e.token {
			b := bucket(e.digest[:])
			next.tokens[b] = append(next.tokens[b], tokenAccount{e.digest, a})
		}
		if e.subject != "" {
			next.subjects[e.subject] = a
		}
	}
	s.table.Store(next)

	var revoked []*Account
	for h, a := range before.accounts {
		if !unchanged[h] {
			a.revoke(errRevoked)
			revoked = append(revoked, a)
		}
	}
	if s.onRevoke != nil {
		for _, a := range revoked {
			s.onRevoke(a)
		}
	}
}
