package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"oddsgraph/httpapi/filewatch"
)

// bucket is the part of a digest that accounts are found by.
type bucket [8]byte

// held is an account with who it is for.
type held struct {
	holder
	account *Account
}

// table is all accounts of one version of the file: by token, and by subject of JWTs.
type table struct {
	all      []held
	tokens   map[bucket][]held
	subjects map[string]held
}

// find returns the account of a digest.
//
// Tokens are random, so they can neither be guessed nor be found from their hash, and a plain SHA-256 is as good as a
// slow one. What an attacker could measure is how far the hash of his guess agrees with one that is known here; since
// he can't choose a token by its hash, even eight bytes known would not help him to the rest. Those eight find the
// bucket, all 32 are compared in constant time.
func (t *table) find(d digest) *Account {
	for _, h := range t.tokens[bucket(d[:])] {
		if subtle.ConstantTimeCompare(h.digest[:], d[:]) == 1 {
			return h.account
		}
	}
	return nil
}

// same returns the account that is for a holder, for him alone and nobody else.
func (t *table) same(of holder) *Account {
	if of.token {
		for _, h := range t.tokens[bucket(of.digest[:])] {
			if h.holder == of {
				return h.account
			}
		}
		return nil
	}
	if h := t.subjects[of.subject]; h.holder == of {
		return h.account
	}
	return nil
}

// Store holds the accounts of a file. It is safe for concurrent use.
type Store struct {
	file  *filewatch.File
	table atomic.Pointer[table]
	count atomic.Int64

	mu        sync.Mutex
	listeners []*func(*Account)
}

// Status tells how a Store stands.
type Status struct {
	filewatch.Status
	// Accounts is the number of accounts in force.
	Accounts int
}

// Open reads an accounts file, which only its owner may have access to.
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

// Run looks at the file twice a second until ctx ends. Whatever was changed in it is in force within a second. A file
// that can't be used leaves the accounts as they are; one that is missing three looks in a row revokes them all.
func (s *Store) Run(ctx context.Context) { s.file.Run(ctx) }

// Reload reads the file now. After an error the accounts are as they were. It must not be called by an OnRevoke callback.
func (s *Store) Reload() error { return s.file.Reload() }

// Status tells whether the file's present content is in force.
func (s *Store) Status() Status {
	return Status{Status: s.file.Status(), Accounts: int(s.count.Load())}
}

// Lookup returns the account that a token stands for. How long it takes tells nothing about other tokens.
func (s *Store) Lookup(token string) (*Account, bool) {
	a := s.table.Load().find(sha256.Sum256([]byte(token)))
	return a, a != nil
}

// Subject returns the account of a subject of JWTs.
func (s *Store) Subject(subject string) (*Account, bool) {
	h, ok := s.table.Load().subjects[subject]
	return h.account, ok
}

// OnRevoke has f called for every account that is revoked, after its Context has ended and Lookup has forgotten it, and
// before Run or Reload goes on. Another account may hold the same credentials. cancel ends that.
func (s *Store) OnRevoke(f func(*Account)) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &f
	s.listeners = append(s.listeners, l)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.listeners = slices.DeleteFunc(slices.Clone(s.listeners), func(other *func(*Account)) bool { return other == l })
	}
}

// replace puts entries into force. Accounts that are the same as before live on. Calls never overlap.
func (s *Store) replace(entries []entry) {
	before, next := s.table.Load(), &table{tokens: make(map[bucket][]held, len(entries)), subjects: map[string]held{}}
	kept := make(map[holder]bool, len(entries))
	for _, e := range entries {
		a := before.same(e.holder)
		switch {
		case a == nil || a.Address != e.address || a.Credentials.Wire() != e.credentials.Wire():
			a = newAccount(e)
		case a.Name != e.name:
			a, kept[e.holder] = a.renamed(e.name), true
		default:
			kept[e.holder] = true
		}
		h := held{e.holder, a}
		next.all = append(next.all, h)
		if e.token {
			b := bucket(e.digest[:])
			next.tokens[b] = append(next.tokens[b], h)
		}
		if e.subject != "" {
			next.subjects[e.subject] = h
		}
	}
	s.table.Store(next)
	s.count.Store(int64(len(entries)))

	var revoked []*Account
	for _, h := range before.all {
		if !kept[h.holder] {
			h.account.revoke(errRevoked)
			revoked = append(revoked, h.account)
		}
	}
	s.mu.Lock()
	listeners := s.listeners
	s.mu.Unlock()
	for _, a := range revoked {
		for _, l := range listeners {
			(*l)(a)
		}
	}
}
