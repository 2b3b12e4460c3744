package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// Try connects to the Redis of cfg.URL, writes a record and reads it again, with the scripts that replicas use. It returns the
// duration of the read. The record expires within a second. The error contains no addresses and no secrets.
func Try(ctx context.Context, cfg Config) (took time.Duration, err error) {
	option, err := parse(cfg.URL)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*probeTimeout)
	defer cancel()
	client, err := rueidis.NewClient(option)
	if err != nil {
		return 0, tryError(err)
	}
	defer client.Close()
	f := &Fleet{prefix: prefixOf(cfg.Venue), replica: "check"}
	now, err := client.Do(ctx, client.B().Time().Build()).AsStrSlice()
	if err != nil {
		return 0, tryError(err)
	}
	names := []string{f.prefix + "check:" + rand.Text()}
	stamp := fmt.Sprintf("%0*s", stampLen, now[0]+"000000")
	record := string(recordMark) + stamp + stamp + now[len(now)-1]
	if err := putScript.Exec(ctx, client, append(names, lockKeys(names)...), []string{f.replica, stamp, record, "1000"}).Error(); err != nil {
		return 0, tryError(err)
	}
	began := time.Now()
	args := []string{f.replica, "0", "100", "100", ""}
	read, err := claimScript.Exec(ctx, client, names, args).AsStrSlice() // loads the script
	if err == nil {
		began = time.Now()
		read, err = claimScript.Exec(ctx, client, names, args).AsStrSlice()
	}
	took = time.Since(began)
	if err == nil && (len(read) != 1 || read[0] == "") {
		err = errors.New("what was written is not returned")
	}
	return took, tryError(err)
}

// tryError returns an error with the reason of err, and with what Redis said.
func tryError(err error) error {
	if err == nil {
		return nil
	}
	if answer, ok := rueidis.IsRedisErr(err); ok {
		return fmt.Errorf("%s: %s", reason(err), answer.Error())
	}
	return errors.New(reason(err))
}
