// Makes objects. The library could, but it holds them in memory while it does, and nobody else is served meanwhile.
package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Where the library looks for what it must know of an object: an extended attribute of its file.
const attribute = "user.metadata"

// What it must know, in its own words.
type facts struct {
	StorageClass string
	ContentType  string
	Crc32c       string
	Etag         string
	Created      string
	Updated      string
	Generation   int64
}

// The name of an object.
type target struct {
	Bucket string `json:"bucket"`
	Object string `json:"object"`
}

// An object that is being written. It isn't in its bucket before it is whole.
type draft struct {
	file *os.File
	hash hash.Hash32
}

func newDraft() (*draft, error) {
	file, err := os.CreateTemp("", "object-")
	return &draft{file, crc32.New(crc32.MakeTable(crc32.Castagnoli))}, err
}

func (d *draft) Write(content []byte) (int, error) {
	d.hash.Write(content)
	return d.file.Write(content)
}

func (d *draft) discard() {
	d.file.Close()
	os.Remove(d.file.Name())
}

func (s *server) putObject(w http.ResponseWriter, to target, r *http.Request) error {
	draft, err := newDraft()
	if err != nil {
		return err
	}
	defer draft.discard()
	if _, err := io.Copy(draft, r.Body); err != nil {
		return refusal{http.StatusBadRequest, "IncompleteBody"}
	}
	_, err = s.publish(w, to, draft, r.Header.Get("X-Goog-If-Generation-Match"))
	return err
}

// Puts an object into its bucket, and tells its version as the XML API does. If a generation is expected and another is there, or
// none where one is expected (0 expects none), everything stays as it is.
func (s *server) publish(w http.ResponseWriter, to target, from *draft, expected string) (etag string, err error) {
	s.replacing.Lock()
	defer s.replacing.Unlock()
	path := filepath.Join(s.root, "buckets", to.Bucket, to.Object)
	generation, err := generationOf(path)
	if err != nil {
		return "", err
	}
	if expected != "" && expected != strconv.FormatInt(generation, 10) {
		return "", refusal{http.StatusPreconditionFailed, "PreconditionFailed"}
	}
	now := time.Now().UTC()
	checksum := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, from.hash.Sum32()))
	known := facts{
		StorageClass: "STANDARD",
		ContentType:  "application/octet-stream",
		Crc32c:       checksum,
		Etag:         strconv.FormatInt(now.UnixMicro(), 16),
		Created:      now.Format(time.RFC3339Nano),
		Updated:      now.Format(time.RFC3339Nano),
		Generation:   now.UnixMicro(),
	}
	text, err := json.Marshal(known)
	if err != nil {
		return "", err
	}
	if err := syscall.Setxattr(from.file.Name(), attribute, text, 0); err != nil {
		return "", os.NewSyscallError("setxattr "+from.file.Name(), err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	if err := os.Rename(from.file.Name(), path); err != nil {
		return "", err
	}
	etag = strconv.Quote(known.Etag)
	w.Header().Set("ETag", etag)
	w.Header().Set("X-Goog-Generation", strconv.FormatInt(known.Generation, 10))
	return etag, nil
}

// The generation of an object; 0 if there is none.
func generationOf(path string) (int64, error) {
	text := make([]byte, 4096)
	length, err := syscall.Getxattr(path, attribute, text)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) {
		return 0, nil
	}
	if err != nil {
		return 0, os.NewSyscallError("getxattr "+path, err)
	}
	var known facts
	err = json.Unmarshal(text[:length], &known)
	return known.Generation, err
}
