package httpapi

import (
	"net/netip"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
)

// charge charges a client for the execution of a subscription until release is called. It charges for the followed ids, the
// document and the variables. own is the number of additional bytes to charge.
func (s *subscriptions) charge(client netip.Addr, key fanout.Key, op *operation, own int) (release func(), err error) {
	ids := op.watched()
	if err := s.clients.Execute(client, ids); err != nil {
		return nil, err
	}
	unheld, err := s.hold(quota.Network(client), key, op, own)
	if err != nil {
		s.clients.Executed(client, ids)
		return nil, err
	}
	return func() {
		unheld()
		s.clients.Executed(client, ids)
	}, nil
}

// hold charges a client for the memory of an operation until release is called. It charges for the document, the variables, and the
// number of additional bytes in own. Operations with the same key share the charge for the variables and the additional bytes.
func (s *subscriptions) hold(client netip.Prefix, key any, op *operation, own int) (release func(), err error) {
	size, unused := s.engine.documents.use(op.document)
	if !s.held.Hold(client, op.document, size) {
		unused()
		return nil, errTooLargeDocuments
	}
	if !s.held.Hold(client, key, bytesOfValue(op.variables)+own) {
		s.held.Release(client, op.document)
		unused()
		return nil, errTooLargeDocuments
	}
	return func() {
		s.held.Release(client, key)
		s.held.Release(client, op.document)
		unused()
	}, nil
}

// errTooLargeDocuments rejects an operation whose document and variables exceed the memory for subscriptions.
var errTooLargeDocuments = market.Errorf(market.CodeRateLimited,
	"the documents and variables of running subscriptions and waiting operations take too much memory; end some, shorten them, or use one document for several")
