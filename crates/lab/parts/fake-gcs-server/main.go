// Google's object store as the lab has it: fake-gcs-server's library, and around it what the library lacks and clients need of the
// XML API: uploads, in one piece and in parts, a refusal of those who don't know the key, and a clear word about a bucket
// that isn't there. Reading, listing and deleting are the library's.
//
//	fake-gcs-server 10.199.0.2:4443 /var/lib/etcd-lab/stores/gcs
//
// The folder then holds `buckets`, the unfinished `uploads`, and `service-account.json`, the key.
package main

import (
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

type server struct {
	address string
	root    string
	key     key
	library http.Handler
	// Held while an object is compared with what a client expects, and replaced.
	replacing sync.Mutex
}

// An answer that is no success: what Google's XML API calls it.
type refusal struct {
	status int
	code   string
}

func (r refusal) Error() string { return r.code }

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: fake-gcs-server ADDRESS FOLDER")
	}
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func serve(address, root string) error {
	// What is being written is nowhere else, and of no use after a kill.
	temporary := filepath.Join(root, "tmp")
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}
	for _, folder := range []string{temporary, filepath.Join(root, "uploads")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	if err := os.Setenv("TMPDIR", temporary); err != nil {
		return err
	}
	key, err := loadKey(filepath.Join(root, "service-account.json"), "http://"+address)
	if err != nil {
		return fmt.Errorf("the key: %w", err)
	}
	library, err := fakestorage.NewServerWithOptions(fakestorage.Options{
		NoListener:  true,
		StorageRoot: filepath.Join(root, "buckets"),
		ExternalURL: "http://" + address,
		PublicHost:  address,
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	log.Printf("listening on %s", address)
	return http.Serve(listener, &server{address: address, root: root, key: key, library: library.HTTPHandler()})
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := s.answer(w, r)
	var refused refusal
	switch {
	case err == nil:
	case errors.As(err, &refused):
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(refused.status)
		fmt.Fprintf(w, "<?xml version='1.0' encoding='UTF-8'?><Error><Code>%s</Code></Error>", refused.code)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
	log.Printf("%s %s: %v", r.Method, r.URL, err)
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) error {
	if !s.key.signed(r.Header.Get("Authorization")) {
		return refusal{http.StatusUnauthorized, "AuthenticationRequired"}
	}
	bucket, object, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if _, err := os.Stat(filepath.Join(s.root, "buckets", bucket)); err != nil {
		return refusal{http.StatusNotFound, "NoSuchBucket"}
	}
	to := target{bucket, object}
	query := r.URL.Query()
	upload := query.Get("uploadId")
	switch {
	case r.Method == http.MethodPost && query.Has("uploads"):
		return s.beginUpload(w, to)
	case r.Method == http.MethodPut && upload != "":
		return s.storePart(w, upload, query.Get("partNumber"), r.Body)
	case r.Method == http.MethodPost && upload != "":
		return s.completeUpload(w, upload, r)
	case r.Method == http.MethodDelete && upload != "":
		return s.abandonUpload(w, upload)
	case r.Header.Get("X-Goog-Copy-Source") != "":
		return refusal{http.StatusNotImplemented, "NotImplemented"}
	case r.Method == http.MethodPut:
		return s.putObject(w, to, r)
	}
	// Under whatever name it was called: the library goes by the name.
	r.Host = s.address
	s.library.ServeHTTP(w, r)
	return nil
}
