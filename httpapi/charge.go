package httpapi

import (
	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
)

// charge counts a subscription against the limits of a client until release is called. It counts the execution, the ids, the
// document, the variables, and extraBytes further bytes.
func (s *subscriptions) charge(client quota.Client, key fanout.Key, op *operation, extraBytes int) (release func(), err error) {
	ids := op.watchedIDs()
	if err := s.clients.Execute(client, ids); err != nil {
		return nil, err
	}
	releaseMemory, err := s.hold(client, key, op, extraBytes)
	if err != nil {
		s.clients.Executed(client, ids)
		return nil, err
	}
	return func() {
		releaseMemory()
		s.clients.Executed(client, ids)
	}, nil
}

// hold counts the memory of an operation until release is called: the document, the variables, and extraBytes further bytes. The
// document counts once for all operations with this document. The variables and the further bytes count once for all operations
// with the same key. If several clients use the same document or key, the memory counts against the limit of one of these clients.
func (s *subscriptions) hold(client quota.Client, key any, op *operation, extraBytes int) (release func(), err error) {
	size, documentDone := s.engine.documents.use(op.document)
	if !s.held.Hold(client, op.document, size) {
		documentDone()
		return nil, errTooLargeDocuments
	}
	if !s.held.Hold(client, key, bytesOfValue(op.variables)+extraBytes) {
		s.held.Release(client, op.document)
		documentDone()
		return nil, errTooLargeDocuments
	}
	return func() {
		s.held.Release(client, key)
		s.held.Release(client, op.document)
		documentDone()
	}, nil
}

var errTooLargeDocuments = market.Errorf(market.CodeRateLimited,
	"the documents and variables of running subscriptions and waiting operations take too much memory; end some, shorten them, or use one document for several")
