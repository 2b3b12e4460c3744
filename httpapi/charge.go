package httpapi

import (
	"net/netip"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
)

// charge counts a subscription against the limits of a client until the function release is called. It counts the execution, the
// ids, the document and the variables of the subscription. The parameter own is the number of further bytes to count.
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

// hold counts the memory of an operation until the function release is called: the document, the variables, and as many further
// bytes as the parameter own says. The document counts once for all operations with this document. The variables and the further
// bytes count once for all operations with the same key. If clients share a document or a key, its memory counts against the limit
// of one of these clients.
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

// errTooLargeDocuments is the error for an operation whose document or variables do not fit into the memory for subscriptions.
var errTooLargeDocuments = market.Errorf(market.CodeRateLimited,
	"the documents and variables of running subscriptions and waiting operations take too much memory; end some, shorten them, or use one document for several")
