// A client of etcd as most are: clientv3 with its default settings and one endpoint. It writes a key and reads it back, again and
// again, until its standard input ends, and then prints one line of JSON: what was acknowledged, and the longest stalls.
//
//	client http://c-client:2379 some/prefix/
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// What happened to one kind of request.
type record struct {
	Acknowledged int     `json:"acknowledged"`
	Errors       int     `json:"errors"`
	LongestMs    float64 `json:"longestMs"`
	// When the longest stall was over, to look up in logs what else happened then.
	LongestUntil time.Time `json:"longestUntil"`
	last         time.Time
}

// The longest time without success: from one that was acknowledged to the next.
func (r *record) acknowledged() {
	r.Acknowledged++
	r.pause()
	r.last = time.Now()
}

func (r *record) pause() {
	if pause := time.Since(r.last).Seconds() * 1000; pause > r.LongestMs {
		r.LongestMs, r.LongestUntil = pause, time.Now()
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: client <endpoint> <prefix of the keys>")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(endpoint, prefix string) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	if err != nil {
		return err
	}
	defer client.Close()
	// The first request connects, which is no stall.
	if _, err := get(client, prefix); err != nil {
		return err
	}

	var ended atomic.Bool
	go func() {
		io.Copy(io.Discard, os.Stdin)
		ended.Store(true)
	}()
	writes, reads := record{last: time.Now()}, record{last: time.Now()}
	for !ended.Load() {
		// Counted up only when a write was acknowledged: each key below the count must be there in the end.
		key := fmt.Sprintf("%s%08d", prefix, writes.Acknowledged)
		value := strconv.Itoa(writes.Acknowledged)
		if err := put(client, key, value); err != nil {
			writes.failed(err)
			continue
		}
		writes.acknowledged()
		if found, err := get(client, key); err != nil {
			reads.failed(err)
		} else if found != value {
			return fmt.Errorf("lost: %s was acknowledged as %s and is read as %q", key, value, found)
		} else {
			reads.acknowledged()
		}
	}
	// A stall that has not ended is one too.
	writes.pause()
	reads.pause()
	return json.NewEncoder(os.Stdout).Encode(map[string]record{"writes": writes, "reads": reads})
}

func (r *record) failed(err error) {
	r.Errors++
	fmt.Fprintln(os.Stderr, time.Now().Format(time.RFC3339Nano), err)
}

func put(client *clientv3.Client, key, value string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err := client.Put(ctx, key, value)
	return err
}

// Reads what a quorum has; nothing if there is no such key.
func get(client *clientv3.Client, key string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	answer, err := client.Get(ctx, key)
	if err != nil || len(answer.Kvs) == 0 {
		return "", err
	}
	return string(answer.Kvs[0].Value), nil
}
