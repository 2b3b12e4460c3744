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

// adminShutdown is how long operators are waited for at the end.
const adminShutdown = time.Second

// responseKind is the kind of whole responses, beside those of the cache.
const responseKind = "response"

// openAdmin binds the private address; the listener is nil where there is none.
func (s *App) openAdmin(address string) (*Server, error) {
	if address == config.Off {
		return nil, nil
	}
	l, err := listen("--admin-listen (ODDSGRAPH_ADMIN_LISTEN)", address, quota.ConnectionLimits{}, admin.New(admin.Config{
		Metrics: s.Metrics.Handler(), Health: s.API.Healthz, Ready: s.API.Readyz,
		Version: BuildVersion(), Started: s.started, Flush: s.flush,
	}), s.log, adminShutdown)
	if err != nil {
		return nil, err
	}
	l.HTTP.ReadTimeout = 0 // it would cut profiles short, which take as long as was asked for
	return l, nil
}

// flush lets go of what is cached. The log tells of it, but not the key, which an operator may have mistaken for anything.
func (s *App) flush(kind, key string) (entries int, err error) {
	kinds := []string{responseKind}
	for _, k := range s.Cache.Stats() {
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
		if entries, err = s.Cache.Flush(kind, key); err != nil {
			return 0, err
		}
	}
	s.log.Info("an operator has flushed the cache", "kind", kind, "keyed", key != "", "entries", entries)
	return entries, nil
}
