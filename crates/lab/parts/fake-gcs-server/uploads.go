// Uploads in parts. Each has a folder, with a file that tells what it is to become and one for each part.
package main

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// What Google asks of every part but the last.
const smallestPart = 5 << 20

func (s *server) beginUpload(w http.ResponseWriter, to target) error {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	text, err := json.Marshal(to)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "target"), text, 0o600); err != nil {
		return err
	}
	// An upload that is among the others is whole.
	upload := filepath.Base(folder)
	if err := os.Rename(folder, filepath.Join(s.root, "uploads", upload)); err != nil {
		return err
	}
	return answerXML(w, struct {
		XMLName               xml.Name `xml:"InitiateMultipartUploadResult"`
		Bucket, Key, UploadId string
	}{Bucket: to.Bucket, Key: to.Object, UploadId: upload})
}

func (s *server) storePart(w http.ResponseWriter, upload, number string, body io.Reader) error {
	if part, err := strconv.Atoi(number); err != nil || part < 1 || part > 10000 {
		return refusal{http.StatusBadRequest, "InvalidArgument"}
	}
	folder, _, err := s.uploadFolder(upload)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "part-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	hash := md5.New()
	if _, err := io.Copy(io.MultiWriter(file, hash), body); err != nil {
		return refusal{http.StatusBadRequest, "IncompleteBody"}
	}
	w.Header().Set("ETag", strconv.Quote(hex.EncodeToString(hash.Sum(nil))))
	return os.Rename(file.Name(), filepath.Join(folder, number))
}

func (s *server) completeUpload(w http.ResponseWriter, upload string, r *http.Request) error {
	folder, to, err := s.uploadFolder(upload)
	if err != nil {
		return err
	}
	var order struct {
		Part []struct {
			PartNumber int
			ETag       string
		}
	}
	if err := xml.NewDecoder(r.Body).Decode(&order); err != nil || len(order.Part) == 0 {
		return refusal{http.StatusBadRequest, "MalformedCompleteMultipartUploadRequest"}
	}
	draft, err := newDraft()
	if err != nil {
		return err
	}
	defer draft.discard()
	for i, part := range order.Part {
		if i > 0 && part.PartNumber <= order.Part[i-1].PartNumber {
			return refusal{http.StatusBadRequest, "InvalidPartOrder"}
		}
		path := filepath.Join(folder, strconv.Itoa(part.PartNumber))
		size, etag, err := appendPart(draft, path)
		if os.IsNotExist(err) || (err == nil && etag != strings.Trim(part.ETag, `"`)) {
			return refusal{http.StatusBadRequest, "InvalidPart"}
		}
		if err != nil {
			return err
		}
		if size < smallestPart && i < len(order.Part)-1 {
			return refusal{http.StatusBadRequest, "EntityTooSmall"}
		}
	}
	etag, err := s.publish(w, to, draft, r.Header.Get("X-Goog-If-Generation-Match"))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return answerXML(w, struct {
		XMLName           xml.Name `xml:"CompleteMultipartUploadResult"`
		Bucket, Key, ETag string
	}{Bucket: to.Bucket, Key: to.Object, ETag: etag})
}

func appendPart(to io.Writer, path string) (size int64, etag string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer file.Close()
	hash := md5.New()
	size, err = io.Copy(io.MultiWriter(to, hash), file)
	return size, hex.EncodeToString(hash.Sum(nil)), err
}

func (s *server) abandonUpload(w http.ResponseWriter, upload string) error {
	folder, _, err := s.uploadFolder(upload)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *server) uploadFolder(upload string) (folder string, to target, err error) {
	folder = filepath.Join(s.root, "uploads", filepath.Base(upload))
	text, err := os.ReadFile(filepath.Join(folder, "target"))
	if err != nil {
		return "", to, refusal{http.StatusNotFound, "NoSuchUpload"}
	}
	return folder, to, json.Unmarshal(text, &to)
}

func answerXML(w http.ResponseWriter, value any) error {
	text, err := xml.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/xml")
	_, err = w.Write(append([]byte(xml.Header), text...))
	return err
}
