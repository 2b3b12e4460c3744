package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oddsgraph/app/admin"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/config"
)

const adminShutdownTimeout = time.Second

// responseKind is the kind of a flush request that empties the cache of whole responses.
const responseKind = "response"

// openAdmin binds the private address. It returns a nil server if the address is config.Off.
func (s *App) openAdmin(address string) (*Server, error) {
	if address == config.Off {
		return nil, nil
	}
	l, err := listen("--admin-listen (ODDSGRAPH_ADMIN_LISTEN)", address, quota.ConnectionLimits{}, admin.New(admin.Config{
		Metrics: s.Metrics.Handler(), Health: s.API.Healthz, Ready: s.API.Readyz,
		Version: BuildVersion(), Started: s.started, Flush: s.flush,
	}), s.log, adminShutdownTimeout)
	if err != nil {
		return nil, err
	}
	l.HTTP.ReadTimeout = 0 // after a ReadTimeout, net/http would cancel the context of a long profile
	return l, nil
}

// flush does not log the key, because an operator may have pasted a secret by mistake. If key is "", flush removes all entries of
// the kind. If key is the name of a further venue and a colon, flush removes all entries of the kind and this venue.
func (s *App) flush(kind, key string) (entries int, err error) {
	kinds := []string{responseKind}
	for _, k := range s.Venue.Cache.Stats() {
		kinds = append(kinds, k.Kind)
	}
	switch {
	case !slices.Contains(kinds, kind):
		return 0, fmt.Errorf("kind is one of %s", strings.Join(kinds, ", "))
	case kind == responseKind && key != "":
		return 0, errors.New("responses have no keys that could be named; flush all of them")
	case kind == responseKind:
		entries = s.API.Flush()
	default:
		of := s.Venues
		if i := s.Venue.names.Find(key); key != "" {
			of = of[i : i+1]
		}
		if name := of[0].name; name != "" && key == name+":" {
			key = ""
		}
		for _, u := range of {
			n, err := u.Cache.Flush(kind, key)
			if err != nil {
				return 0, err
			}
			entries += n
		}
	}
	s.log.Info("an operator has flushed the cache", "kind", kind, "keyed", key != "", "entries", entries)
	return entries, nil
}
