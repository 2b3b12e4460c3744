package fanout

import (
	"sync"

	"oddsgraph/httpapi/quota"
)

// billing contains the clients that are charged for a group, or for a subscription made with JoinParts. A client with several
// members is charged once.
type billing map[quota.Client]*payer

type payer struct {
	client  quota.Client
	members int
	// release may be called more than once.
	release func()
}

// charge adds a member to the payer of a client. If the client has no payer yet, the method calls newCharge, which charges the
// client.
func (ps billing) charge(client quota.Client, newCharge func() (release func(), err error)) (*payer, error) {
	p := ps[client]
	if p == nil {
		release, err := newCharge()
		if err != nil {
			return nil, err
		}
		p = &payer{client: client, release: sync.OnceFunc(release)}
		ps[client] = p
	}
	p.members++
	return p, nil
}

// leave removes a member from its payer. When the last member leaves, the payer is removed and its release is called.
func (ps billing) leave(p *payer) {
	if p.members--; p.members == 0 {
		delete(ps, p.client)
		p.release()
	}
}
