package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql/handler/transport"

	"oddsgraph/internal/market"
)

const (
	// keepAlive is the time between signs of life on an idle subscription.
	keepAlive = 15 * time.Second
	// initTimeout is how long a WebSocket may take to introduce itself.
	initTimeout = 10 * time.Second
)

// streams reports whether a request asks for a stream of events, which lasts as long as the client likes.
func streams(r *http.Request) bool {
	return r.Header.Get("Upgrade") != "" || strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// newWebSocket returns the transport of subscriptions over graphql-transport-ws. Credentials come in connection_init,
// under the same name as the header, since browsers can't set headers there.
func newWebSocket(cfg Config) transport.Websocket {
	limit := cfg.MaxBody
	return transport.Websocket{
		InitTimeout:      initTimeout,
		PingPongInterval: keepAlive,
		PayloadReadLimit: &limit,
		InitFunc: func(ctx context.Context, payload transport.InitPayload) (context.Context, *transport.InitPayload, error) {
			c, err := initCredentials(payload)
			if err != nil {
				return ctx, nil, err
			}
			if c != nil {
				ctx = market.WithCredentials(ctx, c)
			}
			return ctx, nil, nil
		},
	}
}

// initCredentials returns the credentials in a connection_init payload, nil where there are none. The payload's keys are
// compared without case.
func initCredentials(payload transport.InitPayload) (*market.Credentials, error) {
	var values []string
	for key, value := range payload {
		if !strings.EqualFold(key, CredentialsHeader) {
			continue
		}
		text, ok := value.(string)
		if !ok {
			return nil, market.Errorf(market.CodeBadUserInput, "%s in connection_init is not a text", CredentialsHeader)
		}
		values = append(values, text)
	}
	if len(values) == 0 {
		return nil, nil
	}
	return parseHeader(values)
}
