// The key of the lab's service account: made once, told to clients in Google's own format, and asked of every request.
package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"strings"
	"time"
)

type key struct{ *rsa.PublicKey }

type serviceAccount struct {
	Type         string `json:"type"`
	ClientEmail  string `json:"client_email"`
	PrivateKeyID string `json:"private_key_id"`
	PrivateKey   string `json:"private_key"`
	BaseURL      string `json:"gcs_base_url"`
}

// Reads the key that an earlier run has left, or makes one.
func loadKey(path, url string) (key, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return makeKey(path, url)
	}
	if err != nil {
		return key{}, err
	}
	var account serviceAccount
	if err := json.Unmarshal(text, &account); err != nil {
		return key{}, err
	}
	block, _ := pem.Decode([]byte(account.PrivateKey))
	if block == nil {
		return key{}, errors.New("no PEM in " + path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return key{}, err
	}
	private, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return key{}, errors.New("no RSA key in " + path)
	}
	return key{&private.PublicKey}, nil
}

func makeKey(path, url string) (key, error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return key{}, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return key{}, err
	}
	text, err := json.Marshal(serviceAccount{
		Type:         "service_account",
		ClientEmail:  "backup@lab.internal",
		PrivateKeyID: "lab",
		PrivateKey:   string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		BaseURL:      url,
	})
	if err != nil {
		return key{}, err
	}
	// Renamed into place: a file that is there is whole.
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return key{}, err
	}
	return key{&private.PublicKey}, os.Rename(path+".new", path)
}

// Whether a request carries a token that the service account has signed and that is still good.
func (k key) signed(authorization string) bool {
	token, found := strings.CutPrefix(authorization, "Bearer ")
	parts := strings.Split(token, ".")
	if !found || len(parts) != 3 {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return false
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(k.PublicKey, crypto.SHA256, digest[:], signature) != nil {
		return false
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}
	var until struct {
		Exp int64 `json:"exp"`
	}
	return json.Unmarshal(claims, &until) == nil && time.Now().Unix() < until.Exp
}
