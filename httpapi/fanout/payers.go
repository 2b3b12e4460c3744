package fanout

import (
	"net/netip"
	"sync"
)

// payers are the clients who are charged for a group: each once, as long as a member is the client's.
type payers map[netip.Prefix]*payer

type payer struct {
	client  netip.Prefix
	members int
	// delivered counts the deliveries of the present event, under the group's lock.
	delivered int
	// release may be called again.
	release func()
}

// charge returns the payer of one member more.
func (ps payers) charge(client netip.Prefix, charge func() (release func(), err error)) (*payer, error) {
	p := ps[client]
	if p == nil {
		release, err := charge()
		if err != nil {
			return nil, err
		}
		p = &payer{client: client, release: sync.OnceFunc(release)}
		ps[client] = p
	}
	p.members++
	return p, nil
}

// leave takes a member off its payer.
func (ps payers) leave(p *payer) {
	if p.members--; p.members == 0 {
		delete(ps, p.client)
		p.release()
	}
}
