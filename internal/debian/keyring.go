package debian

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"kprobelab/internal/bounded"
)

// ErrSignature is an index without a signature by one of the keys.
var ErrSignature = errors.New("its signature is not good")

// ErrKeys are keys that cannot be used.
var ErrKeys = errors.New("no keys to check signatures with")

// Keyring has the keys whose signatures count.
type Keyring struct{ keys openpgp.EntityList }

// ReadKeyring reads files of keys, packed (.gpg) or as text (.asc). Of several files, a key that
// cannot be read or used is skipped, but there must be one key.
func ReadKeyring(files ...string) (*Keyring, error) {
	k := &Keyring{}
	var first error
	for _, name := range files {
		b, err := bounded.ReadFile(name, bounded.SourcesFile)
		if err == nil {
			if err = k.add(b); err != nil {
				err = fmt.Errorf("%w: %s has none (%w)", ErrKeys, name, err)
			}
		}
		if err != nil && first == nil {
			first = err
		}
	}
	switch {
	case len(k.keys) > 0:
		return k, nil
	case first != nil:
		return nil, first
	}
	return nil, fmt.Errorf("%w: the system has none for Debian (its package debian-archive-keyring has them; --keyring FILE names others)", ErrKeys)
}

// ParseKeyring reads a text with keys.
func ParseKeyring(text string) (*Keyring, error) {
	k := &Keyring{}
	if err := k.add([]byte(text)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeys, err)
	}
	return k, nil
}

func (k *Keyring) add(b []byte) (err error) {
	// The library is not made for every damaged file.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the keys are damaged")
		}
	}()
	read := openpgp.ReadKeyRing
	if bytes.Contains(b, []byte("BEGIN PGP PUBLIC KEY BLOCK")) {
		read = openpgp.ReadArmoredKeyRing
	}
	keys, err := read(bytes.NewReader(b))
	if err != nil {
		return oneLine(err)
	}
	if len(keys) == 0 {
		return errors.New("it is empty")
	}
	k.keys = append(k.keys, keys...)
	return nil
}

// Inline returns the text of a message with its signature around it (InRelease), if the signature is good at a time.
func (k *Keyring) Inline(message []byte, at time.Time) (text []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			text, err = nil, fmt.Errorf("%w: it is damaged", ErrSignature)
		}
	}()
	block, rest := clearsign.Decode(message)
	if block == nil {
		return nil, fmt.Errorf("%w: there is none", ErrSignature)
	}
	// Text outside of the block is not signed.
	begin, _, _ := bytes.Cut(message, []byte("-----BEGIN PGP SIGNED MESSAGE-----"))
	if len(bytes.TrimSpace(rest)) > 0 || len(bytes.TrimSpace(begin)) > 0 {
		return nil, fmt.Errorf("%w: there is text outside of what is signed", ErrSignature)
	}
	if err := k.check(block.Bytes, block.ArmoredSignature.Body, at); err != nil {
		return nil, err
	}
	return block.Plaintext, nil
}

// Detached checks a text with its signature beside it (Release, Release.gpg).
func (k *Keyring) Detached(text, signature []byte, at time.Time) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it is damaged", ErrSignature)
		}
	}()
	r := io.Reader(bytes.NewReader(signature))
	if bytes.Contains(signature, []byte("BEGIN PGP SIGNATURE")) {
		block, err := armor.Decode(r)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrSignature, oneLine(err))
		}
		r = block.Body
	}
	return k.check(text, r, at)
}

// check checks each signature by itself: one must be good, and no known key's may be wrong. A
// signature of an unknown key does not count.
func (k *Keyring) check(text []byte, signatures io.Reader, at time.Time) error {
	config := &packet.Config{Time: func() time.Time { return at }}
	good, packets := false, packet.NewReader(signatures)
	reason := errors.New("there is none")
	for {
		p, err := packets.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrSignature, oneLine(err))
		}
		s, ok := p.(*packet.Signature)
		if !ok {
			continue
		}
		var one bytes.Buffer
		if err := s.Serialize(&one); err != nil {
			return fmt.Errorf("%w: %w", ErrSignature, oneLine(err))
		}
		_, err = openpgp.CheckDetachedSignature(k.keys, bytes.NewReader(text), &one, config)
		var wrong pgperrors.SignatureError
		switch {
		case err == nil:
			good = true
		case errors.Is(err, pgperrors.ErrUnknownIssuer):
			reason = fmt.Errorf("it is by a key (%X) that is not among the known ones", id(s))
		case errors.As(err, &wrong):
			return fmt.Errorf("%w: the text is not the one that was signed", ErrSignature)
		default:
			reason = oneLine(err)
		}
	}
	if !good {
		return fmt.Errorf("%w: %w", ErrSignature, reason)
	}
	return nil
}

// id names the key of a signature.
func id(s *packet.Signature) uint64 {
	if s.IssuerKeyId == nil {
		return 0
	}
	return *s.IssuerKeyId
}

// oneLine keeps an error of the library's short.
func oneLine(err error) error {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(strings.TrimPrefix(text, "openpgp: "))
}
